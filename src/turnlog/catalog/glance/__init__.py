"""What the two ends of a file show of a session: for the first answer, before anything is indexed.

Loads no format: that alone would take longer than the answer may. A value is the one that the format reads, or
missing; the index replaces all of it.
"""

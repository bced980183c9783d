"""What a look at the two ends of a file tells of a session: for the first answer, before anything is indexed.

Loads no format: that alone would take longer than the answer may. What it tells is what the formats read as well, or
nothing; the index puts all of it in its place.
"""

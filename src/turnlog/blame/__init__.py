"""Blame: which turn of which session wrote a line, as proved by checkpoints, never by times.

version · alignment      a file at a checkpoint; the lines of one version matched with those of another
rename                   the earlier name of a file
repository · gitchange   asking git; what it did to a file between two checkpoints
trail                    from one checkpoint to the one before, until each line has an author or a reason for none
authorship · commit      the answers for a file and for a commit
trace                    the same as an Agent Trace record
"""

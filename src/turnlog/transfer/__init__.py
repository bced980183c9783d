"""Transferring sessions from one home to another: push, pull, merge.

outgoing · renumber     a session as the target gets it: unchanged, or as a fork with other seqs
agreement · original    what both sides have; a session that came from the target
mover · family          one run: parents first, blobs before lines; sessions that are transferred together
blobs · private         the blobs that lines need; ignored files, on request
merge · erased          facts and notes of both sides; erasures of both sides
renaming · report       a session under another id; what came of each session
"""

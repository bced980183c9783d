"""Sessions for whoever shows them: found by name, opened for reading, part by part. No terminal, no arguments.

    with SessionOpener().read("codex:0199") as opened:    ours, or another agent's where it lies; None: the newest here
        part = part_of(opened.session, last=5)
        part.entries(opened.session)

opener     opens the session that a word means: nothing is locked, nothing is written
name       which session a word means; `candidate` lists those that fit where several do
foreign    another agent's session, read into a home that is gone afterwards
folder     which folder is "here", and which sessions are of it
conversation  a session in pieces, any of which is read without the rest
foreignlog  another agent's session in memory: read once, grown from the mark
desk       sessions that somebody looks at, kept open
part       the last messages, what is around an entry, a branch
follow     what is appended while a session goes on
place      entries to go back to, as people name them
shortname  what to type for a session, as short as it may be
"""

"""Sessions for viewers: found by name, opened for reading, part by part. No terminal, no arguments.

    with SessionOpener().read("codex:0199") as opened:  # ours, or another agent's where it lies; None: the newest here
        part = part_of(opened.session, last=5)
        part.entries(opened.session)

naming     which session a word means, and which folder is "here"
opening    opens that session: nothing is locked, nothing is written; `follow` reads what is appended
viewing    sessions that a viewer keeps open: read once, in pieces, and then only what is new
export     a session as a document, or as spans
agents     the agents on this machine: their sessions, hooks and limits
part       the last messages, what is around an entry, a branch
place      entries to go back to, as people name them; `takeback` goes back to one
markable   what people can say of a session: title, tags, notes
nestedrun  agents that ran inside a `turnlog run`; `forkparent` says what forks continue
"""

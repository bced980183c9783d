"""The files of a session: checkpoints of them, and rewinding to these.

coverage · snapshot             taking a checkpoint: which files are covered, and scanning them
lateroot                        folders that were covered later (`thread.overlay` reads the tree of a checkpoint)
bracket · nocheckpoint          a checkpoint at both ends of a turn, or the reason why there is none
relay · register                turns that hooks report, process by process; which processes work in turns
span                            which changes are the session's own: those in its turns and rewinds
others                          the work of other sessions in the same folders
timeline · timelinereader       the checkpoints of all sessions in one order, from their logs
attribution                     which session made a change that several saw
difference                      what changed between two checkpoints, for people
files · selection               the files of a session now and then; those that a caller named
planner · rootplan              what a rewind would do: the whole plan, and the part about one folder
intent · rewinder               doing it, so that it can be finished or taken back after an interruption
"""

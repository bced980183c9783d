"""`turnlog` alone: what there is, what it cost, and what needs a look."""

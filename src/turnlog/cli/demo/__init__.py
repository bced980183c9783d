"""`turnlog demo`: a story told by doing it."""

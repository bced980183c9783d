"""`turnlog setup`: its parts, each planned before anything is changed, and each to be taken back."""

"""Which files git would ignore: patterns, the rules of a folder, and those of the user and the repository."""

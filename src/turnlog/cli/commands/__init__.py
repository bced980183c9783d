"""One file per command: its name is the command's, its `command` is the command, its docstring is the help."""

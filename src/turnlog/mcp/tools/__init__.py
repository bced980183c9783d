"""One file per tool: its name is the tool's, and its `call` gives what the tool answers with."""

"""One file per tool, named like the tool; its `call` returns the result."""

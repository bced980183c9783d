"""The session that a command is about, and the catalog: `reader`, with a terminal to tell how far it is."""

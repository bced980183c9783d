"""The session, the agents and the catalog that a command is about: `reader`, with a terminal to tell how far it is."""

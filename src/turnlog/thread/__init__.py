"""The thread of one log: its state, its history, and how entries are appended to it."""

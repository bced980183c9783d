"""Which turn of which session wrote a line: told by checkpoints, never by the time."""

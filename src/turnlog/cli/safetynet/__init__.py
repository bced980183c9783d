"""Files of a session: checkpoints of them, rewinding to these, and who wrote a line."""

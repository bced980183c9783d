"""The workspace of a session: checkpoints of it, and going back to them."""

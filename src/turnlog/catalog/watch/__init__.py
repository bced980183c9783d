"""Watching the disk: where the agents keep sessions, and which of them changed."""

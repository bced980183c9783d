"""Sessions of other agents: brought in, written for them, handed over."""

HEADER = "source_header"
"""The fact that says what a source says of itself, where the session was made before that could be read: by a hook."""

"""Which session, and which part of it, is meant."""

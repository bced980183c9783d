"""A session opened for reading."""

"""Sessions that a viewer keeps open."""

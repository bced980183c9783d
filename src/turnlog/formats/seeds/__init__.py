"""The five agents that Turnlog grew out of."""

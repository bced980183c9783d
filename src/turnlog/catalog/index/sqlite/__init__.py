"""The index in a file of this machine."""

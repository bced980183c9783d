"""The five agents that Turnlog grew out of, still read and written to the byte."""

"""Which session a word means, and which folder is "here"."""

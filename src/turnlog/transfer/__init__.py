"""Sessions from one home to another: push, pull, merge."""

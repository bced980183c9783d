"""Sessions of other agents: brought in, written for them, handed over."""

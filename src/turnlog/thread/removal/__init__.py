"""Removing for good: sessions with what was made of them, what is past its time, single entries."""

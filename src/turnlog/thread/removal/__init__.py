"""Removing for good: sessions with their forks and subagents, expired sessions, single entries."""

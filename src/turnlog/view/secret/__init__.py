"""Secrets in texts: found and replaced."""

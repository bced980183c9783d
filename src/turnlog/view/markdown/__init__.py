"""Markdown: parsed, and written so that it is only text."""

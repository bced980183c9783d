"""Rows as lines of text on a terminal."""

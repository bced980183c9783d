"""Declaring, parsing and ending a command; JSON documents; the terminal."""

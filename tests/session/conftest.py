"""Every session test runs through every face."""

from tests.faces import files, home, place, s

__all__ = ["files", "home", "place", "s"]

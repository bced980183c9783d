"""What a session says of its cost is asked through every face."""

from tests.faces import home, place, s

__all__ = ["home", "place", "s"]

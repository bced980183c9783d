"""The objects people hold: a home full of sessions, and a session."""

from __future__ import annotations

from turnlog.session.home import Home, open_home
from turnlog.session.session import Session

__all__ = ["Home", "Session", "open_home"]

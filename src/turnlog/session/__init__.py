"""The objects people hold: a home, a session, and a session to look at. Each is imported when it is first used."""

from __future__ import annotations

TYPE_CHECKING = False  # as type checkers know it; see `turnlog`
if TYPE_CHECKING:
    from turnlog.session.home import Home
    from turnlog.session.opening import open_home
    from turnlog.session.readonly import ReadOnlySession
    from turnlog.session.session import Session

__all__ = ["Home", "ReadOnlySession", "Session", "open_home"]

if not TYPE_CHECKING:
    _WHERE = {"Home": "home", "open_home": "opening", "ReadOnlySession": "readonly", "Session": "session"}

    def __getattr__(name):
        from importlib import import_module

        if name not in _WHERE:
            raise AttributeError(f"module 'turnlog.session' has no attribute {name!r}")
        member = globals()[name] = getattr(import_module(f"turnlog.session.{_WHERE[name]}"), name)
        return member

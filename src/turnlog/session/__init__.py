"""The objects of the public interface: a home, a session, and a read-only session.

Each is imported at its first use.
"""

from __future__ import annotations

TYPE_CHECKING = False  # recognised by type checkers; see `turnlog`
if TYPE_CHECKING:
    from turnlog.session.home import Home
    from turnlog.session.opening import open_home
    from turnlog.session.readonly import ReadOnlySession
    from turnlog.session.session import Session

__all__ = ["Home", "ReadOnlySession", "Session", "open_home"]

if not TYPE_CHECKING:
    _MODULES = {"Home": "home", "open_home": "opening", "ReadOnlySession": "readonly", "Session": "session"}

    def __getattr__(name):
        from importlib import import_module

        if name not in _MODULES:
            raise AttributeError(f"module 'turnlog.session' has no attribute {name!r}")
        member = globals()[name] = getattr(import_module(f"turnlog.session.{_MODULES[name]}"), name)
        return member

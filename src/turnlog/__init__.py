"""The session layer for AI coding agents: a durable, append-only log of what an agent said and did.

A name is imported when it is first used: whoever needs only some of them, as `turnlog ls` does, waits for no others.
"""

from __future__ import annotations

from turnlog.version import __version__

TYPE_CHECKING = False  # as type checkers know it; importing `typing` would be half of what this module costs
if TYPE_CHECKING:
    from turnlog.catalog import Catalog
    from turnlog.errors import (
        AlreadyExists,
        Ambiguous,
        Conflict,
        Corrupt,
        Invalid,
        NotFound,
        OutOfSpace,
        TurnlogError,
        TurnlogWarning,
        Unavailable,
        Unsupported,
    )  # fmt: skip
    from turnlog.log.block import File, Image, Text, Thinking, ToolCall, ToolResult, UnknownBlock
    from turnlog.log.codec import Damage
    from turnlog.log.context import Context
    from turnlog.log.entry import Compaction, Custom, Edit, Entry, Message, Note, Ref, Set, Spent
    from turnlog.log.usage import Usage, UsageReport
    from turnlog.session import Home, Session
    from turnlog.session import open_home as open
    from turnlog.session.instructions import instructions

__all__ = [
    "AlreadyExists", "Ambiguous", "Catalog", "Compaction", "Conflict", "Context", "Corrupt", "Custom", "Damage",
    "Edit", "Entry", "File", "Home", "Image", "Invalid", "Message", "NotFound", "Note", "OutOfSpace", "Ref",
    "Session", "Set", "Spent", "Text", "Thinking", "ToolCall", "ToolResult", "TurnlogError", "TurnlogWarning",
    "Unavailable", "UnknownBlock", "Unsupported", "Usage", "UsageReport", "__version__", "instructions", "open",
]  # fmt: skip

if not TYPE_CHECKING:  # a type checker that saw `__getattr__` would take every name to exist
    _WHERE = {
        "turnlog.catalog": "Catalog",
        "turnlog.errors": (
            "AlreadyExists Ambiguous Conflict Corrupt Invalid NotFound OutOfSpace TurnlogError TurnlogWarning "
            "Unavailable Unsupported"
        ),
        "turnlog.log.block": "File Image Text Thinking ToolCall ToolResult UnknownBlock",
        "turnlog.log.codec": "Damage",
        "turnlog.log.context": "Context",
        "turnlog.log.entry": "Compaction Custom Edit Entry Message Note Ref Set Spent",
        "turnlog.log.usage": "Usage UsageReport",
        "turnlog.session": "Home Session",
        "turnlog.session.instructions": "instructions",
    }
    _HOME = {name: module for module, names in _WHERE.items() for name in names.split()}

    def __getattr__(name):
        from importlib import import_module

        if name == "open":
            found = import_module("turnlog.session").open_home
        elif name in _HOME:
            found = getattr(import_module(_HOME[name]), name)
        else:
            raise AttributeError(f"module 'turnlog' has no attribute {name!r}")
        globals()[name] = found
        return found

    def __dir__():
        return sorted({*globals(), *__all__})

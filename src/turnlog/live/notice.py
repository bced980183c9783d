"""The note for a model whose turn begins: which files a rewind changed since its last turn."""

from __future__ import annotations

from turnlog.errors import Corrupt, NotFound
from turnlog.log.entry import Head, Intent, Turn
from turnlog.log.text import one_line
from turnlog.rewind.intent import paths_of
from turnlog.thread.history import History

_NAMED = 8
_NAME_CHARACTERS = 110
"""Eight names fit into the 4,000 bytes that an agent gets, whatever their characters are."""
_WHAT = {"undo": "brought back", "redo": "took back again"}


def taken_back(history: History) -> str:
    """Return the sentence; "" if no files were moved since the last turn ended."""
    for entry in history.back():
        if isinstance(entry, Turn):
            return ""
        if isinstance(entry, Head) and entry.origin is None and entry.intent:
            return _sentence(history, entry)
    return ""


def _sentence(history: History, moved: Head) -> str:
    intent = history.at(moved.intent)
    try:
        paths = paths_of(history.whole(intent), moved) if isinstance(intent, Intent) else None
    except (Corrupt, NotFound):
        return ""
    if not paths:
        return ""
    workspace = f"{history.state.wide.get('workspace')}/"
    names = sorted(_quoted(path.removeprefix(workspace)) for path in paths)
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return (
        f"Note: since your last turn the user {_WHAT.get(moved.why, 'took back')} changes of earlier turns, so these "
        f"files are no longer as you remember them: {', '.join(names[:_NAMED])}{more}.\n"
    )


def _quoted(path: str) -> str:
    """Return a path in quotation marks on one line: a model must not take a part of a name for a message."""
    line = one_line(path, _NAME_CHARACTERS)
    visible = "".join(character if character.isprintable() else "\ufffd" for character in line)
    return '"' + visible.replace("\\", "\\\\").replace('"', '\\"') + '"'

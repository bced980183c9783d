"""What a model is told as its turn begins: which files were taken back since its last one. One sentence, or nothing."""

from __future__ import annotations

from turnlog.errors import Corrupt, NotFound
from turnlog.log.entry import Head, Intent, Turn
from turnlog.rewind.intent import paths_of
from turnlog.thread.history import History

_NAMED = 8
_WHAT = {"undo": "brought back", "redo": "took back again"}


def taken_back(history: History) -> str:
    """The sentence, if files were moved since the last turn ended."""
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
    names = sorted(path.removeprefix(workspace) for path in paths)
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return (
        f"Note: since your last turn the user {_WHAT.get(moved.why, 'took back')} changes of earlier turns, so these "
        f"files are no longer as you remember them: {', '.join(names[:_NAMED])}{more}.\n"
    )

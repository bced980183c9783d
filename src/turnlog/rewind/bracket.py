"""The ends of a turn, with the files as they are then. No turn is lost because of its files."""

from __future__ import annotations

from itertools import islice

from msgspec.structs import replace

from turnlog.errors import TurnlogError, Unavailable
from turnlog.log.entry import Entry, Note, Turn
from turnlog.rewind.files import Files
from turnlog.rewind.register import enter, leave
from turnlog.store import Store
from turnlog.thread.appender import Appender

_LOOK_BACK = 200
"""A refusal that was noted in so many entries is not noted again."""


class Bracket:
    """Appends the ends of a session's turns."""

    def __init__(self, store: Store, appender: Appender, files: Files) -> None:
        self._store = store
        self._history = appender.history
        self._files = files
        self._append = appender.append
        self._noted = ""
        self._begun: str | None = None
        """The turn that began with a checkpoint."""
        self._gone: set[str] = set()
        """Processes of which the log says that they are gone."""

    def append(self, turn: Turn, when: str) -> None:
        """The end of a turn, after a checkpoint; where that cannot be had, after a note that says why."""
        refused = self._files.why_not()
        if not refused and self._begun != turn.turn:  # what was there at the beginning may be gone at the end
            refused = self._missing()
        if refused:
            note = [] if self._is_noted(refused) else [_note("turns take no checkpoints", refused, turn)]
            self._append([*note, turn])
            return
        gone = self._known_gone(turn, when)
        before: Entry | None = None
        try:
            with self._store.keeping():
                before = replace(self._files.take(when=when), turn=turn.turn, gone=gone)
                self._begun = turn.turn
                self._append([before, turn])
        except (TurnlogError, OSError) as error:
            if before is not None:
                raise
            hint = f" ({error.hint})" if isinstance(error, TurnlogError) and error.hint else ""
            self._append([_note(f"no checkpoint at the {when} of this turn", f"{error}{hint}", turn), turn])
        if when == "end" and turn.turn is not None:
            leave(self._store, turn.turn)

    def _known_gone(self, turn: Turn, when: str) -> list[str]:
        """Asked before anything is looked at: what those processes did is in the checkpoint."""
        if when != "begin" or turn.turn is None:
            return []
        gone = [word for word in enter(self._store) if word not in self._gone]
        self._gone.update(gone)
        return gone

    def _missing(self) -> str:
        try:
            return self._files.missing()
        except Unavailable as error:
            return str(error)

    def _is_noted(self, refused: str) -> bool:
        if self._noted != refused:
            self._noted = refused
            last = islice(self._history.back(), _LOOK_BACK)
            return any(isinstance(entry, Note) and entry.data == _data(refused) for entry in last)
        return True


def _note(what: str, reason: str, turn: Turn) -> Note:
    return Note(text=f"{what}: {reason}", data=_data(reason), turn=turn.turn)


def _data(reason: str) -> dict[str, str]:
    return {"no_checkpoint": reason}

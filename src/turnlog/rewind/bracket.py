"""Appending the ends of turns, each with a checkpoint. A turn is never lost because of its files."""

from __future__ import annotations

from itertools import islice

from msgspec.structs import replace

from turnlog.errors import TurnlogError, Unavailable
from turnlog.log.entry import Entry, Turn
from turnlog.rewind.coverage import Coverage
from turnlog.rewind.nocheckpoint import no_checkpoint, reason_of
from turnlog.rewind.register import Worker, enter, leave, this_worker
from turnlog.store import Store
from turnlog.thread.appender import Appender

_LOOK_BACK = 200
"""A refusal that was noted within this many entries is not noted again."""


class Bracket:
    """Appends the ends of a session's turns."""

    def __init__(self, store: Store, appender: Appender, files: Coverage) -> None:
        self._store = store
        self._history = appender.history
        self._files = files
        self._append = appender.append
        self._noted = ""
        self._begun: str | None = None
        """The turn that began with a checkpoint."""
        self._gone: set[str] = set()
        """Processes that the log already reports as gone."""

    def append(self, turn: Turn, when: str) -> None:
        """Append an end of a turn, after a checkpoint; if none can be taken, after a note that says why."""
        is_inside = self._begun == turn.turn  # a workspace that existed at the beginning may be missing at the end
        with self._store.keeping():
            gone = self.known_gone(this_worker()) if when == "begin" and turn.turn is not None else []
            before = self.files_at(turn, when, gone=gone, is_inside=is_inside)
            self._append([*before, turn])
        if when == "end" and turn.turn is not None:
            leave(self._store, turn.turn)

    def files_at(self, turn: Turn, when: str, *, gone: list[str], is_inside: bool) -> list[Entry]:
        """The entries before an end of a turn: a checkpoint, or a note that says why there is none.

        The caller is inside `keeping` until they are in the log. `is_inside`: the turn began with a checkpoint.
        """
        refused = self._files.why_not()
        if not refused and not is_inside:
            refused = self._missing()
        if refused:
            return [] if self._is_noted(refused) else [no_checkpoint("turns take no checkpoints", refused, turn)]
        try:
            taken = self._files.take(when=when)
        except (TurnlogError, OSError) as error:
            hint = f" ({error.hint})" if isinstance(error, TurnlogError) and error.hint else ""
            return [no_checkpoint(f"no checkpoint at the {when} of this turn", f"{error}{hint}", turn)]
        self._begun = turn.turn
        return [replace(taken, turn=turn.turn, gone=gone)]

    def known_gone(self, worker: Worker) -> list[str]:
        """Processes that are newly known to be gone.

        Call it before a scan: then their changes are in the checkpoint.
        """
        gone = [word for word in enter(self._store, worker) if word not in self._gone]
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
            return any(reason_of(entry) == refused for entry in last)
        return True

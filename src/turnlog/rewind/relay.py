"""Turns across processes: one process begins a turn, others report what its tools did, another one ends it.

The hooks of agents work like this: each is a short process of its own. The turn belongs to the agent's process, and has
the agent's own id for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from turnlog.errors import Conflict
from turnlog.log.entry import Changed, Checkpoint, Entry, Track, Turn, TurnState, Writer
from turnlog.log.ids import word, word_for
from turnlog.rewind.bracket import Bracket
from turnlog.rewind.coverage import Coverage
from turnlog.rewind.nocheckpoint import no_checkpoint
from turnlog.rewind.register import Worker
from turnlog.store import Store
from turnlog.thread.appender import Appender
from turnlog.thread.space.checkpointcontent import given_up
from turnlog.version import __version__

LATE = "late"
"""The `when` of a checkpoint for the beginning of a turn that took too long: it is of some time in the turn."""


_NATIVE = "-turn:"


def native_of(turn: str | None) -> str | None:
    """The agent's own id of a turn; None for a turn that hooks do not report."""
    return turn.partition(_NATIVE)[2] or None if turn is not None else None


def worker_of(who: dict[str, Any] | None) -> Worker:
    """The process that a turn belongs to; an unknown process never counts as running."""
    if who is None:
        return Worker(word(12), {})
    return Worker(word_for(msgspec.json.encode(who, order="sorted")), who)


class TurnRelay:
    """Appends what hooks report of the turns of one session. The appender is a guest."""

    def __init__(self, store: Store, appender: Appender, files: Coverage) -> None:
        self._store = store
        self._appender = appender
        self.history = appender.history
        self._files = files
        self._bracket = Bracket(store, appender, files)

    @property
    def open_turn(self) -> str | None:
        """The turn that is open."""
        return self._appender.state.turn

    def _is_open(self, native: str | None) -> bool:
        turn = self.open_turn
        return turn is not None and native in (None, native_of(turn))

    def begin(self, native: str, worker: Worker, refused: str = "", within: str | None = None) -> bool:
        """Begin a turn. A turn that is still open was interrupted: it ended where its last tool ended.

        Idempotent; returns whether the turn was new. `refused` is the reason for taking no checkpoint.
        """
        if self._has_begun(native):
            return False
        turn = Turn(state="begin", turn=f"{worker.word}{_NATIVE}{native}", native=native, within=within)
        with self._store.keeping():
            gone = self._bracket.known_gone(worker) if worker.who else []
            files = self._files_at(turn, "begin", refused, gone)
            return self._append(
                lambda: None if self._has_begun(native) else [*self._opening_entries(worker), *files, turn]
            )

    def _has_begun(self, native: str) -> bool:
        state = self._appender.state
        return native in (native_of(state.turn), native_of(state.turn_before))

    def _opening_entries(self, worker: Worker) -> list[Entry]:
        """Report which process works in the turn, if it is new, and the end of the turn that was open until now."""
        state = self._appender.state
        entries: list[Entry] = []
        if worker.who and worker.word not in state.writers:
            entries.append(Writer(word=worker.word, version=__version__, **worker.who))
        if state.turn is not None:
            entries.append(Turn(state="aborted", turn=state.turn))
        return entries

    def cover_folder(self, folder: str) -> None:
        """Record that the agent also works in this folder: checkpoints cover it from here on."""
        turn = self.open_turn
        self._append(
            lambda: (
                [Track(path=folder, is_folder=True, turn=turn)] if folder not in self._appender.state.folders else None
            )
        )

    def record_tool(self, native: str | None, changed: Sequence[str] = (), tracked: Sequence[str] = ()) -> bool:
        """Record that a tool ended in the open turn. `changed` are the files it reports, `tracked` those outside.

        If the tool changed nothing, nothing is written.
        """
        if not self._is_open(native) or self._files.why_not():
            return False
        turn = self.open_turn
        new = [path for path in tracked if path not in self._appender.state.tracked]
        if new:
            self._append(lambda: [Track(path=path, turn=turn) for path in new])
        drafts: list[Entry] = [Changed(paths=list(changed), turn=turn)] if changed else []
        with self._store.keeping():
            seen = replace(self._files.take(when="tool"), turn=turn)
            if not drafts and self._is_last(seen):
                return False
            # The declared changes are between this checkpoint and the previous one, so it is written even without news.
            return self._append(lambda: [*drafts, seen] if self.open_turn == turn else None)

    def _is_last(self, seen: Checkpoint) -> bool:
        """Whether the turn's last checkpoint has the same content."""
        for entry in self.history.back():
            if isinstance(entry, Checkpoint):
                is_same = (entry.turn, entry.roots, entry.skipped) == (seen.turn, seen.roots, seen.skipped)
                return is_same and not given_up(self._store, [entry], self._appender.state.dropped)
        return False

    def end(self, native: str | None, state: TurnState = "completed", refused: str = "") -> bool:
        """End the open turn, if it is this one. Returns whether it was ended."""
        turn = self.open_turn
        if turn is None or not self._is_open(native):
            return False
        ended = Turn(state=state, turn=turn)
        with self._store.keeping():
            files = self._files_at(ended, "end", refused, [])
            return self._append(lambda: [*files, ended] if self.open_turn == turn else None)

    def _files_at(self, turn: Turn, when: str, refused: str, gone: list[str]) -> list[Entry]:
        if refused:
            return [no_checkpoint(f"no checkpoint at the {when} of this turn", refused, turn)]
        return self._bracket.files_at(turn, when, gone=gone, is_inside=when == "end")

    def take_late_checkpoint(self) -> None:
        """Take a checkpoint at some time in a turn whose first one took too long: its scan speeds up the next one."""
        if not self._files.why_not():
            with self._store.keeping():
                self._appender.append([self._files.take(when=LATE)])

    def abort(self, native: str | None = None) -> bool:
        """Abort the open turn after its process died or left it: the turn ended where its last tool ended."""
        turn = self.open_turn
        if turn is None or native_of(turn) is None or not self._is_open(native):
            return False  # the process that began the turn ends it
        return self._append(lambda: [Turn(state="aborted", turn=turn)] if self.open_turn == turn else None)

    def abort_by_user(self, native: str | None, refused: str = "") -> None:
        """Abort the open turn after a user stopped it. Changes after the checkpoint taken here are the user's."""
        if self.abort(native) and not refused and not self._files.why_not():
            with self._store.keeping():
                self._appender.append([self._files.take(when="end")])

    def _append(self, make: Callable[[], Sequence[Entry] | None]) -> bool:
        """Append one batch at the end of the log; after a concurrent append, `make` is called again."""
        while True:
            entries = make()
            if entries is None:
                return False
            try:
                self._appender.append(entries, alone=True)
            except Conflict:
                self._appender.catch_up()
            else:
                return True

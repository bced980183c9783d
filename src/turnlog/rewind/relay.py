"""Turns across processes: one begins a turn, others tell what its tools did, another one ends it.

So it is where the hooks of an agent tell of its turns: each is a process of its own, and gone at once. The turn belongs
to the agent's process, and goes by the agent's own id for it.
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
from turnlog.thread.content import given_up
from turnlog.version import __version__

LATE = "late"
"""When a checkpoint was taken that was to be that of a beginning, and took too long: of some time in the turn."""


_NATIVE = "-turn:"


def native_of(turn: str | None) -> str | None:
    """The agent's own id of a turn; None for one that no hooks tell of."""
    return turn.partition(_NATIVE)[2] or None if turn is not None else None


def worker_of(who: dict[str, Any] | None) -> Worker:
    """The process that a turn belongs to; where it is not known, nobody can say that it still runs."""
    if who is None:
        return Worker(word(12), {})
    return Worker(word_for(msgspec.json.encode(who, order="sorted")), who)


class TurnRelay:
    """Appends what is told of the turns of one session. The appender is a guest's."""

    def __init__(self, store: Store, appender: Appender, files: Coverage) -> None:
        self._store = store
        self._appender = appender
        self.history = appender.history
        self._files = files
        self._bracket = Bracket(store, appender, files)

    @property
    def open_turn(self) -> str | None:
        """The turn that goes on."""
        return self._appender.state.turn

    def _is_open(self, native: str | None) -> bool:
        turn = self.open_turn
        return turn is not None and native in (None, native_of(turn))

    def begin(self, native: str, worker: Worker, refused: str = "", within: str | None = None) -> bool:
        """A turn begins. One that is still open was interrupted: it ended where its last tool ended.

        Idempotent; returns whether the turn was new. `refused` says why there is to be no checkpoint.
        """
        if self._has_begun(native):
            return False
        turn = Turn(state="begin", turn=f"{worker.word}{_NATIVE}{native}", native=native, within=within)
        with self._store.keeping():
            gone = self._bracket.known_gone(worker) if worker.who else []
            files = self._files_at(turn, "begin", refused, gone)
            return self._append(lambda: None if self._has_begun(native) else [*self._left(worker), *files, turn])

    def _has_begun(self, native: str) -> bool:
        state = self._appender.state
        return native in (native_of(state.turn), native_of(state.turn_before))

    def _left(self, worker: Worker) -> list[Entry]:
        """Report which process works in the turn, if it is new, and the end of the turn that was open until now."""
        state = self._appender.state
        entries: list[Entry] = []
        if worker.who and worker.word not in state.writers:
            entries.append(Writer(word=worker.word, version=__version__, **worker.who))
        if state.turn is not None:
            entries.append(Turn(state="aborted", turn=state.turn))
        return entries

    def enter(self, folder: str) -> None:
        """The agent works in that folder by now, too: checkpoints cover it from here on."""
        turn = self.open_turn
        self._append(
            lambda: (
                [Track(path=folder, is_folder=True, turn=turn)] if folder not in self._appender.state.folders else None
            )
        )

    def tool(self, native: str | None, changed: Sequence[str] = (), tracked: Sequence[str] = ()) -> bool:
        """A tool ended in the open turn; `changed` are the files that it says it edited, `tracked` those outside.

        Of a tool that changed nothing, nothing is written.
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
            # What was declared lies between this checkpoint and the one before, whether it is news or not.
            return self._append(lambda: [*drafts, seen] if self.open_turn == turn else None)

    def _is_last(self, seen: Checkpoint) -> bool:
        """Whether the last checkpoint of the turn says the same."""
        for entry in self.history.back():
            if isinstance(entry, Checkpoint):
                is_same = (entry.turn, entry.roots, entry.skipped) == (seen.turn, seen.roots, seen.skipped)
                return is_same and not given_up(self._store, [entry], self._appender.state.dropped)
        return False

    def end(self, native: str | None, state: TurnState = "completed", refused: str = "") -> bool:
        """The open turn ends; one that did not begin does not end. Gives whether it did."""
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

    def look(self) -> None:
        """The files as they are some time in a turn, where its beginning took too long: it helps the next one."""
        if not self._files.why_not():
            with self._store.keeping():
                self._appender.append([self._files.take(when=LATE)])

    def cut(self, native: str | None = None) -> bool:
        """The process of the open turn died or left it: the turn ended where its last tool ended."""
        turn = self.open_turn
        if turn is None or native_of(turn) is None or not self._is_open(native):
            return False  # the process that began it ends it
        return self._append(lambda: [Turn(state="aborted", turn=turn)] if self.open_turn == turn else None)

    def stop(self, native: str | None, refused: str = "") -> None:
        """Somebody stopped the open turn. Changes after this checkpoint are the user's."""
        if self.cut(native) and not refused and not self._files.why_not():
            with self._store.keeping():
                self._appender.append([self._files.take(when="end")])

    def _append(self, make: Callable[[], Sequence[Entry] | None]) -> bool:
        """One batch behind all that is known; where somebody was faster, it is asked again what is to be written."""
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

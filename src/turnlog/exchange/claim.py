"""Which turn a record of another agent belongs to, of those that its hooks told of: each turn counts once.

Where the agent has an id for its turns, in its file and in what it tells its hooks, that says it. Otherwise the next
thing that a person said is the turn's, and everything belongs to the turn until the next one begins.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import Struct

from turnlog.formats import Record
from turnlog.log.entry import AnyEntry, Message, Turn
from turnlog.log.shown.promptmessage import is_prompt

_BEFORE = timedelta(seconds=6)
"""How long before its turn was reported an agent may have written the prompt, at most."""
_RECENT = 64


class HookTurn(Struct, array_like=True):
    """A turn that a hook reported."""

    native: str
    turn: str
    at: datetime | None
    seq: int
    is_claimed: bool = False


class TurnClaims:
    """The turns of one session, and what of its source belongs to them."""

    def __init__(
        self, told: list[HookTurn] | None = None, now: str | None = None, since: datetime | None = None
    ) -> None:
        self.told: dict[str, HookTurn] = {turn.native: turn for turn in told or ()}
        self._by_name: dict[str, HookTurn] = {turn.turn: turn for turn in told or ()}
        self.now = now
        """The turn that the last record belongs to."""
        self._since = since
        """When a fork was made: what is older is a copy, and was asked in no turn of its own."""
        self._asked: dict[str, str] = {}
        """The turn of each thing that a person said and that is here, by its id."""

    def saw(self, entry: AnyEntry) -> None:
        """An entry that is in the log."""
        if isinstance(entry, Turn) and entry.state == "begin" and entry.native is not None and entry.turn is not None:
            turn = HookTurn(entry.native, entry.turn, entry.clock or entry.at, entry.seq)
            self.told[turn.native] = self._by_name[turn.turn] = turn
        elif isinstance(entry, Message) and entry.origin is not None and entry.turn in self._by_name:
            self._by_name[entry.turn].is_claimed = True
            if entry.role == "user":
                self._asked[entry.id] = entry.turn

    def told_turn(self, entry: AnyEntry) -> HookTurn | None:
        """The turn that an end of a turn in the source is an end of, if its hooks told of it."""
        return self.told.get(entry.turn) if isinstance(entry, Turn) and entry.turn is not None else None

    def turn_of(self, record: Record, name: str, *, is_known: bool) -> str | None:
        """The turn that a record belongs to, under the name it has here; they come in the order of the source."""
        entry = record.entry
        native = record.turn or entry.turn
        if native is not None:
            turn = self.told.get(native)
            self.now = self._claim(turn) if turn is not None else None
        elif isinstance(entry, Message) and is_prompt(entry):
            self.now = self._asked.get(name) if is_known else self._next(entry.clock or entry.at)
        return self.now

    def _claim(self, turn: HookTurn) -> str:
        turn.is_claimed = True
        return turn.turn

    def _next(self, at: datetime | None) -> str | None:
        """The turn of a prompt: the newest that began before it, else one that was reported just then."""
        free = sorted((turn for turn in self.told.values() if not turn.is_claimed), key=lambda turn: turn.seq)
        if not free or (at is not None and self._since is not None and at < self._since):
            return None
        if at is None:
            return self._claim(free[0])
        before = [turn for turn in free if turn.at is None or turn.at <= at]
        if before:
            return self._claim(before[-1])
        return self._claim(free[0]) if free[0].at is not None and free[0].at - at < _BEFORE else None

    def recent(self) -> list[HookTurn]:
        """Those that what follows may belong to."""
        return sorted(self.told.values(), key=lambda turn: turn.seq)[-_RECENT:]

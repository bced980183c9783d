"""To which of the turns that hooks reported a record of another agent belongs, so that each turn counts once.

If the agent has ids for its turns, in its file and for its hooks, they decide. Otherwise a turn begins with the next
prompt, and everything belongs to it until the next turn begins.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import Struct

from turnlog.formats import Record
from turnlog.log.entry import AnyEntry, Message, Turn
from turnlog.log.prompt.promptmessage import is_prompt

_BEFORE = timedelta(seconds=6)
"""An agent writes the prompt at most this long before its turn is reported."""
_RECENT = 64
"""So many turns are remembered from one import to the next."""


class HookTurn(Struct, array_like=True):
    """A turn that a hook reported."""

    native: str
    """The agent's own id of the turn."""
    turn: str
    """The id of the turn here."""
    at: datetime | None
    seq: int
    """The entry with its beginning."""
    is_claimed: bool = False
    """Whether records of the source belong to it already."""


class TurnClaims:
    """The turns of one session that hooks reported, and the records that belong to each."""

    def __init__(
        self, reported: list[HookTurn] | None = None, current: str | None = None, since: datetime | None = None
    ) -> None:
        self.reported: dict[str, HookTurn] = {turn.native: turn for turn in reported or ()}
        self._by_turn: dict[str, HookTurn] = {turn.turn: turn for turn in reported or ()}
        self.current = current
        """The turn that the last record belongs to."""
        self._since = since
        """When a fork was made: older prompts in it are copies, and belong to no turn of its own."""
        self._turns_of_prompts: dict[str, str] = {}
        """The turns of the prompts that are in the log, by the id of the entry."""

    def take_in(self, entry: AnyEntry) -> None:
        """Take note of an entry of the log."""
        if isinstance(entry, Turn) and entry.state == "begin" and entry.native is not None and entry.turn is not None:
            turn = HookTurn(entry.native, entry.turn, entry.clock or entry.at, entry.seq)
            self.reported[turn.native] = self._by_turn[turn.turn] = turn
        elif isinstance(entry, Message) and entry.origin is not None and entry.turn in self._by_turn:
            self._by_turn[entry.turn].is_claimed = True
            if entry.role == "user":
                self._turns_of_prompts[entry.id] = entry.turn

    def reported_turn(self, entry: AnyEntry) -> HookTurn | None:
        """The reported turn that this end of a turn in the source belongs to, if there is one."""
        return self.reported.get(entry.turn) if isinstance(entry, Turn) and entry.turn is not None else None

    def turn_of(self, record: Record, entry_id: str, *, is_known: bool) -> str | None:
        """The turn that a record belongs to. The records of a source are passed in their order.

        `entry_id` is its id here, `is_known` whether it is in the log already.
        """
        entry = record.entry
        native = record.turn or entry.turn
        if native is not None:
            turn = self.reported.get(native)
            self.current = self._claim(turn) if turn is not None else None
        elif isinstance(entry, Message) and is_prompt(entry):
            known_turn = self._turns_of_prompts.get(entry_id)
            self.current = known_turn if is_known else self._claim_next(entry.clock or entry.at)
        return self.current

    def _claim(self, turn: HookTurn) -> str:
        turn.is_claimed = True
        return turn.turn

    def _claim_next(self, at: datetime | None) -> str | None:
        """Claim the turn of a new prompt: the newest that began before it, or one that was reported just after it."""
        free = sorted((turn for turn in self.reported.values() if not turn.is_claimed), key=lambda turn: turn.seq)
        if not free or (at is not None and self._since is not None and at < self._since):
            return None
        if at is None:
            return self._claim(free[0])
        before = [turn for turn in free if turn.at is None or turn.at <= at]
        if before:
            return self._claim(before[-1])
        return self._claim(free[0]) if free[0].at is not None and free[0].at - at < _BEFORE else None

    def recent(self) -> list[HookTurn]:
        """The newest turns: what comes next may belong to one of them."""
        return sorted(self.reported.values(), key=lambda turn: turn.seq)[-_RECENT:]

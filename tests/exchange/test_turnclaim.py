"""Which turn something that was asked belongs to, where an agent has no ids for its turns."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from turnlog.exchange.importing.turnclaim import HookTurn, TurnClaims
from turnlog.formats import Record
from turnlog.log.block import Text
from turnlog.log.entry import Message

_AT = datetime(2026, 11, 16, 12, tzinfo=UTC)


def asked(claims: TurnClaims, seconds: float) -> str | None:
    entry = Message(role="user", blocks=[Text("go on")], at=_AT + timedelta(seconds=seconds))
    return claims.turn_of(Record(entry=entry, key="k"), "k", is_known=False)


def test_what_was_asked_just_before_its_turn_was_told_of_is_the_turns():
    claims = TurnClaims([HookTurn("t", "w-turn:t", _AT, 4)])
    assert (asked(claims, -60), asked(claims, -3), asked(claims, 9)) == (None, "w-turn:t", None)


def test_what_a_fork_copied_is_of_no_turn_of_its_own_however_fast_it_was_made():
    claims = TurnClaims([HookTurn("t", "w-turn:t", _AT, 4)], since=_AT - timedelta(seconds=1))
    assert (asked(claims, -3), asked(claims, 0.1)) == (None, "w-turn:t")

"""How much happened, and when; and the times that entries carry."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from turnlog import Custom, Invalid, Message, Text, ToolCall
from turnlog.log.fold import RULES, State, fold, from_fold, to_fold


def test_a_new_session_has_no_messages(s):
    stats = s.stats()
    assert (stats.messages, stats.tool_calls, stats.turns, stats.duration) == (0, 0, 0, timedelta(0))
    assert stats.first_at == stats.last_at == next(iter(s.entries())).at


def test_messages_tool_calls_and_turns_are_counted(s, place):
    s.system("be brief")
    s.user("one")
    s.assistant([ToolCall(id="1", name="x"), ToolCall(id="2", name="x"), ToolCall(id="3", name="x", by="provider")])
    s.tool_result("1", "a")
    s.tool_result("2", "b")
    s.user("two")
    s.note("n")
    for session in (s, place.open().resume(s.id)):
        stats = session.stats()
        assert (stats.messages, stats.user_messages, stats.assistant_messages) == (6, 2, 1)
        assert (stats.tool_calls, stats.turns) == (3, 2)


def test_a_bracketed_turn_is_one_turn_however_many_people_spoke(s):
    with s.turn():
        s.user("one")
        s.user("and")
    s.user("two")
    assert s.stats().turns == 2


def test_abandoned_branches_happened_too(s):
    one = s.user("one")
    s.assistant("ONE")
    s.rewind(to=one)
    s.assistant("other")
    assert s.stats().messages == 3


def test_duration_runs_from_the_first_to_the_last_activity(s, place):
    begin = place.clock.now
    place.clock.tick(90_000)
    s.user("one")
    place.clock.tick(30_500)
    s.note("n")
    place.clock.tick(9_000)
    stats = s.stats()
    assert stats.duration == timedelta(seconds=120, milliseconds=500)
    assert stats.first_at.timestamp() * 1000 == begin
    assert stats.last_at == list(s.entries())[-1].at
    assert place.open().resume(s.id).stats() == stats


def test_times_are_aware_utc_with_milliseconds(s, place):
    place.clock.now = 1_700_000_000_123
    session = place.open().create()
    entry = session.user("one")
    assert entry.at == datetime(2023, 11, 14, 22, 13, 20, 123000, tzinfo=UTC)
    assert entry.at.utcoffset() == timedelta(0)


def test_a_clock_that_is_turned_back_changes_no_order(s, place):
    one = s.user("one")
    place.clock.tick(-3_600_000)
    two = s.user("two")
    other = place.open().resume(s.id)
    three = other.user("three")
    assert one.at == two.at == three.at
    assert two.clock == three.clock == one.at - timedelta(hours=1)
    assert [message.id for message in other.messages()] == [one.id, two.id, three.id]
    assert other.stats().duration == timedelta(0)


def test_a_draft_may_say_when_it_happened(s, place):
    later = datetime.fromtimestamp(place.clock.now / 1000 + 60, tz=UTC)
    one = s.append(Message(role="user", blocks=[Text(text="a")], at=later))
    two = s.append(Message(role="user", blocks=[Text(text="b")], at=later - timedelta(minutes=5)))
    assert (one.at, one.clock) == (later, None)
    assert (two.at, two.clock) == (later, later - timedelta(minutes=5))


@pytest.mark.parametrize("at", [datetime(2026, 1, 1), "2026-01-01", 5, datetime(1, 1, 1, tzinfo=UTC)])
def test_a_time_that_is_no_moment_is_refused(s, at):
    with pytest.raises(Invalid):
        s.append(Message(role="user", at=at))
    with pytest.raises(Invalid):
        s.user("a", at=at)
    assert s.messages() == []


def test_timing_of_a_message_is_kept(s, place):
    s.assistant("a", duration_ms=1200, first_token_ms=300, stop="end", error={"code": 1}, display="shown", agent="x")
    message = place.open().resume(s.id).messages()[0]
    assert (message.duration_ms, message.first_token_ms, message.stop) == (1200, 300, "end")
    assert (message.error, message.display, message.agent) == ({"code": 1}, "shown", "x")


def test_what_a_custom_entry_holds_comes_back(s, place):
    data = {"any": [1, {"json": None}], "ü": "☃"}
    s.append(Custom(kind="x.y", data=data, meta={"m": 1}))
    [entry] = place.open().resume(s.id).entries(kind="custom")
    assert (entry.kind, entry.data, entry.meta) == ("x.y", data, {"m": 1})


def test_the_time_that_messages_took_is_added_up_and_a_fork_has_that_of_its_parent(s, place):
    s.user("one")
    s.assistant("two", duration_ms=1500)
    s.assistant("three", duration_ms=600)
    s.rewind(turns=1)  # what was left behind took its time, too
    s.user("four")
    for session in (s, place.open().resume(s.id), s.fork()):
        assert session.stats().busy == timedelta(seconds=2.1)
    assert s.fork().stats().duration == s.stats().duration


@pytest.mark.parametrize("rules", [1, RULES + 1])
def test_a_fold_of_other_rules_is_left_out(rules):
    state = State()
    fold(state, Message(role="assistant", blocks=[], duration_ms=7, seq=1, parent=0))
    told = to_fold(state)
    assert from_fold(told) == state
    assert from_fold(replace(told, rules=rules)) is None


def test_a_turn_is_what_somebody_asked_and_not_what_is_shown_to_nobody(s, place):
    s.user("one")
    s.assistant("two")
    s.user("<reminder>", display=False)
    s.assistant("three")
    for session in (s, place.open().resume(s.id), s.fork()):
        assert session.stats().turns == 1
        assert session.stats().user_messages == 2
    s.rewind(turns=1)
    assert list(s.context()) == []

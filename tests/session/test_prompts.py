"""What a prompt is, everywhere the same: what somebody wants, and not what programs say in the place of a person."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

import turnlog
from turnlog.errors import NotFound
from turnlog.exchange.importing.run import import_all
from turnlog.exchange.importing.turnclaim import TurnClaims
from turnlog.formats import Record, Source
from turnlog.log.block import Text
from turnlog.log.entry import Message, Turn
from turnlog.log.prompt.promptmessage import is_prompt
from turnlog.reader.place import place_of
from turnlog.session.interior import interior

RECORDED = Path(__file__).parents[1] / "formats" / "agents"
SESSIONS = [("claude-code", path) for path in sorted(RECORDED.glob("claude-code/recorded*/projects/*/*.jsonl"))] + [
    ("codex", path) for path in sorted(RECORDED.glob("codex/recorded*/sessions/**/*.jsonl"))
]
STOPPED = "[Request interrupted by user]"


def test_some_of_what_was_recorded_says_more_than_prompts():
    texts = "".join(path.read_text() for _, path in SESSIONS)
    assert STOPPED in texts
    assert "<turn_aborted>" in texts
    assert "<local-command-stdout>" in texts


@pytest.mark.parametrize(("agent", "path"), SESSIONS, ids=[path.stem[-12:] for _, path in SESSIONS])
def test_so_many_turns_back_are_so_many_prompts(agent: str, path: Path):
    """In what agents recorded: with their interruptions, and with commands that ask no model."""
    with turnlog.open("memory:") as home:
        brought = import_all(interior(home).creator, [Source(agent, str(path))])
        whole = home.resume(next(iter(brought)).id)
        total = sum(map(is_prompt, whole.messages()))
        for turns in range(1, total + 1):
            session = whole.fork()
            session.rewind(turns=turns)
            assert sum(map(is_prompt, session.messages())) == total - turns
        with pytest.raises(NotFound, match=f"only {total} turns"):
            whole.fork().rewind(turns=total + 1)


def test_one_turn_back_after_an_interruption_takes_back_what_was_interrupted(s):
    stays = [s.user("first"), s.assistant("done")]
    s.user("second")
    s.assistant("I beg")
    s.user(STOPPED)
    s.rewind(turns=1)
    assert list(s.messages()) == stays
    assert {branch.preview for branch in s.branches()} >= {"second", "first"}


def test_a_place_and_a_number_mean_the_same_turn(home):
    with home.create() as session:
        first = session.user("first")
        session.user("<bash-input>ls</bash-input>")
        second = session.user("second")
        session.assistant("I beg")
        session.user(STOPPED)
        assert place_of(session, None).seq == place_of(session, "turn:2").seq == second.seq - 1
        assert place_of(session, "turn:1").seq == first.seq - 1
        with pytest.raises(NotFound, match="it has 2"):
            place_of(session, "turn:3")


def at(second: int) -> datetime:
    return datetime(2026, 11, 15, 10, 0, second, tzinfo=UTC)


def test_what_a_person_ran_himself_claims_no_turn():
    """A hook tells of a turn a moment after its prompt was written; `! ls` just before it is none of it."""
    claims = TurnClaims()
    claims.take_in(Turn(state="begin", turn="t", native="n", seq=5, at=at(4)))
    turns = {}
    for second, text in ((1, "<bash-input>ls</bash-input>"), (2, "<bash-stdout>a</bash-stdout>"), (3, "go on, please")):
        message = Message(role="user", blocks=[Text(text)], at=at(second))
        turns[text] = claims.turn_of(Record(entry=message), text, is_known=False)
    assert list(turns.values()) == [None, None, "t"]
    stopped = Message(role="user", blocks=[Text(STOPPED)], at=at(5))
    assert claims.turn_of(Record(entry=stopped), "stopped", is_known=False) == "t"

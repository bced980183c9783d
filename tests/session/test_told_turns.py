"""Turns that an agent's hooks told of, and its file has as well: each is one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import turnlog
from tests.clock import tick
from turnlog import Message, Text
from turnlog.exchange.importing.sessionimport import Imported, import_source
from turnlog.exchange.turnlock import one_at_a_time
from turnlog.formats import Reading, Record, SessionHeader, Source
from turnlog.log.entry import Start, Turn
from turnlog.log.ids import imported_id
from turnlog.machine.process import this_process
from turnlog.reader.place import place_of
from turnlog.rewind.coverage import Coverage
from turnlog.rewind.relay import TurnRelay, worker_of
from turnlog.session.interior import interior
from turnlog.thread.appender import appending

SOURCE = Source("gemini-cli", "/nowhere/s.jsonl")
DAY = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


@pytest.fixture
def home(tmp_path: Path):
    with turnlog.open(tmp_path / "home", durability="flush", clock=tick) as opened:
        yield opened


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    return folder


class Agent:
    """One session of an agent whose hooks tell of its turns, and whose file is brought in when it is asked."""

    def __init__(self, home, place: Path, agent: str = "gemini-cli") -> None:
        self.home, self.agent, self.steps = home, agent, []
        name = imported_id(agent, "one")
        origin = {"agent": agent, "id": "one", "identity": "one", "path": SOURCE.path}
        interior(home).creator.begin(
            [Start(id=name, session=name, agent=agent, workspace=str(place), origin=origin)]
        ).close()
        self.name = name
        self.at = DAY

    def hook(self, event: str, native: str | None = None) -> None:
        store = interior(self.home).store
        with appending(store, store.open(self.name)) as appender:
            appender.writes_no_writer_entry = True
            relay = TurnRelay(store, appender, Coverage(store, appender.history, interior(self.home).settings))
            if event == "begin":
                relay.begin(str(native), worker_of(this_process()))
            else:
                getattr(relay, event)(*([native] if event != "cut" else []))

    def say(self, role: str, text: str, *, turn: str | None = None, **fields) -> None:
        at = datetime.fromtimestamp(tick() / 1000, UTC) if self.at is None else self.at
        entry = Message(role=role, blocks=[Text(text=text)], at=at, **fields)
        self.steps.append(Record(entry=entry, key=f"k{len(self.steps)}", turn=turn))

    def bring(self, meanwhile=None) -> int:
        """How much is new in its file; `meanwhile` happens while it is read."""
        return self.imported(meanwhile).added

    def imported(self, meanwhile=None) -> Imported:

        def steps():
            if meanwhile is not None:
                meanwhile()
            yield from self.steps

        source = Source(self.agent, SOURCE.path)
        reading = Reading(header=SessionHeader(id="one"), steps=steps())
        return import_source(interior(self.home).creator, source, reading)

    def session(self):
        return self.home.resume(self.name)


def turns(session) -> list[tuple[str, str]]:
    return [(m.blocks[0].text, (m.turn or "").rpartition(":")[2]) for m in session.messages()]


def test_a_session_that_was_there_before_its_file_is_the_one_that_is_brought_in(home, place: Path):
    agent = Agent(home, place)
    agent.say("user", "hello")
    assert agent.bring() == 1
    assert [row.id for row in home.sessions()] == ["gemini-cli-one"]


def test_what_is_brought_in_while_somebody_rewinds_follows_what_it_answered(home, place: Path):
    agent = Agent(home, place)
    for number in range(4):
        agent.say("user", f"prompt {number}")
    agent.bring()
    agent.say("assistant", "a late word")
    agent.say("user", "and another one")
    with agent.session() as session:
        prompts = session.messages()
        assert agent.bring(lambda: session.rewind(to=prompts[1])) == 2
        session.refresh()
        assert session.head == prompts[1].seq, "where the person went"
        first, second = list(session.entries(kind="message"))[-2:]
        assert (first.parent, second.parent) == (prompts[3].seq, first.seq)


def test_what_two_bring_in_at_once_is_there_once_and_in_order(home, place: Path):
    agent, other = Agent(home, place), object.__new__(Agent)
    agent.say("user", "prompt 0")
    agent.bring()
    for number in range(1, 6):
        agent.say("user", f"prompt {number}")
    other.__dict__.update(agent.__dict__, steps=agent.steps[:4])
    assert agent.bring(other.bring) == 2
    with agent.session() as session:
        assert [m.blocks[0].text for m in session.messages()] == [f"prompt {n}" for n in range(6)]
        assert not list(session.entries(kind="head"))


def test_what_a_person_says_while_a_session_is_brought_in_stays_the_end_of_it(home, place: Path):
    agent = Agent(home, place)
    agent.say("user", "prompt 0")
    agent.bring()
    agent.say("user", "prompt 1")
    with agent.session() as session:
        agent.bring(lambda: session.user("from here"))
        session.refresh()
        assert [m.blocks[0].text for m in session.messages()] == ["prompt 0", "from here"]
        late = next(m for m in session.entries(kind="message") if m.blocks[0].text == "prompt 1")
        assert late.parent == session.messages()[0].seq


def test_who_imports_waits_until_files_are_moved(home, place: Path, monkeypatch: pytest.MonkeyPatch):
    """What was said is not brought in while somebody takes files back: it would look like news."""
    monkeypatch.setattr("turnlog.exchange.turnlock._WAIT_S", 0.2)
    agent = Agent(home, place)
    agent.hook("begin", "p1")
    agent.say("user", "prompt 1", turn="p1")
    with one_at_a_time(interior(home).store, agent.name):
        imported = agent.imported()
        assert (imported.id, imported.added) == (agent.name, 0)
        assert "another process has" in imported.problems[-1].what
    assert agent.bring() == 1


def test_ids_on_messages_say_which_turn_they_are_of(home, place: Path):
    agent = Agent(home, place)
    agent.say("user", "before it was hooked", turn="p0")
    agent.say("assistant", "yes")
    for native in ("p1", "p2"):
        agent.hook("begin", native)
        agent.say("user", native, turn=native)
        agent.say("assistant", f"answer to {native}")
        agent.hook("end", native)
    agent.bring()
    session = agent.session()
    assert turns(session) == [
        ("before it was hooked", ""), ("yes", ""), ("p1", "p1"), ("answer to p1", "p1"), ("p2", "p2"),
        ("answer to p2", "p2"),
    ]  # fmt: skip
    assert session.stats().turns == 3
    assert agent.bring() == 0


def test_turns_that_the_file_has_itself_are_those_that_were_told_of(home, place: Path):
    agent = Agent(home, place, "codex")
    for native in ("t1", "t2", "t3"):
        if native != "t2":
            agent.hook("begin", native)
        agent.steps.append(Record(entry=Turn(id="-", state="begin", turn=native), key=f"{native}.begin"))
        asked = Message(role="user", blocks=[Text(f"do {native}")], turn=native)
        agent.steps.append(Record(entry=asked, key=native))
        (place / f"{native}.txt").write_text(native)
        agent.steps.append(Record(entry=Turn(id="-", state="completed", turn=native), key=f"{native}.end"))
        agent.hook("end", native)
    agent.bring()
    session = agent.session()
    assert session.stats().turns == 3
    assert [entry.state for entry in session.entries(kind="turn")] == ["begin", "completed"] * 3
    assert [item.path for item in session.diff(turn=1)] == ["t1.txt"]
    assert [item.path for item in session.diff(turn=2)] == ["t3.txt"]
    assert turns(session) == [("do t1", "t1"), ("do t2", "t2"), ("do t3", "t3")]
    assert agent.bring() == 0


def test_without_ids_the_next_thing_that_was_asked_is_the_turns(home, place: Path):
    agent = Agent(home, place)
    agent.at = None
    agent.say("user", "before it was hooked")
    agent.bring()
    agent.hook("begin", "x1")
    agent.say("user", "one")
    agent.say("assistant", "done")
    agent.hook("end")
    agent.hook("begin", "x2")  # this one was never written down
    agent.hook("begin", "x3")
    agent.bring()
    agent.say("user", "three")
    agent.hook("end")
    agent.bring()
    session = agent.session()
    assert turns(session) == [("before it was hooked", ""), ("one", "x1"), ("done", "x1"), ("three", "x3")]
    assert session.stats().turns == 4


def test_what_was_written_down_a_moment_before_it_was_told_is_the_turns(home, place: Path):
    agent = Agent(home, place)
    agent.at = datetime.now(UTC) - timedelta(seconds=1)
    agent.say("user", "one")
    agent.at -= timedelta(hours=1)
    agent.steps.insert(0, Record(entry=Message(role="user", blocks=[Text("old")], at=agent.at), key="old"))
    agent.hook("begin", "x1")
    agent.bring()
    assert turns(agent.session()) == [("old", ""), ("one", "x1")]


# ── going back ────────────────────────────────────────────────────────────────────────────────────


def two_turns(home, place: Path) -> Agent:
    """What was said comes later than the next turn begins."""
    agent = Agent(home, place)
    for native in ("p1", "p2"):
        agent.hook("begin", native)
        agent.say("user", native, turn=native)
        agent.say("assistant", f"answer to {native}")
        (place / f"{native}.txt").write_text(native)
        agent.hook("end", native)
    agent.bring()
    return agent


def test_going_back_to_a_turn_keeps_what_was_said_in_those_before(home, place: Path):
    session = two_turns(home, place).session()
    session.rewind(to=place_of(session, "turn:2").seq)
    assert [text for text, _ in turns(session)] == ["p1", "answer to p1"]
    assert sorted(path.name for path in place.iterdir()) == ["a.txt", "p1.txt"]
    session.undo()
    assert [text for text, _ in turns(session)] == ["p1", "answer to p1", "p2", "answer to p2"]
    session.rewind(to=place_of(session, "turn:1").seq)
    assert turns(session) == []
    assert sorted(path.name for path in place.iterdir()) == ["a.txt"]


def test_without_a_target_it_is_the_turn_that_began_last(home, place: Path):
    agent = Agent(home, place)
    agent.hook("begin", "p1")
    session = agent.session()
    assert place_of(session, None).words == "before turn 1"
    agent.hook("end", "p1")
    agent.hook("begin", "p2")
    session.refresh()
    assert place_of(session, None).words == "before turn 2"
    agent.hook("end", "p2")
    session.refresh()
    session.rewind(to=place_of(session, None).seq)
    assert place_of(session, None).words == "before turn 1"
    session.undo()
    assert place_of(session, None).words == "before turn 2"


def test_what_the_agent_writes_down_after_a_rewind_does_not_take_it_back(home, place: Path):
    agent = two_turns(home, place)
    session = agent.session()
    session.rewind(to=place_of(session, "turn:2").seq)
    session.close()
    agent.say("assistant", "and one more word")
    agent.bring()
    session = agent.session()
    assert [text for text, _ in turns(session)] == ["p1", "answer to p1"]
    session.undo()
    assert sorted(path.name for path in place.iterdir()) == ["a.txt", "p1.txt", "p2.txt"]
    session.redo()
    agent.hook("begin", "p3")
    agent.say("user", "p3", turn="p3")  # the agent was never left, and still remembers the second turn
    agent.bring()
    session = agent.session()
    assert [text for text, _ in turns(session)][-2:] == ["and one more word", "p3"]

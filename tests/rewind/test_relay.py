"""Turns across processes: one begins a turn, others tell of its tools, another one ends it."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import turnlog
from tests.rewind.relaylab import Hook
from turnlog.log.entry import Turn
from turnlog.machine.process import process_of
from turnlog.rewind.relay import LATE


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    return folder


@pytest.fixture
def home(tmp_path: Path):
    with turnlog.open(tmp_path / "home", durability="flush") as opened:
        yield opened


@pytest.fixture
def agent():
    """A process that an agent's turns belong to."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


@pytest.fixture
def session(home, place: Path):
    return home.create(workspace=place)


@pytest.fixture
def hook(home, session, agent):
    return Hook(home, session, process_of(agent.pid))


def kinds(session) -> list[str]:
    return [_kind(entry) for entry in session.entries() if entry.type not in ("session", "writer")]


def _kind(entry) -> str:
    if entry.type not in ("checkpoint", "turn"):
        return entry.type
    return f"{entry.when if entry.type == 'checkpoint' else entry.state} {entry.turn and entry.turn[-2:]}"


def steps(plan) -> dict[str, str]:
    return {step.path: step.action for step in plan.steps}


def paths(session, turn: int) -> list[str]:
    return [item.path for item in session.diff(turn=turn)]


def test_a_turn_is_one_whoever_begins_and_ends_it(hook, session, place: Path):
    assert hook("begin", "t1")
    (place / "a.txt").write_text("two\n")
    assert hook("end", "t1")
    assert kinds(session) == ["begin t1", "begin t1", "end t1", "completed t1"]
    assert paths(session, 1) == ["a.txt"]
    assert session.stats().turns == 1
    session.rewind(to=session.checkpoints()[0])
    assert (place / "a.txt").read_text() == "one\n"


def test_the_same_beginning_is_told_once_and_an_end_without_one_is_nothing(hook, session):
    assert not hook("end", "t1")
    assert not hook("end", None)
    assert hook("begin", "t1")
    assert not hook("begin", "t1")
    assert not hook("end", "t2")
    assert hook("end", None)
    assert not hook("end", "t1")
    assert not hook("begin", "t1")  # it came late
    assert session.stats().turns == 1


def test_two_that_tell_the_same_at_once_tell_it_once(hook, home, session, agent):
    hooks = [Hook(home, session, process_of(agent.pid)) for _ in range(4)]
    done: list[bool] = []
    threads = [threading.Thread(target=lambda one=one: done.append(one("begin", "t1"))) for one in hooks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == [False, False, False, True]
    session.refresh()
    assert kinds(session) == ["begin t1", "begin t1"]


def test_a_turn_that_is_open_has_what_its_tools_did_and_nothing_behind_that(hook, session, agent, place: Path):
    """Nobody tells of an interruption: what changed since the last tool ended may be typed by the user."""
    hook("begin", "t1")
    (place / "tool.txt").write_text("the agent's")
    hook("record_tool", "t1")
    (place / "mine.txt").write_text("typed after Esc")
    begin = session.checkpoints()[0]
    for _ in range(2):
        assert paths(session, 1) == ["tool.txt"]
        plan = session.plan_rewind(to=begin)
        assert steps(plan) == {"mine.txt": "conflict", "tool.txt": "delete"}
        assert [step.is_doubtful for step in plan.steps] == [True, False]
        session.rewind(to=begin)
        assert sorted(path.name for path in place.iterdir()) == ["a.txt", "mine.txt"]
        session.undo()
    agent.kill()
    agent.wait()
    assert steps(session.plan_rewind(to=begin)) == {"mine.txt": "conflict", "tool.txt": "delete"}


def test_an_interrupted_turn_ended_where_its_last_tool_ended(hook, session, place: Path):
    hook("begin", "t1")
    (place / "tool.txt").write_text("the agent's")
    assert hook("record_tool", "t1")
    (place / "mine.txt").write_text("typed after Esc")
    hook("begin", "t2")
    (place / "two.txt").write_text("the agent's")
    hook("end", "t2")
    assert kinds(session) == [
        "begin t1", "begin t1", "tool t1", "aborted t1", "begin t2", "begin t2", "end t2", "completed t2",
    ]  # fmt: skip
    assert paths(session, 1) == ["tool.txt"]
    assert paths(session, 2) == ["two.txt"]
    begin = session.checkpoints()[0]
    assert steps(session.plan_rewind(to=begin)) == {"mine.txt": "conflict", "tool.txt": "delete", "two.txt": "delete"}
    session.rewind(to=begin)
    assert sorted(path.name for path in place.iterdir()) == ["a.txt", "mine.txt"]
    session.undo()
    assert sorted(path.name for path in place.iterdir()) == ["a.txt", "mine.txt", "tool.txt", "two.txt"]


def test_messages_that_come_later_are_no_sign_that_a_turn_went_on(hook, session, place: Path):
    hook("begin", "t1")
    (place / "tool.txt").write_text("the agent's")
    hook("record_tool", "t1")
    (place / "mine.txt").write_text("mine")
    session.checkpoint("by hand")
    turn = session.checkpoints()[0].turn
    session.append(turnlog.Message(role="assistant", blocks=[], turn=turn, origin={"agent": "claude-code"}))
    hook("begin", "t2")
    assert steps(session.plan_rewind(to=session.checkpoints()[0])) == {"mine.txt": "conflict", "tool.txt": "delete"}


def test_turns_that_are_brought_in_later_do_not_end_the_one_that_is_open(hook, session, place: Path):
    """As those are that a fork has from its parent, or that went before the hooks."""
    hook("begin", "t1")
    for state in ("begin", "completed"):
        session.append(Turn(state=state, turn="codex-older", origin={"agent": "codex"}))
    (place / "tool.txt").write_text("the agent's")
    assert hook("record_tool", "t1")
    assert hook("end", "t1")
    assert steps(session.plan_rewind(to=session.checkpoints()[0])) == {"tool.txt": "delete"}


def test_a_tool_that_changed_nothing_leaves_nothing(hook, session, place: Path):
    assert not hook("record_tool", "t1")
    hook("begin", "t1")
    assert not hook("record_tool", "t1")
    (place / "a.txt").write_text("two\n")
    assert hook("record_tool", "t1", ["a.txt"])
    assert not hook("record_tool", "t1")
    assert [e.paths for e in session.entries(kind="changed")] == [["a.txt"]]
    assert kinds(session) == ["begin t1", "begin t1", "changed", "tool t1"]


def test_an_agent_that_left_its_turn_is_not_in_it_any_more(hook, session, place: Path):
    assert not hook("abort")
    hook("begin", "t1")
    assert hook("abort")
    assert not hook("end", "t1")
    (place / "mine.txt").write_text("mine")
    assert steps(session.plan_rewind(to=session.checkpoints()[0])) == {"mine.txt": "conflict"}


def test_a_turn_of_this_process_is_its_own_to_end(hook, session):
    with session.turn():
        assert not hook("abort")
        assert not hook("end", "1")


def test_what_is_seen_too_late_is_no_beginning(hook, session, place: Path):
    assert hook("begin", "t1", refused="it took too long")
    hook("take_late_checkpoint")
    (place / "a.txt").write_text("two\n")
    hook("end", "t1")
    assert kinds(session) == ["note", "begin t1", f"{LATE} None", "end t1", "completed t1"]
    with pytest.raises(turnlog.NotFound):
        session.diff(turn=1)


def test_no_rewind_goes_silently_past_a_turn_that_began_without_a_checkpoint(hook, session, place: Path):
    hook("begin", "t1")
    (place / "one").write_text("1")
    hook("end", "t1")
    hook("begin", "t2", refused="only 3 MB are free")
    (place / "two").write_text("2")
    hook("record_tool", "t2")
    (place / "a.txt").write_text("2")
    hook("end", "t2")
    hook("begin", "t3")
    (place / "three").write_text("3")
    hook("end", "t3")
    plan = session.plan_rewind(to=session.checkpoints()[0])
    assert steps(plan) == {"a.txt": "conflict", "one": "delete", "three": "delete", "two": "conflict"}
    assert {step.reason for step in plan.steps if step.is_doubtful} == {
        "nobody can tell who changed it: turn 2 began without a checkpoint"
    }
    with pytest.raises(turnlog.NotFound):
        session.diff(turn=2)


def test_the_hooks_of_a_turn_leave_no_writers(hook, session, place: Path, agent):
    for number in range(12):
        hook("begin", f"t{number}")
        (place / "a.txt").write_text(str(number))
        hook("record_tool", None)
        hook("end", None)
    writers = [entry.pid for entry in session.entries(kind="writer")]
    assert writers.count(agent.pid) == 1
    assert set(writers) <= {agent.pid, os.getpid()}

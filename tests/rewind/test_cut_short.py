"""Turns whose process died: what changed behind their last checkpoint is nobody's for sure."""

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

import turnlog
from tests.rewind.agentlab import Agent
from turnlog.log.entry import Checkpoint, Turn, Writer
from turnlog.machine import process
from turnlog.session.interior import interior


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


def killed(tmp_path: Path, session: turnlog.Session, **files: str) -> None:
    """A turn in which an agent writes these files, and is killed."""
    agent = Agent(tmp_path / "home", session.id)
    for name, text in files.items():
        agent.write(Path(session.workspace or "") / f"{name}.txt", text)
    agent.kill()
    session.refresh()


def steps(plan) -> dict[str, tuple[str, str]]:
    return {os.fsdecode(step.raw): (step.action, step.reason) for step in plan.steps}


DOUBT = ("conflict", "nobody can tell who changed it: turn 1 was cut short")


def test_what_a_person_wrote_after_the_kill_stays(home, place: Path, tmp_path: Path):
    s = home.create(workspace=place)
    killed(tmp_path, s, agents="the agent's", a="one\ntwo\n")
    (place / "mine.txt").write_text("mine")
    (place / "a.txt").write_text("one\ntwo\nmine\n")
    begin = s.checkpoints()[0]
    plan = s.plan_rewind(to=begin)
    assert steps(plan) == {"a.txt": DOUBT, "agents.txt": DOUBT, "mine.txt": DOUBT}
    assert all(step.is_doubtful for step in plan.steps)
    assert s.rewind(to=begin).files == {"conflict": 3}
    assert (place / "mine.txt").read_text() == "mine"
    asked = ("delete", f"asked for, though {DOUBT[1]}")
    assert steps(s.plan_rewind(to=begin, only=["agents.txt"])) == {"agents.txt": asked}
    s.rewind(to=begin, only=["agents.txt"])
    assert sorted(path.name for path in place.iterdir()) == ["a.txt", "mine.txt"]
    s.rewind(to=begin, force=True)
    assert [path.read_text() for path in place.iterdir()] == ["one\n"]
    s.undo()
    assert (place / "mine.txt").read_text() == "mine"


def test_what_lies_between_its_own_checkpoints_is_its_own(home, place: Path, tmp_path: Path):
    s = home.create(workspace=place)
    agent = Agent(tmp_path / "home", s.id)
    agent.write(place / "sure.txt", "the agent's")
    agent.checkpoint()
    agent.write(place / "perhaps.txt", "the agent's")
    agent.kill()
    s.refresh()
    (place / "mine.txt").write_text("mine")
    begin = s.checkpoints()[0]
    assert steps(s.plan_rewind(to=begin)) == {
        "mine.txt": DOUBT, "perhaps.txt": DOUBT, "sure.txt": ("delete", "changed in turn 1"),
    }  # fmt: skip
    assert [item.path for item in s.diff(turn=1)] == ["mine.txt", "perhaps.txt", "sure.txt"]
    s.rewind(to=begin)
    assert sorted(path.name for path in place.iterdir()) == ["a.txt", "mine.txt", "perhaps.txt"]


def test_the_next_turn_ends_the_doubt_and_not_what_is_doubtful(home, place: Path, tmp_path: Path):
    s = home.create(workspace=place)
    killed(tmp_path, s, agents="the agent's")
    (place / "mine.txt").write_text("mine")
    with s.turn():
        s.user("go on")
        (place / "second.txt").write_text("the agent's")
        (place / "a.txt").write_text("two\n")
    (place / "later.txt").write_text("mine")
    begin = s.checkpoints()[0]
    assert steps(s.plan_rewind(to=begin)) == {
        "a.txt": ("modify", "changed in turn 2"), "agents.txt": DOUBT, "mine.txt": DOUBT,
        "second.txt": ("delete", "changed in turn 2"),
    }  # fmt: skip
    (place / "agents.txt").write_text("and mine, after all")
    assert steps(s.plan_rewind(to=begin, only=["agents.txt"])) == {
        "agents.txt": ("conflict", "somebody changed it since")
    }
    s.rewind(to=begin)
    assert sorted(path.name for path in place.iterdir()) == ["a.txt", "agents.txt", "later.txt", "mine.txt"]


def test_a_checkpoint_of_somebody_else_counts_as_long_as_the_turn_said_something_after_it(home, place, tmp_path):
    s = home.create(workspace=place)
    agent = Agent(tmp_path / "home", s.id)
    agent.write(place / "sure.txt", "the agent's")
    s.refresh()
    s.checkpoint("by hand")
    agent.say("still here")
    s.refresh()
    (place / "perhaps.txt").write_text("whose?")
    s.checkpoint("by hand, again")
    agent.kill()
    begin = s.checkpoints()[0]
    assert steps(s.plan_rewind(to=begin)) == {"perhaps.txt": DOUBT, "sure.txt": ("delete", "changed in turn 1")}


def test_while_its_process_lives_it_is_all_its_own(home, place: Path, tmp_path: Path):
    s = home.create(workspace=place)
    agent = Agent(tmp_path / "home", s.id)
    agent.write(place / "agents.txt", "the agent's")
    s.refresh()
    begin = s.checkpoints()[0]
    assert steps(s.plan_rewind(to=begin)) == {"agents.txt": ("delete", "changed in turn 1")}
    agent.end()
    s.refresh()
    assert steps(s.plan_rewind(to=begin)) == {"agents.txt": ("delete", "changed in turn 1")}


@pytest.mark.parametrize(("what", "is_sure"), [("pid", True), ("host", False), ("namespace", False), ("boot", False)])
def test_where_nobody_can_look_nobody_knows(home, place: Path, what: str, is_sure: bool):
    """A turn as another process begins it: this one, seen from outside, except for one thing."""
    s = home.create(workspace=place)
    turn = "w7m2k9x4p0qa-1"
    who = process.this_process()
    who[what] = who[what] if is_sure else "elsewhere"
    s.append(Writer(word=turn[:12], **who))
    begin = s.append(Checkpoint(roots=s.checkpoint().roots, when="begin", turn=turn), Turn(state="begin", turn=turn))[0]
    (place / "agents.txt").write_text("whose?")
    assert steps(s.plan_rewind(to=begin)) == {"agents.txt": ("delete", "changed in turn 1") if is_sure else DOUBT}


def test_processes_are_compared_within_a_namespace():
    me = process.this_process()
    assert process.runs(me) is True
    assert process.runs({**me, "namespace": None}) is True  # of a log that was written before
    assert process.runs({**me, "namespace": "pid:[1]"}) is None
    assert process.runs({**me, "host": "elsewhere"}) is None
    assert process.runs({**me, "boot": "another"}) is False
    assert process.runs({**me, "started": "1"}) is False
    assert process.may_run({**me, "namespace": "pid:[1]"})


def test_a_turn_that_ended_without_a_checkpoint_leaves_the_same_doubt(home, place: Path):
    s = home.create(workspace=place)
    with s.turn():
        (place / "agents.txt").write_text("the agent's")
        settings, interior(home).settings = interior(home).settings, replace(interior(home).settings, checkpoints=False)
    interior(home).settings = settings
    (place / "mine.txt").write_text("mine")
    begin = s.checkpoints()[0]
    assert steps(s.plan_rewind(to=begin)) == {"agents.txt": DOUBT, "mine.txt": DOUBT}


# ── other sessions ────────────────────────────────────────────────────────────────────────────────────


def test_what_a_killed_turn_of_another_session_may_have_done_is_not_taken(home, place: Path, tmp_path: Path):
    mine, other = home.create(workspace=place), home.create(workspace=place)
    agent = Agent(tmp_path / "home", other.id)
    with mine.turn():
        first = mine.user("go")
        agent.write(place / "theirs.txt", "theirs")
        agent.kill()
        (place / "mine.txt").write_text("mine")
    said = f"session {other.handle}, turn 1, may have changed it, too"
    assert steps(mine.plan_rewind(before=first)) == {"mine.txt": ("conflict", said), "theirs.txt": ("conflict", said)}
    mine.rewind(before=first)
    assert (place / "theirs.txt").read_text() == "theirs"


def test_a_turn_that_was_over_before_ours_began_is_in_nobodys_way(home, place: Path, tmp_path: Path):
    other = home.create(workspace=place)
    killed(tmp_path, other, theirs="theirs")
    mine = home.create(workspace=place)
    for number in (1, 2):
        with mine.turn():
            mine.user("go")
            (place / f"mine{number}.txt").write_text("mine")
    assert steps(mine.plan_rewind(turns=2)) == {
        "mine1.txt": ("delete", "changed in turn 1"), "mine2.txt": ("delete", "changed in turn 2"),
    }  # fmt: skip
    mine.rewind(turns=2)
    assert sorted(path.name for path in place.iterdir()) == ["a.txt", "theirs.txt"]


def test_a_fork_made_in_a_turn_does_not_own_what_goes_on_there(home, place: Path):
    s = home.create(workspace=place)
    with s.turn():
        (place / "sure.txt").write_text("before the fork")
        s.checkpoint()
        fork = s.fork()
        (place / "later.txt").write_text("after the fork")
    begin = fork.checkpoints()[0]
    assert steps(fork.plan_rewind(to=begin))["later.txt"][0] == "conflict"
    assert steps(fork.plan_rewind(to=begin))["sure.txt"] == ("delete", "changed in turn 1")
    assert {action for action, _ in steps(s.plan_rewind(to=begin)).values()} == {"delete"}


# ── folders inside each other ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("which", ["around", "inside"])
def test_what_a_session_around_or_inside_this_folder_did_is_not_taken(home, place: Path, tmp_path: Path, which: str):
    (place / "sub").mkdir()
    (place / "sub/x.txt").write_text("one\n")
    (tmp_path / "link").symlink_to(place)
    outer, inner = home.create(workspace=tmp_path / "link"), home.create(workspace=place / "sub")
    mine, other = (outer, inner) if which == "around" else (inner, outer)
    with mine.turn():
        first = mine.user("go")
        (place / "sub/mine.txt").write_text("mine")
        with other.turn():
            (place / "sub/x.txt").write_text("theirs")
            (place / "sub/theirs.txt").write_text("theirs")
        (place / "sub/last.txt").write_text("mine")
    lead = "sub/" if which == "around" else ""
    said = ("conflict", f"session {other.handle}, turn 1, changed it at the same time")
    own = ("delete", "changed in turn 1")
    assert steps(mine.plan_rewind(before=first)) == {
        f"{lead}last.txt": own, f"{lead}mine.txt": own, f"{lead}theirs.txt": said, f"{lead}x.txt": said,
    }  # fmt: skip
    mine.rewind(before=first)
    assert {path.name: path.read_text() for path in (place / "sub").iterdir()} == {
        "theirs.txt": "theirs", "x.txt": "theirs",
    }  # fmt: skip


def test_a_turn_inside_that_goes_on_is_seen_from_around(home, place: Path, tmp_path: Path):
    (place / "sub").mkdir()
    outer, inner = home.create(workspace=place), home.create(workspace=place / "sub")
    agent = Agent(tmp_path / "home", inner.id)
    with outer.turn():
        first = outer.user("go")
        (place / "sub/whose.txt").write_text("whose?")
        (place / "mine.txt").write_text("mine")
    said = ("conflict", f"session {inner.handle}, turn 1, changed it at the same time")
    own = ("delete", "changed in turn 1")
    assert steps(outer.plan_rewind(before=first)) == {"mine.txt": own, "sub/whose.txt": said}
    agent.kill()
    said = ("conflict", f"session {inner.handle}, turn 1, may have changed it, too")
    assert steps(outer.plan_rewind(before=first)) == {"mine.txt": own, "sub/whose.txt": said}


def test_a_folder_that_only_begins_like_this_one_has_nothing_to_do_with_it(home, place: Path, tmp_path: Path):
    beside = tmp_path / "project-2"
    beside.mkdir()
    mine, other = home.create(workspace=place), home.create(workspace=beside)
    agent = Agent(tmp_path / "home", other.id)
    with mine.turn():
        first = mine.user("go")
        (place / "mine.txt").write_text("mine")
    agent.kill()
    assert steps(mine.plan_rewind(before=first)) == {"mine.txt": ("delete", "changed in turn 1")}

"""Two agents in one folder: what each of them edited is its own; what nobody can tell apart is taken from nobody."""

import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest

import turnlog
from tests.clock import tick
from tests.rewind.relaylab import Hook
from turnlog.blame.authorship import blame
from turnlog.log.entry import Drop
from turnlog.machine.process import process_of
from turnlog.session.interior import interior


class Worker:
    """An agent with a session in the folder."""

    def __init__(self, home, place: Path, name: str, pid: int) -> None:
        self.session = home.create(workspace=place, id=name)
        self.hook = Hook(home, self.session, process_of(pid))
        self._place = place

    def edits(self, name: str, text: str, *, reports: bool = True) -> None:
        """With its own tool, which says so."""
        self.writes(name, text)
        if reports:
            self.reports(name)

    def reports(self, *names: str) -> None:
        self.hook("record_tool", None, names)

    def writes(self, name: str, text: str) -> None:
        """In a shell: nobody is told."""
        path = self._place / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def plan(self) -> dict[str, str]:
        return {step.path: step.action for step in self.session.plan_rewind(to=self.session.checkpoints()[0]).steps}

    def diff(self) -> list[str]:
        return sorted(item.path for item in self.session.diff(turn=1))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    for name in ("a", "b", "c"):
        (folder / name).write_text(f"{name}\n")
    return folder


@pytest.fixture
def home(tmp_path: Path):
    with turnlog.open(tmp_path / "home", durability="flush", clock=tick) as opened:
        yield opened


@pytest.fixture
def two(home, place: Path):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield Worker(home, place, "one", process.pid), Worker(home, place, "two", process.pid)
        process.kill()


def authors(home, path: Path) -> list:
    return [line.author.session if line.author else line.why for line in blame(interior(home).store, path).lines]


def test_what_one_edited_and_nobody_else_touched_is_its_own(two, home, place: Path):
    one, other = two
    one.hook("begin", "t1")
    other.hook("begin", "t2")
    one.edits("a", "one\n")
    other.edits("lib/new", "two\n")
    one.writes("shell", "by one of them\n")
    other.edits("b", "two\n")
    one.edits("a", "one\nagain\n")
    one.hook("end", None)
    other.hook("end", None)
    assert one.plan() == {"a": "modify", "shell": "conflict"}
    assert other.plan() == {"b": "modify", "lib": "delete", "lib/new": "delete", "shell": "conflict"}
    assert one.diff() == ["a", "shell"]
    assert other.diff() == ["b", "lib/new", "shell"]
    assert [authors(home, place / name) for name in ("a", "b", "lib/new", "shell")] == [
        ["one", "one"], ["two"], ["two"], ["several"],
    ]  # fmt: skip
    one.session.rewind(to=one.session.checkpoints()[0], force=True)
    assert (place / "b").read_text() == (place / "lib/new").read_text() == "two\n"
    other.session.rewind(to=other.session.checkpoints()[0])
    assert sorted(path.name for path in place.iterdir()) == ["a", "b", "c"]


def test_what_both_edited_stays_for_both(two, home, place: Path):
    one, other = two
    one.hook("begin", "t1")
    other.hook("begin", "t2")
    one.edits("a", "one\n")
    other.edits("a", "one\ntwo\n")
    one.hook("end", None)
    other.hook("end", None)
    assert one.plan() == other.plan() == {"a": "conflict"}
    assert authors(home, place / "a") == ["one", "two"]


def test_a_file_that_changed_otherwise_before_it_was_edited_is_nobodys_alone(two, home, place: Path):
    one, other = two
    one.hook("begin", "t1")
    other.hook("begin", "t2")
    other.writes("a", "a\nby a shell\n")
    other.reports()
    one.edits("a", "a\nby a shell\none\n")
    one.hook("end", None)
    other.hook("end", None)
    assert one.plan() == other.plan() == {"a": "conflict"}
    assert authors(home, place / "a") == ["before", "several", "several"]


def test_an_edit_that_the_other_saw_before_it_was_told_is_still_that_ones(two, home, place: Path):
    one, other = two
    one.hook("begin", "t1")
    other.hook("begin", "t2")
    one.edits("a", "one\n", reports=False)
    other.reports()
    one.reports("a")
    one.hook("end", None)
    other.hook("end", None)
    assert (one.plan(), other.plan()) == ({"a": "modify"}, {})
    assert authors(home, place / "a") == ["one"]


def test_turns_one_after_the_other_never_conflict(two, place: Path):
    one, other = two
    one.hook("begin", "t1")
    one.writes("a", "one\n")
    one.hook("end", None)
    other.hook("begin", "t2")
    other.writes("b", "two\n")
    other.hook("end", None)
    one.hook("begin", "t3")
    one.writes("c", "one\n")
    one.hook("end", None)
    assert (one.plan(), other.plan()) == ({"a": "modify", "c": "modify"}, {"b": "modify"})


def test_what_both_may_still_be_at_is_told_apart_as_well(two, place: Path):
    one, other = two
    one.hook("begin", "t1")
    other.hook("begin", "t2")
    one.edits("a", "one\n")
    other.edits("b", "two\n")
    assert (one.plan(), other.plan()) == ({"a": "modify"}, {"b": "modify"})
    one.hook("abort")  # its agent was interrupted
    one.hook("begin", "t3")
    other.edits("c", "two\n")
    assert (one.plan(), other.plan()) == ({"a": "modify"}, {"b": "modify", "c": "modify"})


def test_edits_of_one_file_in_turn_are_told_apart(two, home, place: Path):
    one, other = two
    one.hook("begin", "t1")
    other.hook("begin", "t2")
    lines = ""
    for number in range(3):
        for who in (one, other):
            lines += f"{who.session.id} {number}\n"
            who.edits("a", lines)
    assert authors(home, place / "a") == ["one", "two"] * 3


def test_edits_of_one_file_at_once_are_of_both(two, home, place: Path):
    one, other = two
    one.hook("begin", "t1")
    other.hook("begin", "t2")
    one.edits("a", "one\n", reports=False)
    other.edits("a", "one\ntwo\n", reports=False)
    one.reports("a")
    other.reports("a")
    assert one.plan() == other.plan() == {"a": "conflict"}
    assert authors(home, place / "a") == ["several", "several"]


def test_what_the_other_may_have_done_in_turns_that_nobody_can_look_at_stays(two, home, place: Path):
    one, other = two
    other.hook("begin", "t0")
    other.hook("end", None)
    one.hook("begin", "t1")
    other.hook("begin", "t2")
    one.edits("a", "one\n")
    other.hook("end", None)
    other.hook("begin", "t3")
    other.hook("end", None)
    one.hook("end", None)
    assert one.plan() == {"a": "modify"}
    points = [point for point in other.session.checkpoints() if point.turn and point.turn.endswith("t2")]
    other.session.append(Drop(checkpoints=[point.id for point in points]))
    assert one.plan() == {"a": "conflict"}


@pytest.mark.parametrize("inner", ["one", "two"])
@pytest.mark.parametrize("ticks", [1, 2, 3, 4, 100])
def test_checkpoints_of_one_millisecond_have_no_order(tmp_path: Path, place: Path, inner: str, ticks: int):
    """So what changed between them is of each turn that may have been open then, and stays."""
    moments = (1_700_000_000_000 + number // ticks for number in count())
    with turnlog.open("memory:", clock=moments.__next__) as home:
        one, two = home.create(workspace=place, id="one"), home.create(workspace=place, id="two")
        outside, inside = (two, one) if inner == "one" else (one, two)
        with outside.turn():
            outside.user("mine")
            with inside.turn():
                inside.user("mine, too")
                (place / "a").write_text("whose is it?")
        for session in (outside, inside, outside):
            assert [step.action for step in session.plan_rewind(turns=1).steps] == ["conflict"]
            session.rewind(turns=1)
            assert (place / "a").read_text() == "whose is it?"
            session.undo()


@pytest.mark.parametrize("covered", ["before", "since its first edit"])
def test_what_a_session_in_another_folder_declared_is_left_alone(home, place: Path, tmp_path: Path, covered: str):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    one, other = Worker(home, place, "one", 1), Worker(home, elsewhere, "two", 1)
    if covered == "before":
        other.session.track(place / "b")
    one.hook("begin", "t1")
    other.hook("begin", "t2")
    one.edits("a", "one\n")
    other.writes(str(place / "b"), "two\n")
    other.hook("record_tool", None, [str(place / "b")], [str(place / "b")])
    other.hook("end", "t2")
    one.hook("end", "t1")
    assert one.plan() == {"a": "modify"}
    assert one.diff() == ["a"]


def test_a_session_that_tracks_nothing_here_has_no_part_in_it(home, place: Path, tmp_path: Path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    one, other = Worker(home, place, "one", 1), Worker(home, elsewhere, "two", 1)
    one.hook("begin", "t1")
    other.hook("begin", "t2")
    one.writes("a", "one\n")
    other.edits("b", "two\n")
    other.hook("end", "t2")
    one.hook("end", "t1")
    assert one.plan() == {"a": "modify"}

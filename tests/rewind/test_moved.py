"""A project that lies elsewhere now: its checkpoints are of that project, not of a path."""

import os
from pathlib import Path

import pytest

import turnlog
from turnlog.rewind.rewinder import Rewinder


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "old/project"
    folder.mkdir(parents=True)
    (folder / "a.txt").write_text("one\n")
    (folder / "b.txt").write_text("one\n")
    (folder / ".gitignore").write_text("*.env\n")
    (folder / "local.env").write_text("A=1")
    return folder


@pytest.fixture
def home(tmp_path: Path):
    with turnlog.open(tmp_path / "home") as opened:
        yield opened


def move(session: turnlog.Session, place: Path, to: Path) -> Path:
    place.rename(to)
    session.set("workspace", to)
    return to


def actions(plan) -> dict[bytes, str]:
    return {step.raw: step.action for step in plan.steps}


def work(place: Path, text: str) -> None:
    (place / "a.txt").write_text(text)
    (place / "new").mkdir(exist_ok=True)
    (place / "new/n.txt").write_text(text)


def test_what_a_turn_did_before_the_move_is_taken_back_after_it(home, place: Path, tmp_path: Path):
    s = home.create(workspace=place)
    with s.turn():
        first = s.user("go")
        work(place, "two\n")
        (place / "b.txt").unlink()
    new = move(s, place, tmp_path / "new")
    assert {d.path for d in s.diff(turn=1)} == {"a.txt", "b.txt", "new/n.txt"}
    head = s.rewind(before=first)
    assert head.files == {"modify": 1, "create": 1, "delete": 2}
    assert sorted(p.name for p in new.iterdir()) == [".gitignore", "a.txt", "b.txt", "local.env"]
    assert (new / "a.txt").read_text() == "one\n"
    assert not place.exists()
    s.undo()
    assert (new / "a.txt").read_text() == "two\n"


def test_moves_between_turns_and_rewinds_are_one_story(home, place: Path, tmp_path: Path):
    """Each rewind, undo and redo was written down with the paths of its day."""
    s = home.create(workspace=place)
    with s.turn():
        first = s.user("go")
        work(place, "two\n")
    s.rewind(before=first)
    place = move(s, place, tmp_path / "second")
    s.undo()
    assert (place / "new/n.txt").read_text() == "two\n"
    with s.turn():
        s.user("again")
        work(place, "three\n")
    place = move(s, place, tmp_path / "third")
    assert "conflict" not in actions(s.plan_rewind(before=first)).values()
    s.rewind(before=first)
    assert not (place / "new").exists()
    place = move(s, place, tmp_path / "fourth")
    s.undo()
    assert (place / "a.txt").read_text() == "three\n"
    s.redo()
    assert (place / "a.txt").read_text() == "one\n"


def test_what_a_person_changed_around_a_move_stays_theirs(home, place: Path, tmp_path: Path):
    s = home.create(workspace=place)
    with s.turn():
        first = s.user("go")
        work(place, "two\n")
    new = move(s, place, tmp_path / "new")
    (new / "a.txt").write_text("mine\n")
    (new / "mine.txt").write_text("mine\n")
    assert actions(s.plan_rewind(before=first))[b"a.txt"] == "conflict"
    s.rewind(before=first)
    assert (new / "a.txt").read_text() == "mine\n"
    assert (new / "mine.txt").read_text() == "mine\n"


def test_tracked_files_in_the_project_move_along_and_others_stay_where_they_are(home, place: Path, tmp_path: Path):
    elsewhere = tmp_path / "elsewhere.conf"
    elsewhere.write_text("1")
    s = home.create(workspace=place)
    s.track("local.env")
    s.track(elsewhere)
    with s.turn():
        first = s.user("go")
    new = move(s, place, tmp_path / "new")
    (new / "local.env").write_text("A=2")
    elsewhere.write_text("2")
    s.rewind(before=first)
    assert (new / "local.env").read_text() == "A=1"
    assert elsewhere.read_text() == "1"


def test_the_change_of_another_session_that_moved_along_is_a_conflict(home, place: Path, tmp_path: Path):
    s, other = home.create(workspace=place), home.create(workspace=place)
    with s.turn():
        first = s.user("go")
        with other.turn():
            other.user("go as well")
            (place / "a.txt").write_text("two\n")
    place.rename(tmp_path / "new")
    for session in (s, other):
        session.set("workspace", tmp_path / "new")
    assert actions(s.plan_rewind(before=first)) == {b"a.txt": "conflict"}


@pytest.mark.parametrize("abort", [False, True], ids=["continued", "aborted"])
def test_a_rewind_that_was_interrupted_before_the_move_is_settled_after_it(
    home, place: Path, tmp_path: Path, abort: bool, monkeypatch
):
    s = home.create(workspace=place)
    with s.turn():
        s.user("go")
        work(place, "two\n")
    monkeypatch.setattr(Rewinder, "_done", _die)
    with pytest.raises(KeyboardInterrupt):
        s.rewind(turns=1)
    monkeypatch.undo()
    s = home.resume(s.id)
    new = move(s, place, tmp_path / "new")
    os.unlink(new / "a.txt")  # as if it had not been done yet, and somebody took it
    s.finish_rewind(abort=abort)
    assert (new / "new").exists() is abort
    assert [problem.step.raw for problem in s.problems()] == [b"a.txt"]


def _die(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_fork_in_another_copy_of_the_project_goes_back_there(home, place: Path, tmp_path: Path):
    s = home.create(workspace=place)
    with s.turn():
        first = s.user("go")
        (place / "a.txt").write_text("two\n")
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("a.txt", "b.txt", ".gitignore"):
        (copy / name).write_text((place / name).read_text())
    fork = s.fork(workspace=copy)
    fork.rewind(before=first)
    assert (copy / "a.txt").read_text() == "one\n"
    assert (place / "a.txt").read_text() == "two\n"


def test_what_stayed_in_a_rewind_that_was_finished_after_the_move_is_not_undone(
    home, place: Path, tmp_path: Path, monkeypatch
):
    s = home.create(workspace=place)
    with s.turn():
        s.user("go")
        work(place, "two\n")
    monkeypatch.setattr(Rewinder, "_done", _die)
    with pytest.raises(KeyboardInterrupt):
        s.rewind(turns=1)
    monkeypatch.undo()
    s = home.resume(s.id)
    new = move(s, place, tmp_path / "new")
    (new / "a.txt").write_text("mine\n")
    s.finish_rewind()
    s.undo()
    assert (new / "a.txt").read_text() == "mine\n"
    assert (new / "new/n.txt").read_text() == "two\n"

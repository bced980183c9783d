"""The folder of a project is gone: a rewind makes it and brings everything back."""

import os
import shutil
from pathlib import Path

import pytest

import turnlog
from turnlog.cli.demo.files import digest
from turnlog.rewind.rewinder import Rewinder
from turnlog.workspace.restore import Restorer


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "above/project"
    (folder / "src/deep").mkdir(parents=True)
    (folder / "src/deep/a.py").write_text("a\n")
    (folder / "b.txt").write_text("b\n")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "link").symlink_to("b.txt")
    (folder / "empty").mkdir(mode=0o700)
    folder.chmod(0o750)
    return folder


@pytest.fixture(params=["files", "memory"])
def home(request, tmp_path: Path):
    with turnlog.open("memory:" if request.param == "memory" else tmp_path / "home") as opened:
        yield opened


def deleted_in_a_turn(home, place: Path):
    s = home.create(workspace=place)
    with s.turn():
        first = s.user("go")
        (place / "b.txt").write_text("two\n")
        shutil.rmtree(place)
    return s, first


def mode(place: Path) -> int:
    return place.stat().st_mode & 0o7777


def test_what_a_turn_deleted_with_its_folder_comes_back_to_the_byte(home, place: Path):
    before = digest(place)
    s, first = deleted_in_a_turn(home, place)
    assert {d.action for d in s.diff(turn=1)} == {"deleted"}
    plan = s.plan_rewind(before=first)
    assert {step.action for step in plan.steps} == {"create"}
    assert plan.steps[0].path == ""
    assert not place.exists()
    head = s.rewind(before=first)
    assert (digest(place), mode(place)) == (before, 0o750)
    assert head.files == {"create": len(plan.steps)}
    assert s.problems() == []
    s.undo()
    assert list(place.iterdir()) == []  # the folder itself stays: somebody may stand in it
    s.redo()
    assert digest(place) == before


def test_an_empty_folder_that_somebody_made_meanwhile_is_filled(home, place: Path):
    before = digest(place)
    s, first = deleted_in_a_turn(home, place)
    place.mkdir()
    assert {step.action for step in s.plan_rewind(before=first).steps} == {"create"}
    s.rewind(before=first)
    assert digest(place) == before


def test_what_somebody_began_there_meanwhile_stays(home, place: Path):
    s, first = deleted_in_a_turn(home, place)
    place.mkdir()
    (place / "b.txt").write_text("mine\n")
    (place / "new.txt").write_text("mine\n")
    s.rewind(before=first)
    assert (place / "b.txt").read_text() == (place / "new.txt").read_text() == "mine\n"
    assert (place / "src/deep/a.py").read_text() == "a\n"


def test_whoever_deleted_it_all_of_it_comes_back(home, place: Path):
    """Not only what the turns of the session changed: where nothing is, nothing of anybody can be overwritten."""
    before = digest(place)
    s = home.create(workspace=place)
    with s.turn():
        first = s.user("go")
        (place / "new.txt").write_text("new\n")
    with s.turn():
        s.user("again")
    shutil.rmtree(place)
    s.rewind(before=first)
    assert digest(place) == before
    s.undo()
    assert list(place.iterdir()) == []


def test_only_what_is_asked_for_comes_back(home, place: Path):
    s, first = deleted_in_a_turn(home, place)
    s.rewind(before=first, only=["src"], conversation=False)
    assert [path.name for path in place.iterdir()] == ["src"]
    assert (place / "src/deep/a.py").read_text() == "a\n"


def test_where_the_folder_above_is_gone_too_it_is_refused_and_nothing_moves(home, place: Path):
    """A disk that is not attached looks like this: nothing is made in its place."""
    before = digest(place)
    s = home.create(workspace=place)
    with s.turn():
        first = s.user("go")
        shutil.rmtree(place.parent)
    for act in (s.rewind, s.plan_rewind):
        with pytest.raises(turnlog.NotFound, match="above it") as caught:
            act(before=first)
        assert f"mkdir -p {place.parent}" in str(caught.value.hint)
    assert len(s.messages()) == 1
    assert not place.parent.exists()
    place.parent.mkdir()
    s.rewind(before=first)
    assert digest(place) == before


def test_a_file_in_its_place_is_somebodys_and_stays(home, place: Path):
    s, first = deleted_in_a_turn(home, place)
    place.write_text("mine\n")
    with pytest.raises(turnlog.NotFound, match="something else has its name"):
        s.rewind(before=first)
    assert place.read_text() == "mine\n"
    place.unlink()
    s.rewind(before=first)
    assert (place / "b.txt").read_text() == "b\n"


def test_where_the_folder_is_not_there_nothing_begins(home, place: Path):
    """A disk that is attached in the middle of a turn would make all that is on it the turn's."""
    before = digest(place)
    s = home.create(workspace=place)
    shutil.move(place, place.with_name("aside"))
    with pytest.raises(turnlog.NotFound, match="is gone"):
        s.checkpoint()
    with s.turn():
        first = s.user("go")
        shutil.move(place.with_name("aside"), place)
    assert s.plan_rewind(before=first).to_do == []
    s.rewind(before=first)
    assert digest(place) == before


def test_a_tracked_file_comes_back_with_the_folder_that_it_was_in(home, place: Path, tmp_path: Path):
    elsewhere = tmp_path / "conf"
    elsewhere.mkdir(mode=0o700)
    (elsewhere / "settings").write_text("1")
    s = home.create(workspace=place)
    s.track(elsewhere / "settings")
    with s.turn():
        first = s.user("go")
        shutil.rmtree(elsewhere)
    s.rewind(before=first)
    assert (elsewhere / "settings").read_text() == "1"
    assert mode(elsewhere) == 0o700


@pytest.mark.parametrize("abort", [False, True], ids=["continued", "aborted"])
@pytest.mark.parametrize("steps", [0, 1, 3, 99])
def test_bringing_it_back_may_be_interrupted(home, place: Path, monkeypatch, steps: int, abort: bool):
    before = digest(place)
    s, first = deleted_in_a_turn(home, place)

    def stop_after(self, todo, whole=Restorer.run):
        for index, outcome in enumerate(whole(self, todo)):
            if index >= steps:
                raise KeyboardInterrupt
            yield outcome

    with monkeypatch.context() as patch:
        patch.setattr(Restorer, "run", stop_after)
        patch.setattr(Rewinder, "_done", _die)
        with pytest.raises(KeyboardInterrupt):
            s.rewind(before=first)
    again = home.resume(s.id)
    again.finish_rewind(abort=abort)
    assert again.problems() == []
    if abort:
        assert not place.exists() or list(place.iterdir()) == []
        again.rewind(before=first)
    assert digest(place) == before


def _die(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_folder_that_may_not_be_looked_into_is_not_taken_for_gone(home, place: Path, monkeypatch):
    if os.geteuid() == 0:
        pytest.skip("root looks into everything")
    s = home.create(workspace=place)
    with s.turn():
        first = s.user("go")
        (place / "b.txt").write_text("two\n")
    place.parent.chmod(0)
    try:
        with pytest.raises(turnlog.TurnlogError):
            s.rewind(before=first)
    finally:
        place.parent.chmod(0o755)
    assert (place / "b.txt").read_text() == "two\n"

"""Whose a change is: what a rewind takes back, and what it leaves because it is somebody else's."""

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

import turnlog
from tests.clock import tick
from tests.faces import location
from turnlog.session.interior import interior


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    (folder / "b.txt").write_text("one\n")
    (folder / ".gitignore").write_text("*.env\nbuild/\n")
    return folder


@pytest.fixture(params=["files", "memory", "postgres"])
def home(request, tmp_path: Path):
    with turnlog.open(location(request, tmp_path / "home"), clock=tick) as opened:
        yield opened


def actions(plan) -> dict[bytes, str]:
    return {step.raw: step.action for step in plan.steps}


# ── callers that do not bracket, that declare, that track ─────────────────────────────────────────────


def test_who_never_brackets_owns_it_again_after_a_rewind(home, place: Path):
    """A rewind is a stretch of own work as well, but it is no turn."""
    s = home.create(workspace=place)
    label = s.checkpoint()
    for text in ("two", "three"):
        (place / "a.txt").write_text(text)
        assert "everything that changed counts" in s.plan_rewind(to=label).note
        s.rewind(to=label)
        assert (place / "a.txt").read_text() == "one\n"


def test_what_changed_after_the_last_turn_is_somebody_elses(home, place: Path):
    s = home.create(workspace=place)
    with s.turn():
        s.user("go")
    (place / "a.txt").write_text("the user's")
    (place / "new.txt").write_text("the user's")
    last = s.checkpoints()[-1]
    plan = s.plan_rewind(to=last)
    assert actions(plan) == {b"a.txt": "conflict", b"new.txt": "conflict"}
    assert "somebody else" in plan.note
    s.rewind(to=last)
    assert (place / "a.txt").read_text() == "the user's"
    s.rewind(to=last, force=True)
    assert (place / "a.txt").read_text() == "one\n"
    s.undo()
    assert (place / "new.txt").read_text() == "the user's"


def test_a_checkpoint_that_was_asked_for_takes_everything_since_if_no_turn_came_after_it(home, place: Path):
    s = home.create(workspace=place)
    with s.turn():
        s.user("go")
        (place / "agents.txt").write_text("the agent's")
    label = s.checkpoint("c1")
    (place / "a.txt").write_text("by hand")
    (place / "new.txt").write_text("by hand")
    (place / "agents.txt").unlink()
    plan = s.plan_rewind(to=label)
    assert actions(plan) == {b"a.txt": "modify", b"agents.txt": "create", b"new.txt": "delete"}
    assert plan.note == "no turn of the session since, so everything that changed counts as the session's"
    s.rewind(to=label)
    assert sorted(path.name for path in place.iterdir()) == [".gitignore", "a.txt", "agents.txt", "b.txt"]
    assert (place / "a.txt").read_text() == "one\n"
    s.undo()
    assert ((place / "a.txt").read_text(), (place / "new.txt").read_text()) == ("by hand", "by hand")
    assert not (place / "agents.txt").exists()
    s.redo()
    assert (place / "a.txt").read_text() == "one\n"


def test_where_a_turn_came_after_it_whose_a_change_is_decides(home, place: Path):
    s = home.create(workspace=place)
    label = s.checkpoint("c1")
    (place / "a.txt").write_text("by hand")
    with s.turn():
        s.user("go")
        (place / "b.txt").write_text("the agent's")
    (place / "new.txt").write_text("by hand")
    assert actions(s.plan_rewind(to=label)) == {b"b.txt": "modify"}
    with s.turn():
        inside = s.checkpoint("inside")
        (place / "b.txt").write_text("the agent's, again")
    (place / "b.txt").write_text("by hand")
    assert actions(s.plan_rewind(to=inside)) == {b"b.txt": "conflict"}


def test_what_another_session_did_since_a_checkpoint_that_was_asked_for_stays(home, place: Path):
    mine, other = home.create(workspace=place), home.create(workspace=place)
    with mine.turn():
        mine.user("go")
    label = mine.checkpoint("c1")
    with other.turn():
        (place / "theirs.txt").write_text("theirs")
    (place / "new.txt").write_text("by hand")
    assert actions(mine.plan_rewind(to=label)) == {b"new.txt": "delete", b"theirs.txt": "conflict"}


def test_a_declared_change_outside_of_turns_is_the_sessions(home, place: Path):
    s = home.create(workspace=place)
    with s.turn():
        first = s.user("go")
    (place / "a.txt").write_text("two\n")
    (place / "b.txt").write_text("the user's")
    s.changed("a.txt")
    plan = s.plan_rewind(before=first)
    assert [(step.raw, step.action, step.reason, step.is_declared) for step in plan.steps] == [
        (b"a.txt", "modify", "declared", True)
    ]
    s.rewind(before=first)
    assert (place / "a.txt").read_text() == "one\n"
    assert (place / "b.txt").read_text() == "the user's"


def test_a_declared_change_that_somebody_changed_again_is_a_conflict(home, place: Path):
    s = home.create(workspace=place)
    with s.turn():
        first = s.user("go")
    (place / "a.txt").write_text("two\n")
    s.changed(place / "a.txt")
    s.checkpoint()
    (place / "a.txt").write_text("the user's")
    assert actions(s.plan_rewind(before=first)) == {b"a.txt": "conflict"}


def test_a_tracked_file_is_the_sessions_whenever_it_changed(home, place: Path):
    (place / "local.env").write_text("A=1")
    s = home.create(workspace=place)
    s.track("local.env")
    with s.turn():
        first = s.user("go")
    (place / "local.env").write_text("A=2")
    (step,) = s.plan_rewind(before=first).steps
    assert (step.raw, step.action, step.reason) == (b"local.env", "modify", "tracked")
    s.rewind(before=first)
    assert (place / "local.env").read_text() == "A=1"


def test_what_was_not_tracked_then_is_unknown(home, place: Path):
    (place / "local.env").write_text("A=1")
    interior(home).settings = replace(interior(home).settings, covers_ignored=False)
    s = home.create(workspace=place)
    with s.turn():
        first = s.user("go")
        s.track("local.env")
        (place / "local.env").write_text("A=2")
    assert actions(s.plan_rewind(before=first)) == {b"local.env": "unknown"}
    s.rewind(before=first)
    assert (place / "local.env").read_text() == "A=2"


def test_a_tracked_folder_is_covered_with_all_that_is_in_it(home, place: Path):
    (place / "build/deep").mkdir(parents=True)
    (place / "build/deep/x.o").write_text("x")
    s = home.create(workspace=place)
    s.track("build")
    with s.turn():
        s.user("go")
        (place / "build/deep/x.o").unlink()
        (place / "build/new.o").write_text("new")
    s.rewind(turns=1)
    assert (place / "build/deep/x.o").read_text() == "x"
    assert not (place / "build/new.o").exists()


def test_without_a_checkpoint_that_far_back_only_the_conversation_moves_and_the_plan_says_so(home, place: Path):
    s = home.create(workspace=place)
    first = s.user("before any checkpoint")
    with s.turn():
        s.user("go")
        (place / "a.txt").write_text("two\n")
    assert s.plan_rewind(to=first).note == "only the conversation moves: there is no checkpoint that far back"
    assert s.rewind(to=first).files == {}
    assert (place / "a.txt").read_text() == "two\n"
    assert len(s.messages()) == 1


def test_a_session_without_a_workspace_says_so(home):
    s = home.create()
    first = s.user("hello")
    assert s.plan_rewind(to=first).note == "only the conversation moves: the session has no workspace"
    with pytest.raises(turnlog.Invalid, match="the session has no workspace"):
        s.checkpoint()


def test_a_session_without_a_workspace_has_checkpoints_of_the_files_it_tracks(home, tmp_path):
    file, other = tmp_path / "far" / "a.txt", tmp_path / "far" / "b.txt"
    file.parent.mkdir()
    file.write_text("one\n")
    other.write_text("somebody's\n")
    s = home.create()
    s.track(file)
    first = s.checkpoint("first")
    with s.turn():
        s.user("go")
        file.write_text("two\n")
    other.write_text("somebody's, changed\n")
    assert [item.path for item in s.diff(first)] == [str(file)]
    assert [item.path for item in s.diff()] == [str(file)]
    s.rewind(to=first)
    assert (file.read_text(), other.read_text()) == ("one\n", "somebody's, changed\n")
    s.undo()
    assert file.read_text() == "two\n"
    file.unlink()
    s.rewind(to=first)
    assert file.read_text() == "one\n"


def test_a_new_file_that_is_tracked_without_a_workspace_goes_again(home, tmp_path):
    s = home.create()
    s.track(tmp_path / "far" / "new.txt")
    (tmp_path / "far").mkdir()
    first = s.checkpoint()
    (tmp_path / "far" / "new.txt").write_text("new\n")
    s.rewind(to=first)
    assert list((tmp_path / "far").iterdir()) == []


# ── unknown is not absent ─────────────────────────────────────────────────────────────────────────────


def test_a_name_that_a_rule_means_only_as_a_folder_is_judged_anew(home, place: Path):
    """`build/` leaves out the folder, not a file of that name."""
    (place / "build").mkdir()
    (place / "build/x").write_text("x")
    s = home.create(workspace=place)
    s.checkpoint()
    (place / "build/x").unlink()
    (place / "build").rmdir()
    with s.turn():
        s.user("go")
        (place / "build").write_text("a file by now")
    assert [(item.path, item.action) for item in s.diff(turn=1)] == [("build", "created")]


def test_a_file_that_shrank_under_the_limit_is_unknown(tmp_path: Path, place: Path):
    with turnlog.open(tmp_path / "home", max_file_bytes=1000) as home:
        s = home.create(workspace=place)
        (place / "big").write_bytes(b"x" * 2000)
        with s.turn():
            first = s.user("go")
            (place / "big").write_bytes(b"x" * 10)
        with s.turn():
            s.user("more")
            (place / "big").write_bytes(b"y" * 3000)
        assert actions(s.plan_rewind(before=first)) == {b"big": "unknown"}
        s.rewind(before=first, force=True)
        assert (place / "big").stat().st_size == 3000


def test_a_file_that_cannot_be_read_is_reported_and_left_alone(home, place: Path):
    if os.geteuid() == 0:
        pytest.skip("root reads everything")
    (place / "secret").write_text("mine")
    (place / "secret").chmod(0)
    s = home.create(workspace=place)
    assert [item["path"] for item in s.checkpoint().skipped] == ["secret"]


def test_special_files_are_reported_and_left_alone(home, place: Path):
    os.mkfifo(place / "pipe")
    s = home.create(workspace=place)
    with s.turn():
        s.user("go")
        (place / "pipe").unlink()
    assert [(item["path"], item["reason"]) for item in s.checkpoints()[0].skipped] == [("pipe", "a special file")]
    assert actions(s.plan_rewind(turns=1)) == {b"pipe": "unknown"}
    s.rewind(turns=1)
    assert not (place / "pipe").exists()


def test_a_rule_that_changed_outside_of_the_tree_counts_for_its_time(home, place: Path):
    (place / ".git/info").mkdir(parents=True)
    (place / ".git/info/exclude").write_text("*.dat\n")
    (place / "user.dat").write_text("the user's")
    interior(home).settings = replace(interior(home).settings, covers_ignored=False)
    s = home.create(workspace=place)
    with s.turn():
        s.user("go")
        (place / ".git/info/exclude").write_text("")
        (place / "agent.dat").write_text("the agent's, perhaps")
    assert actions(s.plan_rewind(turns=1)) == {b"agent.dat": "unknown", b"user.dat": "unknown"}
    s.rewind(turns=1)
    assert (place / "user.dat").exists()


def test_a_turn_of_another_session_that_goes_on_for_long_counts(home, place: Path):
    """It says nothing while a command runs, and changes files all the same."""
    other, mine = home.create(workspace=place), home.create(workspace=place)
    with other.turn():
        with mine.turn():
            mine.user("one")
        with mine.turn():
            mine.user("two")
            (place / "a.txt").write_text("whose is it?")
        assert actions(mine.plan_rewind(turns=1)) == {b"a.txt": "conflict"}
        mine.rewind(turns=1)
        assert (place / "a.txt").read_text() == "whose is it?"


def test_a_folder_that_another_session_only_worked_in_goes_back_with_the_rest(home, place: Path):
    (place / "src").mkdir()
    (place / "src/x.py").write_text("x")
    mine, other = home.create(workspace=place), home.create(workspace=place)
    with mine.turn():
        mine.user("go")
        (place / "src").chmod(0o700)
        with other.turn():
            (place / "src/other.py").write_text("other")
    assert actions(mine.plan_rewind(turns=1)) == {b"src": "mode", b"src/other.py": "conflict"}

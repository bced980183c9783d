"""What writers of another agent's format are given of a session: its files, and what its agent's own file says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import turnlog
from tests.live.test_hook import ID
from tests.live.test_where import AGENT, machine, tell, worktree  # noqa: F401 - `machine` is a fixture
from turnlog.exchange.exporting.transcript import transcript_of
from turnlog.exchange.exporting.writing import render
from turnlog.formats import every


def ignored_files(session: turnlog.Session, folder: Path) -> dict[str, tuple[bytes | None, bytes | None]]:
    files = transcript_of(session, include_ignored=True).files(0)
    return {os.path.relpath(file.path, folder): (file.before, file.after) for file in files if ".env" in file.path}


def test_ignored_files_of_a_worktree_are_compared_with_its_own(machine):  # noqa: F811
    (machine.place / "my.env").write_text("of the workspace")
    tell(machine, "UserPromptSubmit", machine.place)
    folder = worktree(machine, "feat")
    tell(machine, "PostToolUse", folder, tool_name="EnterWorktree", tool_input={"name": "feat"})
    tell(machine, "Stop", machine.place)
    tell(machine, "UserPromptSubmit", machine.place, turn="t2")
    (folder / "new.env").write_text("of the worktree")
    tell(machine, "Stop", machine.place, turn="t2")
    session = machine.session(f"{AGENT}-{ID}")
    checkpoints = session.checkpoints()
    assert [sum(root.is_private for root in entry.roots) for entry in (checkpoints[0], checkpoints[-1])] == [1, 2]
    assert ignored_files(session, machine.place) == {}
    entered = next(entry.seq for entry in checkpoints if sum(root.is_private for root in entry.roots) == 2)
    files = transcript_of(session, include_ignored=True).files(entered - 1)
    assert [(file.path, file.before, file.after) for file in files] == [
        (str(folder / "new.env"), None, b"of the worktree")
    ]


def test_ignored_files_of_a_project_that_moved_are_compared_with_those_before(tmp_path: Path):
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    (before / ".gitignore").write_text("*.env\n")
    (before / "my.env").write_text("one")
    with turnlog.open(tmp_path / "home") as home:
        with home.create(id="s", workspace=before) as session:
            session.checkpoint()
        before.rename(after)
        (after / "my.env").write_text("two")
        with home.resume("s") as session:
            session.set("workspace", str(after))
            session.checkpoint()
            assert ignored_files(session, after) == {"my.env": (b"one", b"two")}


NO_TIMES = ("soon", "2026-11-16T12:00:00", "0001-01-01T00:00:00+14:00", "2026-11-16T12:00:00+99:00", 5, None, [])


@pytest.mark.parametrize("agent", [name for name, form in every() if form.write is not None])
@pytest.mark.parametrize(
    "told",
    [
        "soon",
        *({"origin": "anything", "created": created} for created in NO_TIMES),
        {"created": "0001-01-01T00:00:00+00:00"},
        {"created": "9999-12-31T00:00:00+00:00"},
        {"origin": [{}]},
    ],
)
def test_a_session_can_be_written_whatever_anybody_gave_as_its_source_header(tmp_path: Path, agent: str, told):
    with turnlog.open(tmp_path / "home") as home, home.create(workspace=tmp_path) as session:
        session.user("go")
        session.assistant("done")
        session.set("source_header", told)
        assert render(session, agent).files


@pytest.mark.parametrize("created", NO_TIMES)
def test_a_session_began_when_its_log_did_if_its_source_header_has_no_time(created):
    with turnlog.open("memory:") as home, home.create() as session:
        session.user("go")
        session.set("source_header", {"created": created})
        assert transcript_of(session).created == next(session.entries()).at


def test_a_file_elsewhere_that_was_tracked_later_does_not_count_as_created(tmp_path: Path):
    """An agent that took it for created would delete it when it goes back."""
    for name in ("project/x", "elsewhere/a", "elsewhere/b"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1")
    with turnlog.open(tmp_path / "home") as home:
        s = home.create(workspace=tmp_path / "project")
        s.track(tmp_path / "elsewhere/a")
        with s.turn():
            s.user("go")
            s.track(tmp_path / "elsewhere/b")
            for name in ("a", "b"):
                (tmp_path / "elsewhere" / name).write_text("2")
        files = transcript_of(s).files(0)
        assert [(file.path, file.before, file.after) for file in files] == [(str(tmp_path / "elsewhere/a"), b"1", b"2")]


@pytest.fixture(params=[True, False], ids=["ignored files are covered", "they are not"])
def ignoring(request: pytest.FixtureRequest, tmp_path: Path):
    """A session in a folder with files that git would ignore."""
    for name in ("my.env", "node_modules/x", "seen"):
        (tmp_path / "project" / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / "project" / name).write_text("1")
    (tmp_path / "project/.gitignore").write_text("*.env\nnode_modules\n")
    with turnlog.open(tmp_path / "home", covers_ignored=request.param) as home:
        yield home.create(workspace=tmp_path / "project")


def changed_files(session: turnlog.Session, folder: Path) -> dict[str, tuple[bytes | None, bytes | None]]:
    """Without those of which only the name is given, for they are ignored."""
    files = [file for file in transcript_of(session).files(0) if not file.is_private]
    return {os.path.relpath(file.path, folder): (file.before, file.after) for file in files}


def test_an_ignored_file_that_was_tracked_later_does_not_count_as_created(ignoring: turnlog.Session, tmp_path: Path):
    """An agent that took it for created would delete it when it goes back."""
    project = tmp_path / "project"
    with ignoring.turn():
        ignoring.user("go")
        for name in ("my.env", "node_modules/x", "seen"):
            ignoring.track(project / name)
            (project / name).write_text("2")
        (project / "new").write_text("2")
    assert changed_files(ignoring, project) == {"seen": (b"1", b"2"), "new": (None, b"2")}


def test_a_file_that_is_ignored_since_or_no_more_is_neither_created_nor_deleted(
    ignoring: turnlog.Session, tmp_path: Path
):
    project = tmp_path / "project"
    with ignoring.turn():
        ignoring.user("go")
        (project / ".gitignore").write_text("seen\nnode_modules\n")
    assert list(changed_files(ignoring, project)) == [".gitignore"]
    assert [item.path for item in ignoring.diff(turn=1)] == [".gitignore"]


def test_with_ignored_files_the_export_has_what_was_in_one_before_it_was_tracked(tmp_path: Path):
    (tmp_path / "project").mkdir()
    (tmp_path / "project/.gitignore").write_text("*.env\n")
    (tmp_path / "project/my.env").write_text("1")
    with turnlog.open(tmp_path / "home") as home:
        session = home.create(workspace=tmp_path / "project")
        with session.turn():
            session.user("go")
            session.track(tmp_path / "project/my.env")
            (tmp_path / "project/my.env").write_text("2")
        assert ignored_files(session, tmp_path / "project") == {"my.env": (b"1", b"2")}

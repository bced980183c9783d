"""Rewinds of the paths that a caller names, and of no others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import turnlog
from turnlog.log.entry import Track
from turnlog.rewind.selection import selection
from turnlog.session.interior import interior
from turnlog.thread.appender import appending
from turnlog.workspace.plan import Plan


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    return folder


@pytest.fixture
def home(tmp_path: Path):
    with turnlog.open(tmp_path / "home", durability="flush") as opened:
        yield opened


def shown(plan: Plan) -> set[str]:
    return {os.path.join(step.root, step.path) for step in plan.steps}


def test_a_name_in_the_workspace_is_not_that_of_a_file_outside(home: turnlog.Home, project: Path, tmp_path: Path):
    inside, outside = project / "config.toml", tmp_path / "app/config.toml"
    outside.parent.mkdir()
    outside.write_text("1")
    (tmp_path / "link").symlink_to(outside.parent)
    s = home.create(workspace=project)
    s.track(outside)
    with s.turn():
        ask = s.user("go")
        inside.write_text("2")
        outside.write_text("2")
    assert shown(s.plan_rewind(before=ask)) == {str(inside), str(outside)}
    for path in ("config.toml", "./config.toml", "src/../config.toml", str(inside), f"{project}/"):
        assert shown(s.plan_rewind(before=ask, only=[path])) == {str(inside)}
    for path in (str(outside), str(tmp_path / "link/config.toml"), "../app"):
        assert shown(s.plan_rewind(before=ask, only=[path])) == {str(outside)}
    s.rewind(before=ask, only=[str(outside)], conversation=False)
    assert (inside.read_text(), outside.read_text()) == ("2", "1")


def test_a_file_in_a_folder_that_was_entered_is_named_from_the_workspace(home: turnlog.Home, project: Path):
    worktree = project / "trees/x"
    for folder in (project, worktree):
        (folder / "src").mkdir(parents=True, exist_ok=True)
        (folder / "src/a.py").write_text("1")
    (worktree / ".git").write_text("gitdir: elsewhere\n")
    s = home.create(workspace=project)
    store = interior(home).store
    with appending(store, store.open(s.id)) as appender:
        appender.append([Track(path=str(worktree), is_folder=True)])
    s.refresh()
    with s.turn():
        ask = s.user("go")
        for folder in (project, worktree):
            (folder / "src/a.py").write_text("2")
    for path in ("trees/x/src/a.py", "trees", str(worktree / "src")):
        assert shown(s.plan_rewind(before=ask, only=[path])) == {str(worktree / "src/a.py")}
    assert shown(s.plan_rewind(before=ask, only=["src"])) == {str(project / "src/a.py")}


def test_a_path_is_taken_as_the_plan_shows_it(home: turnlog.Home, project: Path):
    names = [b"caf\xe9.txt", b"bytes:x", "café.txt".encode()]
    s = home.create(workspace=project)
    with s.turn():
        ask = s.user("go")
        for name in names:
            (project / os.fsdecode(name)).write_text("1")
    for step in s.plan_rewind(before=ask).steps:
        assert [one.raw for one in s.plan_rewind(before=ask, only=[step.path]).steps] == [step.raw]
    assert shown(s.plan_rewind(before=ask, only=["caf\udce9.txt"])) == {f"{project}/bytes:caf%E9.txt"}


def test_a_session_without_a_workspace_takes_absolute_paths(home: turnlog.Home, tmp_path: Path):
    files = [tmp_path / "a.conf", tmp_path / "b.conf"]
    s = home.create()
    for file in files:
        file.write_text("1")
        s.track(file)
    s.checkpoint()
    for file in files:
        file.write_text("2")
    assert shown(s.plan_rewind(only=[str(files[0])], to=s.checkpoints()[0])) == {str(files[0])}


@pytest.mark.parametrize("path", ["a\0b", "bytes:a%00b", "\ud800"])
def test_what_is_no_path_is_refused(path: str):
    with pytest.raises(turnlog.Invalid, match="is not a path"):
        selection([path], "/project")


def test_a_rewind_of_what_is_no_path_writes_nothing(home: turnlog.Home, project: Path):
    s = home.create(workspace=project)
    with s.turn():
        ask = s.user("go")
        (project / "a").write_text("1")
    before = len(list(s.entries()))
    with pytest.raises(turnlog.Invalid, match="is not a path"):
        s.rewind(before=ask, only=["a\0b"])
    assert len(list(s.entries())) == before

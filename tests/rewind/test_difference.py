"""What changed between two checkpoints of a session."""

from __future__ import annotations

import os
from pathlib import Path

import turnlog
from turnlog.workspace.tree import path_bytes


def test_a_changed_file_elsewhere_has_a_path_that_can_be_read_back(tmp_path: Path):
    files = [tmp_path / "app/caf\udce9.txt", tmp_path / "caf\udce9/app.txt", tmp_path / "bytes/a.txt"]
    with turnlog.open(tmp_path / "home") as home:
        s = home.create(workspace=tmp_path / "project")
        (tmp_path / "project").mkdir()
        for file in files:
            file.parent.mkdir()
            file.write_text("1")
            s.track(file)
        with s.turn():
            ask = s.user("go")
            for file in files:
                file.write_text("2")
        assert {path_bytes(item.path) for item in s.diff(turn=1)} == {os.fsencode(file) for file in files}
        s.rewind(before=ask)
        assert {file.read_text() for file in files} == {"1"}


def test_a_file_elsewhere_that_was_tracked_later_is_not_reported_as_created(tmp_path: Path):
    """Nothing is known of it before, whether or not another file of its folder was tracked then."""
    for name in ("project/x", "elsewhere/a", "elsewhere/b"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1")
    with turnlog.open(tmp_path / "home") as home:
        s = home.create(workspace=tmp_path / "project")
        for name in ("a", "b"):
            with s.turn():
                s.user("go")
                (tmp_path / "elsewhere" / name).write_text("2")
                s.track(tmp_path / "elsewhere" / name)
        assert s.diff(turn=1) == s.diff(turn=2) == []
        (tmp_path / "elsewhere/b").unlink()
        assert [(item.path, item.action) for item in s.diff(s.checkpoints()[-1])] == [
            (str(tmp_path / "elsewhere/b"), "deleted")
        ]


def test_the_files_in_a_folder_elsewhere_that_is_tracked_are_compared(tmp_path: Path):
    (tmp_path / "project").mkdir()
    (tmp_path / "elsewhere/lib").mkdir(parents=True)
    with turnlog.open(tmp_path / "home") as home:
        s = home.create(workspace=tmp_path / "project")
        s.track(tmp_path / "elsewhere/lib")
        with s.turn():
            s.user("go")
            (tmp_path / "elsewhere/lib/new").write_text("2")
        assert [(item.path, item.action) for item in s.diff(turn=1)] == [
            (str(tmp_path / "elsewhere/lib/new"), "created")
        ]


def test_an_ignored_file_that_was_tracked_later_is_not_reported_as_created(tmp_path: Path):
    """Nothing is known of it before, if ignored files are not covered."""
    project = tmp_path / "project"
    project.mkdir()
    (project / ".gitignore").write_text("*.env\n")
    (project / "my.env").write_text("1")
    with turnlog.open(tmp_path / "home", covers_ignored=False) as home:
        s = home.create(workspace=project)
        with s.turn():
            s.user("go")
            s.track(project / "my.env")
            (project / "my.env").write_text("2")
            (project / "new").write_text("2")
        assert [(item.path, item.action) for item in s.diff(turn=1)] == [("new", "created")]
        first, last = s.checkpoints()
        assert [(item.path, item.action) for item in s.diff(last, first)] == [("new", "deleted")]

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

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

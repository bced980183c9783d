"""`turnlog mv`."""

import json
import os
import time
from pathlib import Path

import pytest

import turnlog
from tests.cli.scene import Cli, write_session
from turnlog.errors import Unsupported
from turnlog.log.entry import FORMAT, Start
from turnlog.log.path import path_bytes
from turnlog.session.interior import interior
from turnlog.testing import draft


def test_sessions_follow_their_project(cli: Cli, session: str, tmp_path: Path):
    old, new = Path.cwd(), tmp_path / "moved"
    with turnlog.open() as home:
        below = write_session(home, workspace=old / "packages/api")
        beside = write_session(home, workspace=f"{old}-2")
    new.mkdir()
    done = cli("mv", str(old), str(new), "--json")
    assert done.code == 0, done.err
    assert {row["id"]: row["workspace"] for row in done.json["sessions"]} == {
        session: str(new),
        below: str(new / "packages/api"),
    }
    with turnlog.open() as home:
        places = {row.id: row.workspace for row in home.sessions()}
    assert places == {session: str(new), below: str(new / "packages/api"), beside: f"{old}-2"}


@pytest.mark.parametrize(
    ("before", "after", "places"),
    [
        ("/", "{new}", {"/src": "{new}/src", "/": "{new}"}),
        ("/old", "/", {"/old/shop": "/shop", "/old": "/"}),
    ],
)
def test_to_and_from_the_root_of_a_machine(
    cli: Cli, folder: Path, tmp_path: Path, before: str, after: str, places: dict[str, str]
):
    with turnlog.open() as home:
        ids = {home.create(workspace=place).id: moved.format(new=tmp_path) for place, moved in places.items()}
    done = cli("mv", "--dry-run", before, after.format(new=tmp_path), "--json")
    assert done.code == 0, done.err
    assert {row["id"]: row["workspace"] for row in done.json["sessions"]} == ids


def test_the_folder_does_not_have_to_be_there_any_more(cli: Cli, folder: Path, tmp_path: Path):
    with turnlog.open() as home:
        write_session(home, workspace=tmp_path / "gone")
    done = cli("mv", str(tmp_path / "gone"), ".")
    assert done.code == 0
    assert done.err == f"moved 1 session from {tmp_path / 'gone'} to {Path.cwd()}\n"


def test_a_dry_run_changes_nothing(cli: Cli, session: str, tmp_path: Path):
    done = cli("mv", "--dry-run", ".", str(tmp_path))
    assert done.out == f"{session[-8:]}  {tmp_path}\n"
    assert done.err.startswith("would move 1 session")
    with turnlog.open() as home:
        assert [row.workspace for row in home.sessions()] == [str(Path.cwd())]


def test_what_cannot_be_is_refused(cli: Cli, session: str, tmp_path: Path):
    for words, code, said in (
        ([".", "nowhere"], 2, "move the project first"),
        ([".", "."], 2, "is the same folder"),
        ([str(tmp_path / "other"), "."], 3, "no session of ours"),
    ):
        done = cli("mv", *words)
        assert done.code == code
        assert said in done.err


def test_a_project_that_moved_is_taken_back_where_it_is_now(process: Cli, folder: Path, tmp_path: Path, monkeypatch):
    old, new = Path.cwd(), tmp_path / "moved"
    (old / "a").write_text("one\n")
    process("run", "-q", "--", "sh", "-c", "echo two > a; echo b > b")
    old.rename(new)
    monkeypatch.chdir(new)
    assert process("mv", str(old), ".").code == 0
    assert process("diff", "--stat").out.endswith("2 changes: 1 created, 1 modified\n")
    done = process("rewind", "--yes")
    assert "2 changes to the files: 1 modify, 1 delete" in done.out
    assert {path.name: path.read_text() for path in new.iterdir()} == {"a": "one\n"}
    assert not old.exists()


def test_a_session_that_cannot_be_moved_leaves_the_others_moved_and_is_named(cli: Cli, folder: Path, tmp_path: Path):
    with turnlog.open() as home:
        last = write_session(home)
        start = Start(session="tomorrow", format=FORMAT + 1, workspace=str(Path.cwd()))
        interior(home).store.create("tomorrow", [draft(start)]).close()
        time.sleep(0.002)
        first = write_session(home)
        assert [row.id for row in home.sessions()] == [first, "tomorrow", last]
    (tmp_path / "moved").mkdir()
    done = cli("mv", ".", str(tmp_path / "moved"), "--json")
    assert done.code == Unsupported.exit_code
    assert [row["id"] for row in done.json["sessions"]] == [first]
    message = json.loads(done.err)["error"]["message"]
    assert message.startswith("session tomorrow: ") and message.endswith("; 2 sessions not done")


def test_n_is_a_dry_run(cli: Cli, session: str, tmp_path: Path):
    assert cli("mv", "-n", ".", str(tmp_path)).err.startswith("would move 1 session")


def test_folders_whose_names_are_not_unicode(cli: Cli, folder: Path, tmp_path: Path):
    old, odd = tmp_path / "old", Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    odd.mkdir()
    with turnlog.open() as home:
        ids = [home.create(workspace=place).id for place in (old, old / "a b", f"{old}/na\udcefve")]
    for before, after in ((old, odd), (odd, old)):
        after.mkdir(exist_ok=True)
        done = cli("mv", str(before), str(after), "--json")
        assert done.code == 0, done.err
        rows = {row["id"]: os.fsdecode(path_bytes(row["workspace"])) for row in done.json["sessions"]}
        assert rows == dict(zip(ids, (str(after), f"{after}/a b", f"{after}/na\udcefve"), strict=True))

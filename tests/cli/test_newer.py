"""What a newer Turnlog wrote is never called damaged: whoever meets it is told to upgrade, and nothing is changed."""

import json
import os
import shutil
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import turnlog
from tests.cli.machine import claude_session
from tests.cli.scene import Cli
from tests.faces import location
from turnlog.errors import Unsupported
from turnlog.layout import LAYOUT
from turnlog.log.entry import FORMAT, Start
from turnlog.session.interior import interior
from turnlog.testing import draft
from turnlog.workspace.tree import decode_tree


def newer(home: turnlog.Home, name: str) -> None:
    """A session in the next version of the format, with a title that everybody can read."""
    interior(home).store.create(name, [draft(Start(session=name, format=FORMAT + 1, title="Of tomorrow"))]).close()


@pytest.fixture(params=["memory", "files", "postgres"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[turnlog.Home]:
    with turnlog.open(location(request, tmp_path / "home")) as home:
        yield home


def test_a_session_in_a_later_format_is_listed_and_otherwise_left_alone(home: turnlog.Home):
    newer(home, "tomorrow")
    home.create(id="today").user("hello")
    assert {row.id: row.title for row in home.sessions()} == {"today": None, "tomorrow": "Of tomorrow"}
    for use in (home.resume, home.read):
        with pytest.raises(Unsupported, match=f"tomorrow is in format {FORMAT + 1}; this Turnlog knows") as caught:
            use("tomorrow")
        assert "upgrade" in str(caught.value.hint)
    with pytest.raises(Unsupported, match="format"):
        home.gc()  # nobody knows what it needs
    assert home.resume("today").messages()[0].blocks[0].text == "hello"


def test_a_first_line_that_cannot_be_taken_in_is_for_a_newer_one(folder: Path):
    with turnlog.open(folder) as home:
        home.create(id="s").close()
        path = folder / "sessions" / "s.jsonl"
        first, *rest = path.read_bytes().splitlines(keepends=True)
        body = first.rpartition(b',"c":')[0].replace(b'"session":"s"', b'"session":"s","labels":7')
        path.write_bytes(b'%s,"c":"%08x"}\n' % (body, zlib.crc32(body)) + b"".join(rest))
        with home.read("s") as session, pytest.raises(Unsupported, match="only a newer Turnlog"):
            session.context()


def test_the_doctor_does_not_call_it_damaged_and_repairs_nothing(folder: Path, cli: Cli):
    with turnlog.open(folder) as home:
        newer(home, "tomorrow")
        home.create(id="today").user("hello")
    path = folder / "sessions" / "tomorrow.jsonl"
    with path.open("ab") as file:
        file.write(b"\x00\x01 lines of another kind\n")
    before = path.read_bytes()
    for words in (["doctor"], ["doctor", "--repair"], ["doctor", "tomorrow"]):
        done = cli(*words)
        assert done.code == Unsupported.exit_code
        assert "upgrade this one" in done.out
        assert "1 session of a newer Turnlog" in done.out
        assert "wrong" not in done.out
        assert "damage" not in done.out
    assert path.read_bytes() == before
    assert cli("show", "tomorrow").code == Unsupported.exit_code
    assert "tomorrow" in cli("ls", "--all").out


@pytest.mark.parametrize(
    "more", [{"packs": LAYOUT["packs"] + 1}, {"chests": 1}, {"chests": ["of", "another", "kind"]}], ids=str
)
def test_a_home_of_a_newer_version_is_left_as_it_is(folder: Path, cli: Cli, more: dict):
    with turnlog.open(folder) as home:
        home.create(id="s").user("hello")
    (folder / "home.json").write_text(json.dumps({**LAYOUT, **more}))
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for command in ("ls", "show", "doctor", "usage"):
        done = cli(command)
        assert done.code == Unsupported.exit_code, done.err
        assert "upgrade" in done.err
        assert "damage" not in done.err
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_numbers_do_not_fall_where_a_newer_version_came_meanwhile(folder: Path):
    with turnlog.open(folder) as home:
        home.create(id="s").close()
    (folder / "home.json").write_text('{"layout":1,"packs":1}')
    with turnlog.open(folder) as home:
        told = json.dumps({**LAYOUT, "packs": LAYOUT["packs"] + 1})
        (folder / "home.json").write_text(told)
        with pytest.raises(Unsupported, match="packs"):
            home.create(id="t")
        assert (folder / "home.json").read_text() == told


def test_a_pack_of_a_newer_version_is_not_damaged_and_stays(folder: Path, cli: Cli):
    with turnlog.open(folder) as home, home.create(id="s") as session:
        digest = home.put_blob(b"x" * 100_000)
        session.user("x" * 100_000)
    packs = list((folder / "blobs").glob("*.pack"))
    for pack in packs:
        pack.write_bytes(pack.read_bytes()[:-1] + b"2")
    with turnlog.open(folder) as home:
        for ask in (home.get_blob, interior(home).store.has):
            with pytest.raises(Unsupported, match="written by a newer Turnlog"):
                ask(digest)
        with home.resume("s") as session, pytest.raises(Unsupported, match="newer"):
            session.context()
    done = cli("doctor")
    assert (done.code, "upgrade" in done.err) == (Unsupported.exit_code, True)
    cli("gc")
    assert all(pack.exists() for pack in packs)


def test_what_a_newer_version_wrote_down_of_deleted_sessions_stays(folder: Path, cli: Cli):
    person = Path(os.environ["HOME"])
    path = claude_session(person, str(Path.cwd()), "460f4edf-0000-4000-8000-000000000000", "hello")
    assert "$" in cli("usage").out
    [ledger] = person.rglob("spent/*.sqlite")
    path.unlink()
    shutil.rmtree(person / ".cache")
    assert "$" in cli("usage").out  # it is gone, and counted
    with closing(sqlite3.connect(ledger)) as connection:
        connection.execute("PRAGMA user_version = 99")
    before = ledger.read_bytes()
    shutil.rmtree(person / ".cache")
    claude_session(person, str(Path.cwd()), "560f4edf-0000-4000-8000-000000000000", "again")
    done = cli("usage")
    assert (done.code, "upgrade this one" in done.err) == (0, True), done.err
    assert ledger.read_bytes() == before


def test_a_tree_of_a_newer_version_is_not_damaged():
    with pytest.raises(Unsupported, match="newer"):
        decode_tree(b"TREE2\n")


def test_a_home_of_before_says_more_once_something_is_written_that_it_could_not_hold(folder: Path):
    with turnlog.open(folder) as home:
        home.create(id="s").close()
    (folder / "home.json").write_text('{"layout":1,"packs":1,"ids":1}')
    with turnlog.open(folder) as home:
        home.resume("s").user("a line that every version can read")
        assert json.loads((folder / "home.json").read_text())["packs"] == 1
        home.put_blob(b"in a pack")
    assert json.loads((folder / "home.json").read_text()) == LAYOUT

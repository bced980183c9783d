"""Homes and databases that earlier versions made, one of each format there was: `homes/make.py` says how.

Each opens, reads as it did, stays as it is for whoever only reads, goes on, and the doctor finds nothing wrong.
"""

import json
import tarfile
import uuid
from pathlib import Path

import psycopg
import pytest

import turnlog
from tests.cli.conftest import cli, folder  # noqa: F401
from tests.cli.scene import Cli
from tests.pgserver import Server
from tests.store.homes.life import LONG, PICTURE, TICKS
from tests.store.homes.make import FILES, HERE, POSTGRES
from turnlog import Usage
from turnlog.layout import ERASED_LAYOUT, LAYOUT
from turnlog.log.payload import digest
from turnlog.store.postgres import schema

TICKED = ["nobody sees this", *(f"tick {number}" for number in range(TICKS))]
SAID = {
    "talk": ["be brief", "The test is flaky, fix it", "Looking.", LONG, "and now?", "Done."],
    "another idea": ["be brief", "The test is flaky, fix it", "Looking.", LONG, "and now?", "Done.", "another way"],
    "many": TICKED,
    "fork of purged": ["one", "two"],
}


@pytest.fixture(params=FILES)
def place(request: pytest.FixtureRequest, folder: Path) -> Path:  # noqa: F811
    """A home as that version left it."""
    with tarfile.open(HERE / f"{request.param}.tar.xz") as file:
        file.extractall(folder.parent, filter="data")
    return folder


@pytest.fixture(params=POSTGRES)
def database(request: pytest.FixtureRequest, tmp_path: Path, postgres: Server) -> str:
    """A database as that version left it."""
    url = postgres.database(f"d{uuid.uuid4().hex}")
    level = int(request.param.rpartition("-")[2])
    with psycopg.connect(url) as connection, tarfile.open(HERE / f"{request.param}.tar.xz") as file:
        connection.execute(schema._FIRST)
        for number, text in schema.migrations().items():
            if number <= level:
                connection.execute(text.encode())
                connection.execute("insert into turnlog.migration (number) values (%s)", (number,))
        connection.execute("set session_replication_role = replica")
        file.extractall(tmp_path, filter="data")
        for table in (tmp_path / "tables").iterdir():
            connection.execute(f"delete from turnlog.{table.name}".encode())
            with connection.cursor().copy(f"copy turnlog.{table.name} from stdin".encode()) as rows:
                rows.write(table.read_bytes())
        connection.execute("select setval('turnlog.number', 10000)")
    return url


def all_bytes(place: Path) -> dict[str, bytes]:
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def said(home: turnlog.Home, name: str) -> list[str]:
    with home.read(name) as session:
        assert session.damage == []
        blocks = [entry.blocks[0] for entry in session.entries(kind="message")]
        return [getattr(block, "text", None) or block.content for block in blocks]


def reads_as_it_did(home: turnlog.Home) -> None:
    assert sorted(row.id for row in home.sessions()) == sorted(SAID)
    for name, texts in SAID.items():
        assert said(home, name) == texts
    with home.read("talk") as talk:
        assert (talk.title, talk.agent, talk.get("mode")) == ("Fix the flaky test", "my-agent", "plan")
        assert talk.usage().own == Usage(input_tokens=310, output_tokens=85, cache_read_tokens=900)
        assert (talk.stats().turns, talk.stats().busy.total_seconds()) == (2, 1.5)
        assert [note.data for note in talk.entries(kind="note")] == [{"minutes": 45}]
    with home.read("many") as many:
        assert [message.blocks[0].text for message in many.messages()] == TICKED[: len(many.messages())]
        assert many.stats().turns == TICKS
    assert home.get_blob(digest(PICTURE)) == PICTURE


def goes_on(home: turnlog.Home, project: Path) -> None:
    project.mkdir(exist_ok=True)
    with home.resume("talk") as talk:
        labels = [point.label for point in talk.checkpoints()]
        talk.set("workspace", str(project))
        talk.user("go on")
        if "done" in labels:
            talk.rewind(to=next(point for point in talk.checkpoints() if point.label == "done"), force=True)
            assert (project / "app.py").read_text() == "print('two')\n"
            assert (project / "notes" / "19.txt").read_text() == "note 19\n"
        fork = talk.fork(id="a fork of now")
        fork.user("x" * 100_000)
    home.restore("gone")
    home.create(id="purged").user("another one")
    home.gc()
    assert said(home, "gone") == ["deleted"]
    assert said(home, "a fork of now")[-1] == "x" * 100_000
    others = SAID.keys() - {"talk"}
    assert {name: said(home, name) for name in others} == {name: SAID[name] for name in others}


def test_a_home_is_read_as_it_was_and_stays_as_it_is(place: Path, cli: Cli):  # noqa: F811
    before = all_bytes(place)
    with turnlog.open(place) as home:
        reads_as_it_did(home)
    assert "examined: nothing wrong\n" in cli("doctor").out
    assert "Fix the flaky test" in cli("ls", "--all").out
    assert all_bytes(place) == before  # the version that made it still can read it


def test_a_home_goes_on(place: Path, cli: Cli):  # noqa: F811
    with turnlog.open(place) as home:
        goes_on(home, place.parent / "project")
    assert json.loads((place / "home.json").read_text()) in (LAYOUT, ERASED_LAYOUT)
    done = cli("doctor", "--blobs")
    assert (done.code, "examined: nothing wrong\n" in done.out) == (0, True), done.out


def test_a_database_is_brought_up_to_date_and_goes_on(database: str, tmp_path: Path, cli: Cli):  # noqa: F811
    with turnlog.open(database) as home:
        reads_as_it_did(home)
        goes_on(home, tmp_path / "project")
    done = cli("--home", database, "doctor")
    assert (done.code, "examined: nothing wrong\n" in done.out) == (0, True), done.out

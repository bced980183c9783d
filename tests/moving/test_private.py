"""What is in ignored files stays in its home: every byte of the other one is searched for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
import zstandard

import turnlog
from tests.faces import location
from tests.moving.scene import make
from turnlog import Home, NotFound
from turnlog.cli.program import run
from turnlog.session.interior import interior
from turnlog.transfer.mover import Mover

_FRAME = b"\x28\xb5\x2f\xfd"
"""What compressed content begins with."""
SECRET = "hunter2-" + uuid4().hex
LOCAL = "local-" + uuid4().hex


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / ".gitignore").write_text(".env\n*.local\nlocal/\n")
    (folder / "a.py").write_text("print(1)\n")
    (folder / ".env").write_text(f"PASSWORD={SECRET}\n")
    (folder / "local").mkdir()
    (folder / "local/settings.local").write_text(LOCAL * 20_000)
    (folder / "local/link").symlink_to(f"/nowhere/{SECRET}")
    return folder


@pytest.fixture
def source(tmp_path: Path, place: Path) -> Iterator[Home]:
    """A home with one session that changed ignored files, went back, and went on."""
    with turnlog.open(tmp_path / "home") as home:
        s = home.create(id="work", workspace=place)
        for number in (1, 2):
            with s.turn():
                s.user(f"turn {number}")
                (place / ".env").write_text(f"PASSWORD={SECRET}\nNUMBER={number}\n")
                (place / "a.py").write_text(f"print({number + 1})\n")
        s.rewind(turns=1)
        s.undo()
        s.checkpoint("now")
        yield home


@pytest.fixture(params=["files", "postgres"])
def target(request, tmp_path: Path) -> str:
    return location(request, tmp_path / "copy")


def everything_in(place: str) -> Iterator[bytes]:
    """All that a home keeps, as it lies there and unpacked."""
    if place.startswith("postgresql"):
        address, _, tenant = place.partition("?tenant=")
        raw = list(_rows(address, tenant))
    else:
        raw = [path.read_bytes() for path in Path(place).rglob("*") if path.is_file()]
    for data in raw:
        yield data
        start = data.find(_FRAME)
        while start >= 0:
            try:
                yield zstandard.ZstdDecompressor().decompressobj().decompress(data[start:])
            except zstandard.ZstdError:
                pass  # four bytes that only look like the beginning of something
            start = data.find(_FRAME, start + 1)


def _rows(address: str, tenant: str) -> Iterator[bytes]:
    with psycopg.connect(address) as connection:
        (number,) = connection.execute("select num from turnlog.tenant where name = %s", [tenant]).fetchall()[0]
        tables: dict[str, list[str]] = {}
        for table, column, kind in connection.execute(
            "select table_name, column_name, data_type from information_schema.columns"
            " join information_schema.tables using (table_schema, table_name)"
            " where table_schema = 'turnlog' and table_type = 'BASE TABLE' and table_name <> 'member'"
        ):
            tables.setdefault(table, []).append(column if kind == "bytea" else f"convert_to({column}::text, 'UTF8')")
        mine = [table for table, columns in tables.items() if any("(tenant::" in column for column in columns)]
        assert {"blob", "piece", "derived"} < set(mine)
        for table in mine:
            chosen = ", ".join(tables[table])
            for row in connection.execute(f"select {chosen} from turnlog.{table} where tenant = %s", [number]):
                yield b"\0".join(value or b"" for value in row)


def found_in(place: str) -> set[str]:
    pieces = list(everything_in(place))
    return {word for word in (SECRET, LOCAL, "print(2)") if any(word.encode() in piece for piece in pieces)}


def test_nothing_of_them_is_in_the_other_home(source: Home, target: str, place: Path):
    with turnlog.open(target) as other:
        (moved,) = source.push(other)
        assert (moved.outcome, moved.private > 3) == ("new", True)
        assert found_in(target) == {"print(2)"}
        other.gc()
        source.sync(other)
        assert found_in(target) == {"print(2)"}
    assert found_in(str(place.parent / "home")) == {"print(2)", SECRET, LOCAL}


def test_they_are_sent_when_somebody_asks_for_it_also_later(source: Home, target: str):
    with turnlog.open(target) as other:
        source.push(other)
        assert [(row.outcome, row.blobs) for row in source.push(other)] == [("same", 0)]
        (row,) = source.push(other, include_ignored=True)
        assert (row.outcome, row.entries, row.blobs > 2, row.private) == ("grown", 0, True, 0)
        assert found_in(target) == {"print(2)", SECRET, LOCAL}
        assert [row.outcome for row in source.push(other, include_ignored=True)] == ["same"]
        other.gc()
        assert found_in(target) == {"print(2)", SECRET, LOCAL}


def test_each_session_is_told_once_also_with_what_is_ignored(source: Home, target: str):
    source.resume("work").fork(id="a-fork").user("other")
    with turnlog.open(target) as other:
        rows = source.push(other, include_ignored=True)
        assert [(row.id, row.outcome) for row in rows] == [("work", "new"), ("a-fork", "new")]
        assert rows[0].blobs > 2
        assert found_in(target) == {"print(2)", SECRET, LOCAL}


def test_there_the_rest_goes_back_and_they_stay_as_they_are(source: Home, target: str, place: Path):
    with turnlog.open(target) as other:
        source.push(other)
        other.gc()
        s = other.resume("work")
        assert len(s.checkpoints()) == len(source.resume("work").checkpoints())
        label = next(point for point in s.checkpoints() if point.label == "now")
        (place / ".env").write_text("of another machine")
        with s.turn():
            s.user("there")
            (place / ".env").write_text("made there")
            (place / "b.local").write_text("made there")
            (place / "a.py").write_text("changed there")
        assert {item.path for item in s.diff(label)} == {"a.py"}
        s.rewind(to=label)
        assert (place / "a.py").read_text() == "print(3)\n"
        assert (place / ".env").read_text() == "made there"
        assert (place / "b.local").read_text() == "made there"


def test_a_collection_at_home_keeps_them(source: Home, place: Path):
    source.gc()
    s = source.resume("work")
    (place / ".env").unlink()
    s.rewind(to=next(point for point in s.checkpoints() if point.when == "begin"), force=True)
    assert (place / ".env").read_text() == f"PASSWORD={SECRET}\n"


@pytest.mark.parametrize("form", ["html", "markdown", "json", "jsonl"])
def test_no_export_has_them(source: Home, tmp_path: Path, form: str):
    words = ["export", "work", "--to", form, "-o", str(tmp_path / "out"), "--no-redact"]
    assert run(["--home", str(tmp_path / "home"), *words]) == 0
    text = (tmp_path / "out").read_text()
    assert "turn 2" in text
    assert SECRET not in text
    assert LOCAL not in text


def test_a_session_in_the_trash_there_gets_no_ignored_files(tmp_path: Path, place: Path):
    """It was left alone: they would belong to nothing that can be restored as it was."""
    here, there = make("files", tmp_path), make("files", tmp_path)
    with here.create(id="s", workspace=place) as session:
        session.checkpoint()
    here.push(there)
    there.delete("s")
    [row] = here.push(there, include_ignored=True)
    assert (row.outcome, row.blobs) == ("deleted", 0)


def test_a_session_that_goes_away_before_its_ignored_files_are_sent_is_one_failed_row(tmp_path: Path, place: Path):
    here, there = make("files", tmp_path), make("files", tmp_path)
    for name in ("a", "b"):
        with here.create(id=name, workspace=place) as session:
            session.checkpoint()
    here.push(there)
    mover = Mover(interior(here).store, interior(there).store, include_ignored=True)

    def purge(number: int, total: int, session_id: str) -> None:
        del number, total
        if session_id == "a":
            here.purge("a")

    rows = {row.id: row for row in mover.run(None, purge)}
    assert rows["a"].outcome == "failed" and isinstance(rows["a"].error, NotFound)
    assert rows["b"].outcome == "grown" and rows["b"].blobs

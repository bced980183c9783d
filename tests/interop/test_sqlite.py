"""Databases of other programs: read as they are, by whoever asks at the same time."""

import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from turnlog.interop import sqlite
from turnlog.interop.sqlite import opened


@pytest.fixture
def database(tmp_path: Path) -> str:
    path = tmp_path / "foreign.db"
    with closing(sqlite3.connect(path)) as base:
        base.execute("create table said (text text)")
        base.execute("insert into said values ('one')")
        base.commit()
    return str(path)


def test_one_that_is_being_written_is_busy_and_not_read_half_way(database: str) -> None:
    with closing(sqlite3.connect(database)) as base:
        base.execute("begin exclusive")
        base.execute("delete from said")
        with pytest.raises(sqlite3.OperationalError, match="locked"), opened(database, wait_s=0.05) as foreign:
            list(foreign.rows("said"))
        base.rollback()
    with opened(database) as foreign:
        assert [row["text"] for row in foreign.rows("said")] == ["one"]


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only for root")
def test_one_in_a_folder_that_cannot_be_written_to_is_read(database: str) -> None:
    with closing(sqlite3.connect(database)) as base:
        base.execute("pragma journal_mode = wal")
    folder = Path(database).parent
    folder.chmod(0o500)
    try:
        with opened(database) as foreign:
            assert [row["text"] for row in foreign.rows("said")] == ["one"]
    finally:
        folder.chmod(0o700)


def test_many_threads_may_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "_WHILE_S", -1)  # every budget ends at once
    paths = [tmp_path / str(number) for number in range(200)]
    for path in paths:
        path.touch()
    errors: list[BaseException] = []

    def ask() -> None:
        try:
            for path in paths * 5:
                sqlite._budget_of(str(path))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []

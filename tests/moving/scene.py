"""Two homes, and what they hold, to compare."""

import uuid
from pathlib import Path
from typing import Any

import turnlog
from tests.pgserver import Server
from turnlog.log.codec import Damage
from turnlog.log.context import text_of
from turnlog.log.entry import Fold, Start, Writer
from turnlog.log.written import WrittenLine
from turnlog.session import Home
from turnlog.session.interior import interior
from turnlog.store import derived

KINDS = ("files", "memory", "postgres")


def make(kind: str, folder: Path, server: Server | None = None, **options: Any) -> Home:
    """An empty home of that kind."""
    if kind == "files":
        return turnlog.open(folder / f"home-{uuid.uuid4()}", **options)
    if kind == "memory":
        return turnlog.open("memory:", **options)
    assert server is not None
    return turnlog.open(f"{server.url}?tenant={uuid.uuid4()}", **options)


def lines(home: Home, name: str) -> list[bytes]:
    """The bare lines of a session, wherever it is."""
    items = list(interior(home).store.open(name, read_only=True).lines())
    assert not [item for item in items if isinstance(item, Damage)]
    return [item.line for item in items if isinstance(item, WrittenLine)]


def everything(home: Home) -> dict[str, list[bytes]]:
    """All sessions, line by line."""
    return {name: lines(home, name) for name in derived.ids(interior(home).store)}


def said(home: Home, name: str) -> list[str]:
    """The texts of a session's conversation, inherited ones included."""
    with home.resume(name) as session:
        return [text_of(message.blocks) for message in session.messages()]


def ids_in(home: Home) -> set[str]:
    """Every entry that can be found anywhere: not what only says who wrote, or saves time."""
    return {
        item.entry.id
        for log in derived.all_logs(interior(home).store)
        for item in log.lines()
        if isinstance(item, WrittenLine) and not isinstance(item.entry, (Writer, Fold, Start))
    }


def outcomes(rows: list[Any]) -> dict[str, str]:
    """What became of each session."""
    for row in rows:
        assert row.error is None, row.error
    return {row.id: row.outcome for row in rows}

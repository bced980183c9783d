"""A listing in pages: nothing twice and nothing missed, though sessions grow and go meanwhile."""

from typing import NamedTuple

import pytest

from turnlog.cli.frame.document.itemlist import ItemPage
from turnlog.cli.frame.document.request import JsonRequest


class Row(NamedTuple):
    name: str
    at: int


def page(rows: list[Row], cursor: str | None, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], str | None]:
    monkeypatch.setattr(JsonRequest, "cursor", cursor)
    ordered = sorted(rows, key=lambda row: (-row.at, row.name))
    listed = ItemPage(ordered, key=lambda row: row.name, limit=2, time=lambda row: row.at)
    shown = [row.name for row in listed.items]
    return shown, listed.cursor(len(shown))


@pytest.mark.parametrize("what", ["stays", "grows", "goes"])
def test_each_row_once_whatever_becomes_of_the_one_at_the_cursor(what: str, monkeypatch: pytest.MonkeyPatch):
    rows = [Row("a", 5), Row("b", 4), Row("c", 4), Row("d", 4), Row("e", 4), Row("f", 3), Row("g", 1)]
    seen: list[str] = []
    cursor: str | None = None
    for turn in range(9):
        shown, cursor = page(rows, cursor, monkeypatch)
        seen += shown
        if cursor is None:
            break
        if what != "stays":
            rows = [row for row in rows if row.name != shown[-1]]
        if what == "grows":
            rows.append(Row(shown[-1], 100 + turn))
    assert seen == list("abcdefg")

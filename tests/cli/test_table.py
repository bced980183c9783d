"""Cells and tables of many rows."""

import time
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from turnlog.cli.draw.searchresult import _fitting_snippet, marked  # pyright: ignore[reportPrivateUsage]
from turnlog.cli.draw.table import Column, grid, table
from turnlog.cli.draw.text import clock_times, plain
from turnlog.view.time import ago
from turnlog.view.visible import width

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("past", "text"),
    [
        (timedelta(seconds=-90), "in 1m"),
        (timedelta(seconds=-9), "now"),
        (timedelta(seconds=9), "now"),
        (timedelta(seconds=59), "59s ago"),
        (timedelta(minutes=59, seconds=59), "59m ago"),
        (timedelta(hours=23), "23h ago"),
        (timedelta(days=13), "13d ago"),
        (timedelta(days=14), "2w ago"),
        (timedelta(days=61), "2mo ago"),
        (timedelta(days=800), "2y ago"),
    ],
)
def test_how_long_ago(past: timedelta, text: str):
    assert ago(round((NOW - past).timestamp() * 1000), NOW.timestamp()) == text


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Asia/Kolkata", "America/St_Johns", "Pacific/Apia"])
def test_the_clock_tells_what_this_place_tells(zone: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        times = [NOW - timedelta(minutes=minutes, seconds=31) for minutes in range(0, 60 * 24 * 400, 97)]
        told = clock_times([round(at.timestamp() * 1000) for at in times])
        assert told == [at.astimezone().strftime("%Y-%m-%d %H:%M") for at in times]
    finally:
        monkeypatch.undo()
        time.tzset()
    assert clock_times([None]) == [""]


def test_what_never_happened_has_no_time():
    assert ago(None, 0) == ""


def test_a_cell_is_one_safe_line():
    assert plain("fine as it is") == "fine as it is"
    assert plain("two  blanks") == "two blanks"
    assert plain("a\nb\tc") == "a b c"
    assert plain("\x1b[2J\u202e") == "\\x1b[2J\\u202e"


def columns() -> list[Column]:
    return [
        Column("NAME", ["one", "three"], least=3),
        Column("N", ["1", "1,000"], right=True, drop=1),
        Column("TITLE", ["short", "a much longer title"], least=6),
    ]


def test_a_free_table_is_aligned_and_whole(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert grid(columns()) == [
        "NAME       N  TITLE",
        "one        1  short",
        "three  1,000  a much longer title",
    ]


@pytest.mark.parametrize("room", range(9, 40))
def test_a_table_fits_whatever_the_width(room: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", str(room))
    lines = grid(columns())
    assert max(map(len, lines)) <= max(room, 11)
    assert ("1,000" in lines[2]) == (room >= 18), "the column that may go, goes"


def test_wide_characters_count_double(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "20")
    lines = grid([Column("A", ["日本", "x"]), Column("B", ["語" * 20, "y"], least=4)])
    assert lines[1] == "日本  " + "語" * 6 + "…"
    assert lines[2] == "x     y"


def test_marks_survive_what_makes_a_text_safe():
    text = "a \x1b bad\n  word here"
    start = text.index("word")
    assert marked(text, [(start, start + 4)], lambda found: f"<{found}>") == "a \\x1b bad <word> here"
    assert marked("end", [(0, 3)], lambda found: f"<{found}>") == "<end>"
    assert marked("none", [], str.upper) == "none"


def test_a_few_long_cells_do_not_widen_a_column_for_all(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "40")
    names = ["short"] * 9 + ["a-much-longer-name"]
    lines = grid([Column("NAME", names, is_loose=True), Column("TITLE", ["word " * 9] * 10, least=10)])
    assert lines[1].startswith("short  word")
    assert lines[-1].startswith("a-much-longer-name  word")
    assert max(map(len, lines)) <= 40


def test_cells_that_are_a_little_longer_stand_in_their_column(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "40")
    names = ["0f628c56"] * 15 + ["01a1df1a-c82", "gemini-cli-0f628c56"]
    lines = grid([Column("NAME", names, is_loose=True), Column("TITLE", ["word " * 9] * 17, least=10)])
    assert [line.index("word") for line in lines[1:]] == [14] * 16 + [21]


@pytest.mark.parametrize("room", [20, 41, 80])
def test_a_snippet_of_wide_characters_fits_and_has_its_mark(room: int):
    text = "日本語の文章がここに" * 8 + "探す" + "続きの文章もある" * 8
    hit = SimpleNamespace(tool="", snippet=text, marks=[(80, 82)])
    cut, marks = _fitting_snippet(hit, room)  # pyright: ignore
    assert width(cut) <= room
    assert [cut[a:b] for a, b in marks] == ["探す"]


@pytest.mark.parametrize("room", [40, 50, 60])
def test_no_digit_of_a_number_is_cut(room: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", str(room))
    names = Column("MONTH", ["2026-11", "total, at API prices"], least=28)
    models = Column("MODEL", ["claude-sonnet-4-5", ""], least=20)
    lines = grid([names, models, Column("COST", ["$1,234.56", "$1,234.56"], right=True)])
    assert [line.endswith("$1,234.56") for line in lines] == [False, True, True]
    assert {width(line) for line in lines} == {min(room, 50)}
    assert table(("WHAT", "SIZE"), [("x" * 60, "1,234,567,890,123 B")], right=(1,))[1].endswith("1,234,567,890,123 B")

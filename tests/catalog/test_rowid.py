"""Rowids are coarse times: what is found comes in the order of the real ones, however many there are in a moment."""

import sqlite3
from random import Random

import pytest

from tests.catalog.plain import MINUTE, NOW, Doc, Plain, fill
from turnlog.catalog.ask.search import search
from turnlog.catalog.index.sqlite.rowid import Rowids, first_at, id_of, newest_first, rowid_of
from turnlog.catalog.index.sqlite.schema import TABLES

FULL = 512
TICK = 1 << 18


def crowded() -> list[Plain]:
    """Three sessions at once: one of many entries in a moment, before and between others."""
    chance = Random(3)
    moment = NOW - 30 * MINUTE
    return [
        Plain(tuple(Doc(f"needle {n}", at=moment) for n in range(3 * FULL))),
        Plain(tuple(Doc(f"needle {n}", at=moment + chance.randrange(-5 * MINUTE, 9 * MINUTE)) for n in range(300))),
        Plain(tuple(Doc(f"needle {n}", at=moment + n * 1000) for n in range(-200, 800))),
    ]


def expected(sessions: list[Plain], since: int = 0, until: int = NOW) -> list[str]:
    """Newest first; of one moment, what came last first."""
    found = [
        (doc.at, number, step)
        for number, session in enumerate(sessions, 1)
        for step, doc in enumerate(session.docs, 1)
        if since <= doc.at < until
    ]
    return [f"e{number}-{step}" for _, number, step in sorted(found, reverse=True)]


def test_the_newest_come_first_however_many_there_are_at_once():
    sessions = crowded()
    hits = search([fill(sessions)], query="needle", now_ms=NOW, limit=5000)
    assert [hit.entry for hit in hits] == expected(sessions)
    at = {f"e{n}-{step}": doc.at for n, one in enumerate(sessions, 1) for step, doc in enumerate(one.docs, 1)}
    assert all(round(hit.at.timestamp() * 1000) == at[hit.entry] for hit in hits)


@pytest.mark.parametrize("limit", [7, 100])
def test_pages_of_many_at_once_are_the_whole(limit: int):
    sessions = crowded()
    db, before = fill(sessions), None
    pages: list[str] = []
    while True:
        page = search([db], query="needle", now_ms=NOW, limit=limit, before=before)
        pages += [hit.entry for hit in page]
        before = page.next
        if before is None:
            break
    assert pages == expected(sessions)


@pytest.mark.parametrize(("since", "until"), [(31, 28), (30, 25), (29, 20), (60, 30)])
def test_a_span_ends_at_its_millisecond(since: int, until: int):
    sessions = crowded()
    query = f"needle since:{since}m until:{until}m"
    found = [hit.entry for hit in search([fill(sessions)], query=query, now_ms=NOW, limit=5000)]
    assert found == expected(sessions, NOW - since * MINUTE, NOW - until * MINUTE)


def test_what_is_older_than_the_first_number_comes_last():
    times = [0, 1, 1_000_000_000_000, 1_735_689_599_999, 1_735_689_600_000, NOW - MINUTE]
    sessions = [Plain(tuple(Doc(f"needle {n}", at=at) for n, at in enumerate(times)))]
    db = fill(sessions)
    assert [hit.entry for hit in search([db], query="needle", now_ms=NOW)] == expected(sessions)
    first = search([db], query="needle", now_ms=NOW, limit=4)
    assert first.next is not None
    rest = search([db], query="needle", now_ms=NOW, before=first.next)
    assert [hit.entry for hit in (*first, *rest)] == expected(sessions)
    old = search([db], query="needle until:2024-12-30", now_ms=NOW)
    assert [hit.entry for hit in old] == ["e1-3", "e1-2", "e1-1"]


def test_a_rowid_is_never_too_early_and_tells_the_id():
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.executescript(TABLES)
    chance, taken = Random(7), dict[int, int]()
    for _ in range(20):
        times = sorted(chance.choice((NOW, chance.randrange(NOW - TICK, NOW + TICK))) for _ in range(200))
        rowids = Rowids(db, times)
        for at in times:
            row, same = rowids.assign(at)
            assert same == at and row not in taken and row >= first_at(at)
            assert rowid_of(id_of(row, at)) == row and id_of(row, at) >> 20 == at
            taken[row] = at
            db.execute("INSERT INTO docs VALUES (?, ?, 1, 1, '', '', '', 0, 0, 0)", (row, at))
        rowids.remember()
    rows = [(id_of(row, at), row) for row, at in sorted(taken.items(), reverse=True)]
    walked = [id for id, _ in newest_first(rows)]
    assert walked == sorted((id_of(row, at) for row, at in taken.items()), reverse=True)


def test_behind_a_million_in_one_moment_time_goes_on():
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.executescript(TABLES)
    begin = first_at(NOW)
    db.execute(
        "WITH RECURSIVE n (id) AS (SELECT ? UNION ALL SELECT id + 1 FROM n WHERE id < ?) "
        "INSERT INTO docs SELECT id, ?, 1, 1, '', '', '', 0, 0, 0 FROM n",
        (begin, begin + (1 << 20) - 1, NOW),
    )
    row, at = Rowids(db, [NOW]).assign(NOW)
    assert row == begin + (1 << 20)
    assert at > NOW and rowid_of(id_of(row, at)) == row

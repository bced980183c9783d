"""Words find what a session is called: its title, its name, its id."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import turnlog
from tests.catalog.machine import Machine
from tests.catalog.plain import NOW
from turnlog.catalog import Catalog
from turnlog.catalog.ask.recall import recall
from turnlog.testing import ManualClock


@pytest.fixture
def titled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine(tmp_path, monkeypatch)
    machine.codex("0199aaaa-7000")
    for name, title in (("talk-one", "A hundred thousand Flowers"), ("talk-two", "needle1 and others")):
        machine.ours(name)
        with turnlog.open(str(machine.home), checkpoints=False) as home, home.resume(name) as session:
            session.set("title", title)
    return machine


@pytest.mark.parametrize(
    ("query", "names", "snippet"),
    [
        ("thousand flowers", ["talk-one"], "A hundred thousand Flowers"),
        ('"hundred thousand"', ["talk-one"], "A hundred thousand Flowers"),
        ("flow*", ["talk-one"], "A hundred thousand Flowers"),
        ("*ousand*", ["talk-one"], "A hundred thousand Flowers"),
        ("thousand -flowers", [], ""),
        ("thousand role:user", [], ""),
        ("thousand since:2199", [], ""),
        ("thousand agent:codex", [], ""),
        ("talk-one", ["talk-one"], "talk-one · A hundred thousand Flowers"),
        ("0199aaaa", ["codex:0199aaaa-7000"], "0199aaaa-7000"),
        ("codex:0199", ["codex:0199aaaa-7000"], "0199aaaa-7000"),
    ],
)
def test_titles_names_and_ids_are_found(titled: Machine, query: str, names: list[str], snippet: str):
    with titled.catalog() as catalog:
        hits = catalog.search(query)
        assert [(hit.card.name, hit.entry, hit.role, hit.snippet) for hit in hits] == [
            (name, "", "title", snippet) for name in names
        ]
        assert [card.name for card in catalog.cards(query)] == names or "role:" in query


def test_what_was_said_stands_for_the_title_and_pages_lose_none(titled: Machine):
    with titled.catalog() as catalog:
        [hit] = catalog.search("needle1 -codex")
        assert (hit.card.name, hit.role) == ("talk-two", "title")
        titled.ours("talk-three")
        catalog.sync()
        with turnlog.open(str(titled.home), checkpoints=False) as home, home.resume("talk-three") as session:
            session.set("title", "a haystack")
        every = catalog.search("haystack", limit=100)
        assert [hit.role for hit in every if hit.card.name == "talk-three"] == ["assistant"]
        pages, before = [], None
        while True:
            page = catalog.search("haystack", limit=1, before=before)
            pages += page
            before = page.next
            if before is None:
                break
        assert {hit.cursor for hit in every} <= {hit.cursor for hit in pages}
        assert len({hit.cursor for hit in pages}) == len(pages)


@pytest.fixture
def named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Three sessions with the same word in their titles, and the time of their newest entry, to the millisecond."""
    machine = Machine(tmp_path, monkeypatch)
    with turnlog.open(str(machine.home), checkpoints=False, clock=ManualClock(NOW)) as home:
        for name in ("one", "two", "three"):
            home.create(id=name, title="a magnolia").close()
    return machine


def pages_of(catalog: Catalog, query: str, *, limit: int) -> list[str]:
    names: list[str] = []
    page = catalog.search(query, limit=limit)
    names += [hit.card.name for hit in page]
    while page.next is not None:
        page = catalog.search(query, limit=limit, before=page.next)
        names += [hit.card.name for hit in page]
    return names


@pytest.mark.parametrize("limit", [1, 2, 3, 4])
def test_titles_of_one_moment_are_on_one_page(named: Machine, limit: int):
    with named.catalog() as catalog:
        assert sorted(pages_of(catalog, "magnolia", limit=limit)) == ["one", "three", "two"]


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_titles_that_copies_inherited_hide_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int):
    machine = Machine(tmp_path, monkeypatch)
    for number, name in enumerate(("old", "original", "copy", "copy2")):
        machine.ours(name)
        with turnlog.open(str(machine.home), checkpoints=False) as home, home.resume(name) as session:
            session.set("title", "a magnolia" if number else "an older magnolia")
    with machine.catalog() as catalog:
        catalog.sync()
        with closing(sqlite3.connect(catalog.path)) as db, db:
            db.execute("UPDATE sessions SET copy_of = 'original' WHERE native LIKE 'copy%'")
        assert pages_of(catalog, "magnolia", limit=limit) == ["original", "old"]


def test_a_session_named_by_a_number_hides_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    machine = Machine(tmp_path, monkeypatch)
    with turnlog.open(str(machine.home), checkpoints=False) as home:
        for number in range(1, 5):
            home.create(id=f"said-{number}").user("a magnolia")
        with machine.catalog() as catalog:
            catalog.sync()  # these have the first rows
        for number in range(1, 16):
            home.create(id=str(number), title="a magnolia").close()
    names = {*(f"said-{number}" for number in range(1, 5)), *map(str, range(1, 16))}
    with machine.catalog() as catalog:
        page = catalog.found("magnolia", limit=30)
        assert {one.card.name for one in page.sessions} == names
        assert page.total == page.places == len(names)
        recalled = catalog.ask(recall, "magnolia", limit=30)
        assert {place.hit.card.name for place in recalled.places} == names

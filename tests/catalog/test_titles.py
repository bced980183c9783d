"""Words find what a session is called: its title, its name, its id."""

from pathlib import Path

import pytest

import turnlog
from tests.catalog.machine import Machine


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

"""Our sessions in a database and other agents' on this machine: one list, one search, one sum."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

import turnlog
from tests.catalog.machine import Machine
from tests.pgserver import Server
from turnlog.catalog import Catalog
from turnlog.errors import NotFound
from turnlog.exchange.exporting.handover import hand_over


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path, monkeypatch)
    made.claude("one", turns=3)
    made.codex("two", turns=2)
    return made


@pytest.fixture
def location(postgres: Server, machine: Machine) -> Iterator[str]:
    place = f"{postgres.url}?tenant={uuid.uuid4()}"
    with turnlog.open(place, checkpoints=False) as home:
        session = home.create(id="20260301-090000-k3f9q2m7", title="In the database", workspace=machine.work)
        session.user("a needle in the database, le4.py")
    yield place


def names(catalog: Catalog, query: str = "") -> list[str]:
    return [card.name for card in catalog.cards(query)]


def test_one_list(location: str):
    with Catalog(location, agents=True) as catalog:
        assert names(catalog) == ["k3f9q2m7", "codex:two", "claude-code:one"]
        assert [line.name for line in catalog.lines()] == names(catalog)
        assert names(catalog, "agent:codex") == ["codex:two"]
        assert names(catalog, "needle* database") == ["k3f9q2m7"]
        assert [card.name for card in catalog.cards(limit=2)] == ["k3f9q2m7", "codex:two"]


def test_one_search_in_pages(location: str):
    with Catalog(location, agents=True) as catalog:
        whole = [(hit.card.name, hit.entry) for hit in catalog.search("needle*", limit=100)]
        assert {name for name, _ in whole} == {"k3f9q2m7", "codex:two", "claude-code:one"}
        for limit in (1, 2, 3):
            pages: list[tuple[str, str]] = []
            before = None
            while True:
                page = catalog.search("needle*", limit=limit, before=before)
                pages += [(hit.card.name, hit.entry) for hit in page]
                before = page.next
                if before is None:
                    break
            assert pages == whole


def test_code_from_the_middle_of_a_word_is_found_if_there_is_nothing_better_on_either(location: str):
    with Catalog(location, agents=True) as catalog:
        # Codex touched src/file4.py.
        assert {hit.card.name for hit in catalog.search("le4.py")} == {"k3f9q2m7"}
        assert {hit.card.name for hit in catalog.search("ile4.py")} == {"codex:two"}


def test_names_of_both(location: str):
    with Catalog(location, agents=True) as catalog:
        assert catalog.find("k3f9").title == "In the database"
        assert catalog.find("codex:tw").agent == "codex"
        assert catalog.find("@").name == "k3f9q2m7"
        assert catalog.find("@-").name == "codex:two"
        with pytest.raises(NotFound, match="nowhere"):
            catalog.find("nowhere")


def test_what_was_imported_into_the_database_counts_once(location: str, machine: Machine):
    with Catalog(location, agents=True) as catalog:
        before = catalog.usage()
        assert before[-1].requests > 0
    with turnlog.open(location) as home:
        home.import_sessions(machine.claude("one", turns=0), agent="claude-code")
    with Catalog(location, agents=True) as catalog:
        assert catalog.usage()[-1].tokens == before[-1].tokens
        assert catalog.usage()[-1].requests == before[-1].requests
        assert "claude-code:one" not in names(catalog)
        assert len(names(catalog)) == 3
        found = catalog.search("needle*", limit=100)
        assert len({hit.entry for hit in found}) == len(found)
        assert not any(hit.card.name == "claude-code:one" for hit in found)


def test_what_it_said_since_is_shown_beside_the_import(location: str, machine: Machine):
    path = machine.claude("one", turns=0)
    with turnlog.open(location) as home:
        home.import_sessions(path, agent="claude-code")
    with Catalog(location, agents=True) as catalog:
        before = catalog.usage()[-1].requests
    machine.claude("one", turns=1)
    with Catalog(location, agents=True) as catalog:
        grown = catalog.usage()[-1].requests
        assert grown > before
        mine = catalog.usage("agent:claude-code")
        assert "claude-code:one" in names(catalog)
        machine.codex("two", turns=1)  # something else changes: what is known of the first stays
    with Catalog(location, agents=True) as catalog:
        assert catalog.usage("agent:claude-code") == mine
        assert "claude-code:one" in names(catalog)
    with turnlog.open(location) as home:
        home.import_sessions(path, agent="claude-code")
    with Catalog(location, agents=True) as catalog:
        assert "claude-code:one" not in names(catalog)


def test_an_import_that_is_purged_counts_no_more(location: str, machine: Machine):
    path = machine.claude("one", turns=0)
    with Catalog(location, agents=True) as catalog:
        before = catalog.usage(by="agent")
    with turnlog.open(location) as home:
        [made] = home.import_sessions(path, agent="claude-code")
    with Catalog(location, agents=True) as catalog:
        assert "claude-code:one" not in names(catalog)
    with turnlog.open(location) as home:
        home.purge(made.id)
    with Catalog(location, agents=True) as catalog:
        assert catalog.usage(by="agent") == before
        assert "claude-code:one" in names(catalog)


def test_a_copy_of_a_session_in_the_database_counts_and_shows_there(location: str):
    with turnlog.open(location, checkpoints=False) as home:
        with home.resume("20260301-090000-k3f9q2m7") as session:
            session.assistant("found", model="claude-sonnet-4-5", usage=turnlog.Usage(input_tokens=1000))
            with Catalog(location, agents=True) as catalog:
                before, paid = names(catalog), catalog.usage()[-1].tokens
            done = hand_over(session, "codex")
        with Catalog(location, agents=True) as catalog:
            assert (names(catalog), catalog.usage()[-1].tokens) == (before, paid)
            assert {hit.card.name for hit in catalog.search("needle* database")} == {"k3f9q2m7"}
            home.delete("20260301-090000-k3f9q2m7")
            catalog.sync()
            assert f"codex:{done.id}" in names(catalog)
            home.purge("20260301-090000-k3f9q2m7")
            catalog.sync()
            assert catalog.usage()[-1].tokens == paid

"""A catalog that stays open: asked by many threads while sessions grow, and how often it looks at the disk."""

import asyncio
import threading
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

import turnlog
from tests.catalog.machine import Machine
from tests.pgserver import Server
from turnlog import aio
from turnlog.catalog import Catalog
from turnlog.errors import Invalid, TurnlogError
from turnlog.store import memory

TURNS = 12
ASKING = 6


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


@pytest.fixture(params=["files", "postgres"])
def location(request: pytest.FixtureRequest, machine: Machine) -> str:
    if request.param == "files":
        return str(machine.home)
    server: Server = request.getfixturevalue("postgres")
    return f"{server.url}?tenant={uuid.uuid4()}"


def grow(session: turnlog.Session, number: int) -> None:
    session.user(f"needle number {number}")
    usage = turnlog.Usage(input_tokens=1, output_tokens=1)
    session.append(
        turnlog.Message(
            role="assistant",
            blocks=[turnlog.Text(text="found")],
            model="claude-sonnet-4-5",
            request=f"req_{session.id}_{number}",
            usage=usage,
        )
    )


def test_many_threads_ask_while_sessions_grow(location: str, machine: Machine):
    machine.claude("theirs", 2)
    trouble: list[BaseException] = []
    is_over = threading.Event()

    def watched(job: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            try:
                job()
            except BaseException as error:
                trouble.append(error)
                is_over.set()

        return run

    with turnlog.open(location, checkpoints=False) as home, Catalog(location, agents=True, fresh_for=0) as catalog:
        sessions = [home.create(id=f"2026030{n}-090000-aaaaaaa{n}") for n in range(3)]

        def writes() -> None:
            for number in range(TURNS):
                for session in sessions:
                    grow(session, number)
            is_over.set()

        def asks() -> None:
            seen = 0
            while not is_over.is_set():
                hits = len(catalog.search("needle number", limit=1000))
                requests = catalog.usage(by="model")[-1].requests
                names = [line.name for line in catalog.lines()]
                # What was there is there, and everything is there once.
                assert hits >= seen
                assert len(set(names)) == len(names)
                assert "claude-code:theirs" in names
                assert requests <= 3 * TURNS + 4
                assert catalog.find("claude-code:theirs").turns == 2
                seen = hits

        threads = [threading.Thread(target=watched(job)) for job in (writes, *[asks] * ASKING)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not trouble
        assert len(catalog.search("needle number", limit=1000)) == 3 * TURNS
        assert catalog.usage(by="model")[-1].requests == 3 * TURNS + 4


def test_it_looks_at_most_once_a_second_and_only_when_it_is_asked(machine: Machine):
    now = [100.0]
    machine.claude("one")
    with machine.catalog(clock=lambda: now[0]) as catalog:
        assert len(catalog.cards()) == 1
        machine.claude("two")
        now[0] += 0.9
        assert len(catalog.cards()) == len(catalog.lines()) == 1
        now[0] += 0.1
        assert len(catalog.cards()) == 2
        machine.claude("three")
        assert len(catalog.cards()) == 2
        assert catalog.sync().sessions == 3
        assert len(catalog.cards()) == 3
    with machine.catalog(clock=lambda: now[0], fresh_for=0) as catalog:
        machine.claude("four")
        assert len(catalog.cards()) == 4
        machine.claude("five")
        assert len(catalog.cards()) == 5


def test_a_home_is_as_good_as_its_location_and_stays_open(location: str, machine: Machine):
    with turnlog.open(location, checkpoints=False) as home:
        session = home.create(id="20260301-090000-k3f9q2m7", title="Here")
        with Catalog(home) as catalog, Catalog(location) as other:
            # Of an open home that lies in a database nothing is kept on this machine.
            assert catalog.path == (":memory:" if location.startswith("postgresql:") else other.path)
            assert [card.title for card in catalog.cards()] == [card.title for card in other.cards()] == ["Here"]
        grow(session, 1)
        assert home.exists("20260301-090000-k3f9q2m7")


def test_a_home_that_was_opened_nowhere_has_no_catalog(machine: Machine):
    with turnlog.Home(memory.connect()) as home, pytest.raises(Invalid, match="has no location"):
        Catalog(home)


def test_every_question_can_be_awaited(location: str, machine: Machine):
    async def ask() -> None:
        async with aio.open(location, checkpoints=False) as home, aio.Catalog(home._blocking, fresh_for=0) as catalog:
            session = await home.create(id="20260301-090000-k3f9q2m7", title="Here")
            await session.user("a needle")
            hits, cards, lines, ids, spent = await asyncio.gather(
                catalog.search("needle"), catalog.cards(), catalog.lines(), catalog.ids(), catalog.usage(by="model")
            )
            assert [hit.card.title for hit in hits] == ["Here"]
            assert [card.name for card in cards] == [line.name for line in lines] == ["k3f9q2m7"]
            assert ids == ["20260301-090000-k3f9q2m7"]
            assert spent[-1].group == "total"
            assert (await catalog.find("k3f9")).title == "Here"
            assert (await catalog.sync()).sessions == (await catalog.rebuild()).sessions == 1
            await catalog.refresh()
            await catalog.forget_purged()
            with pytest.raises(TurnlogError, match="no session"):
                await catalog.find("nowhere")

    asyncio.run(ask())


def test_a_check_that_succeeds_is_no_longer_behind(machine: Machine):
    machine.ours("one")
    with machine.catalog(patience_s=0.1, fresh_for=0) as catalog, machine.catalog() as other:
        for check in (catalog.sync, catalog.complete):
            assert other.cards() and catalog.cards()
            machine.ours("one")
            with other._local.database.lock():
                catalog.cards()
                assert catalog.is_behind
            check()
            assert not catalog.is_behind


def test_a_list_of_less_than_nothing_is_refused(machine: Machine):
    machine.ours("one")
    with machine.catalog() as catalog:
        assert catalog.cards(limit=0) == []
        with pytest.raises(Invalid, match="a list of -1 sessions"):
            catalog.cards(limit=-1)

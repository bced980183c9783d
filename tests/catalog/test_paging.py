"""What was found, session by session; and what comes near where nothing has all of it."""

from pathlib import Path

import pytest

import turnlog
from tests.catalog.machine import Machine
from turnlog.catalog import Catalog
from turnlog.catalog.index.terms import distance
from turnlog.errors import Invalid


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    machine = Machine(tmp_path, monkeypatch)
    for name, turns in (("a1", 6), ("a2", 2), ("a3", 1)):
        machine.claude(name, turns)
    machine.codex("b1", 2)
    machine.ours("cccc", 2)
    with machine.catalog() as opened:
        yield opened


def test_a_session_shows_three_places_and_how_many_more_there_are(catalog: Catalog):
    page = catalog.found("haystack")
    places = catalog.search("haystack", limit=100)
    assert (page.places, page.total) == (len(places), len({hit.card.name for hit in places}))
    by_name = {one.card.name: one for one in page.sessions}
    assert len(by_name) == len(page.sessions) == page.total
    for name, one in by_name.items():
        all_here = [hit for hit in places if hit.card.name == name]
        assert list(one.hits) == all_here[:3]
        assert one.more == max(0, len(all_here) - 3)
    assert any(one.more for one in page.sessions)
    newest = [one.hits[0].cursor for one in page.sessions]
    assert newest == sorted(newest, reverse=True)


def test_pages_have_every_session_once(catalog: Catalog):
    names: list[str] = []
    number: int | None = 1
    while number is not None:
        page = catalog.found("haystack", limit=2, page=number)
        names += [one.card.name for one in page.sessions]
        number = page.next
    assert len(names) == len(set(names)) == catalog.found("haystack").total


def test_relevance_puts_what_people_said_before_what_tools_did(catalog: Catalog):
    roles = [
        max(hit.role == "user" for hit in one.hits) for one in catalog.found("haystack", sort="relevance").sessions
    ]
    assert roles == sorted(roles, reverse=True)
    with pytest.raises(Invalid, match="no order by 'size'"):
        catalog.found("haystack", sort="size")


def test_where_no_place_has_all_words_the_rarest_come_and_the_others_are_named(catalog: Catalog):
    page = catalog.found("needle1 needle2 haystack")
    assert page.missing in (("needle2",), ("needle1",))
    [kept] = {"needle1", "needle2"}.difference(page.missing)
    assert page._replace(missing=()) == catalog.found(f"{kept} haystack")


def test_a_word_that_is_nowhere_is_taken_for_the_nearest(catalog: Catalog):
    page = catalog.found("haystakc")
    assert page.instead == (("haystakc", "haystack"),)
    assert page.places == catalog.found("haystack").places
    assert catalog.found("qqqqqqqqqqq").sessions == []
    assert catalog.found("qqqqqqqqqqq haystack").missing == ("qqqqqqqqqqq",)


def test_many_are_counted_no_further_and_it_is_said_where_that_was(catalog: Catalog):
    page = catalog.found("haystack", counted=4)
    assert page.is_more
    assert page.reached == catalog.search("haystack", limit=4)[-1].at


@pytest.mark.parametrize(
    ("one", "other", "far"),
    [
        ("abc", "abc", 0),
        ("abc", "acb", 1),
        ("abc", "ab", 1),
        ("abc", "axc", 1),
        ("abcd", "dcba", 3),
        ("abc", "abcdef", 3),
    ],
)
def test_how_far_words_are_apart(one: str, other: str, far: int):
    assert distance(one, other, 2) == far == distance(other, one, 2)


def test_titles_are_counted_and_shown_however_many_match(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    machine = Machine(tmp_path, monkeypatch)
    with turnlog.open(str(machine.home), durability="flush", checkpoints=False) as home:
        for number in range(305):
            home.create(title=f"needle {number}").close()
    with machine.catalog() as opened:
        page = opened.found("needle", page=31)
        assert (page.total, page.is_more, len(page.sessions)) == (305, False, 5)
        cut = opened.found("needle", counted=301)
        assert cut.total >= 301
        assert cut.is_more == (cut.total < 305)

"""What a catalog tells of one session in detail, and of tools; and counts and patterns at their edges. Plain values."""

from collections.abc import Iterator

import pytest

import turnlog
from tests.catalog.plain import NOW, Doc, Plain, Spent, fill, tables
from turnlog.catalog import Card
from turnlog.catalog.ask import detail
from turnlog.catalog.ask.paging import found
from turnlog.catalog.ask.search import search
from turnlog.catalog.index.batch import BEYOND
from turnlog.catalog.index.index import Index
from turnlog.catalog.read.tooltime import OpenCalls, tools_used

_SPENT = (
    "INSERT INTO spent SELECT session, ?, token + 1000000, at, model, is_inherited, is_reported, TRUE, 7000000, "
    "input_tokens, cache_read_tokens, cache_write_tokens, cache_write_1h_tokens, output_tokens, reasoning_tokens "
    "FROM spent WHERE step = 1"
)


@pytest.fixture(autouse=True)
def used() -> Iterator[None]:
    yield
    tables().execute("DELETE FROM used")


def the(index: Index) -> Card:
    [card] = index.cards()
    return card


def test_what_a_whole_session_spent_belongs_to_no_entry():
    index = fill([Plain(spent=(Spent(), Spent(cost=2_500_000)))])
    before = detail.spent_by_entry([index], the(index))
    assert [entry for entry, _ in before] == [2, 3]
    tables().execute(_SPENT, (BEYOND,))
    assert detail.spent_by_entry([index], the(index)) == before
    assert detail.spent_by_entry([index], the(index), first=3) == before[1:]
    assert detail.fullest([index], the(index)) == sum(Spent().counts[:4])


def test_tools_are_summed_up_over_sessions_the_most_used_first():
    index = fill([Plain(docs=(Doc("a needle"),)), Plain(agent="pi", docs=(Doc("a needle"),))])
    rows = [(1, 1, "Read", 1, 0, 10), (1, 2, "Bash", 2, 1, 20), (2, 1, "Bash", 1, 0, 5)]
    tables().executemany("INSERT INTO used VALUES (?, ?, ?, ?, ?, ?)", rows)
    assert [tuple(tool) for tool in detail.tools([index])] == [("Bash", 3, 1, 25), ("Read", 1, 0, 10)]
    assert [tuple(tool) for tool in detail.tools([index], query="agent:pi")] == [("Bash", 1, 0, 5)]


def test_files_and_points_of_the_context_are_those_of_the_entries():
    docs = (Doc("a", files=("src/a.py",)), Doc("b", role="summary"), Doc("c", files=("src/a.py", "src/b.py")))
    index = fill([Plain(docs=docs, spent=(Spent(),), is_ours=True)])
    assert [tuple(path) for path in detail.files([index], the(index))] == [("src/a.py", 2, 3), ("src/b.py", 1, 3)]
    points = detail.context([index], the(index))
    assert [(point.seq, point.tokens, point.is_compaction) for point in points] == [(1, 6, False), (2, 0, True)]


@pytest.mark.parametrize(("query", "count"), [("tag:a?b", 1), ("tag:a*b", 1), ("tag:?", 1), ("tag:axb", 1)])
def test_a_placeholder_stands_for_no_end_of_a_value(query: str, count: int):
    index = fill([Plain(tags=("a", "b")), Plain(tags=("axb",))])
    assert detail.count_listed([index], query) == count


def test_so_many_places_are_counted_also_of_another_word():
    index = fill([Plain(docs=tuple(Doc(f"needle {number}", at=NOW - number) for number in range(9)))])
    for query, is_other in (("needle", False), ("needel", True), ("needle nowhereatall", True)):
        page = found([index], query=query, counted=4, now_ms=NOW)
        assert (page.places, page.is_more) == (4, True)
        assert bool(page.instead or page.missing) is is_other
    assert len(search([index], query="needle", now_ms=NOW)) == 9


@pytest.mark.parametrize(("reported", "counted"), [(7_200_000, 7_200_000), (None, 3_600_000)])
def test_a_duration_that_a_tool_reports_is_counted_whole(reported: int | None, counted: int):
    result = turnlog.ToolResult(call="c", content="x", duration_ms=reported)
    calls: OpenCalls = {"c": ("bash", 0)}
    assert tools_used(turnlog.Message(role="tool", blocks=[result]), calls, 9_000_000) == {"bash": (0, 0, counted)}

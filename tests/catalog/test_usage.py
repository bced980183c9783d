"""What was spent: the same sum however it is divided, in any time zone, and nothing counted that belongs to another."""

from collections import defaultdict
from datetime import UTC, datetime, timedelta, timezone
from decimal import ROUND_HALF_EVEN, Decimal
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.catalog.plain import MINUTE, NOW, Doc, Plain, Spent, fill, tables
from turnlog.catalog.answer import Spending
from turnlog.catalog.ask.blocks import blocks
from turnlog.catalog.ask.owner import user_of
from turnlog.catalog.ask.usage import GROUPS, usage
from turnlog.catalog.index.index import Index
from turnlog.catalog.index.settle import roll_up
from turnlog.catalog.values import COUNTS, TokenSums, rounded
from turnlog.errors import Invalid
from turnlog.log.usage import Usage
from turnlog.machine.process import host_name

BERLIN, KATHMANDU = ZoneInfo("Europe/Berlin"), ZoneInfo("Asia/Kathmandu")
ZONES = st.sampled_from([UTC, BERLIN, KATHMANDU, ZoneInfo("America/New_York"), timezone(timedelta(hours=-12))])
DAY = 24 * 60 * MINUTE
SPENT = st.builds(
    Spent,
    # Around two changes of the clock, and at the edges of quarters.
    at=st.integers(0, 400).map(lambda days: NOW - days * DAY) | st.integers(NOW - 2 * DAY, NOW),
    model=st.sampled_from(["claude-opus", "gpt-5", ""]),
    cost=st.none() | st.integers(0, 3_000_000),
    counts=st.tuples(*[st.integers(0, 1000)] * 6),
    is_inherited=st.booleans(),
)
SESSIONS = st.lists(
    st.tuples(
        st.just((Doc("here"),)),
        st.sampled_from(["codex", "claude-code"]),
        st.sampled_from(["/home/ada/api", "/home/ada/web"]),
        st.lists(SPENT, max_size=6).map(tuple),
    ).map(lambda fields: Plain(fields[0], fields[1], fields[2], spent=fields[3])),
    max_size=4,
)


def spent(db: Index, query: str = "", by: str = "day", zone: object = UTC) -> dict[str, Spending]:
    return {row.group: row for row in usage([db], query=query, by=by, timezone=zone, now_ms=NOW)}  # pyright: ignore


def naive(sessions: list[Plain], by: str, zone: object) -> dict[str, tuple[int, int, int, int, set[str]]]:
    """Of each group: millionths of micro-dollars, input tokens, requests, sessions, unpriced models."""
    groups: dict[str, list[tuple[int, Spent]]] = defaultdict(list)
    for number, session in enumerate(sessions, 1):
        for row in session.spent:
            if row.is_inherited:
                continue
            local = datetime.fromtimestamp(row.at / 1000, zone)  # pyright: ignore
            name = {
                "day": local.strftime("%Y-%m-%d"),
                "week": local.strftime("%G-W%V"),
                "month": local.strftime("%Y-%m"),
                "session": f"{session.agent}:s{number}",
                "model": row.model or "unknown",
                "workspace": session.workspace,
                "agent": session.agent,
                "user": "ada",
                "machine": host_name(),
            }[by]
            groups[name].append((number, row))
            groups["total"].append((number, row))
    return {
        name: (
            sum(row.cost or 0 for _, row in rows),
            sum(row.counts[0] for _, row in rows),
            len(rows),
            len({number for number, _ in rows}),
            {row.model or "unknown" for _, row in rows if row.cost is None},
        )
        for name, rows in groups.items()
    }


@given(SESSIONS, st.sampled_from(GROUPS), ZONES)
def test_it_is_what_one_counts_by_hand(sessions: list[Plain], by: str, zone: object):
    found = spent(fill(sessions), by=by, zone=zone)
    expected = naive(sessions, by, zone) or {"total": (0, 0, 0, 0, set())}
    assert found.keys() == expected.keys()
    for name, (pico, tokens, requests, count, unpriced) in expected.items():
        micros = int((Decimal(pico) / 1_000_000).quantize(Decimal(1), ROUND_HALF_EVEN))
        row = found[name]
        assert row.tokens.cost_micros == micros
        assert (row.tokens.input_tokens, row.requests, row.sessions) == (tokens, requests, count)
        assert set(row.unpriced) == unpriced


@given(SESSIONS, ZONES)
def test_the_total_is_the_same_whichever_way_it_is_divided(sessions: list[Plain], zone: object):
    db = fill(sessions)
    totals = {by: spent(db, by=by, zone=zone).pop("total") for by in GROUPS}
    assert len(set(totals.values())) == 1
    for by in GROUPS:
        rows = spent(db, by=by, zone=zone)
        total = rows.pop("total")
        assert sum(row.requests for row in rows.values()) == total.requests
        for field in TokenSums._fields[:-1]:
            assert sum(getattr(row.tokens, field) for row in rows.values()) == getattr(total.tokens, field)
        # Each group is rounded by itself.
        assert abs(sum(row.tokens.cost_micros for row in rows.values()) - total.tokens.cost_micros) <= len(rows)


@given(SESSIONS, st.integers(NOW - 2 * DAY, NOW), st.integers(0, DAY))
def test_a_stretch_of_time_to_the_millisecond(sessions: list[Plain], start: int, length: int):
    end = start + length
    since, until = (datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds") for at in (start, end))
    total = spent(fill(sessions), f"since:{since} until:{until}")["total"]
    rows = [row for session in sessions for row in session.spent if not row.is_inherited and start <= row.at < end]
    assert total.requests == len(rows)
    assert total.tokens.output_tokens == sum(row.counts[4] for row in rows)


def test_a_stretch_of_time_inside_a_quarter_of_an_hour():
    start = NOW // 900_000 * 900_000
    db = fill([Plain(spent=tuple(Spent(start + at) for at in (0, 1000, 2000, 3000, 899_999, 900_000)))])

    def between(first: int, last: int) -> int:
        since, until = (datetime.fromtimestamp((start + at) / 1000, UTC).isoformat() for at in (first, last))
        return spent(db, f"since:{since} until:{until}")["total"].requests

    assert between(1000, 3000) == 2
    assert between(1000, 900_000) == 4
    assert between(0, 3000) == 3
    assert between(1000, 1_800_000) == 5
    assert between(3000, 1000) == 0


def test_days_are_those_of_the_time_zone():
    late = int(datetime(2026, 10, 24, 22, 30, tzinfo=UTC).timestamp() * 1000)  # the night when clocks go back
    db = fill([Plain(spent=(Spent(late), Spent(late + 24 * 60 * MINUTE)))])
    assert list(spent(db, zone=UTC)) == ["2026-10-24", "2026-10-25", "total"]
    assert list(spent(db, zone=BERLIN)) == ["2026-10-25", "total"]
    assert list(spent(db, zone=KATHMANDU)) == ["2026-10-25", "2026-10-26", "total"]
    assert list(spent(db, by="week", zone=UTC)) == ["2026-W43", "total"]


def test_the_local_time_zone_is_the_default(monkeypatch: pytest.MonkeyPatch):
    import time

    late = int(datetime(2026, 7, 1, 2, 0, tzinfo=UTC).timestamp() * 1000)
    db = fill([Plain(spent=(Spent(late), Spent(late + 182 * DAY)))])
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        assert list(spent(db, zone=None)) == ["2026-06-30", "2026-12-29", "total"]
    finally:
        monkeypatch.undo()
        time.tzset()


def test_the_most_expensive_comes_first():
    db = fill([Plain(spent=(Spent(model="cheap", cost=1), Spent(model="dear", cost=9), Spent(model="mid", cost=5)))])
    assert list(spent(db, by="model")) == ["dear", "mid", "cheap", "total"]


@pytest.mark.parametrize(
    ("query", "requests"),
    [
        ("", 4),
        ("agent:codex", 3),
        ("-agent:codex", 1),
        ("model:opus", 2),
        ("model:opus,gpt", 4),
        ("-model:opus", 2),
        ("workspace:web", 1),
        ("since:1h", 3),
        ("until:1h", 1),
        ("needle", 3),
        ("needle model:opus", 2),
        ("tool:bash", 1),
        ("nowhere", 0),
    ],
)
def test_a_query_narrows_it_down(query: str, requests: int):
    opus, gpt = Spent(model="claude-opus"), Spent(model="gpt-5")
    db = fill(
        [
            Plain((Doc("needle"),), "codex", "/home/ada/api", spent=(opus, opus, gpt)),
            Plain((Doc("hay", tools=("Bash",)),), "claude-code", "/home/ada/web", spent=(gpt._replace(at=NOW - DAY),)),
        ]
    )
    assert spent(db, query)["total"].requests == requests


def test_a_workspace_narrows_it_down():
    db = fill([Plain(workspace="/a", spent=(Spent(),)), Plain(workspace="/a/b", spent=(Spent(), Spent()))])
    assert usage([db], workspace="/a/b", now_ms=NOW, timezone=UTC)[-1].requests == 2


def test_what_it_cannot_be_divided_by_is_refused():
    with pytest.raises(Invalid, match="no usage by 'hour'") as caught:
        usage(fill([]), by="hour", now_ms=NOW)
    assert "day, week" in str(caught.value.hint)


def test_half_a_micro_dollar_goes_to_the_even_one():
    assert [rounded(pico) for pico in (499_999, 500_000, 500_001, 1_500_000, 2_500_000)] == [0, 0, 1, 2, 2]


def test_what_is_counted_is_what_a_usage_counts():
    assert Usage.__struct_fields__[:-1] == COUNTS


def test_summing_up_again_changes_nothing_and_forgets_what_is_gone():
    db = fill([Plain(spent=(Spent(), Spent(model="x"))), Plain(spent=(Spent(),))])
    before = spent(db, by="model")
    roll_up(db.engine, [1, 2])
    assert spent(db, by="model") == before
    tables().execute("UPDATE spent SET is_inherited = 1 WHERE session = 1")
    roll_up(db.engine, [1])
    assert spent(db)["total"].requests == 1


@given(SESSIONS, st.permutations(GROUPS), st.integers(2, 3))
def test_by_several_at_once_the_parts_are_those_of_each(sessions: list[Plain], kinds: list[str], number: int):
    db, chosen = fill(sessions), kinds[:number]
    *rows, total = usage([db], by=",".join(chosen), timezone=UTC, now_ms=NOW)
    assert sum(row.requests for row in rows) == total.requests
    assert len({row.names for row in rows}) == len(rows)
    for depth, kind in enumerate(chosen):
        alone = spent(db, by=kind)
        counted: dict[str, int] = defaultdict(int)
        for row in rows:
            counted[row.names[depth]] += row.requests
        assert counted == {name: row.requests for name, row in alone.items() if name != "total"}
    first = [row.names[0] for row in rows]
    assert len([name for at, name in enumerate(first) if not at or first[at - 1] != name]) == len(set(first))


def test_the_same_twice_is_refused():
    with pytest.raises(Invalid, match="twice"):
        usage(fill([]), by="day,day", now_ms=NOW)


@pytest.mark.parametrize(
    ("path", "user"),
    [
        ("/home/ada/api", "ada"), ("/Users/bob", "bob"), ("C:\\Users\\cy\\x", "cy"), ("/mnt/c/Users/dan/x", "dan"),
        ("/var/home/eve/x", "eve"), ("/root", "root"), ("/rooted", ""), ("/srv/home/x", ""), ("", ""),
    ],
)  # fmt: skip
def test_the_home_folder_says_whose_a_session_is(path: str, user: str):
    assert user_of(path) == user


def test_the_machine_of_our_own_is_the_one_that_wrote_it():
    def ours(writer: str) -> Plain:
        return Plain((Doc("x"),), spent=(Spent(),), is_ours=True, workspace="/srv/x", more=(("writer", writer),))

    db = fill([ours("1\ts\tfirst\tb\tn\n2\ts\tlast\tb\tn"), ours("")])
    assert sorted(row.names for row in usage([db], by="user,machine", now_ms=NOW)[:-1]) == [
        ("unknown", "last"), ("unknown", "unknown"),
    ]  # fmt: skip


# ── windows of five hours ─────────────────────────────────────────────────────────────────────────


def by_hand(times: list[int]) -> list[tuple[int, int]]:
    """Where windows begin, and how many requests are in each."""
    hour = 60 * MINUTE
    found: list[list[int]] = []
    for at in sorted(times):
        if not found or at - found[-1][0] // hour * hour > 5 * hour or at - found[-1][-1] > 5 * hour:
            found.append([])
        found[-1].append(at)
    return [(one[0] // hour * hour, len(one)) for one in found]


@given(st.lists(st.integers(NOW - 2 * DAY, NOW), max_size=20))
def test_windows_begin_with_a_full_hour_and_lose_nothing(times: list[int]):
    db = fill([Plain((Doc("x"),), spent=(Spent(at=at),)) for at in times])
    found = blocks([db], now_ms=NOW)
    assert [(one.start_ms, one.spending.requests) for one in found] == by_hand(times)
    assert sum(one.spending.tokens.input_tokens for one in found) == spent(db)["total"].tokens.input_tokens


def test_a_window_has_its_rate_and_each_agent_its_own():
    hours = [Spent(at=NOW - MINUTE * ago, cost=2_000_000_000_000, counts=(10, 0, 0, 0, 5, 0)) for ago in (90, 30)]
    far = Spent(at=NOW - 10 * 60 * MINUTE)
    db = fill([Plain((Doc("x"),), spent=(*hours, far)), Plain((Doc("x"),), "claude-code", spent=(Spent(at=NOW),))])
    old, now, other = blocks([db], now_ms=NOW)
    assert [one.is_active for one in (old, now, other)] == [False, True, True]
    assert (now.tokens_per_minute, now.micros_per_hour) == (round(30 / 60), 4_000_000)
    assert (other.agent, other.tokens_per_minute) == ("claude-code", None)
    assert [one.agent for one in blocks([db], query="agent:claude-code", now_ms=NOW)] == ["claude-code"]
    assert len(blocks([db], query="since:4h", now_ms=NOW)) == 2

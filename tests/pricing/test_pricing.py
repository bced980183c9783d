"""What usage costs, against sums done by hand with the prices as they were published.

Prices in dollars per million tokens are micro-dollars per token, so every sum here is plain integers and fractions.
"""

import subprocess
import sys
from datetime import UTC, datetime
from fractions import Fraction

import pytest

from tests.store.faultlab import ForgetfulDisk
from turnlog import Custom, Home, Message, Spent, Text, TurnlogError, Usage
from turnlog.log.entry import Child, Compaction
from turnlog.pricing import Cost, CostReport, cost_of, price_of
from turnlog.store.files import connect

OCTOBER_2025 = datetime(2025, 10, 15, 12, tzinfo=UTC)


def answer(usage, model="claude-haiku-4-5", at=OCTOBER_2025, **fields):
    return Message(role="assistant", blocks=[Text("a")], usage=usage, model=model, at=at, **fields)


# ── the prices of a request ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("model", "usage", "micros"),
    [
        # input 1, output 5, cache read 0.10, cache write 1.25, cache write (1 h) 2
        ("claude-haiku-4-5", Usage(input_tokens=1_000), 1_000),
        ("claude-haiku-4-5", Usage(output_tokens=1_000), 5_000),
        ("claude-haiku-4-5", Usage(cache_read_tokens=1_000), 100),
        ("claude-haiku-4-5", Usage(cache_write_tokens=1_000), 1_250),
        ("claude-haiku-4-5", Usage(cache_write_1h_tokens=1_000), 2_000),
        ("claude-haiku-4-5", Usage(output_tokens=1_000, reasoning_tokens=900), 5_000),
        (
            "claude-haiku-4-5",
            Usage(
                input_tokens=7, cache_read_tokens=40, cache_write_tokens=8, cache_write_1h_tokens=3, output_tokens=11
            ),
            7 + 4 + 10 + 6 + 55,
        ),
        # input 3, output 15
        ("claude-3-7-sonnet-20250219", Usage(input_tokens=200_001, output_tokens=10), 600_003 + 150),
        # No price for writing a cache: it is input like any other. Input 1.25.
        ("gemini-2.5-pro", Usage(input_tokens=400, cache_write_tokens=400), 1_000),
    ],
)
def test_every_kind_of_token_has_its_price(model, usage, micros):
    cost = cost_of([answer(usage, model)])
    assert cost == Cost(0, micros, {model: micros})
    assert cost.is_complete


@pytest.mark.parametrize(
    ("day", "micros"),
    [(datetime(2025, 6, 9, 23, 59, 59, tzinfo=UTC), 50_000), (datetime(2025, 6, 10, tzinfo=UTC), 10_000)],
)
def test_the_price_is_that_of_the_day_it_happened(day, micros):
    """o3: 10 and 40 until 9 June 2025, 2 and 8 from the next day on."""
    usage = Usage(input_tokens=1_000, output_tokens=1_000)
    assert cost_of([answer(usage, "o3", at=day)]).micros == micros


def test_an_entry_whose_time_was_held_is_priced_at_its_real_time():
    held = datetime(2025, 6, 20, tzinfo=UTC)
    real = datetime(2025, 6, 1, tzinfo=UTC)
    assert cost_of([answer(Usage(input_tokens=1_000), "o3", at=held, clock=real)]).micros == 10_000


def test_several_days_in_one_session_each_have_their_price():
    days = [datetime(2025, 6, 1, tzinfo=UTC), datetime(2025, 7, 1, tzinfo=UTC)]
    cost = cost_of([answer(Usage(input_tokens=1_000), "o3", at=day) for day in days])
    assert cost.models == {"o3": 10_000 + 2_000}


@pytest.mark.parametrize(
    ("model", "usage", "micros"),
    [
        # 3, 15, 0.30, 3.75, 6 up to 200,000 tokens of prompt; 6, 22.50, 0.60, 7.50, 12 above, for all of them
        ("claude-sonnet-4-5", Usage(input_tokens=200_000, output_tokens=100), 600_000 + 1_500),
        ("claude-sonnet-4-5", Usage(input_tokens=200_001, output_tokens=100), 1_200_006 + 2_250),
        ("claude-sonnet-4-5", Usage(input_tokens=1_000, cache_read_tokens=200_000), 6_000 + 120_000),
        ("claude-sonnet-4-5", Usage(cache_write_tokens=200_000, cache_write_1h_tokens=1_000), 1_500_000 + 12_000),
        # 5, 30 up to 272,000; 10, 45 above
        ("gpt-5.5", Usage(input_tokens=272_000, output_tokens=10), 1_360_000 + 300),
        ("gpt-5.5", Usage(input_tokens=272_001, output_tokens=10), 2_720_010 + 450),
    ],
)
def test_tiered_prices_flip_once_a_prompt_crosses_the_threshold(model, usage, micros):
    assert cost_of([answer(usage, model)]).micros == micros


def test_tiers_go_by_the_request_and_not_by_the_session():
    """Two prompts of 150,000 are two small ones, and one large prompt does not make the others expensive."""
    small, large = Usage(input_tokens=150_000), Usage(input_tokens=250_000)
    cost = cost_of([answer(u, "claude-sonnet-4-5") for u in (small, small, large, small)])
    assert cost.micros == 3 * 450_000 + 1_500_000


def test_tiers_that_were_given_up_no_longer_flip():
    """claude-sonnet-4-6 had tiers until 13 March 2026."""
    usage = Usage(input_tokens=300_000)
    assert cost_of([answer(usage, "claude-sonnet-4-6", at=datetime(2026, 3, 12, tzinfo=UTC))]).micros == 1_800_000
    assert cost_of([answer(usage, "claude-sonnet-4-6", at=datetime(2026, 3, 13, tzinfo=UTC))]).micros == 900_000


@pytest.mark.parametrize(
    "name",
    ["claude-haiku-4-5", "claude-haiku-4-5-20251001", "anthropic/claude-haiku-4.5", "anthropic:claude-haiku-4-5"],
)
def test_a_model_is_known_by_any_of_its_names(name):
    price = price_of(Usage(input_tokens=1_000_000), name, OCTOBER_2025)
    assert price is not None
    assert price.dollars == 1


def test_a_model_of_bedrock_is_known():
    price = price_of(Usage(output_tokens=1_000_000), "us.anthropic.claude-3-haiku-20240307-v1:0", OCTOBER_2025)
    assert price is not None
    assert Fraction(price.dollars) == Fraction(5, 4)


def test_rounding_happens_once_for_each_model_and_not_for_each_request():
    """A read of one token costs a tenth of a micro-dollar."""
    cost = cost_of([answer(Usage(cache_read_tokens=1)) for _ in range(1_000)])
    assert cost.micros == 100


def test_micros_are_integers():
    cost = cost_of([answer(Usage(cache_read_tokens=3))])
    assert (cost.micros, type(cost.micros), type(cost.models["claude-haiku-4-5"])) == (0, int, int)


# ── what has no price ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["gpt-99-imaginary", "my-local-model", "qwen3:32b", ""])
def test_an_unknown_model_is_named_and_not_counted_as_zero(name):
    usage = Usage(input_tokens=1_000, output_tokens=7)
    cost = cost_of([answer(usage, name), answer(usage, name), answer(Usage(input_tokens=9))])
    assert cost.unpriced == {name: usage + usage}
    assert cost.models == {"claude-haiku-4-5": 9}
    assert not cost.is_complete


def test_a_model_that_is_listed_without_a_price_is_named_as_well():
    """The price list has models it says nothing about; summing what it says would give zero."""
    usage = Usage(input_tokens=1_000)
    cost = cost_of([answer(usage, "github-copilot/gpt-4o")])
    assert cost == Cost(unpriced={"github-copilot/gpt-4o": usage})


def test_a_request_that_used_nothing_needs_no_price():
    assert cost_of([answer(Usage(), "gpt-99-imaginary")]) == Cost()


def test_numbers_that_cannot_be_are_named_instead_of_counted():
    usage = Usage(input_tokens=-5)
    assert cost_of([answer(usage)]) == Cost(unpriced={"claude-haiku-4-5": usage})


# ── what was reported ─────────────────────────────────────────────────────────────────────────────


def test_a_reported_cost_wins_over_a_computed_one():
    usage = Usage(input_tokens=1_000_000, cost_micros=42)
    cost = cost_of([answer(usage), answer(usage, "gpt-99-imaginary"), answer(Usage(input_tokens=10))])
    assert (cost.reported_micros, cost.computed_micros, cost.micros) == (84, 10, 94)
    assert cost.models == {"claude-haiku-4-5": 52, "gpt-99-imaginary": 42}
    assert cost.is_complete


def test_a_reported_zero_is_a_zero():
    assert cost_of([answer(Usage(input_tokens=1_000, cost_micros=0))]) == Cost(models={"claude-haiku-4-5": 0})


def test_a_request_is_paid_once_however_many_entries_it_became():
    usage = Usage(input_tokens=10)
    cost = cost_of(
        [
            answer(usage, request="r1"),
            answer(usage, request="r1"),
            Spent(usage=usage, model="claude-haiku-4-5", request="r1", at=OCTOBER_2025),
            answer(usage, request="r2"),
            answer(usage),
            answer(usage),
        ]
    )
    assert cost.micros == 40


def test_compactions_and_other_spending_are_paid_too():
    usage, fields = Usage(input_tokens=10), {"model": "claude-haiku-4-5", "at": OCTOBER_2025}
    cost = cost_of(
        [
            Compaction(replacement=[], usage=usage, **fields),
            Spent(usage=usage, why="title", **fields),
            Custom(kind="x.y"),
            Message(role="user", blocks=[Text("a")]),
        ]
    )
    assert cost.micros == 20


# ── totals ────────────────────────────────────────────────────────────────────────────────────────


def test_of_an_imported_total_nobody_can_tell_the_tier():
    """250,000 tokens were one large prompt or ten small ones: it is counted at the lowest price, and said so."""
    usage = Usage(input_tokens=250_000, output_tokens=100)
    total = Spent(usage=usage, model="claude-sonnet-4-5", why="imported", at=OCTOBER_2025)
    cost = cost_of([total])
    assert cost == Cost(0, 751_500, {"claude-sonnet-4-5": 751_500}, untiered={"claude-sonnet-4-5": usage})
    assert cost.is_complete


def test_a_total_below_every_threshold_is_certain():
    total = Spent(usage=Usage(input_tokens=200_000), model="claude-sonnet-4-5", why="imported", at=OCTOBER_2025)
    assert cost_of([total]) == Cost(0, 600_000, {"claude-sonnet-4-5": 600_000})


def test_a_total_of_a_model_without_tiers_is_certain():
    total = Spent(usage=Usage(input_tokens=10**9), model="claude-haiku-4-5", at=OCTOBER_2025)
    assert cost_of([total]) == Cost(0, 10**9, {"claude-haiku-4-5": 10**9})


def test_spending_of_one_request_has_its_tier():
    one = Spent(usage=Usage(input_tokens=250_000), model="claude-sonnet-4-5", request="r", at=OCTOBER_2025)
    assert cost_of([one]) == Cost(0, 1_500_000, {"claude-sonnet-4-5": 1_500_000})


# ── values ────────────────────────────────────────────────────────────────────────────────────────


def test_costs_add_up():
    usage = Usage(input_tokens=5)
    one = Cost(1, 2, {"a": 3}, {"x": usage}, {"t": usage})
    two = Cost(10, 20, {"a": 20, "b": 10}, {"x": usage, "y": usage})
    assert one + two == Cost(11, 22, {"a": 23, "b": 10}, {"x": usage + usage, "y": usage}, {"t": usage})
    report = CostReport(one, two, Cost(computed_micros=500))
    assert report.total == one + two + Cost(computed_micros=500)
    assert (one + two).micros == 33
    assert one == Cost(1, 2, {"a": 3}, {"x": usage}, {"t": usage})


def test_prices_are_read_only_when_one_is_needed_and_no_library_is():
    code = (
        "import sys, turnlog, turnlog.pricing\n"
        "from turnlog.pricing.book import _book\n"
        "s = turnlog.open('memory:').create()\n"
        "s.assistant('a', usage=turnlog.Usage(input_tokens=1, cost_micros=3), model='claude-haiku-4-5')\n"
        "assert s.cost().own.micros == 3\n"
        "assert _book.cache_info().currsize == 0\n"
        "s.assistant('a', usage=turnlog.Usage(input_tokens=1), model='claude-haiku-4-5')\n"
        "assert s.cost().own.micros == 4\n"
        "assert _book.cache_info().currsize == 1\n"
        "assert 'genai_prices' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_nothing_is_fetched():
    """Prices come with Turnlog: a price is found where every connection is refused."""
    code = (
        "import socket\n"
        "def refuse(*a, **k): raise AssertionError('a connection was tried')\n"
        "socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse\n"
        "import turnlog\n"
        "s = turnlog.open('memory:').create()\n"
        "s.assistant('a', usage=turnlog.Usage(input_tokens=10), model='claude-haiku-4-5')\n"
        "assert s.cost().own.micros == 10\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# ── of a session ──────────────────────────────────────────────────────────────────────────────────

HAIKU = "claude-haiku-4-5"


def test_a_session_that_never_spent_cost_nothing(s):
    report = s.cost()
    assert report.own == report.inherited == report.subagents == report.total == Cost()


def test_a_session_knows_what_it_cost(s, place):
    s.assistant("a", usage=Usage(input_tokens=1_000), model=HAIKU)
    s.assistant("b", usage=Usage(input_tokens=1_000, cost_micros=5), model=HAIKU)
    s.spend(Usage(output_tokens=10), model=HAIKU, why="title")
    s.assistant("c", usage=Usage(output_tokens=3), model="gpt-99-imaginary")
    for session in (s, place.open().resume(s.id)):
        own = session.cost().own
        assert (own.micros, own.reported_micros, own.computed_micros) == (1_055, 5, 1_050)
        assert own.models == {HAIKU: 1_055}
        assert own.unpriced == {"gpt-99-imaginary": Usage(output_tokens=3)}


def test_the_day_is_that_of_the_entry(place):
    place.clock.now = int(datetime(2025, 6, 1, tzinfo=UTC).timestamp() * 1000)
    s = place.open().create()
    s.assistant("a", usage=Usage(input_tokens=1_000), model="o3")
    place.clock.now = int(datetime(2025, 7, 1, tzinfo=UTC).timestamp() * 1000)
    s.assistant("b", usage=Usage(input_tokens=1_000), model="o3")
    assert s.cost().own.models == {"o3": 12_000}


def test_rewind_edit_and_compaction_make_nothing_cheaper(s):
    ask = s.user("go")
    reply = s.assistant("a", usage=Usage(input_tokens=1_000), model=HAIKU)
    s.edit(reply, None)
    s.compact("sum", usage=Usage(input_tokens=100), model=HAIKU)
    s.rewind(to=ask)
    assert s.cost().own.micros == 1_100


def test_a_fork_pays_for_itself_only(s, place):
    s.assistant("a", usage=Usage(input_tokens=1_000), model=HAIKU)
    fork = s.fork(name="other")
    fork.assistant("b", usage=Usage(input_tokens=10), model=HAIKU)
    again = fork.fork()
    again.assistant("c", usage=Usage(input_tokens=1), model=HAIKU)
    s.assistant("d", usage=Usage(input_tokens=7), model=HAIKU)
    for opened in (again, place.open().resume(again.id)):
        cost = opened.cost()
        assert (cost.own.micros, cost.inherited.micros, cost.total.micros) == (1, 1_010, 1_011)
    assert s.cost().own.micros == 1_007
    assert sum(session.cost().own.micros for session in (s, fork, again)) == 1_018


def test_subagents_are_told_apart(s, home):
    s.assistant("a", usage=Usage(input_tokens=1_000), model=HAIKU)
    child = s.spawn(agent="explorer", call="c1")
    child.assistant("b", usage=Usage(input_tokens=10), model=HAIKU)
    grandchild = child.spawn(agent="deeper")
    grandchild.spend(Usage(input_tokens=1), model="gpt-99-imaginary")
    cost = s.cost()
    assert (cost.own.micros, cost.subagents.micros) == (1_000, 10)
    assert cost.subagents.unpriced == {"gpt-99-imaginary": Usage(input_tokens=1)}
    home.delete(child.id)
    assert s.cost() == cost
    home.purge(child.id)
    assert s.cost().subagents.micros == 0


def test_of_a_subagent_that_is_a_fork_only_its_own_part_is_the_subagents(s):
    s.assistant("a", usage=Usage(input_tokens=1_000), model=HAIKU)
    fork = s.fork()
    fork.assistant("b", usage=Usage(input_tokens=10), model=HAIKU)
    s.append(Child(session=fork.id))
    cost = s.cost()
    assert (cost.own.micros, cost.subagents.micros, cost.total.micros) == (1_000, 10, 1_010)


def test_a_cost_is_exactly_the_usage(s):
    """What `usage` counts and what `cost` prices is the same, request by request."""
    for number in range(30):
        request = f"r{number // 2}" if number % 3 else None
        s.assistant("a", usage=Usage(input_tokens=number + 1), model=HAIKU, request=request)
    assert s.cost().own.micros == s.usage().own.input_tokens


def test_an_entry_that_was_written_again_is_paid_once(tmp_path):
    """After a failed sync the retry repeats the line: both can be read, and one of them counts."""
    disk = ForgetfulDisk()
    with Home(connect(str(tmp_path / "home"), disk=disk)) as home:
        session = home.create()
        session.user("go")
        draft = Message(role="assistant", blocks=[Text("a")], usage=Usage(input_tokens=1_000), model=HAIKU)
        disk.fail_next = True
        disk.before_failure = lambda: Home(connect(str(tmp_path / "home"))).resume(session.id).note("somebody else's")
        with pytest.raises(TurnlogError):
            session.append(draft)
        session.append(draft)
        assert session.cost().own.micros == session.usage().own.input_tokens == 1_000
    lines = next((tmp_path / "home/sessions").iterdir()).read_bytes()
    assert b'"again":' in lines

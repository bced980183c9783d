"""The list of prices: the same as genai-prices has, and a person's own before it."""

import json
import sys
import tempfile
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from genai_prices import data_snapshot
from genai_prices.types import Usage as Counts

from tests.nobody import as_nobody
from turnlog import Usage
from turnlog.errors import Invalid
from turnlog.formats import Record, every
from turnlog.machine.pricelist import bundled, stamp
from turnlog.pricing import book as books
from turnlog.pricing import cost_of, price_of
from turnlog.pricing.generate import generated

SIZES = (1, 128_001, 200_001, 300_000, 1_100_000)
RECORDED = Path(__file__).parent.parent / "formats"
NOBODYS = {"", "m", "fixture-model", "pi-fixture-model", "synthetic-active-model", "aide-gpt-5"}
"""Models that only exist in recordings."""
DAYS = tuple(datetime(*day, tzinfo=UTC) for day in ((2024, 1, 1, 3), (2025, 6, 10, 12), (2026, 3, 13, 20)))


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A person's own folders."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


def write(path: Path, data: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(data if isinstance(data, str) else json.dumps(data))


def dollars(model: str, usage: Usage | None = None, at: datetime = DAYS[2]) -> Decimal | None:
    price = price_of(usage or Usage(input_tokens=1_000_000), model, at)
    return None if price is None else price.dollars


def test_prices_that_change_count_from_then_on(mine: Path) -> None:
    """Some processes run for days: the lists may be replaced meanwhile."""
    assert dollars("my-model") is None
    write(mine / "config" / "turnlog" / "prices.json", {"my-model": {"input": 1, "output": 1}})
    assert dollars("my-model") == 1
    newer = json.loads(Path(bundled()).read_text())
    write(mine / "state" / "turnlog" / "prices.json", {**newer, "date": "2999-01-01", "source": "the newest"})
    assert books.book().source == "the newest"
    (mine / "state" / "turnlog" / "prices.json").write_bytes(b'{"date":"\xff')
    assert books.book().source != "the newest"
    (mine / "config" / "turnlog" / "prices.json").write_bytes(b'{"my-model\xff')
    with pytest.raises(Invalid, match=r"prices\.json"):
        dollars("my-model")


def test_the_list_is_what_the_library_has() -> None:
    """If this fails: `python -m turnlog.pricing.generate`."""
    said = Path(bundled()).read_bytes()
    assert generated(books.book().date) == said


def test_each_model_costs_what_the_library_says() -> None:
    snapshot = data_snapshot.get_snapshot()
    checked = 0
    for provider in snapshot.providers:
        for number, model in enumerate(provider.models):
            name = f"{provider.id}/{model.id}"
            if provider.find_model(model.id, all_providers=snapshot.providers) is not model:
                continue  # that is the name of another one, or of none
            at, size = DAYS[number % len(DAYS)], SIZES[number % len(SIZES)]
            found = price_of(Usage(input_tokens=size, cache_read_tokens=5, output_tokens=7), name, at)
            try:
                counts = Counts(input_tokens=size + 5, cache_read_tokens=5, output_tokens=7)
                wanted = model.get_prices(at).calc_price(counts)["total_price"]
            except ValueError:
                wanted = None
            if found is not None:
                assert found.dollars == wanted, name
                checked += 1
    assert checked > 1900


NAMES = [
    "gpt-5.5", "openai/gpt-5.5", "o3-20250416", "gpt-5.2-20251211", "Claude-Opus-4-1", "models/gemini-2.5-pro",
    "eu.anthropic.claude-sonnet-4-5-20250929-v1:0", "openrouter/anthropic/claude-sonnet-4.5", "vertex_ai/x", "grok-4",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_name_means_what_it_means_to_the_library(name: str) -> None:
    snapshot = data_snapshot.get_snapshot()
    for text, provider in ((name, None), (name.partition("/")[2], name.partition("/")[0])):
        try:
            wanted = snapshot.find_provider_model(text, None, provider, None)[1].id if text else None
        except LookupError:
            wanted = None
        found = books.book().find(text, provider) if text else None
        assert (found and found.id) == wanted


def test_what_its_maker_does_not_list_costs_what_a_reseller_says() -> None:
    assert dollars("qwen3-coder-plus") is not None
    assert dollars("GLM-4.6") is not None


def test_every_recorded_session_of_a_model_with_a_public_price_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices", None)  # as where nothing but Turnlog is installed
    priced, unpriced = set(), set()
    for name, form in every():
        for source in (one for folder in ("agents", "seeds") for one in form.find(str(RECORDED / folder))):
            if source.agent == name:
                cost = cost_of(step.entry for step in form.read(source).steps if isinstance(step, Record))
                priced |= set(cost.models)
                unpriced |= set(cost.unpriced)
    assert len(priced) > 8
    assert unpriced <= NOBODYS


def test_own_prices_come_before_the_list(mine: Path) -> None:
    own = mine / "config/turnlog/prices.json"
    before = stamp()
    write(
        own,
        {
            "claude-haiku-4-5": {"input": 7, "output": 9},
            "local/*": {"input": 0, "output": 0.5, "cache_read": 0},
            "local/big": [{"input": 1, "output": 1}, {"since": "2026-01-01", "input": 2, "output": 2}],
        },
    )
    assert stamp() != before
    assert dollars("claude-haiku-4-5") == 7
    assert dollars("Claude-Haiku-4-5", Usage(cache_write_1h_tokens=1_000_000)) == 7
    assert dollars("local/any") == 0
    assert dollars("local/any", Usage(output_tokens=1_000_000)) == Decimal("0.5")
    assert (dollars("local/big", at=DAYS[1]), dollars("local/big")) == (1, 2)
    assert dollars("claude-opus-4-1") == 15


@pytest.mark.parametrize("text", ["{", '{"a": 5}', '{"a": {"input": 1}}', '{"a": {"input": 1, "output": 2, "in": 3}}'])
def test_own_prices_that_cannot_be_read_are_told_with_the_file(mine: Path, text: str) -> None:
    write(mine / "config/turnlog/prices.json", text)
    with pytest.raises(Invalid, match=r"config/turnlog/prices\.json: ") as caught:
        dollars("claude-haiku-4-5")
    assert "my-model" in str(caught.value.hint)


@pytest.mark.parametrize("price", ['"NaN"', '"Infinity"', "1e40", "-1"])
def test_an_own_price_that_nobody_can_pay_is_told_with_the_file(mine: Path, price: str) -> None:
    """It would be in every sum, and a session whose cost cannot be stored would be missing in the catalog."""
    for key in ("input", "cache_read"):
        write(mine / "config/turnlog/prices.json", f'{{"a": {{"input": 1, "output": 2, "{key}": {price}}}}}')
        with pytest.raises(Invalid, match=r"config/turnlog/prices\.json: .*is not a price"):
            dollars("a")


@pytest.fixture
def open_to_all(monkeypatch: pytest.MonkeyPatch):
    """The user's folder for settings, in one that others may enter, which pytest's are not."""
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        monkeypatch.setenv("XDG_CONFIG_HOME", f"{place}/config")
        write(Path(place, "config/turnlog/prices.json"), {"claude-haiku-4-5": {"input": 7, "output": 7}})
        yield Path(place, "config")
        Path(place, "config").chmod(0o700)


def test_own_prices_in_a_folder_of_another_user_are_as_none(open_to_all: Path) -> None:
    """A service that was started by root may still have root's home in its environment."""
    assert (dollars("claude-haiku-4-5"), dollars("claude-opus-4-5")) == (7, 5)
    open_to_all.chmod(0)
    assert Decimal(as_nobody(lambda: str(dollars("claude-haiku-4-5")))) == 1


def test_own_prices_that_this_user_may_not_read_are_told_with_the_file(open_to_all: Path) -> None:
    (open_to_all / "turnlog/prices.json").chmod(0)
    told = as_nobody(lambda: str(dollars("claude-opus-4-5")))
    assert "config/turnlog/prices.json could not be read: Permission denied" in told


@pytest.mark.parametrize(("day", "price"), [("2099-01-01", 3), ("2001-01-01", 1)])
def test_the_newer_list_is_used(mine: Path, day: str, price: int) -> None:
    model = {"id": "x", "match": "=claude-haiku-4-5", "prices": [{"rates": [[0, 3, 3, 3, 3, 3]]}]}
    write(
        mine / "state/turnlog/prices.json",
        {"date": day, "source": "s", "providers": [{"id": "anthropic", "serves": "~claude", "models": [model]}]},
    )
    assert dollars("claude-haiku-4-5") == price


def test_a_newer_list_that_cannot_be_read_is_none(mine: Path) -> None:
    write(mine / "state/turnlog/prices.json", "{}")
    assert dollars("claude-haiku-4-5") == 1
    assert books.book().date >= date(2026, 11, 1)


@pytest.mark.parametrize(
    "provider",
    [
        {"models": [{"name": "of a later format"}]},
        {"models": [{"id": "a", "match": "~haiku", "prices": [{"rates": 3}]}]},
        {"models": [{"id": "a", "match": "~haiku", "prices": [{"rates": [[1, 2]]}]}]},
        {"models": [{"id": "a", "match": "~haiku", "prices": [{"starts": [1], "rates": [[0, 3, 3, 3, 3, 3]]}]}]},
        {"models": [{"id": "a", "match": ["none", "~haiku"], "prices": []}]},
        {"serves": "?claude"},
        {"serves": "/("},
        {"serves": ""},
        {"names": []},
    ],
)
def test_a_newer_list_in_another_format_is_none(mine: Path, provider: dict) -> None:
    """A later version of turnlog beside this one may have written it."""
    newer = {"date": "2099-01-01", "source": "s", "providers": [{"id": "anthropic", "serves": "~claude", **provider}]}
    write(mine / "state/turnlog/prices.json", newer)
    assert dollars("claude-haiku-4-5") == 1
    assert books.book().source != "s"

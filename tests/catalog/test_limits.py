"""Numbers that no column holds: a corrupt file shows sums at their limit, and other sessions keep their answers."""

import json
import os
import uuid
from datetime import UTC, datetime
from pathlib import Path
from stat import S_IFREG
from types import SimpleNamespace
from typing import Any

import pytest

import turnlog
from tests.catalog.machine import Machine
from tests.pgserver import Server
from turnlog.catalog import Catalog
from turnlog.catalog.ask.detail import tools
from turnlog.catalog.index.columns import LARGEST, MOST
from turnlog.catalog.watch.sweep import stamp_of
from turnlog.log.block import Text, ToolCall, ToolResult
from turnlog.log.entry import Message

PRICED = "claude-opus-4-1-20250805"
MANY = 1100
"""So many records of 53 bits have a sum beyond 63 bits."""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def corrupt(path: Path, records: int, usage: dict[str, int], **more: Any) -> None:
    """Append answers that report this usage."""
    lines = path.read_text().splitlines()
    answer = next(line for line in map(json.loads, lines) if line["type"] == "assistant")
    with path.open("a") as file:
        for number in range(records):
            message = {**answer["message"], "id": f"msg_corrupt_{number}", "model": PRICED, "usage": usage}
            record = {**answer, **more, "uuid": str(uuid.uuid4()), "message": message}
            file.write(json.dumps(record) + "\n")


@pytest.mark.parametrize("records", [1, MANY])
def test_one_file_with_absurd_counts_leaves_the_others_their_answers(machine: Machine, records: int):
    machine.claude("good")
    corrupt(machine.claude("bad"), records, {"input_tokens": MOST - 1, "output_tokens": MOST - 1})
    with machine.catalog() as catalog:
        cards = {card.id: card for card in catalog.cards()}
        sums = {row.group: row for row in catalog.usage(by="session")}
        assert catalog.usage(by="day,model")[-1].tokens.input_tokens >= MOST - 1
        assert catalog.lines()
    assert cards["good"].own.input_tokens == sums["claude-code:good"].tokens.input_tokens < 1000
    assert not cards["bad"].problem
    assert MOST - 1 <= cards["bad"].own.input_tokens <= LARGEST + 1000
    assert cards["bad"].own.cost_micros >= LARGEST // 1_000_000
    with machine.catalog() as catalog:
        assert {card.id: card for card in catalog.cards()} == cards


def test_totals_of_a_session_beyond_64_bits_are_at_their_limit(machine: Machine):
    with turnlog.open(str(machine.home), checkpoints=False) as home:
        with home.create(id="bad") as session:
            session.append(spending(1 << 70, cost=1 << 70))
            session.append(Message(role="assistant", blocks=[ToolCall(id="c", name="bash", input={})]))
            session.append(Message(role="tool", blocks=[ToolResult(call="c", content=[], duration_ms=1 << 70)]))
        with home.create(id="good") as session:
            session.append(spending(5))
    with machine.catalog() as catalog:
        cards = {card.id: card for card in catalog.cards()}
        assert cards["good"].own.input_tokens == 5
        assert cards["bad"].own.input_tokens == MOST and not cards["bad"].problem
        assert [use.took_ms for use in catalog.ask(tools)] == [MOST]


def test_sums_in_a_database_stop_at_their_limit(postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    location = f"{postgres.url}?tenant={uuid.uuid4()}"
    with turnlog.open(location, checkpoints=False) as home:
        with home.create(id="bad") as session:
            session.append(spending(1 << 70, cost=1 << 70))
            session.append(*(spending(MOST - 1, model=PRICED) for _ in range(MANY)))
        with home.create(id="good") as session:
            session.append(spending(5))
    with Catalog(location, agents=False) as catalog:
        assert {card.id: card.own.input_tokens for card in catalog.cards()} == {"good": 5, "bad": MOST + LARGEST}
        total = catalog.usage()[-1]
    assert total.tokens.input_tokens == MOST + LARGEST + 5
    assert type(total.tokens.input_tokens) is int


def spending(tokens: int, *, model: str | None = None, cost: int | None = None) -> Message:
    usage = turnlog.Usage(input_tokens=tokens, cost_micros=cost)
    return Message(role="assistant", blocks=[Text(text="done")], model=model, usage=usage)


@pytest.mark.parametrize("year", [1960, 2400])
def test_a_file_of_another_century_is_read_once(machine: Machine, year: int):
    path = machine.claude("odd")
    corrupt(path, 1, {"input_tokens": 1}, timestamp=None)
    machine.settle()
    seconds = int(datetime(year, 1, 1, tzinfo=UTC).timestamp())
    for odd in (path, path.parent):
        os.utime(odd, (seconds, seconds))
    if int(path.stat().st_mtime) != seconds:
        pytest.skip("this file system does not know that year")
    with machine.catalog() as catalog:
        assert [card.id for card in catalog.cards()] == ["odd"]
        assert catalog.search("haystack")
        assert catalog.sync().read == 0


def test_the_number_of_a_file_may_have_64_bits(monkeypatch: pytest.MonkeyPatch):
    status = SimpleNamespace(st_mode=S_IFREG, st_size=1, st_mtime_ns=2, st_ino=(1 << 64) - 1)
    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", lambda path: status)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
        assert stamp_of("file") == (1, 2, LARGEST)


@pytest.mark.parametrize("limit", [LARGEST, 10**30])
def test_a_limit_may_be_any_number(machine: Machine, limit: int):
    machine.claude("good")
    with machine.catalog() as catalog:
        assert len(catalog.cards(limit=limit)) == 1
        assert catalog.search("good", limit=limit)
        assert catalog.found("needle*", limit=limit).sessions
        assert catalog.search("good", before=limit)

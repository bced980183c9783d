"""Counts and costs in the catalog are those of sessions that were imported, and those of scripts without Turnlog."""

import json
import os
import shutil
import warnings
from pathlib import Path

import pytest

import turnlog
from tests import public
from tests.catalog.machine import Machine
from tests.formats.agents import count
from tests.formats.agents.count_small import cline, copilot_cli, crush, cursor_cli, droid, goose, kimi, qwen_code
from turnlog.catalog import Catalog, TokenSums
from turnlog.exchange.origin import origin_of
from turnlog.formats import Places, format_of, names
from turnlog.log.usage import Usage
from turnlog.thread.reader import history_of

TESTS = Path(__file__).parents[1]
ROOTS = [TESTS / "formats" / "agents", TESTS / "formats" / "seeds", public.AGENTS, public.SEEDS]
SMALL = {
    "cline": cline, "copilot-cli": copilot_cli, "crush": crush, "cursor-cli": cursor_cli, "droid": droid,
    "goose": goose, "kimi": kimi, "qwen-code": qwen_code,
}  # fmt: skip
FIELDS = Usage.__struct_fields__[:6]


def _agent(name: str) -> str:
    return "kimi" if name.startswith("kimi") else name


FOLDERS = [
    folder
    for root in ROOTS
    if root.is_dir()
    for folder in sorted(root.iterdir())
    if folder.is_dir() and _agent(folder.name) in names()
]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def _lay(machine: Machine, agent: str, item: Path) -> Path:
    """A fixture where that agent keeps its sessions."""
    places = Places(home=str(machine.user), workspace=None if agent == "rho" else str(machine.work))
    target = Path(format_of(agent).homes(places)[0])
    if target == machine.work:  # with its home is all that lies in it
        target /= "sessions"
    assert target.is_relative_to(machine.folder) and target not in (machine.user, machine.work)
    shutil.rmtree(target, ignore_errors=True)
    if item.is_file():
        target.mkdir(parents=True)
        shutil.copy(item, target)
        return target
    below = [item, *sorted(path for path in item.rglob("*") if path.is_dir())]
    place = next((path for path in below if any(True for _ in format_of(agent).find(str(path)))), item)
    shutil.copytree(place, target)
    return target


def _tokens(usage: Usage, micros: int) -> TokenSums:
    return TokenSums(*(getattr(usage, name) for name in FIELDS), micros)


@pytest.mark.filterwarnings("ignore::turnlog.TurnlogWarning")
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: f"{folder.parent.name}-{folder.name}")
def test_a_card_says_what_the_imported_session_says(machine: Machine, folder: Path):
    agent = _agent(folder.name)
    seen = 0
    for number, item in enumerate(sorted(folder.iterdir())):
        target = _lay(machine, agent, item)
        if not any(True for _ in format_of(agent).find(str(target))):
            continue
        with turnlog.open("memory:") as home:
            home.import_sessions(target, agent=agent)
            with Catalog(str(machine.folder / f"home{number}")) as catalog:
                cards = {(card.id, card.path, card.key): card for card in catalog.cards(everything=True)}
                whole = [card for card in cards.values() if not card.copy_of]
                assert len(whole) == len(home.sessions()), "those that are there twice are copies of one"
                total = catalog.usage(by="model")[-1].tokens
            spent = Usage()
            for info in home.sessions():
                with home.resume(info.id) as session:
                    origin = origin_of(history_of(session))
                    usage, cost, stats = session.usage(), session.cost(), session.stats()
                    branches, preview = len(session.branches()), session.preview()
                [card] = [c for c in whole if c.id == origin.id and c.path == origin.path]
                seen += 1
                spent = spent + usage.own
                assert card.own == _tokens(usage.own, cost.own.micros), card.name
                assert card.inherited == _tokens(usage.inherited, cost.inherited.micros), card.name
                assert card.subagents == _tokens(usage.subagents, cost.subagents.micros), card.name
                assert card.unpriced == tuple(model or "?" for model in cost.own.unpriced), card.name
                assert (card.messages, card.turns, card.tool_calls) == (stats.messages, stats.turns, stats.tool_calls)
                assert (card.title, card.preview, card.branches) == (info.title, preview, branches)
                assert card.hidden == info.hidden
            assert total[:6] == _tokens(spent, 0)[:6]
    assert seen


@pytest.mark.parametrize(
    "folder", sorted((TESTS / "formats" / "agents").glob("*/recorded*")), ids=lambda folder: folder.parent.name
)
def test_the_count_is_that_of_a_script_which_knows_nothing_of_us(machine: Machine, folder: Path):
    agent = folder.parent.name
    target = _lay(machine, agent, folder)
    counted = count.sessions(agent, folder)
    with machine.catalog() as catalog:
        cards = [card for card in catalog.cards(everything=True) if not card.copy_of]
        total = catalog.usage(by="agent")[-1].tokens
    found = {card.key or Path(card.path).relative_to(target).as_posix(): card for card in cards}
    assert found.keys() == {name for name, one in counted.items() if name in found or one["user"]}
    for name, card in found.items():
        own = card.own
        assert {
            "input_tokens": own.input_tokens,
            "cache_read_tokens": own.cache_read_tokens,
            "cache_write_tokens": own.cache_write_tokens + own.cache_write_1h_tokens,
            "output_tokens": own.output_tokens,
            "reasoning_tokens": own.reasoning_tokens,
        } == counted[name]["own_usage"], name
    assert total.output_tokens == sum(one["own_usage"]["output_tokens"] for one in counted.values())


@pytest.mark.parametrize("agent", sorted(SMALL))
def test_the_smaller_agents_are_counted_as_their_files_say(machine: Machine, agent: str):
    folder = TESTS / "formats" / "agents" / agent
    seen = 0
    for number, item in enumerate(sorted(folder.iterdir())):
        _lay(machine, agent, item)
        with Catalog(str(machine.folder / f"home{number}")) as catalog, warnings.catch_warnings():
            for card in catalog.cards(everything=True):
                told = SMALL[agent](card.path, card.key)
                spent = [a + b for a, b in zip(card.own[:6], card.inherited[:6], strict=True)]
                assert dict(zip(FIELDS, spent, strict=True)) == {name: told.get(name, 0) for name in FIELDS}, card.name
                assert card.tool_calls == told["tool_calls"], card.name
                seen += 1
    assert seen or not os.listdir(folder)


@pytest.mark.parametrize("recorded", ["recorded", "recorded-2.1.325"])
def test_what_claude_code_puts_in_a_models_place_is_no_request(machine: Machine, recorded: str):
    """Counted from the bytes: by message, each once, however many files repeat it."""
    shutil.copytree(TESTS / "formats/agents/claude-code" / recorded / "projects", machine.user / ".claude/projects")
    answers: dict[str, str] = {}
    for path in (machine.user / ".claude/projects").rglob("*.jsonl"):
        for line in filter(None, path.read_text().split("\n")):
            message = json.loads(line).get("message") or {}
            if "usage" in message:
                answers[message["id"]] = message["model"]
    assert "<synthetic>" in answers.values()
    with machine.catalog() as catalog:
        *_, total = catalog.usage(by="model")
        assert total.requests == sum(model != "<synthetic>" for model in answers.values())

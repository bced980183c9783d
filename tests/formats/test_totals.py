"""What we count in files of other agents is what a script counts that knows nothing of Turnlog."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import turnlog
from tests.formats.agents import count_main
from tests.public import AGENTS, public
from turnlog import Message, ToolCall, ToolResult, Usage
from turnlog.exchange.importing.run import import_all
from turnlog.formats import Source, format_of
from turnlog.formats import find as find_all
from turnlog.session.interior import interior

HERE = Path(__file__).parent
ONE_EACH = {
    "claude-code": count_main.claude_code, "codex": count_main.codex, "gemini-cli": count_main.gemini_cli,
    "pi": count_main.pi,
}  # fmt: skip


def _in_words(messages: int, calls: int, results: int, used: Usage) -> dict[str, Any]:
    tokens = {
        "input": used.input_tokens, "cache_read": used.cache_read_tokens,
        "cache_write": used.cache_write_tokens + used.cache_write_1h_tokens, "output": used.output_tokens,
    }  # fmt: skip
    return {"messages": messages, "tool_calls": calls, "tool_results": results, "usage": tokens}


def read_totals(source: Source) -> dict[str, Any]:
    """What a reading holds."""
    messages = calls = results = 0
    used = Usage()
    for step in format_of(source.agent).read(source).steps:
        entry = getattr(step, "entry", None)
        used = used + (getattr(entry, "usage", None) or Usage())
        if isinstance(entry, Message):
            messages += entry.role in ("user", "assistant")
            calls += sum(isinstance(block, ToolCall) for block in entry.blocks)
            results += sum(isinstance(block, ToolResult) for block in entry.blocks)
    return _in_words(messages, calls, results, used)


def files(agent: str) -> list[Path]:
    places = [*HERE.glob(f"agents/{agent}/recorded*"), *HERE.glob(f"agents/{agent}/composed"), *public(agent)]
    found = [path for place in places for path in sorted(place.rglob("*.json*"))]
    names = ("manifest", "expected", ".meta.", "projects.json", "session_index")
    return [path for path in found if not any(name in path.name for name in names)]


@pytest.mark.parametrize(
    ("agent", "path"),
    [(agent, path) for agent in ONE_EACH for path in files(agent)],
    ids=lambda value: value.name if isinstance(value, Path) else value,
)
def test_counts_are_those_of_the_script(agent: str, path: Path) -> None:
    [*found] = find_all(str(path), agents=[agent])
    assert found
    assert read_totals(found[0]) == ONE_EACH[agent](path)


@pytest.mark.parametrize(
    "path", [path for path in files("opencode") if "storage" not in path.as_posix()], ids=lambda path: path.name
)
def test_counts_of_opencode_are_those_of_the_script(path: Path) -> None:
    found = list(find_all(str(path), agents=["opencode"]))
    counted = count_main.opencode(path)
    assert {source.key or next(iter(counted)): read_totals(source) for source in found} == counted


if (FORK := AGENTS / "codex" / "codexbar-fork" / "live-fork-4d90-52bf").is_dir():

    def test_a_fork_and_its_parent_count_together_what_was_spent() -> None:
        """The one that holds a copy of the other, with new times on every record."""
        with turnlog.open("memory:") as home:
            done = list(import_all(interior(home).creator, list(find_all(str(FORK), agents=["codex"]))))
            usages = [home.resume(item.id).usage().own for item in done]
        total = sum(used.all_input_tokens + used.output_tokens for used in usages)
        child = count_main.codex(FORK / "child.jsonl")["usage"]
        assert total == sum(child.values())
        assert len(usages) == 2
        assert all(used.output_tokens for used in usages)

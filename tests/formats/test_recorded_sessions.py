"""What the real agents wrote is read as they themselves read it, and counted as it was counted apart from Turnlog."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import turnlog
from tests.agents import script
from tests.formats.agents.said import alike, held, recorded
from turnlog.exchange.exporting.transcript import transcript_of
from turnlog.log.block import ToolCall, ToolResult
from turnlog.log.entry import Compaction, Message, Start
from turnlog.log.usage import Usage

HERE = Path(__file__).parent / "agents"
AGENTS = ("claude-code", "codex", "gemini-cli", "opencode", "pi")
SESSIONS: dict[str, dict[str, Any]] = {
    path.parent.relative_to(HERE).as_posix(): json.loads(path.read_text())["sessions"]
    for path in sorted(HERE.glob("*/recorded*/expected.json"))
}
"""By agent and recording: that of the version that is pinned, and of newer ones beside it."""
FORKING = [name for name, sessions in SESSIONS.items() if any(one.get("scene") == "fork" for one in sessions.values())]
"""Gemini CLI cannot fork without a terminal."""
SUMMARIES = {"claude-code": (1, 0), "codex": (0, -1), "gemini-cli": (1, 0), "opencode": (1, 1), "pi": (1, 0)}
"""As what a compaction is counted there, which is one entry here: what a user says, what a model answers.

Codex writes a summary as an answer, too, right behind another one: these two are counted as one there.
"""


@pytest.fixture(scope="module", params=SESSIONS)
def brought(request: pytest.FixtureRequest) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """A recording, a home with all its sessions, and those as they were brought in, by the name of each."""
    folder = HERE / request.param
    agent = folder.parent.name
    with turnlog.open("memory:") as home:
        found = list(home.import_sessions(folder / "opencode.db" if agent == "opencode" else folder, agent=agent))
        names = [item.source.key or Path(item.source.path).relative_to(folder).as_posix() for item in found]
        yield request.param, home, dict(zip(names, found, strict=True))


def agent_of(recording: str) -> str:
    return recording.partition("/")[0]


def wanted(recording: str, brought: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What is expected of each session. The second and empty files of Gemini CLI are none."""
    return {name: one for name, one in SESSIONS[recording].items() if name in brought or one["user"]}


def test_every_session_is_read_without_a_problem(brought: tuple[str, Any, dict[str, Any]]) -> None:
    recording, _, found = brought
    assert found.keys() == wanted(recording, found).keys()
    assert {name: item.problems for name, item in found.items() if item.problems} == {}


def test_turns_are_the_prompts_that_were_given(brought: tuple[str, Any, dict[str, Any]]) -> None:
    recording, home, found = brought
    for name, expected in wanted(recording, found).items():
        if "served" in expected and expected.get("scene") not in ("work", "fork"):  # those share what they were asked
            assert home.read(found[name].id).stats().turns == expected["served"]["prompts"], (name, expected["scene"])


def test_messages_and_calls_are_as_they_were_counted(brought: tuple[str, Any, dict[str, Any]]) -> None:
    recording, home, found = brought
    agent = agent_of(recording)
    for name, expected in wanted(recording, found).items():
        user = assistant = calls = results = 0
        with home.resume(found[name].id) as session:
            for entry in session.entries():
                if isinstance(entry, Start) and entry.session_id == session.id and agent == "codex":
                    user = assistant = calls = results = 0  # its forks do not copy what they continue
                elif isinstance(entry, Compaction):
                    user, assistant = user + SUMMARIES[agent][0], assistant + SUMMARIES[agent][1]
                elif isinstance(entry, Message):
                    user += entry.role == "user"
                    assistant += entry.role == "assistant"
                    calls += sum(isinstance(block, ToolCall) for block in entry.blocks)
                    results += sum(isinstance(block, ToolResult) for block in entry.blocks)
        assert (user, assistant, calls, results) == (
            expected["user"] + expected["injected"],
            expected["assistant"],
            expected["tool_calls"],
            expected["tool_results"],
        ), name


def test_tokens_are_as_they_were_counted_and_nothing_counts_twice(brought: tuple[str, Any, dict[str, Any]]) -> None:
    recording, home, found = brought
    agent = agent_of(recording)
    for name, expected in wanted(recording, found).items():
        with home.resume(found[name].id) as session:
            usage = session.usage()
        assert tokens(usage.own) == expected["own_usage"], name
        if agent != "codex":
            assert tokens(usage.own + usage.inherited) == expected["usage"], name


def tokens(usage: Usage) -> dict[str, int]:
    written = usage.cache_write_tokens + usage.cache_write_1h_tokens
    found = {"input": usage.input_tokens, "cache_read": usage.cache_read_tokens, "cache_write": written}
    found |= {"output": usage.output_tokens, "reasoning": usage.reasoning_tokens}
    return {f"{name}_tokens": value for name, value in found.items()}


def test_the_conversation_is_what_the_agent_itself_read_from_the_file(brought: tuple[str, Any, dict[str, Any]]) -> None:
    recording, home, found = brought
    agent = agent_of(recording)
    compared = 0
    for name, expected in wanted(recording, found).items():
        if "last_request" not in expected:
            continue  # a subagent
        sent = recorded([*expected["last_request"], ["assistant", text(expected["last_answer"])]])
        with home.resume(found[name].id) as session:
            assert alike(agent, held(session)) == alike(agent, sent), name
        compared += 1
    assert compared >= 5


@pytest.mark.parametrize("brought", FORKING, indirect=True)
def test_a_fork_shares_what_it_was_forked_from(brought: tuple[str, Any, dict[str, Any]]) -> None:
    recording, home, found = brought
    scenes = {one.get("scene"): name for name, one in SESSIONS[recording].items()}
    with home.resume(found[scenes["fork"]].id) as fork:
        start = transcript_of(fork).start
        assert start.fork is not None
        assert start.fork.session == found[scenes["work"]].id
        assert fork.usage().inherited.output_tokens


def test_a_fork_of_a_session_with_branches_shares_all_of_them(tmp_path: Path) -> None:
    """Claude Code copies every record and says nowhere that it did; the parent lies beside it."""
    [name] = [name for name, one in SESSIONS["claude-code/recorded"].items() if one.get("scene") == "branched"]
    whole = (HERE / "claude-code/recorded" / name).read_text()
    old, new = Path(name).stem, "00000000-0000-4000-8000-000000000001"
    last = json.loads([line for line in whole.splitlines() if '"type":"assistant"' in line][-1])
    later = {"timestamp": "2030-01-01T00:00:00.000Z", "sessionId": new}
    begun = {"type": "queue-operation", "operation": "enqueue", **later}
    more = {**last, "uuid": new, "parentUuid": last["uuid"], **later, "message": {**last["message"], "id": "msg_new"}}
    records = [json.dumps(begun), *whole.replace(old, new).splitlines(), json.dumps(more)]
    (tmp_path / f"{old}.jsonl").write_text(whole)
    (tmp_path / f"{new}.jsonl").write_text("\n".join(records) + "\n")
    with turnlog.open("memory:") as home:
        found = {Path(item.source.path).stem: item for item in home.import_sessions(tmp_path, agent="claude-code")}
        with home.resume(found[new].id) as fork, home.resume(found[old].id) as parent:
            assert tokens(parent.usage().own) == SESSIONS["claude-code/recorded"][name]["own_usage"]
            assert fork.usage().own.output_tokens == last["message"]["usage"]["output_tokens"]
            assert alike("claude-code", held(fork))[:-1] == alike("claude-code", held(parent))


def test_nothing_is_new_the_second_time(brought: tuple[str, Any, dict[str, Any]]) -> None:
    recording, home, found = brought
    folder = HERE / recording
    again = home.import_sessions(folder, agent=folder.parent.name)
    assert [item.added for item in again] == [0] * (len(found) + len(list(folder.glob("ses_*.json"))))


@pytest.mark.parametrize("recording", [name for name in SESSIONS if agent_of(name) != "opencode"])
def test_a_session_that_is_read_while_it_is_written_is_the_same_in_the_end(recording: str, tmp_path: Path) -> None:
    agent = agent_of(recording)
    [(name, expected)] = [pair for pair in SESSIONS[recording].items() if pair[1].get("scene") == "work"]
    lines = (HERE / recording / name).read_bytes().splitlines(keepends=True)
    path = tmp_path / Path(name).name
    for until in range(3, len(lines)):
        with turnlog.open("memory:") as home:
            for data in (lines[:until], lines[: until + 3], lines):
                path.write_bytes(b"".join(data))
                found = list(home.import_sessions(path, agent=agent))
            with home.resume(found[0].id) as session:
                sent = recorded([*expected["last_request"], ["assistant", text(expected["last_answer"])]])
                assert alike(agent, held(session)) == alike(agent, sent), until
                assert tokens(session.usage().own) == expected["own_usage"], until


def text(said: str) -> dict[str, str]:
    return {"kind": "text", "text": said}


def test_what_is_compared_can_differ() -> None:
    one = [("user", [script.Text("a")]), ("assistant", [script.Text("b")])]
    for agent in AGENTS:
        assert alike(agent, one) != alike(agent, one[:1])
        assert alike(agent, one) != alike(agent, [one[0], ("user", [script.Text("b")])])

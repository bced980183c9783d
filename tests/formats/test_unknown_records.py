"""What a newer version of an agent writes besides is kept and counted, and nobody who reads a conversation sees it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import turnlog
from tests.formats.composing import bring, talk
from turnlog.formats import names, unknown_type
from turnlog.log.entry import Note
from turnlog.view.row import Row
from turnlog.view.rowmaker import Rows

HERE = Path(__file__).parent / "agents"
CLAUDE = "claude-code/recorded-2.1.325"
SAMPLES = {
    "claude-code": "claude-code/recorded/projects",
    "codex": "codex/recorded/sessions",
    "gemini-cli": "gemini-cli/recorded/tmp",
    "pi": "pi/recorded/sessions",
    "qwen-code": "qwen-code/orchard.jsonl",
    "copilot-cli": "copilot-cli/session-state",
    "kimi": "kimi/dot-kimi-code",
    "droid": "droid/-home-ada-orchard/3f6c0a1e-1111-4222-8333-000000000001.jsonl",
    "rho": "../seeds/rho/v1_late",
    "claw": "../seeds/claw/seed_12c364da/workspace/.claw/sessions/session-1775128999000-1.jsonl",
}
WITHOUT_TYPES = {
    "a3s": "one object, and files beside it",
    "aider": "Markdown",
    "cline": "a list of messages",
    "crush": "messages in a database",
    "cursor-cli": "messages in a database",
    "goose": "messages, in lines or in a database",
    "opencode": "tables, or an object for each message",
    "owlen": "one object",
    "sofos": "one object",
}
"""What these keep has no types: a role or a block that is not known is kept in its message."""


def copied(sample: str, folder: Path) -> Path:
    source, target = HERE / sample, folder / Path(sample).name
    if source.is_file():
        shutil.copy(source, target)
    else:
        shutil.copytree(source, target)
    return target


def news(number: int, id: str, **more: Any) -> bytes:
    """A record of tomorrow. Where records hang on each other, nothing hangs on it."""
    about = {"type": "from-tomorrow", "id": id, "number": number, "timestamp": "2026-11-16T00:00:00.000Z", **more}
    return json.dumps(about).encode() + b"\n"


def told(agent: str, path: Path, home: Any = None) -> tuple[list[Row], list[str], list[Any], list[str]]:
    """What people see, what a model sees, the problems, and the types that were unknown; of all sessions at a path."""
    rows: list[Row] = []
    said: list[str] = []
    kinds: list[str] = []
    brought = bring(agent, path, home)
    for session in {item.id: session for item, session in brought}.values():  # some are in several files
        rows += [row for entry in session.entries() for row in Rows().of(entry)]
        said += talk(session.context())
        kinds += [kind for entry in session.entries() if (kind := unknown_type(entry))]
    return rows, said, [problem for item, _ in brought for problem in item.problems], kinds


def test_no_format_is_left_out() -> None:
    assert {*SAMPLES, *WITHOUT_TYPES} == set(names())
    assert not SAMPLES.keys() & WITHOUT_TYPES


@pytest.mark.parametrize("agent", SAMPLES)
def test_records_of_tomorrow_are_kept_and_counted_and_not_shown(agent: str, tmp_path: Path) -> None:
    path = copied(SAMPLES[agent], tmp_path)
    before = told(agent, path)
    added = 0
    for file in sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]:
        lines = file.read_bytes().splitlines(keepends=True)
        last = json.loads(lines[-1]).get("id")
        more = {"parentId": last} if agent == "pi" else {}
        file.write_bytes(b"".join([*lines, news(1, f"new-{added}", **more)]))
        added += 1
    rows, said, problems, kinds = told(agent, path)
    assert 0 < kinds.count("from-tomorrow") == len(kinds) - len(before[3]) <= added
    assert said == before[1]
    assert [type(row) for row in rows] == [type(row) for row in before[0]]
    assert "from-tomorrow" not in str(rows)
    found = [problem for problem in problems if problem not in before[2]]
    assert found and all(problem.is_news and "from-tomorrow" in problem.what for problem in found)


def test_a_fork_is_one_whatever_records_there_are_besides(tmp_path: Path) -> None:
    """In both files, and at other places: otherwise all that it copied would count again."""
    path = copied(CLAUDE, tmp_path)
    sessions = json.loads((path / "expected.json").read_text())["sessions"]
    scenes = {one.get("scene"): name for name, one in sessions.items()}
    for number, scene in enumerate(("work", "fork")):
        file = path / scenes[scene]
        lines = file.read_bytes().splitlines(keepends=True)
        file.write_bytes(b"".join(news(number, "x") + news(n, "y") + line for n, line in enumerate(lines)))
    with turnlog.open("memory:") as home:
        found = {Path(item.source.path).name: session for item, session in bring("claude-code", path, home)}
        fork = found[Path(scenes["fork"]).name]
        assert fork.usage().own.output_tokens == sessions[scenes["fork"]]["own_usage"]["output_tokens"]
        assert fork.usage().inherited.output_tokens
        notes = [entry for entry in fork.entries() if isinstance(entry, Note)]
        lines = (path / scenes["fork"]).read_bytes().splitlines()
        for record in (json.loads(line) for line in lines if b"from-tomorrow" in line):
            assert any(note.data == record for note in notes)


def test_what_claude_code_says_it_spent_is_what_is_counted() -> None:
    """Its own total has the subagents in it, and the request for a summary, which no record tells."""
    summary = {"input_tokens": 41, "output_tokens": 42}
    sessions = json.loads((HERE / CLAUDE / "expected.json").read_text())["sessions"]
    compared = 0
    for item, session in bring("claude-code", HERE / CLAUDE):
        scene = sessions[Path(item.source.path).relative_to(HERE / CLAUDE).as_posix()].get("scene")
        if scene is None:
            continue  # a subagent
        [(model, reported)] = session.get("reported_usage").items()
        report = session.usage()
        counted = report.own + report.inherited + report.subagents
        more = summary if scene == "compacted" else {}
        assert model == "claude-sonnet-4-5"
        for name in ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"):
            assert reported.get(name, 0) == getattr(counted, name) + more.get(name, 0), (scene, name)
        if not more:
            cost = session.cost()
            ours = cost.own.micros + cost.inherited.micros + cost.subagents.micros
            assert abs(reported["cost_micros"] - ours) <= 1, scene
        compared += 1
    assert compared == 8

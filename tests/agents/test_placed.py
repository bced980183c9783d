"""The smallest session that each agent takes for its own, written by hand and laid where it looks for it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.agents.agent import Failed
from tests.agents.drive import AGENTS, Codex
from tests.agents.provider import Provider
from tests.agents.record import workspace
from tests.agents.resumed import resume_and_capture
from tests.agents.script import Call, Result, Text, flat

ID = "019b76da-a800-7000-8000-0123456789ab"
AT = "2026-01-01T00:00:0{}.000Z"
MS = 1_767_225_600_000
ASKED, ANSWERED, TOLD = "What is in there? ✓", "Three lines: größer 🎉\u2028.", "one\ntwo\nthree"


def lines(*records: dict[str, Any]) -> str:
    return "".join(json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n" for record in records)


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def claude_code(home: Path, project: Path) -> Path:
    def record(n: int, type: str, message: dict[str, Any]) -> dict[str, Any]:
        ids = {"uuid": f"00000000-0000-4000-8000-00000000000{n}", "sessionId": ID, "timestamp": AT.format(n)}
        parent = f"00000000-0000-4000-8000-00000000000{n - 1}" if n else None
        rest = {"isSidechain": False, "userType": "external", "cwd": str(project), "version": "2.1.197"}
        return {"parentUuid": parent, "type": type, "message": {"role": type, **message}, **ids, **rest}

    def answer(n: int, block: dict[str, Any], stop: str) -> dict[str, Any]:
        usage = {"input_tokens": 1, "output_tokens": 1}
        body = {"id": f"msg_{n}", "type": "message", "model": "claude-sonnet-4-5", "content": [block], "usage": usage}
        return record(n, "assistant", {**body, "stop_reason": stop, "stop_sequence": None})

    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": TOLD}
    call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "cat notes.txt"}}
    return put(
        home / ".claude/projects" / re.sub("[^a-zA-Z0-9]", "-", str(project)) / f"{ID}.jsonl",
        lines(
            record(0, "user", {"content": ASKED}),
            answer(1, call, "tool_use"),
            record(2, "user", {"content": [result]}),
            answer(3, {"type": "text", "text": ANSWERED}, "end_turn"),
        ),
    )


def codex(home: Path, project: Path, provider: str | None = "fake") -> Path:
    def item(type: str, payload: dict[str, Any]) -> dict[str, Any]:
        return {"timestamp": AT.format(1), "type": type, "payload": payload}

    def said(role: str, kind: str, text: str) -> dict[str, Any]:
        return item("response_item", {"type": "message", "role": role, "content": [{"type": kind, "text": text}]})

    meta = {"id": ID, "timestamp": AT.format(0), "cwd": str(project), "originator": "codex_cli_rs"}
    call = {"name": "exec_command", "arguments": '{"cmd":"cat notes.txt"}', "call_id": "toolu_1"}
    return put(
        home / f".codex/sessions/2026/01/01/rollout-2026-01-01T00-00-00-{ID}.jsonl",
        lines(
            item("session_meta", {**meta, "cli_version": "0.166.0", "source": "cli", "model_provider": provider}),
            item("event_msg", {"type": "user_message", "message": ASKED}),
            said("user", "input_text", ASKED),
            item("response_item", {"type": "function_call", **call}),
            item("response_item", {"type": "function_call_output", "call_id": "toolu_1", "output": TOLD}),
            said("assistant", "output_text", ANSWERED),
        ),
    )


def gemini_cli(home: Path, project: Path) -> Path:
    put(home / ".gemini/projects.json", json.dumps({"projects": {str(project): "project"}}))
    put(home / ".gemini/tmp/project/.project_root", str(project))
    answered = {"functionResponse": {"id": "toolu_1", "name": "run_shell_command", "response": {"output": TOLD}}}
    named = {"id": "toolu_1", "name": "run_shell_command", "args": {"command": "cat notes.txt"}}
    call = {**named, "result": [answered], "status": "success", "timestamp": AT.format(1)}
    head = {"sessionId": ID, "projectHash": hashlib.sha256(str(project).encode()).hexdigest()}

    def message(n: int, type: str, content: Any, **more: Any) -> dict[str, Any]:
        return {"id": f"m{n}", "timestamp": AT.format(n), "type": type, "content": content, **more}

    return put(
        home / f".gemini/tmp/project/chats/session-2026-01-01T00-00-{ID[:8]}.jsonl",
        lines(
            {**head, "startTime": AT.format(0), "lastUpdated": AT.format(3), "kind": "main"},
            message(1, "user", [{"text": ASKED}]),
            message(2, "gemini", "", toolCalls=[call], thoughts=[], model="gemini-2.5-pro"),
            message(3, "gemini", ANSWERED, thoughts=[], model="gemini-2.5-pro"),
        ),
    )


def opencode(home: Path, project: Path) -> Path:
    session = "ses_64a925800ffeAAAAAAAAAAAAAA"
    own = {"sessionID": session}
    tokens = {"input": 1, "output": 1, "reasoning": 0, "cache": {"read": 0, "write": 0}}
    place = {"path": {"cwd": str(project), "root": str(project)}, "mode": "build", "agent": "build"}

    def message(n: int, role: str, info: dict[str, Any], *parts: dict[str, Any]) -> dict[str, Any]:
        id = f"msg_9b56da80000{n}AAAAAAAAAAAAAA"
        ids = [{"id": f"prt_9b56da80{n}00{m}AAAAAAAAAAAAAA", **own, "messageID": id} for m in range(len(parts))]
        whole = {"info": {"id": id, **own, "role": role, "time": {"created": MS + n}, **info}}
        return {**whole, "parts": [{**one, **part} for one, part in zip(ids, parts, strict=True)]}

    def answer(n: int, finish: str, part: dict[str, Any]) -> dict[str, Any]:
        model = {"parentID": "msg_9b56da800000AAAAAAAAAAAAAA", "modelID": "m", "providerID": "fake"}
        done = {"time": {"created": MS + n, "completed": MS + n}, "cost": 0, "tokens": tokens, "finish": finish}
        return message(n, "assistant", {**model, **place, **done}, part)

    state = {"status": "completed", "input": {"command": "cat notes.txt"}, "output": TOLD, "title": "cat"}
    call = {"type": "tool", "callID": "toolu_1", "tool": "bash"}
    when = {"start": MS, "end": MS}
    info = {"id": session, "slug": "a-b", "projectID": "global", "directory": str(project), "title": "T"}
    user = {"agent": "build", "model": {"providerID": "fake", "modelID": "m"}}
    whole = {
        "info": {**info, "version": "1.18.33", "time": {"created": MS, "updated": MS}},
        "messages": [
            message(0, "user", user, {"type": "text", "text": ASKED}),
            answer(1, "tool-calls", {**call, "state": {**state, "metadata": {}, "time": when}}),
            answer(2, "stop", {"type": "text", "text": ANSWERED}),
        ],
    }
    return put(home / "session.json", json.dumps(whole, ensure_ascii=False))


def pi(home: Path, project: Path) -> Path:
    cost = dict.fromkeys(("input", "output", "cacheRead", "cacheWrite", "total"), 0)
    usage = {"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 2, "cost": cost}
    model = {"api": "openai-completions", "provider": "fake", "model": "m", "usage": usage}

    def entry(n: int, message: dict[str, Any]) -> dict[str, Any]:
        ids = {"id": f"0000000{n}", "parentId": f"0000000{n - 1}" if n else None, "timestamp": AT.format(n)}
        return {"type": "message", **ids, "message": {**message, "timestamp": MS + n}}

    def answer(n: int, block: dict[str, Any], stop: str) -> dict[str, Any]:
        return entry(n, {"role": "assistant", "content": [block], **model, "stopReason": stop})

    told = [{"type": "text", "text": TOLD}]
    call = {"type": "toolCall", "id": "toolu_1", "name": "bash", "arguments": {"command": "cat notes.txt"}}
    return put(
        home / "anywhere.jsonl",
        lines(
            {"type": "session", "version": 3, "id": ID, "timestamp": AT.format(0), "cwd": str(project)},
            entry(0, {"role": "user", "content": ASKED}),
            answer(1, call, "toolUse"),
            entry(
                2,
                {"role": "toolResult", "toolCallId": "toolu_1", "toolName": "bash", "content": told, "isError": False},
            ),
            answer(3, {"type": "text", "text": ANSWERED}, "stop"),
        ),
    )


@pytest.mark.parametrize("write", [claude_code, codex, gemini_cli, opencode, pi], ids=lambda write: write.__name__)
def test_a_session_written_by_hand_is_resumed(write: Callable[[Path, Path], Path], tmp_path: Path):
    agent = AGENTS[write.__name__.replace("_", "-")]
    project = tmp_path / "project"
    workspace(project)
    sent = flat(resume_and_capture(agent, tmp_path, write(tmp_path, project), project, "And now?"))
    [(_, call)] = [pair for pair in sent if isinstance(pair[1], Call)]
    assert isinstance(call, Call)
    assert call.id == "toolu_1"
    assert "cat notes.txt" in json.dumps(call.input)
    assert [(role, block) for role, block in sent if not isinstance(block, Result)] == [
        ("user", Text(ASKED)),
        ("assistant", call),
        ("assistant", Text(ANSWERED)),
        ("user", Text("And now?")),
    ]
    [result] = [block for role, block in sent if role == "tool" and isinstance(block, Result)]
    assert (result.call, result.text) == ("toolu_1", TOLD)


def test_codex_lists_and_shows_a_session_written_by_hand(tmp_path: Path):
    agent, project = Codex(), tmp_path / "project"
    workspace(project)
    path = codex(tmp_path, project)
    with Provider() as provider:
        listed = agent.ask(tmp_path, provider, project, "thread/list", {"limit": 10})
        shown = agent.ask(tmp_path, provider, project, "thread/read", {"threadId": ID, "includeTurns": True})
    assert [(thread["id"], thread["preview"], thread["path"]) for thread in listed["data"]] == [(ID, ASKED, str(path))]
    assert shown["thread"]["historyMode"] == "legacy"
    kinds = [item["type"] for turn in shown["thread"]["turns"] for item in turn["items"]]
    assert kinds == ["userMessage"]


@pytest.mark.parametrize("named", ["fake", None])
def test_codex_resumes_a_session_of_its_own_provider_or_of_none(named: str | None, tmp_path: Path):
    workspace(tmp_path / "project")
    path = codex(tmp_path, tmp_path / "project", provider=named)
    assert resume_and_capture(Codex(), tmp_path, path, tmp_path / "project", "And now?")


def test_codex_refuses_a_session_of_another_provider(tmp_path: Path):
    workspace(tmp_path / "project")
    path = codex(tmp_path, tmp_path / "project", provider="openai")
    with pytest.raises(Failed, match="modelProviderMismatch"):
        resume_and_capture(Codex(), tmp_path, path, tmp_path / "project", "And now?")

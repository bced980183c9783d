"""What is in the files that agents wrote, counted apart from Turnlog: this imports nothing of it.

    python -m tests.formats.agents.count AGENT FOLDER

For every session: `user` (what people asked), `injected` (what the agent or a command said in the user's place,
summaries included), `assistant` (answers: what one request brought), `tool_calls`, `tool_results`, and `usage` over all
answers, in fields that do not overlap; `own_usage` leaves out what a fork copied from another session.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

FIELDS = ("input", "cache_read", "cache_write", "output", "reasoning")
Counts = dict[str, Any]


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_bytes().split(b"\n"):
        if line.strip():
            yield json.loads(line)


def _counts(
    user: int, injected: int, assistant: int, calls: int, results: int, spent: list[tuple[bool, tuple[int, ...]]]
) -> Counts:
    def total(which: list[tuple[int, ...]]) -> dict[str, int]:
        return {f"{name}_tokens": sum(one[n] for one in which) for n, name in enumerate(FIELDS)}

    return {
        "user": user,
        "injected": injected,
        "assistant": assistant,
        "tool_calls": calls,
        "tool_results": results,
        "usage": total([tokens for _, tokens in spent]),
        "own_usage": total([tokens for own, tokens in spent if own]),
    }


def _claude_code(folder: Path) -> Iterator[tuple[str, Counts]]:
    for path in sorted(folder.rglob("*.jsonl")):
        user = injected = 0
        calls: set[str] = set()
        results: set[str] = set()
        answers: dict[str, tuple[bool, tuple[int, ...]]] = {}
        begun = ""
        for line in _lines(path):
            begun = begun or (line["timestamp"] if line["type"] in ("queue-operation", "user") else "")
            if line["type"] not in ("user", "assistant"):
                continue
            content = line["message"]["content"]
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            calls |= {block["id"] for block in blocks if block["type"] == "tool_use"}
            results |= {block["tool_use_id"] for block in blocks if block["type"] == "tool_result"}
            if line["type"] == "assistant":
                used = line["message"]["usage"]
                tokens = (
                    used["input_tokens"],
                    used.get("cache_read_input_tokens") or 0,
                    used.get("cache_creation_input_tokens") or 0,
                    used["output_tokens"],
                    0,
                )
                # Every record of an answer repeats its usage; the last one has it all.
                answers[line["message"]["id"]] = (line["timestamp"] >= begun, tokens)
            elif not any(block["type"] == "tool_result" for block in blocks):
                text = blocks[0].get("text", "")
                own = line.get("isMeta") or line.get("isCompactSummary")
                if own or text.startswith(("<command-", "<local-command-", "[Request interrupted")):
                    injected += 1
                else:
                    user += 1
        counts = _counts(user, injected, len(answers), len(calls), len(results), list(answers.values()))
        yield path.relative_to(folder).as_posix(), counts


def _codex(folder: Path) -> Iterator[tuple[str, Counts]]:
    spoken = ("message", "reasoning", "function_call", "custom_tool_call", "local_shell_call")
    for path in sorted(folder.rglob("rollout-*.jsonl")):
        user = said_by_user = answers = calls = results = 0
        answering = False
        seen: dict[str, int] | None = None
        spent: list[tuple[bool, tuple[int, ...]]] = []
        for line in _lines(path):
            payload = line["payload"]
            kind = payload.get("type", "")
            if line["type"] == "event_msg":
                item = payload.get("item") or {}
                user += kind == "user_message" or item.get("type") == "UserMessage"
                if kind == "token_count" and payload.get("info"):
                    total, last = payload["info"]["total_token_usage"], payload["info"]["last_token_usage"]
                    before = seen or {name: total[name] - last[name] for name in last}
                    rise = {name: total[name] - before[name] for name in last}
                    seen = total
                    cached, written = rise["cached_input_tokens"], rise.get("cache_write_input_tokens", 0)
                    fresh = rise["input_tokens"] - cached - written
                    tokens = (fresh, cached, written, rise["output_tokens"], rise["reasoning_output_tokens"])
                    spent.append((True, tokens))
            if line["type"] != "response_item":
                continue
            by_model = kind in spoken and payload.get("role", "assistant") == "assistant"
            answers += by_model and not answering
            answering = by_model
            said_by_user += kind == "message" and payload["role"] == "user"
            calls += kind.endswith("_call") and kind != "web_search_call"
            results += kind.endswith("_output")
        counts = _counts(user, said_by_user - user, answers, calls, results, spent)
        yield path.relative_to(folder).as_posix(), counts


def _gemini_cli(folder: Path) -> Iterator[tuple[str, Counts]]:
    for path in sorted(folder.rglob("chats/**/*.jsonl")):
        messages: dict[str, dict[str, Any]] = {}
        injected: set[str] = set()
        for line in _lines(path):
            if "id" in line and "type" in line:
                messages[line["id"]] = line
            for copy in line.get("$set", {}).get("messages") or []:
                # Snapshots repeat what was said, without its tokens; only what is new in them was injected.
                if copy["type"] == "user" and copy["id"] not in messages:
                    text = "".join(part.get("text", "") for part in copy["content"])
                    if text.startswith(("<session_context>", "<state_snapshot>")):
                        injected.add(copy["id"])
        said = [one for one in messages.values() if one["type"] == "user"]
        prompts = [one for one in said if not any("functionResponse" in part for part in one["content"])]
        answers = [one for one in messages.values() if one["type"] == "gemini"]
        calls = [call for one in answers for call in one.get("toolCalls") or []]
        spent: list[tuple[bool, tuple[int, ...]]] = []
        for one in answers:
            used = one.get("tokens") or dict.fromkeys(("input", "cached", "output", "thoughts"), 0)
            output = used["output"] + used["thoughts"]
            spent.append((True, (used["input"] - used["cached"], used["cached"], 0, output, used["thoughts"])))
        done = [call for call in calls if call.get("result")]
        counts = _counts(len(prompts), len(injected), len(answers), len(calls), len(done), spent)
        yield path.relative_to(folder).as_posix(), counts


def _opencode(folder: Path) -> Iterator[tuple[str, Counts]]:
    [path] = folder.rglob("opencode.db")
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        for session, created in database.execute("SELECT id, time_created FROM session ORDER BY id").fetchall():
            user = injected = assistant = calls = results = 0
            spent: list[tuple[bool, tuple[int, ...]]] = []
            query = "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id"
            for id, data in database.execute(query, [session]).fetchall():
                message = json.loads(data)
                rows = database.execute("SELECT data FROM part WHERE message_id = ? ORDER BY id", [id])
                parts = [json.loads(data) for (data,) in rows]
                if message["role"] == "user":
                    people = any(part["type"] == "text" and not part.get("synthetic") for part in parts)
                    user += people
                    injected += not people
                    continue
                assistant += 1
                used = message["tokens"]
                output = used["output"] + used["reasoning"]
                tokens = (used["input"], used["cache"]["read"], used["cache"]["write"], output, used["reasoning"])
                spent.append((message["time"]["created"] >= created, tokens))
                tools = [part for part in parts if part["type"] == "tool"]
                calls += len(tools)
                results += sum(part["state"]["status"] in ("completed", "error") for part in tools)
            yield session, _counts(user, injected, assistant, calls, results, spent)


def _pi(folder: Path) -> Iterator[tuple[str, Counts]]:
    for path in sorted(folder.rglob("*.jsonl")):
        header, *entries = _lines(path)
        messages = [entry for entry in entries if entry["type"] == "message"]
        roles = [entry["message"]["role"] for entry in messages]
        calls = 0
        spent: list[tuple[bool, tuple[int, ...]]] = []
        for entry in entries:
            message = entry.get("message", {})
            if message.get("role") == "assistant":
                calls += sum(block["type"] == "toolCall" for block in message["content"])
            used = message.get("usage") or entry.get("usage")  # also of tools, and of summaries
            if used:
                tokens = (used["input"], used["cacheRead"], used["cacheWrite"], used["output"], 0)
                spent.append((entry["timestamp"] >= header["timestamp"], tokens))
        injected = sum(entry["type"] in ("compaction", "branch_summary", "custom_message") for entry in entries)
        counts = _counts(
            roles.count("user"), injected, roles.count("assistant"), calls, roles.count("toolResult"), spent
        )
        yield path.relative_to(folder).as_posix(), counts


_AGENTS: dict[str, Callable[[Path], Iterator[tuple[str, Counts]]]] = {
    "claude-code": _claude_code,
    "codex": _codex,
    "gemini-cli": _gemini_cli,
    "opencode": _opencode,
    "pi": _pi,
}


def sessions(agent: str, folder: Path) -> dict[str, Counts]:
    """The counts of every session that an agent's folder holds, by its path in there; for opencode by its id."""
    return dict(_AGENTS[agent](folder))


if __name__ == "__main__":
    print(json.dumps(sessions(sys.argv[1], Path(sys.argv[2])), indent=1))

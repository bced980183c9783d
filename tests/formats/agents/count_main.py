"""What is in any file of the five agents, damaged ones too, counted apart from Turnlog: this imports nothing of it.

    python -m tests.formats.agents.count_main AGENT FILE

Gives `messages` (of people and models, on all branches, without subagents, summaries of compactions and empty
records), `tool_calls`, `tool_results` and `usage` in fields that do not overlap.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Counts = dict[str, Any]
_START = re.compile(r'\{\s*"')


def _records(path: Path) -> Iterator[dict[str, Any]]:
    """Every whole object; in a damaged line those that are whole and say what they are."""
    decoder = json.JSONDecoder()
    for line in path.read_bytes().decode("utf-8", "replace").split("\n"):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except ValueError:
            at = 0
            while (found := _START.search(line, at)) is not None:
                try:
                    value, at = decoder.raw_decode(line, found.start())
                except ValueError:
                    at = found.start() + 1
                    continue
                if isinstance(value, dict) and "type" in value and ("uuid" in value or "payload" in value):
                    yield value
            continue
        if isinstance(value, dict):
            yield value


def _blocks(content: Any) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content or [] if isinstance(block, dict)] if isinstance(content, list) else []


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _sum(parts: list[tuple[int, int, int, int]]) -> dict[str, int]:
    names = ("input", "cache_read", "cache_write", "output")
    return {name: sum(part[index] for part in parts) for index, name in enumerate(names)}


_CHAIN = ("user", "assistant", "system", "attachment", "progress")


def claude_code(path: Path) -> Counts:
    user = calls = results = 0
    answers: dict[str, tuple[int, int, int, int]] = {}
    seen: set[str] = set()
    for line in _records(path):
        uuid = line.get("uuid")
        if line.get("type") not in _CHAIN or not isinstance(uuid, str) or uuid in seen:
            continue
        if line.get("isSidechain") and not path.name.startswith("agent-"):
            continue
        seen.add(uuid)
        if line["type"] not in ("user", "assistant"):
            continue
        message = line.get("message")
        message = message if isinstance(message, dict) else {}
        blocks = _blocks(message.get("content"))
        if line["type"] == "assistant":
            calls += sum(str(block.get("type")).endswith("tool_use") for block in blocks)
            used = message.get("usage") or {}
            tokens = (
                _number(used.get("input_tokens")),
                _number(used.get("cache_read_input_tokens")),
                _number(used.get("cache_creation_input_tokens")),
                _number(used.get("output_tokens")),
            )
            id = str(message.get("id") or uuid)
            answers[id] = max(answers.get(id, (0, 0, 0, 0)), tokens, key=sum)
            continue
        mine = [block for block in blocks if block.get("type") == "tool_result"]
        results += len(mine)
        user += not line.get("isCompactSummary") and (not mine or len(mine) < len(blocks))
    return {
        "messages": user + len(answers),
        "tool_calls": calls,
        "tool_results": results,
        "usage": _sum(list(answers.values())),
    }


_SPOKEN = (
    "reasoning", "function_call", "custom_tool_call", "local_shell_call", "web_search_call", "tool_search_call",
    "image_generation_call", "compaction", "context_compaction",
)  # fmt: skip
_ENDS = (
    "task_started",
    "turn_started",
    "task_complete",
    "turn_complete",
    "turn_aborted",
    "thread_rolled_back",
    "token_count",
)


def _with_base(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a rollout, behind those of the one that it continues."""
    first = next(_records(path), {})
    payload = first.get("payload")
    base = payload.get("history_base") if isinstance(payload, dict) else None
    for other in path.parent.glob(f"*{base['thread_id']}*") if base else ():
        data = other.read_bytes()[: base["end_byte_offset"]].decode()
        yield from (json.loads(line) for line in data.split("\n") if line.strip())
    yield from _records(path)


def codex(path: Path, inherited: int = 0) -> Counts:
    """`inherited`: so many counts of tokens at its beginning are those of the session it was forked from."""
    user = answers = calls = results = 0
    is_open = False
    before: dict[str, int] = {}
    spent: list[tuple[int, int, int, int]] = []
    for line in _with_base(path):
        payload = line.get("payload")
        item = payload if isinstance(payload, dict) else line
        kind, outer = item.get("type"), line.get("type") if isinstance(payload, dict) else "response_item"
        if outer == "event_msg":
            is_open = is_open and kind not in _ENDS
            if kind == "turn.completed":
                used = item.get("usage") or {}
                spent.append(_codex_tokens(used))
            if kind == "token_count" and isinstance(item.get("info"), dict):
                total = item["info"].get("total_token_usage") or {}
                last = item["info"].get("last_token_usage") or {}
                if not total:
                    used = last or {
                        "input_tokens": item["info"].get("prompt"),
                        "output_tokens": item["info"].get("completion"),
                    }
                    spent.append(_codex_tokens(used))
                    continue
                names = {*total, *before} - {"total_tokens"}
                rise = {name: _number(total.get(name)) - _number(before.get(name)) for name in names}
                if any(value < 0 for value in rise.values()):
                    rise = last
                before = total
                if inherited > 0:
                    inherited -= 1
                else:
                    spent.append(_codex_tokens(rise))
            continue
        if outer == "compacted":
            is_open = False
            # What OpenAI sealed is an answer of its; others have to get what was said before it.
            answers += any(one.get("type") == "compaction" for one in item.get("replacement_history") or [])
        if outer != "response_item":
            continue
        if kind in _SPOKEN or (kind == "message" and item.get("role") == "assistant"):
            answers += not is_open
            is_open = True
            calls += str(kind).endswith("_call")
        elif kind == "message":
            is_open = False
            user += item.get("role") == "user"
        elif str(kind).endswith("_output"):
            is_open = False
            results += 1
    return {"messages": user + answers, "tool_calls": calls, "tool_results": results, "usage": _sum(spent)}


def _codex_tokens(used: dict[str, Any]) -> tuple[int, int, int, int]:
    cached, written = _number(used.get("cached_input_tokens")), _number(used.get("cache_write_input_tokens"))
    return (
        max(0, _number(used.get("input_tokens")) - cached - written),
        cached,
        written,
        _number(used.get("output_tokens")),
    )


def gemini_cli(path: Path) -> Counts:
    messages: dict[str, dict[str, Any]] = {}
    if path.suffix == ".json":
        whole = json.loads(path.read_text(errors="replace"))
        listed = whole.get("messages") or [
            {"type": "user" if one.get("role") == "user" else "gemini", "content": one.get("parts")}
            for one in whole.get("history") or []
        ]
        messages = {str(one.get("id") or index): one for index, one in enumerate(listed)}
    else:
        for number, line in enumerate(_records(path)):
            if "type" in line:
                messages[str(line.get("id") or number)] = line
            elif not messages:
                for one in (line.get("$set") or {}).get("messages") or []:
                    messages[str(one.get("id"))] = one
    user = calls = results = answers = 0
    spent: list[tuple[int, int, int, int]] = []
    answered: set[str] = set()
    for one in messages.values():
        parts = one.get("content")
        parts = parts if isinstance(parts, list) else [{"text": parts}]
        replies = [part["functionResponse"] for part in parts if isinstance(part, dict) and "functionResponse" in part]
        if one.get("type") == "user":
            fresh = [reply for reply in replies if str(reply.get("id")) not in answered]
            results += len(fresh)
            user += len(replies) < len(parts)
        elif one.get("type") in ("gemini", "model"):
            answers += 1
            asked = one.get("toolCalls") or []
            inside = sum(isinstance(part, dict) and "functionCall" in part for part in parts)
            calls += inside or len(asked)
            done = [
                call for call in asked if call.get("result") or call.get("status") in ("success", "error", "cancelled")
            ]
            results += len(done)
            answered |= {str(call.get("id")) for call in done}
            used = one.get("tokens") or {}
            cached = _number(used.get("cached"))
            given = max(0, _number(used.get("input")) - cached) + _number(used.get("tool"))
            spent.append((given, cached, 0, _number(used.get("output")) + _number(used.get("thoughts"))))
    return {"messages": user + answers, "tool_calls": calls, "tool_results": results, "usage": _sum(spent)}


def pi(path: Path) -> Counts:
    user = answers = calls = results = 0
    spent: list[tuple[int, int, int, int]] = []
    for line in _records(path):
        message = line.get("message") if line.get("type") == "message" else None
        if isinstance(message, dict) and message.get("role") == "assistant":
            answers += 1
            calls += sum(block.get("type") == "toolCall" for block in _blocks(message.get("content")))
            spent.append(_pi_tokens(message.get("usage") or {}))
        elif isinstance(message, dict):
            user += message.get("role") == "user"
            results += message.get("role") == "toolResult"
        elif isinstance(line.get("usage"), dict):
            spent.append(_pi_tokens(line["usage"]))
    return {"messages": user + answers, "tool_calls": calls, "tool_results": results, "usage": _sum(spent)}


def _pi_tokens(used: dict[str, Any]) -> tuple[int, int, int, int]:
    given, read, written, out = (_number(used.get(name)) for name in ("input", "cacheRead", "cacheWrite", "output"))
    return given, read, written, out


def opencode(path: Path) -> dict[str, Counts]:
    """Of an export, a list of messages, or a capture of events: by session."""
    if path.suffix == ".jsonl":
        value: Any = list(_records(path)) or [
            json.loads(line) for line in path.read_text().splitlines() if line.strip()
        ]
    else:
        value = json.loads(path.read_text(errors="replace"))
    listed = value.get("messages") or [] if isinstance(value, dict) else value
    told: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
    for item in listed:
        if "info" in item:
            told[item["info"]["id"]] = (item["info"], {part.get("id"): part for part in item.get("parts") or []})
            continue
        event = item.get("event") or item
        about = event.get("properties") or {}
        if event.get("type") == "message.updated":
            told.setdefault(about["info"]["id"], ({}, {}))[0].update(about["info"])
        elif event.get("type") == "message.part.updated":
            part = about["part"]
            told.setdefault(part["messageID"], ({}, {}))[1][part["id"]] = part
    found: dict[str, Counts] = {}
    spent: dict[str, list[tuple[int, int, int, int]]] = {}
    for info, parts in told.values():
        session = info.get("sessionID")
        if not session:
            continue
        counts = found.setdefault(session, {"messages": 0, "tool_calls": 0, "tool_results": 0})
        counts["messages"] += info.get("summary") is not True and not any(
            p.get("type") == "compaction" for p in parts.values()
        )
        tools = [part for part in parts.values() if part.get("type") == "tool"]
        counts["tool_calls"] += len(tools)
        counts["tool_results"] += sum(
            (part.get("state") or {}).get("status") in ("completed", "error") for part in tools
        )
        used = info.get("tokens") or {}
        cache = used.get("cache") or {}
        out = _number(used.get("output")) + _number(used.get("reasoning"))
        tokens = (_number(used.get("input")), _number(cache.get("read")), _number(cache.get("write")), out)
        spent.setdefault(session, []).append(tokens)
    return {session: {**counts, "usage": _sum(spent[session])} for session, counts in found.items()}


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1].replace("-", "_")](Path(sys.argv[2])), indent=1))

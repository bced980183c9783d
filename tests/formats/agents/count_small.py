"""What is in the files of the smaller agents, counted from their bytes alone: nothing of turnlog is used here.

Each counter takes the file that a session is read from, and the call of a subagent where several lie in one file. It
gives the messages of people and models, the calls, the results, and what was spent: over all branches, without
subagents, and without what stands in a summary's place.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

FIELDS = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens", "cost_micros")
Tally = dict[str, int]


def fresh() -> Tally:
    return dict.fromkeys(("messages", "tool_calls", "tool_results", *FIELDS), 0)


def spend(tally: Tally, uncached: int, read: int, written: int, out: int, thought: int = 0, cost: float = 0) -> None:
    for name, value in zip(FIELDS, (uncached, read, written, out, thought, round(cost * 1_000_000)), strict=True):
        tally[name] += value


def lines_of(path: str, marks: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """The records of a file; from a damaged line those that are whole."""
    with open(path, "rb") as file:
        for line in file.read().split(b"\n"):
            text = line.decode("utf-8", "replace")
            try:
                value = json.loads(text)
            except ValueError:
                yield from pieces(text, marks)
            else:
                if isinstance(value, dict):
                    yield value


def pieces(text: str, marks: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    at, read = 0, json.JSONDecoder().raw_decode
    while (at := text.find("{", at)) >= 0:
        try:
            value, end = read(text, at)
        except ValueError:
            at += 1
            continue
        if isinstance(value, dict) and any(mark in value for mark in marks):
            yield value
            at = end
        else:
            at += 1


def qwen_code(path: str, key: str = "") -> Tally:
    tally = fresh()
    whole: dict[str, dict[str, Any]] = {}
    seen: set[str] = set()
    for record in lines_of(path, ("type",)):
        line = json.dumps(record, sort_keys=True)
        if line in seen or record.get("type") not in ("user", "assistant", "tool_result"):
            continue
        seen.add(line)
        parts = record["message"]["parts"]
        tally["tool_calls"] += sum("functionCall" in part for part in parts)
        tally["tool_results"] += sum("functionResponse" in part for part in parts)
        known = whole.get(record["uuid"])
        if known is not None and known["type"] == record["type"] == "assistant":
            known.update(record)  # a piece of the same answer; what it cost is told last
            continue
        if record["type"] == "assistant" or any("functionResponse" not in part for part in parts):
            tally["messages"] += 1
        if record["type"] == "assistant":
            whole[record["uuid"]] = dict(record)
    for record in whole.values():
        used = record.get("usageMetadata") or {}
        cached, thought = used.get("cachedContentTokenCount") or 0, used.get("thoughtsTokenCount") or 0
        out = (used.get("candidatesTokenCount") or 0) + thought
        spend(tally, (used.get("promptTokenCount") or 0) - cached, cached, 0, out, thought)
    return tally


def copilot_cli(path: str, key: str = "") -> Tally:
    tally, booked = fresh(), dict.fromkeys(FIELDS, 0)
    prompted = False

    def used(raw: dict[str, Any], ours: bool) -> None:
        read, written = raw.get("cacheReadTokens") or 0, raw.get("cacheWriteTokens") or 0
        numbers = ((raw.get("inputTokens") or 0) - read - written, read, written, raw.get("outputTokens") or 0)
        spend(booked, *numbers, raw.get("reasoningTokens") or 0)
        if ours:
            spend(tally, *numbers, raw.get("reasoningTokens") or 0)

    seen: set[str] = set()
    for record in lines_of(path, ("type",)):
        line = json.dumps(record, sort_keys=True)
        if line in seen:
            continue
        seen.add(line)
        kind, data = record.get("type"), record.get("data") or {}
        ours = (data.get("parentToolCallId") or "") == key
        calls = data.get("toolRequests") or []
        if not ours and key and not prompted and any(call["toolCallId"] == key for call in calls):
            tally["messages"] += 1
            prompted = True
        if kind in ("user.message", "assistant.message") and ours:
            tally["messages"] += 1
            tally["tool_calls"] += len(calls)
        elif kind == "tool.execution_complete" and ours:
            tally["tool_results"] += 1
        elif kind == "assistant.usage":
            used(data, ours)
        elif kind == "session.compaction_complete" and data.get("compactionTokensUsed"):
            raw = data["compactionTokensUsed"]
            names = {"input": "inputTokens", "cachedInput": "cacheReadTokens", "output": "outputTokens"}
            used({names.get(name, name): value for name, value in raw.items()}, ours)
        elif kind == "session.shutdown" and not key:
            total = fresh()
            for metrics in data["modelMetrics"].values():
                raw = metrics["usage"]
                read, written = raw.get("cacheReadTokens") or 0, raw.get("cacheWriteTokens") or 0
                uncached = raw["inputTokens"] - read - written
                spend(total, uncached, read, written, raw["outputTokens"], raw.get("reasoningTokens") or 0)
            for name in FIELDS:  # running totals: what is more than was told by itself
                tally[name] += max(0, total[name] - booked[name])
                booked[name] = max(total[name], booked[name])
    return tally


# ── kimi ──────────────────────────────────────────────────────────────────────────────────────────


def kimi(path: str, key: str = "") -> Tally:
    with open(path, "rb") as file:
        head = file.read(4096)
    if os.path.basename(path) == "wire.jsonl" and b'"timestamp"' in head:
        return _kimi_wire(path)
    return _kimi_code(path) if b'"protocol_version"' in head else _kimi_cli(path)


def _kimi_tokens(tally: Tally, raw: dict[str, Any]) -> None:
    def get(*names: str) -> int:
        return next((raw[name] for name in names if name in raw), 0)

    numbers = (get("input_other", "inputOther"), get("input_cache_read", "inputCacheRead"))
    spend(tally, *numbers, get("input_cache_creation", "inputCacheCreation"), get("output"))


def _kimi_code(path: str) -> Tally:
    tally = fresh()
    ended: list[dict[str, Any]] = []
    spent: list[dict[str, Any]] = []
    is_empty = True
    for record in lines_of(path, ("type",)):
        message, event = record.get("message") or {}, record.get("event") or {}
        if record.get("type") == "context.append_message":
            tally["messages"] += message["role"] in ("user", "assistant")
            tally["tool_calls"] += len(message.get("toolCalls") or []) if message["role"] == "assistant" else 0
            tally["tool_results"] += message["role"] == "tool"
        elif event.get("type") == "step.begin":
            is_empty = True
        elif event.get("type") in ("content.part", "tool.call"):
            tally["messages"] += is_empty
            is_empty = False
            tally["tool_calls"] += event["type"] == "tool.call"
        elif event.get("type") == "tool.result":
            tally["tool_results"] += 1
        elif event.get("type") == "step.end" and event.get("usage"):
            ended.append(event["usage"])
        elif record.get("type") == "usage.record" and record.get("usage"):
            spent.append(record["usage"])
    for usage in spent:
        if usage in ended:
            ended.remove(usage)  # told twice
    for usage in [*spent, *ended]:
        _kimi_tokens(tally, usage)
    return tally


def _kimi_spent(tally: Tally, wire: str) -> None:
    if not os.path.exists(wire):
        return
    seen: set[str] = set()
    for record in lines_of(wire, ("message", "type")):
        event = record.get("message") or {}
        about = event.get("payload") or {}
        if event.get("type") == "SubagentEvent":
            if os.path.isdir(os.path.join(os.path.dirname(wire), "subagents", about.get("agent_id") or "?")):
                continue  # it counts for itself
            event = about["event"]
            about = event.get("payload") or {}
        if event.get("type") == "StatusUpdate" and about.get("token_usage"):
            line = json.dumps([about.get("message_id"), about["token_usage"]])
            if about.get("message_id") and line in seen:
                continue
            seen.add(line)
            _kimi_tokens(tally, about["token_usage"])


def _kimi_wire(path: str) -> Tally:
    tally, is_empty = fresh(), True
    for record in lines_of(path, ("message", "type")):
        kind = (record.get("message") or {}).get("type")
        tally["messages"] += kind == "TurnBegin"
        if kind in ("TurnBegin", "StepBegin", "TurnEnd"):
            is_empty = True
        elif kind in ("ContentPart", "ToolCall"):
            tally["messages"] += is_empty
            is_empty = False
        tally["tool_calls"] += kind == "ToolCall"
        tally["tool_results"] += kind == "ToolResult"
    _kimi_spent(tally, path)
    return tally


def _kimi_cli(path: str) -> Tally:
    tally = fresh()
    folder, name = os.path.split(path)
    older = [found for found in os.listdir(folder) if re.fullmatch(r"context_\d+\.jsonl", found)]
    states = sorted(older, key=lambda found: int(re.sub(r"\D", "", found))) if name == "context.jsonl" else []
    before: list[str] = []
    for state in [*states, name]:
        said = [record for record in lines_of(os.path.join(folder, state), ("role",)) if record["role"][0] != "_"]
        now = [json.dumps(record, sort_keys=True) for record in said]
        new = said
        if before:
            same = next(
                (i for i, (a, b) in enumerate(zip(before, now, strict=False)) if a != b), min(len(before), len(now))
            )
            new = said[same:]
            if not same:
                new = said[_behind(before, now) :]
        for record in new:
            tally["messages"] += record["role"] in ("user", "assistant")
            tally["tool_calls"] += len(record.get("tool_calls") or [])
            tally["tool_results"] += record["role"] == "tool"
        before = now
    if name == "context.jsonl":
        _kimi_spent(tally, os.path.join(folder, "wire.jsonl"))
    return tally


def _behind(before: list[str], now: list[str]) -> int:
    """Where the new messages begin in a context that begins with a summary and goes on with the end of the old one."""
    for length in range(len(before), 0, -1):
        for start in range(len(now) - length + 1):
            if now[start : start + length] == before[-length:]:
                return start + length
    return 1 if now and "Previous context has been compacted" in now[0] else 0


# ── goose and cline ───────────────────────────────────────────────────────────────────────────────

_ASIDE = {"systemNotification", "toolConfirmationRequest", "actionRequired"}


def crush(path: str, key: str = "") -> Tally:
    """What was spent is a cost alone, and a subagent's is in that of its parent."""
    tally = fresh()
    base = sqlite3.connect(path)
    for role, parts, is_summary in base.execute(
        "select role, parts, is_summary_message from messages where session_id = ?", (key,)
    ):
        kinds = [part["type"] for part in json.loads(parts)]
        tally["messages"] += role in ("user", "assistant") and not is_summary
        tally["tool_calls"] += kinds.count("tool_call")
        tally["tool_results"] += kinds.count("tool_result")
    [(cost, parent)] = base.execute("select cost, parent_session_id from sessions where id = ?", (key,))
    base.close()
    spend(tally, 0, 0, 0, 0, 0, 0 if parent else cost)
    return tally


def cursor_cli(path: str, key: str = "") -> Tally:
    """Nothing says what was spent. The root is the blob that names the most of the others."""
    tally = fresh()
    if path.endswith(".jsonl"):
        said = [
            record | {"content": record["message"]["content"]}
            for record in lines_of(path, ("role",))
            if "role" in record
        ]
    else:
        base = sqlite3.connect(path)
        blobs = {bytes.fromhex(id): data for id, data in base.execute("select id, data from blobs")}
        base.close()
        root = max((data for data in blobs.values() if data[:1] != b"{"), key=len)
        named = [root[at + 2 : at + 34] for at in range(0, len(root) - 33, 34)]
        said = [json.loads(blobs[name]) for name in named]
    for message in said:
        if message.get("providerOptions"):
            continue
        content = message["content"] if isinstance(message["content"], list) else []
        kinds = [part["type"] for part in content]
        tally["messages"] += message["role"] in ("user", "assistant")
        tally["tool_calls"] += kinds.count("tool-call") + kinds.count("tool_use") + len(message.get("tool_calls", ()))
        tally["tool_results"] += kinds.count("tool-result") + ("tool_call_id" in message)
    return tally


def goose(path: str, key: str = "") -> Tally:
    tally = fresh()
    if path.endswith(".db"):
        base = sqlite3.connect(path)
        base.row_factory = sqlite3.Row
        info = dict(base.execute("select * from sessions where id = ?", (key,)).fetchone())
        found = base.execute("select * from messages where session_id = ? order by id", (key,)).fetchall()
        listed = [(json.loads(row["content_json"]), json.loads(row["metadata_json"] or "{}") or {}) for row in found]
        base.close()
    elif path.endswith(".jsonl"):
        records = list(lines_of(path, ("role", "working_dir")))
        info = records[0]
        listed = [(record["content"], record.get("metadata") or {}) for record in records[1:]]
    else:
        with open(path) as file:
            info = json.load(file)
        listed = [(record["content"], record.get("metadata") or {}) for record in info["conversation"]]
    was_hidden = False
    for content, about in listed:
        kinds = [part["type"] for part in content]
        if was_hidden and about.get("userVisible") is False:
            continue  # a summary
        was_hidden = was_hidden or about.get("agentVisible") is False
        if kinds and set(kinds) <= _ASIDE:
            continue
        tally["tool_calls"] += sum(kind in ("toolRequest", "frontendToolRequest") for kind in kinds)
        tally["tool_results"] += kinds.count("toolResponse")
        tally["messages"] += not kinds or any(kind != "toolResponse" for kind in kinds)
    read, written = info.get("accumulated_cache_read_tokens") or 0, info.get("accumulated_cache_write_tokens") or 0
    uncached = (info.get("accumulated_input_tokens") or 0) - read - written
    out, cost = info.get("accumulated_output_tokens") or 0, info.get("accumulated_cost") or 0
    spend(tally, max(0, uncached), read, written, out, 0, cost)
    return tally


def cline(path: str, key: str = "") -> Tally:
    tally = fresh()
    with open(path) as file:
        value = json.load(file)
    is_task = isinstance(value, list)
    for message in value if is_task else value["messages"]:
        content = message["content"]
        parts = [{"type": "text"}] if isinstance(content, str) else content
        kinds = [part["type"] for part in parts]
        tally["tool_calls"] += kinds.count("tool_use")
        tally["tool_results"] += kinds.count("tool_result")
        tally["messages"] += not kinds or any(kind != "tool_result" for kind in kinds)
        used = message.get("metrics") or {}
        if used and not is_task:
            read, written = used.get("cacheReadTokens") or 0, used.get("cacheWriteTokens") or 0
            uncached = used["inputTokens"] - read - written
            spend(tally, uncached, read, written, used["outputTokens"], 0, used.get("cost") or 0)
    if is_task:
        with open(os.path.join(os.path.dirname(path), "ui_messages.json")) as file:
            for shown in json.load(file):
                if shown.get("say") in ("api_req_started", "deleted_api_reqs"):
                    told = json.loads(shown["text"])
                    numbers = [told.get(name) or 0 for name in ("tokensIn", "cacheReads", "cacheWrites", "tokensOut")]
                    spend(tally, *numbers, 0, told.get("cost") or 0)
    return tally


def droid(path: str, key: str = "") -> Tally:
    """What was spent stands beside the file, for the session alone: a fork begins with nothing."""
    tally = fresh()
    seen: set[str] = set()
    for record in lines_of(path, ("type",)):
        if record["type"] != "message" or record["id"] in seen or record["message"].get("visibility") == "user_only":
            continue
        seen.add(record["id"])
        content = record["message"]["content"]
        kinds = [part["type"] for part in content] if isinstance(content, list) else ["text"]
        tally["messages"] += any(kind != "tool_result" for kind in kinds)
        tally["tool_calls"] += kinds.count("tool_use")
        tally["tool_results"] += kinds.count("tool_result")
    settings = path.removesuffix(".jsonl") + ".settings.json"
    if os.path.exists(settings):
        with open(settings, encoding="utf-8") as file:
            used = json.load(file).get("tokenUsage") or {}
        names = ("inputTokens", "cacheReadTokens", "cacheCreationTokens", "outputTokens", "thinkingTokens")
        spend(tally, *(used.get(name, 0) for name in names))
    return tally


COUNTERS: dict[str, Callable[[str, str], Tally]] = {
    "qwen-code": qwen_code, "copilot-cli": copilot_cli, "kimi": kimi, "goose": goose, "cline": cline,
    "droid": droid,
    "crush": crush,
    "cursor-cli": cursor_cli,
}  # fmt: skip

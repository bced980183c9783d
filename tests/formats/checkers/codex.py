"""Codex: what the loader, the replay and the picker need of a rollout."""

from __future__ import annotations

import json
import re
from pathlib import PurePosixPath
from typing import Any

from tests.formats.checkers import STAMP, UUID, Faults, records

_KINDS = ("session_meta", "response_item", "event_msg", "compacted", "turn_context")
_NAME = re.compile(r"rollout-(\d{4})-(\d\d)-(\d\d)T\d\d-\d\d-\d\d-(" + UUID.pattern + r")\.jsonl")
_PREVIEW_LINES = 210
_COUNTS = (
    "input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens", "total_tokens",
)  # fmt: skip


def faults(path: str, data: bytes) -> list[str]:
    found = Faults()
    place = PurePosixPath(path)
    name = _NAME.fullmatch(place.name)
    if not found.need(name, f"the name {place.name}"):
        return found
    found.need(
        place.parts[-4:-1] in ((), name.groups()[:3]), f"the folder {place.parent} is not the day of {place.name}"
    )
    lines = records(data, found)
    first = lines[0] if lines else {}
    found.need(first.get("type") == "session_meta", "the first record is no session_meta")
    _meta(first.get("payload") or {}, name[4], found)
    said = [
        number
        for number, line in enumerate(lines)
        if line.get("type") == "event_msg" and line["payload"].get("type") == "user_message"
    ]
    people = any(_role(line) == "user" for line in lines)
    found.need(
        not people or (said and said[0] < _PREVIEW_LINES), f"no user_message in the first {_PREVIEW_LINES} lines"
    )
    replay = _Replay(found)
    for number, line in enumerate(lines):
        where = f"line {number}"
        found.need(line.keys() == {"timestamp", "type", "payload"}, f"{where}: the keys {list(line)}")
        found.need(STAMP.fullmatch(str(line.get("timestamp"))), f"{where}: timestamp {line.get('timestamp')}")
        found.need(line.get("type") in _KINDS, f"{where}: the type {line.get('type')}")
        found.need(number == 0 or line.get("type") != "session_meta", f"{where}: a second session_meta")
        payload = line.get("payload")
        if found.need(isinstance(payload, dict), f"{where}: no payload"):
            replay.take(str(line.get("type")), payload, where)
    replay.end()
    return found


def _role(line: dict[str, Any]) -> Any:
    payload = line.get("payload") or {}
    return payload.get("role") if line.get("type") == "response_item" and payload.get("type") == "message" else None


def _meta(meta: dict[str, Any], id: str, found: Faults) -> None:
    found.need(meta.get("id") == id, "the id of session_meta is not that of the name")
    found.need(STAMP.fullmatch(str(meta.get("timestamp"))), "timestamp of session_meta")
    for key in ("cwd", "originator", "cli_version"):
        found.need(isinstance(meta.get(key), str) and meta[key], f"session_meta: {key}")
    found.need(meta.get("source") in ("cli", "vscode", "exec", "mcp"), f"session_meta: source {meta.get('source')}")
    provider = meta.get("model_provider")  # the one that is set up there, where none is named
    found.need(provider is None or (isinstance(provider, str) and provider), "session_meta: model_provider")
    found.need(meta.get("history_mode") == "legacy", "session_meta: history_mode")
    base = meta.get("base_instructions")
    found.need(base is None or isinstance(base.get("text"), str), "session_meta: base_instructions")


class _Replay:
    """What the program makes of the records, one by one."""

    def __init__(self, found: Faults) -> None:
        self.found = found
        self.turn: str | None = None
        self.turns: set[str] = set()
        self.open_calls: dict[str, str] = {}
        self.announced: list[str] = []
        """What events announced, and response items have not said yet."""
        self.total = dict.fromkeys(_COUNTS, 0)

    def take(self, kind: str, payload: dict[str, Any], where: str) -> None:
        if kind == "response_item":
            self.item(payload, where, self.open_calls)
        elif kind == "event_msg":
            self.event(payload, where)
        elif kind == "turn_context":
            self.need(isinstance(payload.get("cwd"), str) and isinstance(payload.get("model"), str), where, "context")
            policy = payload.get("sandbox_policy") or {}
            self.need(policy.get("type") in ("read-only", "workspace-write", "danger-full-access"), where, "sandbox")
            asks = ("on-request", "untrusted", "on-failure", "never")
            self.need(payload.get("approval_policy") in asks, where, "approval_policy")
        elif kind == "compacted":
            self.need(isinstance(payload.get("message"), str), where, "compacted without a message")
            history = payload.get("replacement_history")
            if self.need(isinstance(history, list), where, "compacted without replacement_history"):
                calls: dict[str, str] = {}
                for item in history:
                    self.item(item, where, calls)
                self.need(not calls, where, f"calls without a result in replacement_history: {list(calls)}")
            self.need(not self.open_calls, where, f"calls without a result: {list(self.open_calls)}")

    def need(self, fine: object, where: str, what: str) -> bool:
        return self.found.need(fine, f"{where}: {what}")

    def item(self, item: dict[str, Any], where: str, calls: dict[str, str]) -> None:
        kind = item.get("type")
        if calls is self.open_calls and self.announced:
            said = "".join(part.get("text") or "" for part in item.get("content") or [])
            told = self.announced.pop().split("\n\n")
            self.need(kind == "message" and all(piece in said for piece in told), where, "not what the event announced")
        if kind == "message":
            role = item.get("role")
            self.need(role in ("user", "assistant", "developer"), where, f"role {role}")
            self.need(not calls, where, f"calls without a result: {list(calls)}") if role != "assistant" else None
            self.need(isinstance(item.get("content"), list) and item["content"], where, "no content")
            for part in item.get("content") or []:
                wanted = ("output_text",) if role == "assistant" else ("input_text", "input_image")
                self.need(part.get("type") in wanted, where, f"a {part.get('type')} of the {role}")
                self.part(part, where)
        elif kind in ("function_call", "custom_tool_call"):
            id = item.get("call_id")
            self.need(isinstance(id, str) and 0 < len(id) <= 64, where, f"call_id {id!r}")
            self.need(isinstance(item.get("name"), str) and item["name"], where, "a call without a name")
            if kind == "function_call":
                try:
                    json.loads(item["arguments"])
                except (KeyError, TypeError, ValueError):
                    self.need(False, where, "arguments are not JSON in a string")
            else:
                self.need(isinstance(item.get("input"), str), where, "input is no text")
            calls[str(id)] = str(kind)
        elif kind in ("function_call_output", "custom_tool_call_output"):
            called = calls.pop(str(item.get("call_id")), None)
            self.need(called, where, f"an output for {item.get('call_id')}, which was not called")
            self.need(called is None or f"{called}_output" == kind, where, f"a {kind} for a {called}")
            output = item.get("output")
            if not isinstance(output, str) and self.need(isinstance(output, list), where, "output"):
                for part in output:
                    self.need(part.get("type") in ("input_text", "input_image"), where, f"a {part.get('type')}")
                    self.part(part, where)
        elif self.need(kind == "reasoning", where, f"an item of the type {kind}"):
            self.need(isinstance(item.get("summary"), list), where, "reasoning without a summary")

    def part(self, part: dict[str, Any], where: str) -> None:
        if part.get("type") == "input_image":
            url = str(part.get("image_url"))
            self.need(re.match(r"https://|data:image/[a-z+.-]+;base64,[A-Za-z0-9+/]", url), where, f"image {url[:40]}")
        else:
            self.need(isinstance(part.get("text"), str), where, "no text")

    def event(self, event: dict[str, Any], where: str) -> None:
        kind = event.get("type")
        if kind == "task_started":
            self.need(self.turn is None, where, "a turn inside a turn")
            self.turn = str(event.get("turn_id"))
            self.need(self.turn not in self.turns, where, "the id of another turn")
            self.turns.add(self.turn)
        elif kind == "task_complete":
            self.need(event.get("turn_id") == self.turn is not None, where, "the end of another turn")
            self.need(
                event.get("last_agent_message", 0) is None or isinstance(event["last_agent_message"], str),
                where,
                "last",
            )
            self.need(not self.open_calls, where, f"calls without a result: {list(self.open_calls)}")
            self.turn = None
        elif kind == "user_message":
            self.need(self.turn is not None, where, "a user_message outside of a turn")
            self.need(isinstance(event.get("message"), str), where, "message")
            self.announced.append(event["message"])
        elif kind == "agent_message":
            self.need(isinstance(event.get("message"), str) and event["message"], where, "message")
            self.announced.append(event["message"])
        elif kind == "token_count":
            info = event.get("info") or {}
            total, last = info.get("total_token_usage") or {}, info.get("last_token_usage") or {}
            for name in _COUNTS:
                self.need(type(total.get(name)) is int and type(last.get(name)) is int, where, f"no {name}")
                self.need(total.get(name, 0) >= self.total[name], where, f"{name} shrinks")
            self.total = {name: total.get(name, 0) for name in _COUNTS}
            self.need(
                total.get("cached_input_tokens", 0) <= total.get("input_tokens", 0), where, "more cached than input"
            )
        else:
            self.need(kind == "context_compacted", where, f"an event of the type {kind}")

    def end(self) -> None:
        self.need(self.turn is None, "the end", "a turn without its end")
        self.need(not self.open_calls, "the end", f"calls without a result: {list(self.open_calls)}")

"""Claude Code: what `--resume` and the SDK's readers need of a transcript."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Any

from tests.formats.checkers import STAMP, UUID, Faults, records

_CHAIN = ("user", "assistant", "system", "attachment", "progress")
_ENVELOPE = (
    "parentUuid", "isSidechain", "userType", "cwd", "sessionId", "version", "gitBranch", "type", "uuid", "timestamp",
)  # fmt: skip
_ASIDE = {"custom-title": "customTitle", "tag": "tag", "permission-mode": "permissionMode"}
_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")


def faults(path: str, data: bytes) -> list[str]:
    found = Faults()
    place = PurePosixPath(path)
    found.need(UUID.fullmatch(place.stem), f"the session id {place.stem} is no UUID")
    found.need(re.fullmatch(r"[a-zA-Z0-9-]+", place.parent.name), f"the folder {place.parent.name} is no project key")
    lines = records(data, found)
    seen: dict[str, dict[str, Any]] = {}
    last: str | None = None
    open_calls: dict[str, str] = {}
    called: set[str] = set()
    answers: dict[str, str] = {}
    for number, line in enumerate(lines):
        where = f"line {number}"
        found.need(line.get("sessionId") == place.stem, f"{where}: another session's")
        if line.get("type") not in _CHAIN:
            key = _ASIDE.get(str(line.get("type")))
            if found.need(key, f"{where}: the type {line.get('type')}"):
                found.need(isinstance(line.get(str(key)), str) and line[str(key)].strip(), f"{where}: no {key}")
            continue
        for name in _ENVELOPE:
            found.need(name in line, f"{where}: no {name}")
        uuid = str(line.get("uuid"))
        found.need(UUID.fullmatch(uuid), f"{where}: uuid {uuid}")
        found.need(uuid not in seen, f"{where}: uuid {uuid} again")
        found.need(line.get("isSidechain") is False, f"{where}: a sidechain")
        found.need(line.get("userType") == "external", f"{where}: userType")
        found.need(isinstance(line.get("cwd"), str) and line["cwd"].startswith("/"), f"{where}: cwd")
        found.need(re.fullmatch(r"\d+\.\d+\.\d+", str(line.get("version"))), f"{where}: version")
        found.need(STAMP.fullmatch(str(line.get("timestamp"))), f"{where}: timestamp {line.get('timestamp')}")
        is_boundary = line["type"] == "system" and line.get("subtype") == "compact_boundary"
        if is_boundary:
            found.need(line.get("parentUuid") is None, f"{where}: a boundary begins a new chain")
            logical = line.get("logicalParentUuid")
            found.need(logical is None or logical == last, f"{where}: logicalParentUuid is not the last record's")
            about = line.get("compactMetadata") or {}
            found.need(about.get("trigger") in ("manual", "auto"), f"{where}: trigger")
            found.need(type(about.get("preTokens")) is int, f"{where}: preTokens")
            found.need(isinstance(line.get("content"), str) and line.get("level") == "info", f"{where}: a boundary")
            follows = lines[number + 1] if number + 1 < len(lines) else {}
            found.need(follows.get("isCompactSummary") is True, f"{where}: no summary behind the boundary")
            found.need(not open_calls, f"{where}: calls without a result before the boundary: {list(open_calls)}")
        else:
            found.need(line.get("parentUuid") == last, f"{where}: the chain is broken")
        if line.get("isCompactSummary"):
            before = seen.get(str(line.get("parentUuid"))) or {}
            found.need(before.get("subtype") == "compact_boundary", f"{where}: a summary without its boundary")
            found.need(line.get("isVisibleInTranscriptOnly") is True, f"{where}: isVisibleInTranscriptOnly")
        seen[uuid] = line
        last = uuid
        if line["type"] == "assistant":
            found.need(not open_calls, f"{where}: calls without a result: {list(open_calls)}")
            _assistant(line.get("message") or {}, where, found, open_calls, called)
            id = str((line.get("message") or {}).get("id"))
            found.need(answers.setdefault(id, uuid) == uuid, f"{where}: message.id {id} of another answer")
            found.need(isinstance(line.get("requestId"), str), f"{where}: requestId")
        elif line["type"] == "user":
            _user(line, where, found, open_calls)
        else:
            found.need(is_boundary, f"{where}: {line['type']}/{line.get('subtype')}")
    found.need(not open_calls, f"calls without a result at the end: {list(open_calls)}")
    found.need(any(line.get("type") in ("user", "assistant") for line in lines), "nothing was said")
    return found


def _assistant(
    message: dict[str, Any], where: str, found: Faults, open_calls: dict[str, str], called: set[str]
) -> None:
    found.need(message.get("type") == "message" and message.get("role") == "assistant", f"{where}: no API message")
    found.need(str(message.get("id")).startswith("msg_"), f"{where}: message.id")
    found.need(isinstance(message.get("model"), str) and message["model"], f"{where}: model")
    found.need("stop_sequence" in message, f"{where}: stop_sequence")
    usage = message.get("usage")
    if found.need(isinstance(usage, dict), f"{where}: usage"):
        counts = [usage.get(name) for name in ("input_tokens", "output_tokens")]
        found.need(all(type(count) is int and count >= 0 for count in counts), f"{where}: usage {usage}")
    content = message.get("content")
    if not found.need(isinstance(content, list) and content, f"{where}: content"):
        return
    for block in content:
        kind = block.get("type")
        if kind == "text":
            found.need(isinstance(block.get("text"), str) and block["text"].strip(), f"{where}: an empty text")
        elif kind == "tool_use":
            id = str(block.get("id"))
            found.need(re.fullmatch(r"[a-zA-Z0-9_-]+", id), f"{where}: the call id {id}")
            found.need(id not in called, f"{where}: the call id {id} again")
            found.need(isinstance(block.get("input"), dict), f"{where}: input is no object")
            found.need(isinstance(block.get("name"), str) and block["name"], f"{where}: a call without a name")
            open_calls[id] = where
            called.add(id)
        elif kind == "thinking":
            found.need(isinstance(block.get("signature"), str) and block["signature"], f"{where}: no signature")
        else:
            found.need(kind == "redacted_thinking" and block.get("data"), f"{where}: a {kind} of the assistant's")
    wanted = "tool_use" if any(block.get("type") == "tool_use" for block in content) else None
    stop = message.get("stop_reason")
    found.need(stop == wanted if wanted else stop not in ("tool_use", None), f"{where}: stop_reason {stop}")


def _user(line: dict[str, Any], where: str, found: Faults, open_calls: dict[str, str]) -> None:
    message = line.get("message") or {}
    found.need(message.get("role") == "user", f"{where}: role")
    content = message.get("content")
    if isinstance(content, str):
        found.need(content, f"{where}: an empty message")
        content = [{"type": "text", "text": content}]
    if not found.need(isinstance(content, list) and content, f"{where}: content"):
        return
    results = [block for block in content if block.get("type") == "tool_result"]
    if not results:
        found.need(not open_calls, f"{where}: calls without a result: {list(open_calls)}")
    for block in results:
        id = str(block.get("tool_use_id"))
        found.need(open_calls.pop(id, None), f"{where}: a result for {id}, which was not called just before")
        found.need(block.get("is_error") in (None, True, False), f"{where}: is_error")
        inner = block.get("content")
        if not isinstance(inner, str):
            for part in inner or []:
                _part(part, where, found)
    for block in content:
        if block.get("type") != "tool_result":
            _part(block, where, found)


def _part(part: dict[str, Any], where: str, found: Faults) -> None:
    kind = part.get("type")
    if kind == "text":
        found.need(isinstance(part.get("text"), str) and part["text"], f"{where}: an empty text")
        return
    found.need(kind in ("image", "document"), f"{where}: a {kind} of the user's")
    source = part.get("source") or {}
    if source.get("type") == "base64":
        kinds = _PICTURES if kind == "image" else ("application/pdf",)
        found.need(source.get("media_type") in kinds, f"{where}: {source.get('media_type')}")
        found.need(re.fullmatch(r"[A-Za-z0-9+/]+={0,2}", str(source.get("data"))), f"{where}: base64")
    else:
        found.need(source.get("type") == "url" and source.get("url"), f"{where}: source {source.get('type')}")

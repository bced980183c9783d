"""Gemini CLI: what the recording service and `--resume` need of a chat."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Any

from tests.formats.checkers import STAMP, UUID, Faults, records

_TOKENS = ("input", "output", "cached", "thoughts", "tool", "total")
_CALL = ("id", "name", "args", "status", "timestamp")


def faults(path: str, data: bytes, root: str | None = None) -> list[str]:
    found = Faults()
    place = PurePosixPath(path)
    lines = records(data, found)
    header = lines[0] if lines else {}
    session = str(header.get("sessionId"))
    name = re.fullmatch(r"session-(\d{4}-\d\d-\d\dT\d\d-\d\d)-([0-9a-f]{8})\.jsonl", place.name)
    found.need(name, f"the name {place.name}")
    found.need(name is None or name[2] == session[:8], "the name is that of another session")
    found.need(place.parent.name == "chats", "not in a folder of chats")
    found.need(re.fullmatch(r"[a-z0-9-]+", place.parent.parent.name), f"the slug {place.parent.parent.name}")
    found.need(UUID.fullmatch(session), f"sessionId {session}")
    found.need(re.fullmatch(r"[0-9a-f]{64}", str(header.get("projectHash"))), "projectHash")
    found.need(
        root is None or header.get("projectHash") == sha256(root.encode()).hexdigest(), "the hash of another root"
    )
    for key in ("startTime", "lastUpdated"):
        found.need(STAMP.fullmatch(str(header.get(key))), f"{key} {header.get(key)}")
    found.need(name is None or str(header.get("startTime"))[:16].replace(":", "-") == name[1], "the time in the name")
    found.need(header.get("kind") == "main", f"the kind {header.get('kind')}: it would not be listed")
    ids: set[str] = set()
    said = False
    for number, line in enumerate(lines[1:], 1):
        where = f"line {number}"
        if "$set" in line:
            change = line["$set"]
            found.need(isinstance(change, dict) and line.keys() == {"$set"}, f"{where}: $set")
            found.need(
                STAMP.fullmatch(str(change.get("lastUpdated", "2026-01-01T00:00:00.000Z"))), f"{where}: lastUpdated"
            )
            found.need(isinstance(change.get("summary", ""), str), f"{where}: summary")
            if "messages" in change:
                ids = set()
                for message in change["messages"]:
                    said = _message(message, where, found, ids) or said
        else:
            said = _message(line, where, found, ids) or said
    found.need(said, "nothing that could be resumed")
    return found


def _message(message: dict[str, Any], where: str, found: Faults, ids: set[str]) -> bool:
    id = message.get("id")
    found.need(isinstance(id, str) and id, f"{where}: no id")
    found.need(id not in ids, f"{where}: the id {id} again: it would replace the other")
    ids.add(str(id))
    found.need(STAMP.fullmatch(str(message.get("timestamp"))), f"{where}: timestamp {message.get('timestamp')}")
    kind, content = message.get("type"), message.get("content")
    if kind == "user":
        found.need(isinstance(content, list) and content, f"{where}: content")
        for part in content if isinstance(content, list) else []:
            _part(part, where, found)
        return True
    if not found.need(kind == "gemini", f"{where}: the type {kind}"):
        return False
    found.need(isinstance(content, (str, list)), f"{where}: content")
    listed = {call.get("id"): call for call in message.get("toolCalls") or []}
    spoken = [part for part in (content if isinstance(content, list) else [])]
    asked = [part["functionCall"] for part in spoken if "functionCall" in part]
    for part in spoken:
        if "functionCall" not in part:
            _part(part, where, found)
    if asked:  # then the parts are what the model is told, and must be complete
        found.need([call.get("id") for call in asked] == list(listed), f"{where}: calls in the parts and beside them")
        for call in asked:
            same = listed.get(call.get("id")) or {}
            found.need(
                same.get("args") == call.get("args") and same.get("name") == call.get("name"), f"{where}: a call"
            )
    found.need(isinstance(message.get("model"), str), f"{where}: model")
    tokens = message.get("tokens")
    if tokens is not None and found.need(isinstance(tokens, dict), f"{where}: tokens"):
        found.need(all(type(tokens.get(name)) is int and tokens[name] >= 0 for name in _TOKENS), f"{where}: {tokens}")
        found.need(tokens.get("cached", 0) <= tokens.get("input", 0), f"{where}: more cached than input")
        parts = sum(tokens.get(name, 0) for name in ("input", "output", "thoughts", "tool"))
        found.need(tokens.get("total") == parts, f"{where}: the total of {tokens}")
    for thought in message.get("thoughts") or []:
        words = [thought.get(key) for key in ("subject", "description", "timestamp")]
        found.need(all(isinstance(word, str) for word in words), f"{where}: a thought {thought}")
    calls: set[str] = set()
    for call in message.get("toolCalls") or []:
        _call(call, where, found)
        found.need(call.get("id") not in calls, f"{where}: the call {call.get('id')} twice")
        calls.add(str(call.get("id")))
    return True


def _part(part: dict[str, Any], where: str, found: Faults) -> None:
    if "inlineData" in part:
        inline = part["inlineData"]
        found.need(
            re.fullmatch(r"[\w.+-]+/[\w.+-]+", str(inline.get("mimeType"))), f"{where}: {inline.get('mimeType')}"
        )
        found.need(re.fullmatch(r"[A-Za-z0-9+/]*={0,2}", str(inline.get("data"))), f"{where}: base64")
    else:
        found.need(part.keys() == {"text"} and isinstance(part["text"], str), f"{where}: a part {list(part)}")


def _call(call: dict[str, Any], where: str, found: Faults) -> None:
    for key in _CALL:
        found.need(key in call, f"{where}: a call without {key}")
    found.need(isinstance(call.get("name"), str) and call["name"], f"{where}: a call without a name")
    found.need(isinstance(call.get("args"), dict), f"{where}: args are no object")
    found.need(call.get("status") in ("success", "error", "cancelled"), f"{where}: status {call.get('status')}")
    results = call.get("result")
    if not found.need(isinstance(results, list) and results, f"{where}: a call without its result"):
        return
    answer = (results[0] or {}).get("functionResponse") or {}
    found.need(
        answer.get("id") == call.get("id") and answer.get("name") == call.get("name"), f"{where}: whose response"
    )
    told = answer.get("response")
    fine = isinstance(told, dict) and (isinstance(told.get("output"), str) or isinstance(told.get("error"), str))
    found.need(fine, f"{where}: response {told!r:.60}")
    found.need((call.get("status") == "success") == ("output" in (told or {})), f"{where}: status and response differ")
    for part in results[1:]:
        _part(part, where, found)

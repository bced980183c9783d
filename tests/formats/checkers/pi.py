"""pi: what the session manager needs of a file, and a provider of the messages that it builds from it."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Any

from tests.formats.checkers import STAMP, Faults, records

_STOPS = ("stop", "length", "toolUse", "error", "aborted")
_USAGE = ("input", "output", "cacheRead", "cacheWrite", "totalTokens")
_COST = ("input", "output", "cacheRead", "cacheWrite", "total")
_KINDS = ("message", "compaction", "session_info", "model_change", "thinking_level_change")


def faults(path: str, data: bytes) -> list[str]:
    found = Faults()
    place = PurePosixPath(path)
    lines = records(data, found)
    header = lines[0] if lines else {}
    found.need(header.get("type") == "session" and header.get("version") == 3, "the header")
    session = str(header.get("id"))
    found.need(re.fullmatch(r"[A-Za-z0-9._-]+", session), f"the session id {session}")
    found.need(STAMP.fullmatch(str(header.get("timestamp"))), "the time of the header")
    cwd = header.get("cwd")
    found.need(isinstance(cwd, str) and cwd.startswith("/"), f"cwd {cwd}")
    stamp = re.sub(r"[:.]", "-", str(header.get("timestamp")))
    found.need(place.name == f"{stamp}_{session}.jsonl", f"the name {place.name}")
    folder = re.sub(r"[/\\:]", "-", str(cwd)[1:])
    found.need(place.parent.name == f"--{folder}--" or len(folder.encode()) > 240, f"the folder {place.parent.name}")
    ids: list[str] = []
    open_calls: dict[str, str] = {}
    called: set[str] = set()
    for number, line in enumerate(lines[1:], 1):
        where = f"line {number}"
        id = str(line.get("id"))
        found.need(re.fullmatch(r"[0-9a-f]{8}", id) and id not in ids, f"{where}: the id {id}")
        found.need(line.get("parentId", 0) == (ids[-1] if ids else None), f"{where}: the chain is broken")
        found.need(STAMP.fullmatch(str(line.get("timestamp"))), f"{where}: timestamp")
        kind = line.get("type")
        if kind == "message":
            _message(line.get("message") or {}, where, found, open_calls, called)
        elif kind == "compaction":
            found.need(isinstance(line.get("summary"), str) and line["summary"], f"{where}: summary")
            found.need(line.get("firstKeptEntryId") in [*ids, id], f"{where}: firstKeptEntryId")
            found.need(type(line.get("tokensBefore")) is int, f"{where}: tokensBefore")
            found.need(not open_calls, f"{where}: calls without a result: {list(open_calls)}")
        elif kind == "session_info":
            found.need(isinstance(line.get("name"), str) and line["name"], f"{where}: name")
        else:
            found.need(kind in _KINDS, f"{where}: the type {kind}")
        ids.append(id)
    found.need(not open_calls, f"calls without a result at the end: {list(open_calls)}")
    return found


def _message(message: dict[str, Any], where: str, found: Faults, open_calls: dict[str, str], called: set[str]) -> None:
    role, content = message.get("role"), message.get("content")
    stamp = message.get("timestamp")
    found.need(type(stamp) is int and 1e11 < stamp < 1e14, f"{where}: timestamp {stamp}")
    if not found.need(isinstance(content, list), f"{where}: content is no list"):
        return
    if role == "toolResult":
        found.need(open_calls.pop(str(message.get("toolCallId")), None), f"{where}: a result that nobody asked for")
        found.need(isinstance(message.get("toolName"), str) and message["toolName"], f"{where}: toolName")
        found.need(isinstance(message.get("isError"), bool), f"{where}: isError")
    else:
        found.need(not open_calls, f"{where}: calls without a result: {list(open_calls)}")
    if role != "assistant":
        found.need(role in ("user", "toolResult"), f"{where}: role {role}")
        found.need(content or role == "toolResult", f"{where}: nothing was said")
        for part in content:
            _part(part, where, found)
        return
    for key in ("api", "provider", "model"):
        found.need(isinstance(message.get(key), str) and message[key], f"{where}: {key}")
    found.need(message.get("stopReason") in _STOPS, f"{where}: stopReason {message.get('stopReason')}")
    usage = message.get("usage") or {}
    found.need(all(type(usage.get(key)) is int and usage[key] >= 0 for key in _USAGE), f"{where}: usage {usage}")
    found.need(sum(usage.get(key, 0) for key in _USAGE[:4]) == usage.get("totalTokens"), f"{where}: totalTokens")
    cost = usage.get("cost") or {}
    found.need(all(type(cost.get(key)) in (int, float) for key in _COST), f"{where}: cost {cost}")
    for part in content:
        if part.get("type") == "toolCall":
            id = str(part.get("id"))
            found.need(id and id not in called, f"{where}: the call id {id!r}")
            found.need(isinstance(part.get("arguments"), dict), f"{where}: arguments are no object")
            found.need(isinstance(part.get("name"), str) and part["name"], f"{where}: a call without a name")
            open_calls[id] = where
            called.add(id)
        elif part.get("type") == "thinking":
            found.need(isinstance(part.get("thinking"), str), f"{where}: thinking")
        else:
            found.need(part.get("type") == "text", f"{where}: a {part.get('type')} of the assistant's")
            _part(part, where, found)


def _part(part: dict[str, Any], where: str, found: Faults) -> None:
    if part.get("type") == "image":
        found.need(re.fullmatch(r"image/[\w.+-]+", str(part.get("mimeType"))), f"{where}: {part.get('mimeType')}")
        found.need(re.fullmatch(r"[A-Za-z0-9+/]+={0,2}", str(part.get("data"))), f"{where}: base64")
    else:
        found.need(part.get("type") == "text" and isinstance(part.get("text"), str), f"{where}: a part {list(part)}")

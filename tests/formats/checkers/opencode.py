"""opencode: what `opencode import` validates, and what its model view needs."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Any

from tests.formats.checkers import Faults, load

_ID = re.compile(r"(ses|msg|prt)_[0-9a-f]{12}[0-9A-Za-z]{14}")


def faults(path: str, data: bytes) -> list[str]:
    found = Faults()
    try:
        whole = load(data.decode())
    except ValueError as error:
        return [str(error)]
    found.need(data.endswith(b"}\n"), "no newline at the end")
    found.need(whole.keys() == {"info", "messages"}, f"the keys {list(whole)}")
    info = whole.get("info") or {}
    session = str(info.get("id"))
    found.need(PurePosixPath(path).name == f"{session}.json", "the name is that of another session")
    _is_id(session, "ses", "the session", found)
    for key in ("slug", "projectID", "directory", "title", "version"):
        found.need(isinstance(info.get(key), str) and info[key], f"session: {key}")
    times = info.get("time") or {}
    found.need(all(_is_ms(times.get(key)) for key in ("created", "updated")), f"session: time {times}")
    found.need(times.get("created", 0) <= times.get("updated", 0), "session: updated before it was created")
    seen: dict[str, dict[str, Any]] = {}
    parts: set[str] = set()
    calls: set[str] = set()
    order: list[tuple[int, str]] = []
    for number, message in enumerate(whole.get("messages") or []):
        where = f"message {number}"
        found.need(message.keys() == {"info", "parts"}, f"{where}: the keys {list(message)}")
        about = message.get("info") or {}
        id = str(about.get("id"))
        _is_id(id, "msg", where, found)
        found.need(id not in seen, f"{where}: the id {id} again")
        found.need(about.get("sessionID") == session, f"{where}: of another session")
        created = (about.get("time") or {}).get("created")
        found.need(_is_ms(created), f"{where}: time")
        order.append((created or 0, id))
        if about.get("role") == "user":
            _user(about, where, found)
        elif found.need(about.get("role") == "assistant", f"{where}: role {about.get('role')}"):
            _assistant(about, where, found)
            asked = seen.get(str(about.get("parentID")), {})
            found.need(asked.get("role") == "user", f"{where}: parentID names no message of the user's before it")
            if about.get("summary"):
                found.need(asked.get("asks"), f"{where}: a summary that nobody asked for")
        seen[id] = {**about, "asks": any(part.get("type") == "compaction" for part in message.get("parts") or [])}
        last = ""
        found.need(message.get("parts") or about.get("role") == "assistant", f"{where}: nothing was said")
        for part in message.get("parts") or []:
            name = str(part.get("id"))
            _is_id(name, "prt", where, found)
            found.need(name not in parts and name > last, f"{where}: part ids do not ascend")
            parts.add(name)
            last = name
            found.need(part.get("messageID") == id and part.get("sessionID") == session, f"{where}: whose part")
            _part(part, str(about.get("role")), where, found, calls, seen)
    found.need(order == sorted(order), "messages are not in the order of (time, id), in which they would be loaded")
    return found


def _is_id(id: str, kind: str, where: str, found: Faults) -> None:
    match = _ID.fullmatch(id)
    found.need(match and match[1] == kind, f"{where}: the id {id}")


def _is_ms(value: Any) -> bool:
    return type(value) in (int, float) and 1e11 < value < 1e14


def _user(about: dict[str, Any], where: str, found: Faults) -> None:
    found.need(isinstance(about.get("agent"), str), f"{where}: agent")
    model = about.get("model") or {}
    found.need(all(isinstance(model.get(key), str) for key in ("providerID", "modelID")), f"{where}: model")


def _assistant(about: dict[str, Any], where: str, found: Faults) -> None:
    for key in ("parentID", "modelID", "providerID", "mode", "agent"):
        found.need(isinstance(about.get(key), str) and about[key], f"{where}: {key}")
    place = about.get("path") or {}
    found.need(isinstance(place.get("cwd"), str) and isinstance(place.get("root"), str), f"{where}: path")
    found.need(type(about.get("cost")) in (int, float) and about["cost"] >= 0, f"{where}: cost")
    tokens = about.get("tokens") or {}
    cache = tokens.get("cache") or {}
    counts = [*(tokens.get(key) for key in ("input", "output", "reasoning")), cache.get("read"), cache.get("write")]
    found.need(all(type(count) is int and count >= 0 for count in counts), f"{where}: tokens {tokens}")
    times = about.get("time") or {}
    found.need(_is_ms(times.get("completed")) and times["completed"] >= times["created"], f"{where}: completed")
    found.need(isinstance(about.get("finish"), str), f"{where}: finish")


def _part(
    part: dict[str, Any], role: str, where: str, found: Faults, calls: set[str], seen: dict[str, dict[str, Any]]
) -> None:
    kind = part.get("type")
    if kind == "text":
        found.need(isinstance(part.get("text"), str), f"{where}: text")
    elif kind == "reasoning":
        found.need(role == "assistant" and isinstance(part.get("text"), str), f"{where}: reasoning")
        found.need(_is_ms((part.get("time") or {}).get("start")), f"{where}: time of reasoning")
    elif kind == "file":
        _file(part, where, found)
    elif kind == "compaction":
        found.need(role == "user" and isinstance(part.get("auto"), bool), f"{where}: compaction")
        tail = part.get("tail_start_id")
        found.need(tail is None or tail in seen, f"{where}: tail_start_id names no message")
    elif found.need(kind == "tool" and role == "assistant", f"{where}: a {kind} of the {role}"):
        found.need(isinstance(part.get("callID"), str) and part["callID"], f"{where}: callID")
        found.need(part.get("callID") not in calls, f"{where}: the call {part.get('callID')} again")
        calls.add(str(part.get("callID")))
        found.need(isinstance(part.get("tool"), str) and part["tool"], f"{where}: tool")
        _state(part.get("state") or {}, where, found)


def _state(state: dict[str, Any], where: str, found: Faults) -> None:
    found.need(isinstance(state.get("input"), dict), f"{where}: input is no object")
    times = state.get("time") or {}
    found.need(_is_ms(times.get("start")) and _is_ms(times.get("end")), f"{where}: times of a tool")
    if state.get("status") == "error":
        found.need(isinstance(state.get("error"), str), f"{where}: error")
        return
    found.need(state.get("status") == "completed", f"{where}: status {state.get('status')}: it would never end")
    found.need(isinstance(state.get("output"), str) and isinstance(state.get("title"), str), f"{where}: output")
    found.need(isinstance(state.get("metadata"), dict), f"{where}: metadata")
    for file in state.get("attachments") or []:
        found.need(file.get("type") == "file", f"{where}: an attachment")
        for key, kind in (("id", "prt"), ("messageID", "msg"), ("sessionID", "ses")):
            _is_id(str(file.get(key)), kind, where, found)
        _file(file, where, found)


def _file(part: dict[str, Any], where: str, found: Faults) -> None:
    found.need(re.fullmatch(r"[\w.+-]+/[\w.+-]+", str(part.get("mime"))), f"{where}: mime {part.get('mime')}")
    found.need(re.match(r"(data|https?|file):", str(part.get("url"))), f"{where}: url {str(part.get('url'))[:40]}")
    found.need(isinstance(part.get("filename", ""), str), f"{where}: filename")

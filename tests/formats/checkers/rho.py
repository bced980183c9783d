"""rho as of 1af5a5fb: a header and messages, and nothing cut off when they are loaded."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from tests.formats.checkers import Faults
from tests.formats.checkers.rust import compact, fields, is_sorted, is_text, pair, parsed


def faults(path: str, data: bytes) -> list[str]:
    found = Faults()
    if not found.need(data.endswith(b"\n"), "no newline at the end: the next append is glued to the last line"):
        return found
    said: list[Any] = []
    for number, line in enumerate(data.removesuffix(b"\n").split(b"\n")):
        where = f"line {number}"
        record = parsed(line, found)
        found.need(compact(record).encode() == line, f"{where} is not compact")
        if number == 0:
            _header(record, path, found)
        elif found.need(isinstance(record, dict) and record.get("type") == "message", f"{where}: unknown variant"):
            fields(record, where, found, "type", "timestamp", "message")
            _stamp(record.get("timestamp"), where, found)
            _message(record.get("message"), where, found)
            said.append(record.get("message"))
    if not found:
        kept = loaded(said)
        found.need(kept == len(said), f"everything from message {kept} on is hidden")
    return found


def loaded(messages: list[dict[str, Any]]) -> int:
    """How many messages are left by the rule that results follow their calls at once, in the order of the calls."""
    index = 0
    while index < len(messages):
        calls = [b["ToolCall"]["id"] for b in messages[index].get("Assistant", []) if "ToolCall" in b]
        given = [message.get("ToolResult", {}).get("id") for message in messages[index + 1 : index + 1 + len(calls)]]
        if given != calls:
            return index
        index += 1 + len(calls)
    return index


def key_of(cwd: str) -> str:
    """The folder for the sessions of a workspace."""
    total = 0xCBF29CE484222325
    for byte in cwd.encode():
        total = (total ^ byte) * 0x100000001B3 % (1 << 64)
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in cwd) + f"-{total:016x}"


def _header(record: Any, path: str, found: Faults) -> None:
    head = fields(record, "the header", found, "type", "version", "id", "timestamp", "cwd")
    found.need(head.get("type") == "session" and head.get("version") == 1, "type or version of the header")
    _stamp(head.get("timestamp"), "the header", found)
    place = PurePosixPath(path)
    found.need(place.suffix == ".jsonl" and place.stem.rpartition("_")[2] == head.get("id"), f"the name {path}")
    found.need(place.stem.rpartition("_")[0].isdigit(), f"the time in {path}")
    key = key_of(str(head.get("cwd")))
    found.need(place.parent.name == key or len(key.encode()) > 255, f"the folder of {path}")


def _stamp(value: Any, where: str, found: Faults) -> None:
    found.need(is_text(value) and value.isdigit(), f"{where}: timestamp {value}")


def _message(message: Any, where: str, found: Faults) -> None:
    kind, inner = pair(message, where, found)
    if kind == "System":
        found.need(is_text(inner), f"{where}: system text")
    elif kind == "ToolResult":
        fields(inner, where, found, "id", "ok", "content")
        fine = is_text(inner.get("id")) and is_text(inner.get("content")) and isinstance(inner.get("ok"), bool)
        found.need(fine, f"{where}: {inner!r:.60}")
    elif found.need(kind in ("User", "Assistant"), f"{where}: unknown variant {kind}"):
        for block in inner:
            what, value = pair(block, where, found)
            if what == "ToolCall":
                fields(value, where, found, "id", "name", "arguments")
                found.need(is_text(value.get("id")) and is_text(value.get("name")), f"{where}: a call")
                found.need(is_sorted(value.get("arguments")), f"{where}: arguments are not sorted")
            else:
                found.need(what == "Text" and is_text(value), f"{where}: unknown variant {what}")

"""claw-code as of 12c364da: its own JSON, three kinds of records, three kinds of blocks."""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import PurePosixPath
from typing import Any

from tests.formats.checkers import Faults, load
from tests.formats.checkers.rust import fields, is_int, is_text

_USAGE = ("cache_creation_input_tokens", "cache_read_input_tokens", "input_tokens", "output_tokens")
_BLOCKS = {
    "text": ("text", "type"),
    "tool_use": ("id", "input", "name", "type"),
    "tool_result": ("is_error", "output", "tool_name", "tool_use_id", "type"),
}


def faults(path: str, data: bytes) -> list[str]:
    found = Faults()
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        return [f"not UTF-8: {error}"]
    found.need(text.endswith("\n"), "no newline at the end")
    kinds: list[Any] = []
    for number, line in enumerate(text.removesuffix("\n").split("\n")):
        where = f"line {number}"
        record = _parsed(line, where, found)
        kind = record.get("type")
        kinds.append(kind)
        if kind == "session_meta":
            _meta(record, path, where, found)
        elif kind == "compaction":
            fields(record, where, found, "count", "removed_message_count", "summary", "type")
            for name in ("count", "removed_message_count"):
                found.need(is_int(record.get(name), 32), f"{where}: {name}")
            found.need(is_text(record.get("summary")), f"{where}: summary")
        elif found.need(kind == "message", f"{where}: unsupported record {kind}"):
            _message(fields(record, where, found, "message", "type").get("message"), where, found)
    order = ["session_meta", *(["compaction"] if "compaction" in kinds else [])]
    found.need(kinds == [*order, *["message"] * (len(kinds) - len(order))], f"the order of records: {kinds[:5]}")
    return found


def _parsed(line: str, where: str, found: Faults) -> dict[str, Any]:
    try:
        value = load(line)
    except ValueError as error:
        found.append(f"{where}: {error}")
        return {}
    found.need(not re.search(r"\\u[dD][89a-fA-F]", line), f"{where}: a surrogate escape")
    loud = [char for char in line if unicodedata.category(char) == "Cc"]
    found.need(not loud, f"{where}: control characters as they are: {loud}")
    _numbers(value, where, found)
    if not found.need(isinstance(value, dict), f"{where} is no object"):
        return {}
    found.need(_rendered(value) == line, f"{where} is not as claw renders it")
    return value


def _rendered(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return re.sub("[\x7f-\x9f]", lambda char: f"\\u{ord(char[0]):04x}", text)


def _numbers(value: Any, where: str, found: Faults) -> None:
    found.need(not isinstance(value, float), f"{where}: a number that is no integer")
    if type(value) is int:
        found.need(is_int(value, signed=True), f"{where}: a number of more than 64 bits")
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _numbers(item, where, found)


def _meta(record: dict[str, Any], path: str, where: str, found: Faults) -> None:
    fields(record, where, found, "created_at_ms", "fork?", "session_id", "type", "updated_at_ms", "version")
    found.need(record.get("version") == 1, f"{where}: version {record.get('version')}")
    for name in ("created_at_ms", "updated_at_ms"):
        found.need(is_int(record.get(name)), f"{where}: {name}")
    session = record.get("session_id")
    if found.need(is_text(session), f"{where}: session_id"):
        found.need(PurePosixPath(path).name == f"{session}.jsonl", f"the id {session} in {path}")
        found.need(PurePosixPath(path).name == path, f"{path} is not where the first claw looks")
    if "fork" in record:
        fork = fields(record["fork"], f"{where}, fork", found, "branch_name?", "parent_session_id")
        found.need(all(is_text(item) and item == item.strip() and item for item in fork.values()), f"{where}: fork")


def _message(message: Any, where: str, found: Faults) -> None:
    fields(message, where, found, "blocks", "role", "usage?")
    role, blocks = message.get("role"), message.get("blocks")
    found.need(role in ("system", "user", "assistant", "tool"), f"{where}: unsupported role {role}")
    if "usage" in message:
        usage = fields(message["usage"], f"{where}, usage", found, *_USAGE)
        found.need(role == "assistant", f"{where}: the usage of {role}")
        found.need(all(is_int(count, 32) for count in usage.values()), f"{where}: usage {usage}")
    if not found.need(isinstance(blocks, list), f"{where}: blocks"):
        return
    found.need(role != "tool" or len(blocks) == 1, f"{where}: several results in one message")
    for block in blocks:
        kind = block.get("type")
        if not found.need(kind in _BLOCKS, f"{where}: unsupported block type {kind}"):
            continue
        fields(block, f"{where}, {kind}", found, *_BLOCKS[kind])
        found.need((kind == "tool_result") == (role == "tool"), f"{where}: a {kind} of {role}")
        for name, value in block.items():
            fine = isinstance(value, bool) if name == "is_error" else is_text(value)
            found.need(fine, f"{where}: {name} is {value!r:.40}")

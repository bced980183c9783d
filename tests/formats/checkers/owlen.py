"""owlen: one document per checkpoint, with every field there is."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from tests.formats.checkers import Faults
from tests.formats.checkers.rust import document, fields, is_int, is_text, parsed

_STATS = ("start_time", "total_messages", "total_tool_calls", "total_duration", "estimated_tokens")


def faults(path: str, data: bytes) -> list[str]:
    found = Faults()
    raw = fields(
        document(data, found), "the checkpoint", found, "id", "timestamp", "stats", "user_prompts",
        "assistant_responses", "tool_calls", "file_diffs",
    )  # fmt: skip
    if found:
        return found
    found.need(PurePosixPath(path).name == f"{raw['id']}.json", f"the name {path}")
    _time(raw["timestamp"], "timestamp", found)
    stats = fields(raw["stats"], "stats", found, *_STATS)
    _time(stats.get("start_time"), "start_time", found)
    _time(stats.get("total_duration"), "total_duration", found, "secs", "nanos")
    for name in ("total_messages", "total_tool_calls", "estimated_tokens"):
        found.need(is_int(stats.get(name)), f"{name} is {stats.get(name)}")
    found.need(stats.get("total_tool_calls") == len(raw["tool_calls"]), "the number of calls")
    for name in ("user_prompts", "assistant_responses"):
        found.need(isinstance(raw[name], list) and all(map(is_text, raw[name])), name)
    for index, call in enumerate(raw["tool_calls"]):
        where = f"call {index}"
        fields(call, where, found, "tool_name", "arguments", "result", "success")
        found.need(all(is_text(call.get(name)) for name in ("tool_name", "arguments", "result")), f"{where}: texts")
        found.need(isinstance(call.get("success"), bool), f"{where}: success")
        if is_text(call.get("arguments")):
            parsed(call["arguments"].encode(), Faults())
    for index, diff in enumerate(raw["file_diffs"]):
        where = f"diff {index}"
        fields(diff, where, found, "path", "before", "after", "timestamp")
        found.need(all(is_text(diff.get(name)) for name in ("path", "before", "after")), f"{where}: texts")
        found.need(str(diff.get("path")).startswith("/"), f"{where}: {diff.get('path')} is not absolute")
        _time(diff.get("timestamp"), where, found)
    paths = [diff.get("path") for diff in raw["file_diffs"]]
    found.need(len(paths) == len(set(paths)), "a file twice")
    return found


def _time(value: Any, where: str, found: Faults, *names: str) -> None:
    secs, nanos = names or ("secs_since_epoch", "nanos_since_epoch")
    fields(value, where, found, secs, nanos)
    found.need(is_int(value.get(secs)) and is_int(value.get(nanos), 32) and value[nanos] < 1_000_000_000, where)

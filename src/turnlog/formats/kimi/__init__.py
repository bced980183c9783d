"""Kimi: the sessions of kimi-cli under `~/.kimi` and of kimi-code under `~/.kimi-code`. Only read."""

from __future__ import annotations

import os
from collections.abc import Iterator

from turnlog.formats import Format, Places, Source, Watching
from turnlog.formats._shared.finding import folder_of, resume_command
from turnlog.formats.kimi import cli, code
from turnlog.formats.kimi.parts import NAME
from turnlog.interop.folder import names_in
from turnlog.interop.records import first_records
from turnlog.interop.value import fields

_FAMILIES = ("context.", "turn.", "config.", "tools.", "permission.", "usage.", "llm.", "profile.")


def _homes(places: Places) -> list[str]:
    homes = ("KIMI_SHARE_DIR", ".kimi"), ("KIMI_CODE_HOME", ".kimi-code")
    return [os.path.join(folder_of(places, *home), "sessions") for home in homes]


def _find(path: str) -> Iterator[Source]:
    if os.path.isfile(path):
        yield from _in_file(path)
        return
    for folder, folders, files in os.walk(path):
        folders.sort(key=lambda name: (name != "main", name))
        sources = [source for name in sorted(files) for source in _in_file(os.path.join(folder, name))]
        yield from dict.fromkeys(sources)


def _in_file(path: str) -> Iterator[Source]:
    name = os.path.basename(path)
    if not name.endswith(".jsonl") or cli.ROTATED.fullmatch(name):
        return
    kind, beside = _file_kind(path), os.path.join(os.path.dirname(path), "context.jsonl")
    if kind == "wire" and name == "wire.jsonl" and (_file_kind(beside) or _was_cleared(beside)):
        yield Source(NAME, beside)
    elif kind or (name == "context.jsonl" and _was_cleared(path)):
        yield Source(NAME, path)


def _was_cleared(path: str) -> bool:
    """Whether a context is empty because what was in it was put aside."""
    folder = os.path.dirname(path)
    if not os.path.isfile(path) or os.path.getsize(path) > 0:
        return False
    names = [name for name in names_in(folder or ".") if cli.ROTATED.fullmatch(name)]
    return any(_file_kind(os.path.join(folder, name)) == "context" for name in names)


def _file_kind(path: str) -> str:
    """`context` and `wire` are of kimi-cli, `code` of kimi-code; "" is neither."""
    is_wire, is_context = False, os.path.basename(path) == "context.jsonl"
    for record in first_records(path, 21):
        is_message = record.get("role") in ("user", "assistant", "tool") and "content" in record
        if record.get("role") in cli.MARKS and "type" not in record:
            return "context"
        if record.get("type") == "metadata" and "protocol_version" in record:
            is_wire = True
        elif is_wire and "type" in fields(record.get("message")) and "timestamp" in record:
            return "wire"
        elif is_wire and str(record.get("type")).startswith(_FAMILIES):
            return "code"
        elif is_context and is_message and "type" not in record:
            return "context"
    return ""


FORMAT = Format(
    "kimi-cli and kimi-code, with subagents", _homes, _find,
    lambda source: code.read(source) if _file_kind(source.path) == "code" else cli.read(source),
    watch=Watching(sidecars=lambda source: code.state_files(source.path)),
    resume=resume_command("kimi", "--session", "ID", ids=r"[0-9A-Za-z][0-9A-Za-z_-]{0,100}"),
)  # fmt: skip

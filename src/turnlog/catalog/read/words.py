"""The searchable text of an entry: prompts, answers, thinking, tools with input and output, files."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, cast

from turnlog.catalog.index.batch import Passage
from turnlog.catalog.index.columns import clean
from turnlog.catalog.index.keys import MAX_TEXT, sum_of
from turnlog.catalog.read.tooltime import OpenCalls
from turnlog.formats import unknown_type
from turnlog.log.block import AnyBlock, File, Image, Text, Thinking, ToolCall, ToolResult, UnknownBlock
from turnlog.log.entry import Answer, Ask, Checkpoint, Compaction, Custom, Edit, Entry, Message, Note
from turnlog.log.secret import is_secret_name

_FILE_KEYS = frozenset((
    "path", "paths", "file", "files", "file_path", "filepath", "filePath", "filename", "notebook_path", "target_file",
    "relative_path", "absolute_path", "old_path", "new_path",
))  # fmt: skip
_LONGEST_PATH = 1024
_is_secret = lru_cache(maxsize=4096)(is_secret_name)
_DEPTH = 20
_PATCH = ("*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: ")


def passage_of(entry: Entry, calls: OpenCalls, seen: set[int]) -> Passage | None:
    """The searchable text of an entry; None if it is empty, or was said before.

    `calls` has the calls that a result may belong to. `seen` has the hashes of the texts of this session:
    summaries and edits often repeat them.
    """
    kind = type(entry)
    if kind is Message:
        message = cast("Message", entry)
        passage = Passage(message.role, "", [], [])
        parts: list[str] = []
        _blocks(message.blocks, parts, passage, calls)
        if message.error is not None:
            _strings(message.error, parts)
        return _said(passage, parts)
    if kind is Compaction:
        return _said(Passage("summary", "", [], []), _summary(cast("Compaction", entry), seen))
    if unknown_type(entry):
        return None
    if kind is Note or kind is Ask or kind is Answer:
        return _said(Passage("note", "", [], []), [cast("Note", entry).text])
    parts = []
    passage = Passage("note", "", [], [])
    if kind is Custom:
        custom = cast("Custom", entry)
        passage = passage._replace(role=custom.role if custom.blocks else "note")
        _blocks(custom.blocks, parts, passage, calls)
        if not custom.blocks:
            _strings(custom.data, parts)
    elif kind is Edit:
        passage = passage._replace(role="assistant")
        _blocks(cast("Edit", entry).blocks or (), parts, passage, calls)
        parts = [part for part in parts if sum_of(clean(part)) not in seen]
    elif kind is Checkpoint and cast("Checkpoint", entry).label:
        parts.append(cast("Checkpoint", entry).label or "")
    return _said(passage, parts)


def _said(passage: Passage, parts: list[str]) -> Passage | None:
    text = parts[0] if len(parts) == 1 else "\n".join(parts)
    if len(text) > MAX_TEXT:
        text = text[:MAX_TEXT]
    if not text or text.isspace():
        return None
    return Passage(passage.role, clean(text), [*map(clean, passage.tools)], [*map(clean, passage.files)])


def _blocks(blocks: Iterable[AnyBlock], parts: list[str], passage: Passage, calls: OpenCalls) -> None:
    for block in blocks:
        kind = type(block)
        if kind is Text or kind is Thinking:
            text = cast("Text", block).text
            if text:
                parts.append(text)
        elif kind is ToolResult:
            _result(cast("ToolResult", block), parts, passage, calls)
        elif kind is ToolCall:
            call = cast("ToolCall", block)
            passage.tools.append(call.name)
            parts.append(call.name)
            _input(call.input, "", parts, passage.files, 0)
        elif kind is Image or kind is File:
            named = cast("Image", block)
            parts += [text for text in (named.name, named.url) if text and not text.startswith("data:")]
            if named.name:
                passage.files.append(named.name)
        elif kind is UnknownBlock:
            parts.append(cast("UnknownBlock", block).json)


def _result(block: ToolResult, parts: list[str], passage: Passage, calls: OpenCalls) -> None:
    name = calls[block.call][0] if block.call in calls else block.name
    if name:
        passage.tools.append(name)
    content = block.content
    if isinstance(content, str):
        if content:
            parts.append(content)
    else:
        _blocks(content, parts, passage, calls)


def _input(value: Any, key: str, parts: list[str], files: list[str], depth: int) -> None:
    """Add the texts that a tool was called with to `parts`, and those that name a file to `files` as well."""
    if isinstance(value, str):
        if value:
            # Some secrets can be recognised only by the name of their field.
            parts.append(f"{key}={value}" if key and _is_secret(key) else value)
            if key in _FILE_KEYS and len(value) <= _LONGEST_PATH and "\n" not in value:
                files.append(value)
            elif value.startswith("*** Begin Patch"):
                files += _patched(value)
    elif isinstance(value, dict) and depth < _DEPTH:
        for name, item in cast("dict[str, Any]", value).items():
            _input(item, str(name), parts, files, depth + 1)
    elif isinstance(value, list) and depth < _DEPTH:
        for item in cast("list[Any]", value):
            _input(item, key, parts, files, depth + 1)


def _patched(patch: str) -> list[str]:
    paths: list[str] = []
    for line in patch.splitlines():
        for mark in _PATCH:
            if line.startswith(mark):
                paths.append(line[len(mark) :][:_LONGEST_PATH])
    return paths


def _strings(value: Any, parts: list[str], depth: int = 0) -> None:
    if isinstance(value, str):
        if value:
            parts.append(value)
    elif isinstance(value, dict) and depth < _DEPTH:
        for item in cast("dict[str, Any]", value).values():
            _strings(item, parts, depth + 1)
    elif isinstance(value, list) and depth < _DEPTH:
        for item in cast("list[Any]", value):
            _strings(item, parts, depth + 1)


def _summary(entry: Compaction, seen: set[int]) -> list[str]:
    parts: list[str] = []
    for item in entry.replacement:
        if isinstance(item, Message):
            inner: list[str] = []
            _blocks(item.blocks, inner, Passage("", "", [], []), {})
            text = "\n".join(inner)
            if text and sum_of(clean(text)) not in seen:
                parts.append(text)
    return parts

"""Entries for people, one line each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from turnlog.log.block import AnyBlock, File, Image, Text, Thinking, ToolCall, ToolResult, UnknownBlock
from turnlog.log.context.nativecompaction import compacted
from turnlog.log.entry import (
    Answer,
    AnyEntry,
    Ask,
    Changed,
    Checkpoint,
    Child,
    Compaction,
    Custom,
    Drop,
    Edit,
    Fold,
    Head,
    Intent,
    Message,
    Note,
    Set,
    Spent,
    Start,
    Started,
    Track,
    Turn,
    Uncompact,
    Unknown,
    Writer,
)  # fmt: skip
from turnlog.view.event import fields_text
from turnlog.view.number import count, used
from turnlog.view.visible import clip, one_line

_LONGEST = 160


def as_json(value: Any) -> str:
    """Return a caller's value as JSON."""
    import msgspec

    return msgspec.json.encode(value).decode()


def in_one_line(entry: AnyEntry) -> str:
    """Return what an entry says, in one line."""
    words = _WORDS.get(type(entry))
    text = words(entry) if words is not None else fields_text(entry)
    if entry.unverified:
        text = f"[edited] {text}"
    return clip(one_line(text), _LONGEST)


def _message(entry: Message) -> str:
    return f"{entry.role}: {_blocks(entry.blocks)}"


def _blocks(blocks: list[AnyBlock]) -> str:
    return " ".join(filter(None, map(_block, blocks)))


def _block(block: AnyBlock) -> str:
    if isinstance(block, Text):
        return block.text[: 4 * _LONGEST]
    if isinstance(block, Thinking):
        return f"(compacted by {block.provider})" if compacted(block) else "(thinking)"
    if isinstance(block, ToolCall):
        return f"→ {block.name} {as_json(block.input)}"
    if isinstance(block, ToolResult):
        content = block.content if isinstance(block.content, str) else _blocks(block.content)
        return f"{block.call} {'✗' if block.is_error else '✓'} {content[: 4 * _LONGEST]}"
    return _attachment(block)


def _attachment(block: Image | File | UnknownBlock) -> str:
    if isinstance(block, UnknownBlock):
        return f"({block.kind})"
    what = "image" if isinstance(block, Image) else "file"
    return f"({' '.join(filter(None, (what, block.name or block.url or block.file, block.media_type)))})"


def _compaction(entry: Compaction) -> str:
    kept = f", keeps everything from entry {entry.keep}" if entry.keep else ""
    first = next((item for item in entry.replacement if isinstance(item, Message)), None)
    return f"{count(len(entry.replacement), 'message')} instead of what came before{kept}" + (
        f": {_blocks(first.blocks)}" if first else ""
    )


def _edit(entry: Edit) -> str:
    if entry.blocks is None:
        return f"entry {entry.entry} is not shown to the model"
    return f"entry {entry.entry} is shown to the model as: {_blocks(entry.blocks)}"


def _custom(entry: Custom) -> str:
    return f"{entry.kind} {_blocks(entry.blocks) or as_json(entry.data)}"


def _start(entry: Start) -> str:
    parts = [entry.title or "", f"by {entry.agent}" if entry.agent else ""]
    if entry.fork is not None:
        name = f" “{entry.fork.name}”" if entry.fork.name else ""
        parts.append(f"fork{name} of {entry.fork.session} at entry {entry.fork.seq}")
    if entry.spawned is not None:
        parts.append(f"subagent of {entry.spawned.session}")
    return ", ".join(filter(None, parts)) or entry.id


def _head(entry: Head) -> str:
    return f"{entry.why}: continues from entry {entry.to} (was at {entry.left})"


def _set(entry: Set) -> str:
    if entry.void:
        return f"{entry.key} [erased]"
    return f"{entry.key} is unset" if entry.unset else f"{entry.key} = {as_json(entry.value)}"


def _checkpoint(entry: Checkpoint) -> str:
    when = {
        "begin": "as a turn begins",
        "end": "as a turn ends",
        "tool": "as a tool ends",
        "late": "while a turn goes on",
        "before": "before a rewind",
        "after": "after a rewind",
    }
    taken = when.get(entry.when or "", entry.when or "")
    return ", ".join(filter(None, (entry.label, taken))) or count(
        sum(not root.is_private for root in entry.roots), "folder"
    )


def _answer(entry: Answer) -> str:
    by = f" by {entry.by}" if entry.by else ""
    return f"{'allowed' if entry.allow else 'denied'}{by} (entry {entry.ask}) {entry.text}".rstrip()


def _writer(entry: Writer) -> str:
    return f"process {entry.pid} on {entry.host}, turnlog {entry.version}"


_WORDS: dict[type, Callable[[Any], str]] = {
    Message: _message,
    Compaction: _compaction,
    Uncompact: lambda entry: f"compaction {entry.compaction} no longer applies",
    Edit: _edit,
    Custom: _custom,
    Start: _start,
    Turn: lambda entry: f"{entry.state}{f': {entry.error}' if entry.error else ''}",
    Checkpoint: _checkpoint,
    Track: lambda entry: f"{entry.path} is covered from now on",
    Changed: lambda entry: ", ".join(entry.paths),
    Intent: lambda entry: f"{count(len(entry.steps), 'file')} about to be changed",
    Head: _head,
    Set: _set,
    Spent: lambda entry: f"{used(entry.usage)}{f' for {entry.why}' if entry.why else ''}",
    Note: lambda entry: entry.text,
    Ask: lambda entry: f"may {entry.call} be run?{f' {entry.text}' if entry.text else ''}",
    Answer: _answer,
    Started: lambda entry: f"{entry.call} is about to be run",
    Child: lambda entry: f"subagent {entry.agent or ''} in {entry.session}",
    Writer: _writer,
    Fold: lambda entry: f"everything known as of entry {entry.upto}",
    Drop: lambda entry: f"gives up {count(len(entry.checkpoints), 'checkpoint')}",
    Unknown: lambda entry: f"(an entry of a newer version) {entry.json}",
}

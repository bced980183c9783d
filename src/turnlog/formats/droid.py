"""Factory Droid: a JSON line per record under `~/.factory/sessions/-<folder>/<session>.jsonl`. Only read.

The first line is rewritten when the title changes: then all offsets change, and nothing is taken from the middle of a
file. What was spent is a total in the settings; no message says it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from turnlog.formats import Forked, Format, Reading, Record, SessionHeader, Source, Spawn, Step, Watching
from turnlog.formats._shared.blocks import results_apart, unknown, usual, worded
from turnlog.formats._shared.finding import find_files, homes_under_variable, resume_command
from turnlog.formats._shared.key import Keys
from turnlog.formats._shared.origin import UnknownRecords
from turnlog.interop.base64 import from_base64
from turnlog.interop.problem import Problems
from turnlog.interop.records import first_records, load_sidecar, rows
from turnlog.interop.value import as_list, fields, items, moment, text, token_count, usage_in, without_none
from turnlog.log.block import AnyBlock, File, Image, Text, Thinking, ToolCall, ToolResult
from turnlog.log.entry import AnyEntry, Compaction, Message, Note
from turnlog.log.usage import Usage

_NAME = "droid"
_QUIET = ("session_start", "agent_turn_outcome")
_SIDE = "btw"
"""The folder of side conversations, which its own list does not show."""


def _is_ours(path: str) -> bool:
    first = next(first_records(path, 1), dict[str, Any]()) if path.endswith(".jsonl") else {}
    return first.get("type") == "session_start" and isinstance(first.get("id"), str) and "owner" in first


def _settings_of(source: Source) -> list[str]:
    return [source.path.removesuffix(".jsonl") + ".settings.json"]


def _read(source: Source) -> Reading:
    problems: Problems = []
    first: dict[str, Any] = {}
    created = None
    for row in rows(source.path, []):
        first = first or row.data
        created = moment(row.data.get("timestamp"))
        if created is not None:
            break
    parent, caller = text(first.get("parent")), text(first.get("callingSessionId"))
    older = os.path.join(os.path.dirname(source.path), f"{os.path.basename(parent or '')}.jsonl")
    fork = Source(_NAME, older) if os.path.isfile(older) else None
    header = SessionHeader(
        id=text(first.get("id")) or os.path.basename(source.path).removesuffix(".jsonl"),
        workspace=text(first.get("lastCwd")) or text(first.get("cwd")),
        title=text(first.get("sessionTitle")) or text(first.get("title")),
        created=created,
        hidden=os.path.basename(os.path.dirname(source.path)) == _SIDE,
        fork=Forked(parent, source=fork) if parent and not caller else None,
        spawned=Spawn(caller, text(first.get("callingToolUseId"))) if caller else None,
    )
    settings = fields(load_sidecar(_settings_of(source)[0], problems))
    model, totals = text(settings.get("model")), dict[str, Usage]()
    facts = without_none({
        "model": model, "provider": text(settings.get("providerLock")),
        "permission_mode": text(settings.get("autonomyLevel")),
        "archived": True if settings.get("archivedAt") else None,
    })  # fmt: skip
    used = fields(settings.get("tokenUsage"))
    # Input is without what a cache answered or took; output has the thinking in it.
    usage = usage_in(used, "inputTokens", "outputTokens", "cacheReadTokens", "cacheCreationTokens", "thinkingTokens")
    usage = replace(usage, reasoning_tokens=min(usage.reasoning_tokens, usage.output_tokens))
    if usage != Usage():
        totals[model or ""] = usage
    steps = _steps(source, problems)
    return Reading(header=header, steps=steps, problems=problems, facts=facts, totals=totals)


def _steps(source: Source, problems: Problems) -> Iterator[Step]:
    keys, unknown_records = Keys(), UnknownRecords(_NAME)
    messages = dict[str, None]()
    """Their keys, in the order of the file."""
    for row in rows(source.path, problems):
        kind, at = row.data.get("type"), moment(row.data.get("timestamp"))
        id, names = text(row.data.get("id")), dict[str, str]()
        if kind in _QUIET or (kind == "message" and id in messages):
            continue
        if kind == "message":
            entries: Sequence[AnyEntry] = [*_messages(row.data, at)]
        elif kind == "compaction_state":
            entry, names = _compaction(row.data, list(messages), at)
            entries = [entry]
        elif kind == "todo_state":
            entries = [Note(text="todo state", data=row.data.get("todos"), at=at)]
        else:
            entries, id = [unknown_records.note(str(kind), row.data)], None
        key = id or keys.of(entries[0])
        if kind == "message":
            messages[key] = None
        for number, entry in enumerate(entries):
            yield Record(entry=entry, key=f"{key}#{number}" if number else key, names=names)
    unknown_records.report(problems)


def _compaction(raw: dict[str, Any], messages: list[str], at: datetime | None) -> tuple[Compaction, dict[str, str]]:
    """A summary stands for all up to a message; what follows that one stays."""
    anchor = fields(raw.get("anchorMessage")).get("id")
    kept = messages[messages.index(anchor) + 1 :][:1] if anchor in messages else []
    summary = text(raw.get("summaryText")) or text(fields(raw.get("summary")).get("body")) or ""
    entry = Compaction(
        replacement=[Message(role="user", blocks=[Text(text=summary)])],
        tokens_after=token_count(raw.get("summaryTokens")) or None,
        trigger=text(raw.get("summaryKind")),
        at=at,
    )
    return entry, {"keep": kept[0]} if kept else {}


def _messages(raw: dict[str, Any], at: datetime | None) -> list[Message | Note]:
    """A record of Droid: what tools answered, what was said, or what only people see."""
    message = fields(raw.get("message"))
    content = message.get("content")
    parts: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else as_list(content)
    role = message.get("role")
    if role not in ("user", "assistant") or message.get("visibility") == "user_only":
        words = " ".join(str(part["text"]) for part in items(parts) if text(part.get("text")))
        return [Note(text=words or "a message of an unknown role", data=message, at=at)]
    is_hidden = message.get("visibility") == "llm_only" or message.get("isUserVisible") is False
    display = False if is_hidden or message.get("hiddenFromUserViews") is True else None
    results: list[AnyBlock] = [_result(part) for part in items(parts) if part.get("type") == "tool_result"]
    blocks = [_block(part) for part in parts if fields(part).get("type") != "tool_result"]
    thought = text(message.get("openaiReasoningSummary"))
    if thought:
        blocks.insert(0, Thinking(text=thought, provider="openai"))
    return [*results_apart(role, results, blocks, at, display=display, model=text(message.get("modelId")))]


def _block(raw: Any) -> AnyBlock:
    part = fields(raw)
    kind, source = part.get("type"), fields(part.get("source"))
    if kind == "tool_use" and text(part.get("id")) is not None and text(part.get("name")) is not None:
        return ToolCall(id=part["id"], name=part["name"], input=part.get("input"))
    if kind in ("image", "document") and isinstance(source.get("data"), str):
        make, content = Image if kind == "image" else File, source["data"]
        data = content.encode() if source.get("type") == "text" else from_base64(content)
        if data is not None:
            return make(media_type=text(source.get("media_type")), data=data)
    if part.get("signatureProvider") != "anthropic":
        part = {**part, "signature": None}
    return usual(part) or unknown(_NAME, raw)


def _result(part: dict[str, Any]) -> ToolResult:
    content: Any = part.get("content")
    answer = [_block(one) for one in as_list(content)] if isinstance(content, list) else worded(content)
    return ToolResult(call=str(part.get("tool_use_id") or ""), content=answer, is_error=part.get("is_error") is True)


FORMAT = Format(
    "Factory Droid, as 0.105 to 0.225 write it",
    homes_under_variable("FACTORY_HOME_OVERRIDE", "", ".factory/sessions"),
    find_files(_NAME, _is_ours),
    _read,
    resume=resume_command("droid", "--resume", "ID"),
    watch=Watching(by_file=True, sidecars=_settings_of),
)

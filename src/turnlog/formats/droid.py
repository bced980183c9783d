"""Factory Droid: a JSON line per record under `~/.factory/sessions/-<folder>/<session>.jsonl`. Only read.

The first line is rewritten when the title changes, so nothing is taken from the middle of a file. What was spent is a
total in the settings; no message says it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, cast

from msgspec.structs import replace

from turnlog.formats import Forked, Format, Reading, Record, Resuming, SessionHeader, Source, Spawn, Step, Watching
from turnlog.formats._shared.finding import beneath, found_by
from turnlog.formats._shared.foreign import unknown
from turnlog.formats._shared.json import from_base64
from turnlog.formats._shared.key import UUIDS
from turnlog.formats._shared.problem import Problems, UnknownRecords, report
from turnlog.formats._shared.records import RawRecord, first_records, loaded, rows
from turnlog.formats._shared.value import count, fields, items, json_text, listed, moment, said, text, usage_in
from turnlog.log.block import AnyBlock, File, Image, Text, Thinking, ToolCall, ToolResult
from turnlog.log.entry import Compaction, Message, Note
from turnlog.log.usage import Usage

_NAME = "droid"
_QUIET = ("session_start", "agent_turn_outcome")
_SIDE = "btw"
"""The folder of side conversations, which its own list does not show."""


def _is_ours(path: str) -> bool:
    if not path.endswith(".jsonl"):
        return False
    for first in first_records(path, 1):
        return first.get("type") == "session_start" and isinstance(first.get("id"), str) and "owner" in first
    return False


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
    header = SessionHeader(
        id=text(first.get("id")) or os.path.basename(source.path).removesuffix(".jsonl"),
        workspace=text(first.get("lastCwd")) or text(first.get("cwd")),
        title=text(first.get("sessionTitle")) or text(first.get("title")),
        created=created,
        hidden=os.path.basename(os.path.dirname(source.path)) == _SIDE,
        fork=_fork(parent, source) if parent and not caller else None,
        spawned=Spawn(caller, text(first.get("callingToolUseId"))) if caller else None,
    )
    reading = Reading(header=header, steps=iter(()), problems=problems)
    _settle(reading, _settings(source, problems))
    reading.steps = _steps(source, reading)
    return reading


def _fork(parent: str, source: Source) -> Forked:
    beside = os.path.join(os.path.dirname(source.path), f"{os.path.basename(parent)}.jsonl")
    return Forked(parent, source=Source(_NAME, beside) if os.path.isfile(beside) else None)


def _settings(source: Source, problems: Problems) -> dict[str, Any]:
    [path] = _settings_of(source)
    if not os.path.isfile(path):
        return {}
    try:
        return fields(loaded(path, problems))
    except OSError as error:
        report(problems, f"its settings cannot be read, and so what it spent is not known: {error.strerror}")
        return {}


def _settle(reading: Reading, settings: dict[str, Any]) -> None:
    """What the settings know: the model, how it was run, and what the session spent itself."""
    model = text(settings.get("model"))
    reading.facts |= said({
        "model": model, "provider": text(settings.get("providerLock")),
        "permission_mode": text(settings.get("autonomyLevel")),
        "archived": True if settings.get("archivedAt") else None,
    })  # fmt: skip
    used = fields(settings.get("tokenUsage"))
    # Input is without what a cache answered or took; output has the thinking in it.
    usage = usage_in(used, "inputTokens", "outputTokens", "cacheReadTokens", "cacheCreationTokens", "thinkingTokens")
    usage = replace(usage, reasoning_tokens=min(usage.reasoning_tokens, usage.output_tokens))
    if usage != Usage():
        reading.totals[model or ""] = usage


def _steps(source: Source, reading: Reading) -> Iterator[Step]:
    seen: list[tuple[str, str]] = []
    """The messages so far: the id, and the key of its first record."""
    used, unknown_records = set[str](), UnknownRecords(_NAME)
    for row in rows(source.path, reading.problems):
        kind = row.data.get("type")
        if kind == "message":
            id = text(row.data.get("id")) or f"at {row.offset}"
            if id in used:
                continue
            used.add(id)
            entries = _messages(row)
            seen.append((id, id))
            for number, entry in enumerate(entries):
                yield Record(entry=entry, key=f"{id}#{number}" if number else id)
        elif kind == "compaction_state":
            yield _compaction(row, seen)
        elif kind == "todo_state":
            note = Note(text="todo state", data=row.data.get("todos"), at=moment(row.data.get("timestamp")))
            yield Record(entry=note, key=text(row.data.get("id")) or f"at {row.offset}")
        elif kind not in _QUIET:
            yield Record(entry=unknown_records.note(str(kind), row.data), key=f"at {row.offset}")
    unknown_records.report(reading.problems)


def _compaction(row: RawRecord, seen: list[tuple[str, str]]) -> Record:
    """A summary stands for all up to a message; what follows that one stays."""
    raw = row.data
    anchor = fields(raw.get("anchorMessage")).get("id")
    index = next((number for number, (id, _) in enumerate(seen) if id == anchor), len(seen) - 1)
    kept = seen[index + 1][1] if index + 1 < len(seen) else None
    summary = text(raw.get("summaryText")) or text(fields(raw.get("summary")).get("body")) or ""
    at = moment(raw.get("timestamp"))
    entry = Compaction(
        replacement=[Message(role="user", blocks=[Text(text=summary)])],
        tokens_after=count(raw.get("summaryTokens")) or None,
        trigger=text(raw.get("summaryKind")),
        at=at,
    )
    names = {"keep": kept} if kept is not None else {}
    return Record(entry=entry, key=text(raw.get("id")) or f"at {row.offset}", names=names)


def _messages(row: RawRecord) -> list[Message | Note]:
    """A record of Droid: what tools answered, what was said, or what only people see."""
    message, at = fields(row.data.get("message")), moment(row.data.get("timestamp"))
    content = message.get("content")
    parts: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else listed(content)
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
    entries: list[Message | Note] = []
    if results:
        entries.append(Message(role="tool", blocks=results, at=at, display=display))
    if blocks or not results:
        calls = any(isinstance(block, ToolCall) for block in blocks)
        stop = ("tool_use" if calls else "end") if role == "assistant" else None
        model = text(message.get("modelId"))
        entries.append(Message(role=role, blocks=blocks, at=at, display=display, stop=stop, model=model))
    return entries


def _block(raw: Any) -> AnyBlock:
    part = fields(raw)
    kind, source = part.get("type"), fields(part.get("source"))
    if kind == "text" and isinstance(part.get("text"), str):
        return Text(text=part["text"])
    if kind == "thinking" and isinstance(part.get("thinking"), str):
        is_signed = part.get("signatureProvider") == "anthropic" and text(part.get("signature")) is not None
        data = {"signature": part["signature"]} if is_signed else None
        return Thinking(text=part["thinking"], provider="anthropic" if is_signed else None, data=data)
    if kind == "redacted_thinking" and text(part.get("data")) is not None:
        return Thinking(provider="anthropic", data={"redacted": part["data"]})
    if kind == "tool_use" and text(part.get("id")) is not None and text(part.get("name")) is not None:
        return ToolCall(id=part["id"], name=part["name"], input=part.get("input"))
    if kind in ("image", "document") and isinstance(source.get("data"), str):
        make, content = Image if kind == "image" else File, source["data"]
        data = content.encode() if source.get("type") == "text" else from_base64(content)
        if data is not None:
            return make(media_type=text(source.get("media_type")), data=data)
    return unknown(_NAME, raw)


def _result(part: dict[str, Any]) -> ToolResult:
    content: Any = part.get("content")
    answer: str | list[AnyBlock]
    if isinstance(content, list):
        answer = [_block(one) for one in cast("list[Any]", content)]
    else:
        answer = content if isinstance(content, str) else "" if content is None else json_text(content)
    return ToolResult(call=str(part.get("tool_use_id") or ""), content=answer, is_error=part.get("is_error") is True)


FORMAT = Format(
    "Factory Droid, as 0.105 to 0.225 write it",
    beneath("FACTORY_HOME_OVERRIDE", "", ".factory/sessions"),
    found_by(_NAME, _is_ours),
    _read,
    resume=Resuming(command=lambda id, path, workspace: ["droid", "--resume", id], ids=UUIDS),
    watch=Watching(by_file=True, sidecars=_settings_of),
)

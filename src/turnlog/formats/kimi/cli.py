"""A session of kimi-cli: `context.jsonl` is what the model sees, `wire.jsonl` what happened and what it cost.

A revert or a compaction puts the context aside as `context_1.jsonl` and begins a new one. All of them are read in
turn: what a new one has in common with the one before stays, and the rest is a branch, or what a summary stands for.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from hashlib import md5
from itertools import islice, takewhile
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from turnlog.formats import Jump, Problem, Reading, Record, SessionHeader, Source, Spawn, Step
from turnlog.formats._shared.origin import of_unknown_role
from turnlog.formats.kimi import parts
from turnlog.interop.folder import names_in
from turnlog.interop.json import json_or_text
from turnlog.interop.overlap import overlap
from turnlog.interop.records import RawRecord, load_sidecar, read_beside, rows
from turnlog.interop.value import as_list, fields, items, moment, text, without_none
from turnlog.log.block import AnyBlock, Text, ToolCall
from turnlog.log.entry import Compaction, Message, Spent

ROTATED = re.compile(r"context(?:_(\d+)\.jsonl|\.(\d+)\.jsonl|\.jsonl\.(\d+))")
_SUB = re.compile(r"context_sub_\d+\.jsonl")
MARKS = ("_system_prompt", "_checkpoint", "_usage")
"""The roles of records that are no messages."""
_SUMMARY = "Previous context has been compacted"


def read(source: Source) -> Reading:
    """See `turnlog.formats`."""
    folder, name = parts.parent_of(source.path), os.path.basename(source.path)
    problems: list[Problem] = []
    is_wire = name == "wire.jsonl"
    path = os.path.join(folder, "wire.jsonl")
    is_session = is_wire or name == "context.jsonl"
    wire = _Wire(path, [] if is_wire else problems) if is_session else _Wire("", [])
    state = fields(load_sidecar(os.path.join(folder, "state.json"), problems if is_session else []))
    facts = _facts(state) if is_session else {}
    steps = _from_wire(source, problems, wire) if is_wire else _Reader(source, problems, facts, wire).steps()
    return Reading(header=_header(folder, name, wire, state, problems), steps=steps, problems=problems, facts=facts)


def _header(folder: str, name: str, wire: _Wire, state: dict[str, Any], problems: list[Problem]) -> SessionHeader:
    outer = os.path.dirname(folder)
    id, spawned = os.path.basename(folder), None
    workspace, title = _workspace(outer), text(state.get("custom_title"))
    if os.path.basename(outer) == "subagents":
        meta = fields(load_sidecar(os.path.join(folder, "meta.json"), problems))
        session = os.path.dirname(outer)
        spawned = Spawn(os.path.basename(session), role=text(meta.get("subagent_type")))
        id, title = f"{spawned.session}.{id}", text(meta.get("description"))
        workspace = text(fields(meta.get("launch_spec")).get("work_dir")) or _workspace(os.path.dirname(session))
    elif _SUB.fullmatch(name):
        spawned = Spawn(id)
        id = f"{id}.{name.removesuffix('.jsonl').removeprefix('context_')}"
    elif name not in ("context.jsonl", "wire.jsonl"):
        id, title, workspace = name.removesuffix(".jsonl"), None, _workspace(folder)
    return SessionHeader(
        id=id, workspace=workspace, title=title, created=wire.started, spawned=spawned, hidden=spawned is not None,
        origin={"protocol": wire.protocol} if wire.protocol else None,
    )  # fmt: skip


def _workspace(folder: str) -> str | None:
    """The folder of the sessions is called after a digest of the workspace; the program keeps a list of those."""
    wanted = os.path.basename(folder)
    for item in items(fields(load_sidecar(os.path.join(parts.parent_of(folder, 2), "kimi.json"), [])).get("work_dirs")):
        path = text(item.get("path"))
        if path is not None and wanted.endswith(md5(path.encode("utf-8", "surrogatepass")).hexdigest()):
            return path
    return None


def _facts(state: dict[str, Any]) -> dict[str, Any]:
    return without_none({
        "permission_mode": "yolo" if fields(state.get("approval")).get("yolo") is True else None,
        "archived": True if state.get("archived") is True else None,
        "tasks": as_list(state.get("todos")) or None,
        "directories": as_list(state.get("additional_dirs")) or None,
    })  # fmt: skip


class _Wire:
    """What `wire.jsonl` knows and the context does not: when, at what cost, and with what success."""

    def __init__(self, path: str, problems: list[Problem]) -> None:
        self.started: datetime | None = None
        self.protocol: str | None = None
        self.spent: deque[Record] = deque()
        self.results: dict[str, tuple[datetime | None, bool]] = {}
        """When each call was answered, and whether that was an error."""
        self.call_times: dict[str, datetime | None] = {}
        self.prompt_times: dict[str, deque[datetime | None]] = {}
        """When a prompt of these words was sent: each time."""
        self._names = parts.RecordNames()
        self._seen: set[str] = set()
        if not os.path.isfile(path):
            return
        self._agents = set(names_in(os.path.join(os.path.dirname(path), "subagents")))
        """The subagents that have a context of their own."""
        for row in read_beside(partial(rows, path, marks=("message", "type")), problems, path):
            at = moment(row.data.get("timestamp"))
            self.started = self.started or at
            self.protocol = self.protocol or text(row.data.get("protocol_version"))
            self._take(fields(row.data.get("message")), at, "")

    def _take(self, event: dict[str, Any], at: datetime | None, agent: str) -> None:
        kind, about = event.get("type"), fields(event.get("payload"))
        if kind == "StatusUpdate":
            self._take_usage(about, at, agent)
        elif kind == "SubagentEvent" and not agent:
            name = text(about.get("agent_id")) or "subagent"
            if name not in self._agents:
                self._take(fields(about.get("event")), at, name)
        elif agent:
            return
        elif kind == "ToolResult":
            is_error = fields(about.get("return_value")).get("is_error") is True
            self.results[str(about.get("tool_call_id"))] = at, is_error
        elif kind == "ToolCall":
            self.call_times[str(about.get("id"))] = at
        elif kind in ("TurnBegin", "SteerInput"):
            self.prompt_times.setdefault(_words(about.get("user_input")), deque()).append(at)

    def _take_usage(self, about: dict[str, Any], at: datetime | None, agent: str) -> None:
        usage = parts.usage_of(about.get("token_usage"))
        if usage is None:
            return
        request = text(about.get("message_id"))
        name = f"usage {request} {parts.digest(about.get('token_usage'))}"
        if request is not None and name in self._seen:
            return  # told again
        self._seen.add(name)
        entry = Spent(usage=usage, why="subagent" if agent else None, request=request, at=at)
        self.spent.append(Record(entry=entry, key=self._names.of(name)))


def _words(content: Any) -> str:
    return "\n".join(block.text for block in parts.blocks_of(content) if isinstance(block, Text))[:2000]


class _Reader:
    def __init__(self, source: Source, problems: list[Problem], facts: dict[str, Any], wire: _Wire) -> None:
        self._source = source
        self._problems, self._facts = problems, facts
        self._wire = wire
        self._names = parts.RecordNames()
        self._before: list[tuple[str, str]] = []
        """The context as it was: what each message says, and its key."""
        self._calls: dict[str, str] = {}
        self._at = wire.started

    def steps(self) -> Iterator[Step]:
        """All of it."""
        number = 0
        for number, path in self._rotated():
            yield from read_beside(partial(self._state, path, number), self._problems, path)
        yield from self._state(self._source.path, number + 1, self._problems)
        yield from self._wire.spent

    def _rotated(self) -> list[tuple[int, str]]:
        folder = parts.parent_of(self._source.path)
        if os.path.basename(self._source.path) != "context.jsonl":
            return []
        matches = ((name, ROTATED.fullmatch(name)) for name in names_in(folder))
        numbers = ((next(filter(None, match.groups())), name) for name, match in matches if match is not None)
        return sorted((int(number[:9]), os.path.join(folder, name)) for number, name in numbers)

    def _state(self, path: str, number: int, problems: list[Problem]) -> Iterator[Step]:
        start = 0
        if self._before:
            fresh = [parts.digest(raw) for raw in _messages(path)]
            pairs = zip(fresh, self._before, strict=False)
            start = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1][0], pairs))
            if start < len(self._before):
                start, step = self._turned(path, fresh, start, number)
                yield step
        index = 0
        for row in rows(path, problems, marks=("role",)):
            if _is_message(row.data):
                index += 1
                if index > start:
                    yield from self._message(row, problems)
            elif row.data.get("role") == "_system_prompt" and text(row.data.get("content")):
                self._facts["system"] = row.data["content"]

    def _turned(self, path: str, fresh: list[str], same: int, number: int) -> tuple[int, Step]:
        """The new context is not the old one and more: a revert, a compaction, or a beginning."""
        if same:
            self._before = self._before[:same]
            return same, Jump(to=self._before[-1][1], key=f"revert {number}", why="rewind")
        at, length = overlap([what for what, _ in self._before], fresh)
        if not length:
            first = next(_messages(path), None)
            if _SUMMARY not in _words(fields(first).get("content")):
                self._before = []
                return 0, Jump(to="", key=f"clear {number}", why="rewind")
            at = 1
        kept = self._before[len(self._before) - length :]
        keep = kept[0][1] if kept else ""
        key = f"compaction {number} {keep}".strip()
        messages = [self._entry(raw) for raw in islice(_messages(path), at)]
        entry = Compaction(replacement=[replace(m, at=None) for m in messages if m is not None], at=self._at)
        self._before = [*((what, key) for what in fresh[:at]), *kept]
        return at + length, Record(entry=entry, key=key, names={"keep": keep} if keep else {})

    def _message(self, row: RawRecord, problems: list[Problem]) -> Iterator[Step]:
        raw = row.data
        what = parts.digest(raw)
        key = self._names.of(what)
        self._when(raw)
        entry = self._entry(raw)
        if entry is None:
            yield Record(entry=of_unknown_role(raw.get("role"), raw, self._at, problems, row.offset), key=key)
            self._before.append((what, self._before[-1][1] if self._before else ""))
            return
        spent = self._wire.spent
        while spent and self._at is not None and (spent[0].entry.at or self._at) < self._at:
            yield spent.popleft()
        yield Record(entry=entry, key=key)
        self._before.append((what, key))

    def _when(self, raw: dict[str, Any]) -> None:
        """The context has no times: those of what happened, and in between that of what came before."""
        time: datetime | None = None
        if raw.get("role") == "tool":
            time = self._wire.results.get(str(raw.get("tool_call_id")), (None, False))[0]
        elif raw.get("role") == "user":
            times = self._wire.prompt_times.get(_words(raw.get("content")))
            time = times.popleft() if times else None
        else:
            calls = items(raw.get("tool_calls"))
            time = self._wire.call_times.get(str(calls[0].get("id"))) if calls else None
        if time is not None and (self._at is None or time > self._at):
            self._at = time

    def _entry(self, raw: dict[str, Any]) -> Message | None:
        is_error = self._wire.results.get(str(raw.get("tool_call_id") or ""), (None, False))[1]
        entry = parts.message_of(raw, self._calls, self._at, is_error=is_error)
        if entry is None or entry.role != "assistant":
            return entry
        return replace(entry, stop="tool_use" if as_list(raw.get("tool_calls")) else "end")


def _messages(path: str) -> Iterator[dict[str, Any]]:
    return (row.data for row in rows(path, [], marks=("role",)) if _is_message(row.data))


def _is_message(raw: dict[str, Any]) -> bool:
    return raw.get("role") not in MARKS


class _Open(Struct):
    """An answer that is still arriving. The arguments of a call may come in pieces."""

    at: datetime | None
    blocks: list[AnyBlock]
    calls: list[tuple[str, str, list[str]]]
    results: list[Message]


def _from_wire(source: Source, problems: list[Problem], wire: _Wire) -> Iterator[Step]:
    names, step, number = parts.RecordNames(), None, 0
    for row in rows(source.path, problems, marks=("message", "type")):
        event, at = fields(row.data.get("message")), moment(row.data.get("timestamp"))
        kind, about = event.get("type"), fields(event.get("payload"))
        if kind in ("TurnBegin", "SteerInput", "StepBegin", "TurnEnd"):
            yield from _closed(step, f"step {number}")
            step = None
        if kind in ("TurnBegin", "SteerInput"):
            prompt = about.get("user_input")
            entry = Message(role="user", blocks=parts.blocks_of(prompt), at=at)
            yield Record(entry=entry, key=names.of(parts.digest(prompt)))
        elif kind in ("StepBegin", "ContentPart", "ToolCall", "ToolResult") and step is None:
            number += 1
            step = _Open(at, [], [], [])
        if step is None:
            continue
        if kind == "ContentPart":
            step.blocks += parts.blocks_of([about])
        elif kind == "ToolCall":
            inner = fields(about.get("function"))
            name, given = str(inner.get("name") or ""), inner.get("arguments")
            step.calls.append((str(about.get("id") or ""), name, [given] if isinstance(given, str) else []))
        elif kind == "ToolCallPart" and step.calls:
            step.calls[-1][2].append(text(about.get("arguments_part")) or "")
        elif kind == "ToolResult":
            value = fields(about.get("return_value"))
            called = {id: name for id, name, _ in reversed(step.calls)}
            content, is_error = parts.output(value.get("output")), value.get("is_error") is True
            step.results.append(parts.result_of(about.get("tool_call_id"), called, content, at, is_error=is_error))
    yield from _closed(step, f"step {number}", is_tail=True)
    yield from wire.spent


def _closed(step: _Open | None, key: str, *, is_tail: bool = False) -> Iterator[Step]:
    if step is None:
        return
    calls = [ToolCall(id=id, name=name, input=json_or_text("".join(pieces))) for id, name, pieces in step.calls]
    blocks: list[AnyBlock] = [*step.blocks, *calls]
    if is_tail:
        key = f"{key}~{len(blocks) + len(step.results)}"
    if blocks:
        entry = Message(role="assistant", blocks=blocks, at=step.at, stop="tool_use" if calls else "end")
        yield Record(entry=entry, key=key)
    for index, result in enumerate(step.results):
        yield Record(entry=result, key=f"{key}#{index}")

"""GitHub Copilot CLI: events, one JSON line each, under `~/.copilot/session-state/<session>/events.jsonl`. Only read.

The events of subagents lie among those of the session, and name the call that started them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from turnlog.formats import (
    Format,
    Jump,
    Reading,
    Record,
    ResumePoint,
    Resuming,
    SessionHeader,
    Source,
    Spawn,
    Step,
    Watching,
)
from turnlog.formats._shared import growth
from turnlog.formats._shared.finding import beneath, files_under
from turnlog.formats._shared.json import lines
from turnlog.formats._shared.key import UUIDS
from turnlog.formats._shared.problem import UnknownRecords, report
from turnlog.formats._shared.records import first_records, heads, record_at, record_in, rows
from turnlog.formats._shared.value import branches_in, fields, items, json_text, moment, text, usage_in, whole
from turnlog.log.block import AnyBlock, Text, Thinking, ToolCall, ToolResult
from turnlog.log.entry import Compaction, Message, Note, Spent
from turnlog.log.usage import Usage

_NAME = "copilot-cli"
_QUIET = (
    "assistant.turn_start", "assistant.turn_end", "assistant.intent", "assistant.streaming_delta", "assistant.message_",
    "assistant.reasoning", "tool.execution_start", "tool.execution_progress", "tool.execution_partial", "tool.user_",
    "hook.", "permission.", "external_tool.", "command.", "commands.", "elicitation.", "user_input.", "sampling.",
    "mcp.", "pending_messages.", "capabilities.", "exit_plan_mode.", "subagent.", "skill.", "abort",
    "session.mode_changed", "session.compaction_start", "session.usage_", "session.task_complete", "session.resume",
    "session.auto_mode_resolved", "session.idle", "session.context_changed", "session.tools_updated",
    "session.background_tasks_changed", "session.skills_loaded", "session.custom_agents_updated",
    "session.mcp_server", "session.plan_changed", "session.workspace_file_changed", "session.handoff",
)  # fmt: skip
"""Prefixes of event types that repeat other events."""


def _find(path: str) -> Iterator[Source]:
    for file in files_under(path):
        yield from _in_file(file)


def _sidecars(source: Source) -> list[str]:
    folder, name = os.path.split(source.path)
    return [os.path.join(folder, "workspace.yaml")] if name == "events.jsonl" else []


def _in_file(path: str) -> Iterator[Source]:
    if not _is_ours(path):
        return
    yield Source(_NAME, path)
    calls: dict[str, None] = {}
    for line in lines(path):
        if b'"parentToolCallId"' in line.data:
            call = text(fields(record_in(line.data).get("data")).get("parentToolCallId"))
            if call is not None:
                calls[call] = None
    yield from (Source(_NAME, path, call) for call in calls)


def _is_ours(path: str) -> bool:
    return path.endswith(".jsonl") and any(
        isinstance(record.get("data"), dict) and "." in str(record.get("type")) and "parentId" in record
        for record in first_records(path, 11)
    )


class _State(Struct, omit_defaults=True):
    """What is known at a mark; `title` and `facts` are those of now."""

    before: str = ""
    """The event before it, and the node."""
    last: str = ""
    model: str | None = None
    counted: dict[str, Usage] = {}
    title: str | None = None
    facts: dict[str, Any] = {}


def _read(source: Source, mark: ResumePoint | None = None, state: _State | None = None) -> Reading:
    """See `turnlog.formats`; with a mark, only what comes behind it."""
    start: dict[str, Any] = {}
    at: Any = None
    for number, row in enumerate(rows(source.path, [])):
        at = at or row.data.get("timestamp")
        if row.data.get("type") == "session.start":
            start = fields(row.data.get("data"))
        if start or number > 20:
            break
    about = fields(start.get("context"))
    folder = os.path.dirname(os.path.abspath(source.path))
    is_folder = os.path.basename(source.path) == "events.jsonl"
    name = os.path.basename(folder) if is_folder else os.path.basename(source.path).removesuffix(".jsonl")
    notes = _beside(folder) if is_folder else {}
    id = text(start.get("sessionId")) or name
    header = SessionHeader(
        id=f"{id}.{source.key}" if source.key else id,
        workspace=text(about.get("cwd")) or notes.get("cwd"),
        created=moment(start.get("startTime") or at),
        git_branches=branches_in(about.get("branch")),
        hidden=bool(source.key),
        spawned=Spawn(id, source.key) if source.key else None,
        origin={"version": start["copilotVersion"]} if text(start.get("copilotVersion")) else None,
    )
    state = state or _State()
    reading = Reading(header=header, steps=iter(()), facts={**state.facts})
    title = None if source.key else notes.get("name") or notes.get("summary")
    reading.steps = _Reader(source, reading, title, mark, state).steps()
    return reading


def _beside(folder: str) -> dict[str, str]:
    """What `workspace.yaml` says in single lines."""
    try:
        with open(os.path.join(folder, "workspace.yaml"), encoding="utf-8", errors="replace") as file:
            pairs = [line.partition(": ") for line in file.read(1 << 16).splitlines()]
    except OSError:
        return {}
    values = {key: value.strip().strip("'\"") for key, _, value in pairs}
    return {key: value for key, value in values.items() if value and value not in ("|-", "|", ">-", ">", "null")}


class _Reader:
    def __init__(
        self, source: Source, reading: Reading, beside: str | None, start: ResumePoint | None, state: _State
    ) -> None:
        self._source = source
        self._reading = reading
        self._beside = beside
        """The title that is told beside it; one that an event tells goes before."""
        self._mark = self._start = start
        self._known = state
        self._before, self._model, self._title = state.before, state.model, state.title
        self._nodes = [state.last] if start is not None else []
        """The key of every node of the conversation, in order."""
        self._places = {state.before: 0} if start is not None else {}
        """How many nodes there were before each event."""
        self._counted = dict(state.counted)
        self._offsets: dict[str, int] = {}
        self._names: dict[str, str] = {}
        self._unknown = UnknownRecords(_NAME)
        self._given = start.steps if start is not None else 0
        self._next = 0  # from where on the next mark may be

    def steps(self) -> Iterator[Step]:
        """All of it."""
        start = self._start.offset if self._start is not None else 0
        for offset, record in heads(self._source.path, self._reading.problems, start=start):
            for step in self._taken(record, offset):
                self._given += 1
                yield step
        if self._mark is not None:
            state = replace(self._known, title=self._title, facts=growth.small(self._reading.facts))
            self._reading.mark = replace(self._mark, state=to_builtins(state))
        self._reading.header = replace(self._reading.header, title=self._title or self._beside)
        self._unknown.report(self._reading.problems)

    def _taken(self, record: dict[str, Any], offset: int) -> Iterator[Step]:
        id, parent = text(record.get("id")) or f"at {offset}", text(record.get("parentId")) or ""
        if id in self._places:
            if id not in self._offsets:
                raise growth.NeedsFullRead
            if record_at(self._source.path, self._offsets[id]) == record:
                return
            id = f"{id} at {offset}"
        if self._start is not None and parent not in self._places:
            raise growth.NeedsFullRead
        data, at = fields(record.get("data")), moment(record.get("timestamp"))
        is_own = (text(data.get("parentToolCallId")) or "") == self._source.key
        if offset >= self._next and is_own and parent == self._before:
            self._may_mark(record, offset)
        self._before = id
        self._offsets[id] = offset
        self._places[id] = len(self._nodes)
        self._learn(data)
        if is_own:
            yield from self._event(id, record, data, at, offset)
        elif record.get("type") == "assistant.usage":
            self._count(text(data.get("model")) or self._model, _usage(data))
        elif self._source.key and record.get("type") == "assistant.message":
            yield from self._asked(data, at)

    def _may_mark(self, record: dict[str, Any], offset: int) -> None:
        """A prompt or an answer, with something before it."""
        if record.get("type") in ("user.message", "assistant.message") and self._nodes and not self._source.key:
            self._next = offset + growth.APART
            self._known = _State(self._before, self._nodes[-1], self._model, dict(self._counted))
            self._mark = ResumePoint(offset, self._given)

    def _learn(self, data: dict[str, Any]) -> None:
        """The names of tools, which results do not say."""
        for item in [data, *items(data.get("toolRequests"))]:
            call, name = text(item.get("toolCallId")), text(item.get("toolName")) or text(item.get("name"))
            if call is not None and name is not None:
                self._names[call] = name

    def _asked(self, data: dict[str, Any], at: datetime | None) -> Iterator[Step]:
        """What the call that started this subagent told it."""
        for item in items(data.get("toolRequests")):
            prompt = text(fields(item.get("arguments")).get("prompt"))
            if item.get("toolCallId") == self._source.key and prompt is not None and not self._nodes:
                yield self._node("prompt", Message(role="user", blocks=[Text(text=prompt)], at=at))

    def _node(self, key: str, entry: Any) -> Record:
        self._nodes.append(key)
        return Record(entry=entry, key=key)

    def _count(self, model: str | None, spent: Usage) -> None:
        self._counted[model or ""] = self._counted.get(model or "", Usage()) + spent

    def _event(
        self, id: str, record: dict[str, Any], data: dict[str, Any], at: datetime | None, offset: int
    ) -> Iterator[Step]:
        kind = str(record.get("type"))
        if kind == "user.message":
            typed, sent = text(data.get("content")) or "", text(data.get("transformedContent"))
            blocks: list[AnyBlock] = [Text(text=sent or typed)]
            display = typed if sent is not None and sent != typed else None
            attached = items(data.get("attachments"))
            meta = {"attachments": attached} if attached else None
            yield self._node(id, Message(role="user", blocks=blocks, display=display, at=at, meta=meta))
        elif kind == "system.message":
            yield self._node(id, Message(role="system", blocks=[Text(text=str(data.get("content") or ""))], at=at))
        elif kind == "assistant.message":
            yield self._node(id, replace(self._answer(data), at=at))
        elif kind == "tool.execution_complete":
            if self._start is not None and str(data.get("toolCallId")) not in self._names:
                raise growth.NeedsFullRead
            yield self._node(id, Message(role="tool", blocks=[_result(data, self._names)], at=at))
        elif kind in ("session.model_change", "session.start"):
            self._model = text(data.get("newModel")) or text(data.get("selectedModel")) or self._model
            if self._model:
                self._reading.facts["model"] = self._model
        elif kind == "assistant.usage":
            spent = _usage(data)
            model = text(data.get("model")) or self._model
            self._count(model, spent)
            yield Record(entry=Spent(usage=spent, model=model, at=at), key=id)
        elif kind == "session.shutdown" and not self._source.key:
            yield from self._shutdown(id, data, at)
        elif kind == "session.compaction_complete":
            yield from self._compacted(id, data, at)
        elif kind == "session.snapshot_rewind":
            yield from self._rewound(id, data, at, offset)
        elif kind in ("session.title_changed", "session.renamed"):
            self._title = text(data.get("title")) or text(data.get("name")) or self._title
        elif kind in ("session.info", "session.warning", "session.error", "session.truncation"):
            yield Record(entry=Note(text=text(data.get("message")) or kind, data=data, at=at), key=id)
        elif not kind.startswith(_QUIET):
            yield Record(entry=replace(self._unknown.note(kind, record, "an event"), at=at), key=id)

    def _compacted(self, id: str, data: dict[str, Any], at: datetime | None) -> Iterator[Step]:
        summary = text(data.get("summaryContent"))
        if summary is None or data.get("success") is False:
            return
        used = fields(data.get("compactionTokensUsed"))
        names = {"input": "inputTokens", "output": "outputTokens", "cachedInput": "cacheReadTokens"}
        spent = _usage({**{names.get(key, key): value for key, value in used.items()}})
        model = text(used.get("model")) or self._model
        self._count(model, spent)
        compaction = Compaction(
            replacement=[Message(role="user", blocks=[Text(text=summary)])],
            tokens_before=whole(data.get("preCompactionTokens")),
            usage=spent if spent != Usage() else None,
            model=model if spent != Usage() else None,
            at=at,
        )
        yield self._node(id, compaction)

    def _answer(self, data: dict[str, Any]) -> Message:
        blocks: list[AnyBlock] = []
        thought, opaque = text(data.get("reasoningText")), data.get("reasoningOpaque") or data.get("encryptedContent")
        if thought or opaque:
            blocks.append(Thinking(text=thought or "", provider="copilot", data={"opaque": opaque} if opaque else None))
        if text(data.get("content")):
            blocks.append(Text(text=data["content"]))
        calls = [
            ToolCall(
                id=str(item.get("toolCallId") or ""), name=str(item.get("name") or ""), input=item.get("arguments")
            )
            for item in items(data.get("toolRequests"))
        ]
        return Message(
            role="assistant", blocks=[*blocks, *calls], model=text(data.get("model")) or self._model,
            stop="tool_use" if calls else "end",
        )  # fmt: skip

    def _shutdown(self, id: str, data: dict[str, Any], at: datetime | None) -> Iterator[Step]:
        """At its end a session tells what each model spent in all: what no event told before is booked here."""
        for model, metrics in sorted(fields(data.get("modelMetrics")).items()):
            total = _usage(fields(fields(metrics).get("usage")))
            counted = self._counted.get(model, Usage())
            more = total.beyond(counted)
            self._counted[model] = counted + more
            if more != Usage():
                yield Record(entry=Spent(usage=more, model=model, why="session", at=at), key=f"{id} {model}")

    def _rewound(self, id: str, data: dict[str, Any], at: datetime | None, offset: int) -> Iterator[Step]:
        """That event and all after it are dropped."""
        target = text(data.get("upToEventId")) or ""
        if self._start is not None and target not in self._offsets:
            raise growth.NeedsFullRead
        if target not in self._places:
            problem = f"a rewind to event {target!r:.40}, which is not there"
            report(self._reading.problems, problem, offset=offset)
            return
        del self._nodes[self._places[target] :]
        yield Jump(to=self._nodes[-1] if self._nodes else "", key=id, why="rewind", at=at)


def _result(data: dict[str, Any], names: dict[str, str]) -> ToolResult:
    result, error = fields(data.get("result")), data.get("error")
    is_error = data.get("success") is False
    answer = result.get("content") if result else fields(error).get("message") or error
    detail = result.get("detailedContent")
    return ToolResult(
        call=str(data.get("toolCallId") or ""),
        name=names.get(str(data.get("toolCallId"))),
        content=answer if isinstance(answer, str) else "" if answer is None else json_text(answer),
        is_error=is_error,
        details={"detailed": detail} if text(detail) and detail != answer else None,
    )


def _usage(raw: dict[str, Any]) -> Usage:
    """Copilot counts cached input as input."""
    cached = ("cacheReadTokens", "cacheWriteTokens")
    return usage_in(raw, "inputTokens", "outputTokens", *cached, "reasoningTokens", holds_cached=True)


FORMAT = Format(
    "GitHub Copilot CLI",
    beneath("COPILOT_HOME", ".copilot", "session-state", "history-session-state"),
    _find,
    _read,
    # Behind a blank, the id would be taken for a prompt.
    resume=Resuming(command=lambda id, path, workspace: ["copilot", f"--resume={id}"], ids=UUIDS),
    growth=growth.growing(_State, _read),
    watch=Watching(by_file=True, sidecars=_sidecars),
)

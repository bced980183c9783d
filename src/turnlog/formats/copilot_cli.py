"""GitHub Copilot CLI: events, one JSON line each, under `~/.copilot/session-state/<session>/events.jsonl`. Only read.

The events of subagents lie among those of the session, and name the call that started them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from turnlog.formats import Format, Jump, Reading, Record, ResumePoint, SessionHeader, Source, Spawn, Step, Watching
from turnlog.formats._shared import growth
from turnlog.formats._shared.blocks import worded
from turnlog.formats._shared.finding import homes_under_variable, resume_command
from turnlog.formats._shared.origin import UnknownRecords
from turnlog.interop.folder import files_under, head_of
from turnlog.interop.jsonline import lines
from turnlog.interop.problem import report
from turnlog.interop.records import first_records, record_at, record_in, rows, typed_records
from turnlog.interop.value import as_int, branches_in, fields, items, moment, text, usage_in
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


def _sidecars(source: Source) -> list[str]:
    folder, name = os.path.split(source.path)
    return [os.path.join(folder, "workspace.yaml")] if name == "events.jsonl" else []


def _find(path: str) -> Iterator[Source]:
    for file in filter(_is_ours, files_under(path)):
        yield Source(_NAME, file)
        records = (record_in(line.data) for line in lines(file) if b'"parentToolCallId"' in line.data)
        calls = (text(fields(record.get("data")).get("parentToolCallId")) for record in records)
        yield from (Source(_NAME, file, call) for call in dict.fromkeys(calls) if call is not None)


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
    title = None if source.key else notes.get("name") or notes.get("summary")
    return _Reader(source, header, title, mark, state or _State()).reading


def _beside(folder: str) -> dict[str, str]:
    """What `workspace.yaml` says in single lines."""
    said = (head_of(os.path.join(folder, "workspace.yaml")) or b"").decode("utf-8", "replace")
    pairs = (line.partition(": ") for line in said.splitlines())
    values = {key: value.strip().strip("'\"") for key, _, value in pairs}
    return {key: value for key, value in values.items() if value and value not in ("|-", "|", ">-", ">", "null")}


class _Reader:
    def __init__(
        self, source: Source, header: SessionHeader, beside: str | None, start: ResumePoint | None, state: _State
    ) -> None:
        self._source = source
        self.reading = Reading(header=header, steps=self._steps(), facts={**state.facts})
        self._beside = beside
        """The title that is told beside it; one that an event tells goes before."""
        self._points = growth.ResumePoints(start, state)
        self._before, self._model, self._title = state.before, state.model, state.title
        self._nodes = [state.last] if start is not None else []
        """The key of every node of the conversation, in order."""
        self._places = {state.before: 0} if start is not None else {}
        """How many nodes there were before each event."""
        self._counted = dict(state.counted)
        self._offsets: dict[str, int] = {}
        self._names: dict[str, str] = {}
        self._unknown = UnknownRecords(_NAME)

    def _steps(self) -> Iterator[Step]:
        points = self._points
        for offset, record in typed_records(self._source.path, self.reading.problems, start=points.start):
            for step in self._taken(record, offset):
                points.given += 1
                yield step
        self.reading.mark = points.newest(title=self._title, facts=growth.small(self.reading.facts))
        self.reading.header = replace(self.reading.header, title=self._title or self._beside)
        self._unknown.report(self.reading.problems)

    def _taken(self, record: dict[str, Any], offset: int) -> Iterator[Step]:
        id, parent = text(record.get("id")) or f"at {offset}", text(record.get("parentId")) or ""
        if id in self._places:
            self._points.require(id in self._offsets)
            if record_at(self._source.path, self._offsets[id]) == record:
                return
            id = f"{id} at {offset}"
        self._points.require(parent in self._places)
        data, at = fields(record.get("data")), moment(record.get("timestamp"))
        is_own = (text(data.get("parentToolCallId")) or "") == self._source.key
        # A prompt or an answer, with something before it.
        may_resume = offset >= self._points.next_offset and is_own and parent == self._before and not self._source.key
        if may_resume and self._nodes and record.get("type") in ("user.message", "assistant.message"):
            known = _State(before=parent, last=self._nodes[-1], model=self._model, counted=dict(self._counted))
            self._points.set(offset, 0, known)
        self._before = id
        self._offsets[id] = offset
        self._places[id] = len(self._nodes)
        self._learn(data)
        if record.get("type") == "assistant.usage":
            spent, model = _usage(data), text(data.get("model")) or self._model
            self._count(model, spent)
            if is_own:
                yield Record(entry=Spent(usage=spent, model=model, at=at), key=id)
        elif is_own:
            yield from self._event(id, record, data, at, offset)
        elif self._source.key and record.get("type") == "assistant.message":
            yield from self._asked(data, at)

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
            yield self._node(id, self._answer(data, at))
        elif kind == "tool.execution_complete":
            self._points.require(str(data.get("toolCallId")) in self._names)
            yield self._node(id, Message(role="tool", blocks=[_result(data, self._names)], at=at))
        elif kind in ("session.model_change", "session.start"):
            self._model = text(data.get("newModel")) or text(data.get("selectedModel")) or self._model
            if self._model:
                self.reading.facts["model"] = self._model
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
        spent = _usage({names.get(key, key): value for key, value in used.items()})
        model = text(used.get("model")) or self._model
        self._count(model, spent)
        compaction = Compaction(
            replacement=[Message(role="user", blocks=[Text(text=summary)])],
            tokens_before=as_int(data.get("preCompactionTokens")),
            usage=spent if spent != Usage() else None,
            model=model if spent != Usage() else None,
            at=at,
        )
        yield self._node(id, compaction)

    def _answer(self, data: dict[str, Any], at: datetime | None) -> Message:
        blocks: list[AnyBlock] = []
        thought, opaque = text(data.get("reasoningText")), data.get("reasoningOpaque") or data.get("encryptedContent")
        if thought or opaque:
            blocks.append(Thinking(text=thought or "", provider="copilot", data={"opaque": opaque} if opaque else None))
        if text(data.get("content")):
            blocks.append(Text(text=data["content"]))
        calls = items(data.get("toolRequests"))
        for call in calls:
            id, name = str(call.get("toolCallId") or ""), str(call.get("name") or "")
            blocks.append(ToolCall(id=id, name=name, input=call.get("arguments")))
        model = text(data.get("model")) or self._model
        return Message(role="assistant", blocks=blocks, at=at, model=model, stop="tool_use" if calls else "end")

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
        self._points.require(target in self._offsets)
        if target not in self._places:
            problem = f"a rewind to event {target!r:.40}, which is not there"
            report(self.reading.problems, problem, offset=offset)
            return
        del self._nodes[self._places[target] :]
        yield Jump(to=self._nodes[-1] if self._nodes else "", key=id, why="rewind", at=at)


def _result(data: dict[str, Any], names: dict[str, str]) -> ToolResult:
    result, error = fields(data.get("result")), data.get("error")
    answer = result.get("content") if result else fields(error).get("message") or error
    detail = result.get("detailedContent")
    return ToolResult(
        call=str(data.get("toolCallId") or ""),
        name=names.get(str(data.get("toolCallId"))),
        content=worded(answer),
        is_error=data.get("success") is False,
        details={"detailed": detail} if text(detail) and detail != answer else None,
    )


def _usage(raw: dict[str, Any]) -> Usage:
    """Copilot counts cached input as input."""
    cached = ("cacheReadTokens", "cacheWriteTokens")
    return usage_in(raw, "inputTokens", "outputTokens", *cached, "reasoningTokens", input_includes_cache=True)


FORMAT = Format(
    "GitHub Copilot CLI",
    homes_under_variable("COPILOT_HOME", ".copilot", "session-state", "history-session-state"),
    _find,
    _read,
    # Behind a blank, the id would be taken for a prompt.
    resume=resume_command("copilot", "--resume=ID"),
    growth=growth.growing(_State, _read),
    watch=Watching(by_file=True, sidecars=_sidecars),
)

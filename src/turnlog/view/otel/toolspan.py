"""The tools of a session as spans: when each call was run, whether it may be, and which subagent it started."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, NamedTuple

from msgspec import Struct

from turnlog.log.block import AnyBlock, ToolCall, ToolResult, calls_in
from turnlog.log.entry import Answer, AnyEntry, Ask, Child, Message, Started
from turnlog.view.otel import genai
from turnlog.view.otel.otlp import INTERNAL, SpanError, SpanEvent, TraceSpan, moved, span_id

NEVER = datetime(1970, 1, 1, tzinfo=UTC)


class FinishedSpans(NamedTuple):
    """Spans, and for each subagent the span that it belongs below, by the id of its session."""

    spans: list[TraceSpan]
    parents: dict[str, TraceSpan]


class _Call(Struct):
    """A call of a tool, as it may be shown; `span` is that of its last result."""

    entry: str
    id: str
    block: ToolCall
    at: datetime
    turn: TraceSpan
    started: datetime | None = None
    span: TraceSpan | None = None
    results: int = 0
    events: list[SpanEvent] = []


class ToolSpans:
    """Takes calls and what became of them, in order."""

    def __init__(self, session: str, conversation: str, *, has_content: bool) -> None:
        self._session = session
        self._conversation = conversation
        self._has_content = has_content
        self._calls: list[_Call] = []
        self._newest: dict[str, _Call] = {}
        self._asks: dict[int, _Call] = {}
        self._spans: list[TraceSpan] = []
        self._below: dict[str, _Call | TraceSpan] = {}

    def called(self, entry: AnyEntry, blocks: list[AnyBlock], shown: list[AnyBlock], turn: TraceSpan) -> None:
        """Record the calls of an entry. Calls that an edit repeats are ignored."""
        for block, shown_block in zip(calls_in(blocks), calls_in(shown), strict=True):
            if isinstance(entry, Message) or block.id not in self._newest:
                call = _Call(entry.id, block.id, shown_block, at_of(entry), turn)
                self._newest[block.id] = call
                self._calls.append(call)

    def started(self, entry: Started) -> None:
        """Record that a call is about to run."""
        if entry.call in self._newest:
            self._newest[entry.call].started = at_of(entry)

    def asked(self, entry: Ask) -> None:
        """Record that a call needs approval."""
        call = self._newest.get(entry.call)
        if call is not None:
            self._asks[entry.seq] = call
            call.events.append(SpanEvent(at_of(entry), "turnlog.approval.asked", {}))

    def answered(self, entry: Answer, shown: AnyEntry) -> None:
        """Record the answer to a request for approval."""
        call = self._asks.get(entry.ask)
        if call is not None and isinstance(shown, Answer):
            attributes = {"turnlog.approval.allow": shown.allow, "turnlog.approval.by": shown.by}
            call.events.append(SpanEvent(at_of(entry), "turnlog.approval.answered", attributes))

    def spawned(self, entry: Child, turn: TraceSpan) -> None:
        """Record a subagent, and the call that started it, if known."""
        self._below.setdefault(entry.session, self._newest.get(entry.call or "") or turn)

    def results(self, entry: Message, shown: Message, began: datetime, turn: TraceSpan) -> None:
        """Record results. `began` is the start of calls that were not seen."""
        own, shown_results = (
            [block for block in one.blocks if isinstance(block, ToolResult)] for one in (entry, shown)
        )
        for block, shown_block in zip(own, shown_results, strict=True):
            named = ToolCall(id=shown_block.call, name=shown_block.name or "unknown")
            call = self._newest.get(block.call) or _Call(entry.id, block.call, named, began, turn)
            start, end = call.started or call.at, at_of(entry)
            if call.started is None and block.duration_ms:
                start = moved(end, -block.duration_ms)
            result_text = genai.to_json(genai.result(shown_block)) if self._has_content else None
            span = self._run(call, start, end, {"gen_ai.tool.call.result": result_text})
            if block.is_error:
                span.error = SpanError(genai.OTHER_ERROR)
            if block.child is not None:
                self._below.setdefault(block.child, span)

    def _run(self, call: _Call, start: datetime, end: datetime, more: dict[str, Any]) -> TraceSpan:
        name = call.block.name
        key = span_id(self._session, "tool", call.entry, call.id, call.results)
        span = TraceSpan(call.turn.trace_id, key, f"execute_tool {name}", INTERNAL, start, end, call.turn.id)
        span.attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.call.id": call.block.id,
            "gen_ai.conversation.id": self._conversation,
            "gen_ai.tool.call.arguments": genai.to_json(call.block.input) if self._has_content else None,
            **more,
        }
        span.events, call.events = call.events, []
        call.span = span
        call.results += 1
        cover(call.turn, span)
        self._spans.append(span)
        return span

    def finish(self) -> FinishedSpans:
        """The spans of all calls. A call that nobody began to run has none."""
        for call in self._calls:
            if call.started is not None and call.span is None:
                self._run(call, call.started, call.started, {"turnlog.tool.unfinished": True})
        parents = {
            name: one if isinstance(one, TraceSpan) else one.span or one.turn for name, one in self._below.items()
        }
        return FinishedSpans(self._spans, parents)


def at_of(entry: AnyEntry) -> datetime:
    """The time of an entry."""
    return entry.at or NEVER


def cover(turn: TraceSpan, span: TraceSpan) -> None:
    """Extend the time of a turn to include a span."""
    turn.start = min(turn.start, span.start)
    turn.end = max(turn.end, span.end)

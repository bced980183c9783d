"""A session and its subagents as OpenTelemetry's spans: lines of JSON, each of which a collector takes as a request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from turnlog.catalog.waiter import while_wanted
from turnlog.errors import NotFound
from turnlog.exchange.origin import origin_of
from turnlog.log.entry import AnyEntry
from turnlog.log.part import Spawned
from turnlog.thread.reader import history_of
from turnlog.view.otel.genai import bare
from turnlog.view.otel.otlp import TraceSpan, request
from turnlog.view.otel.sessionspan import SessionSpans, TracedSession

if TYPE_CHECKING:
    from turnlog.reader.opening.opener import OpenedSession
    from turnlog.session.home import Home
    from turnlog.session.readonly import ReadOnlySession
    from turnlog.view.otel.toolspan import FinishedSpans
    from turnlog.view.secret.redactor import Redactor

_MOST_SPANS = 500
_MOST_BYTES = 4 << 20
"""Of one request: a collector takes 20 MiB, others less."""


class _Shown(Struct, frozen=True):
    """What may appear in spans. Content is dropped before secrets are searched, so only exported ones count."""

    redactor: Redactor | None
    has_content: bool

    def entry(self, entry: AnyEntry) -> AnyEntry:
        shown = entry if self.has_content else bare(entry)
        return shown if self.redactor is None else self.redactor.entry(shown)

    def text(self, text: str) -> str:
        return text if self.redactor is None else self.redactor.text(text)


def lines(opened: OpenedSession, redactor: Redactor | None, *, has_content: bool) -> Iterator[bytes]:
    """The requests, oldest trace first: as many spans in each as a collector likes."""
    if redactor is not None:
        for session in _family(opened.home, opened.session):
            for entry in while_wanted(session.entries()):
                redactor.learn(entry)
    shown = _Shown(redactor, has_content)
    traces: dict[str, list[TraceSpan]] = {}
    for span in _spans(opened.home, opened.session, shown):
        traces.setdefault(span.trace_id, []).append(span)
    service = shown.text(opened.session.agent or "turnlog")
    for batch in _batches(while_wanted(chain.from_iterable(traces.values()))):
        yield request(service, batch)


def counts(requests: Iterable[bytes]) -> tuple[int, int]:
    """How many spans there are in these, and how many traces."""
    span_lists = [msgspec.json.decode(line)["resourceSpans"][0]["scopeSpans"][0]["spans"] for line in requests]
    return sum(map(len, span_lists)), len({span["traceId"] for spans in span_lists for span in spans})


def _batches(spans: Iterator[TraceSpan]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    size = 0
    for span in spans:
        data = msgspec.json.encode(span.to_otlp())
        if batch and (len(batch) == _MOST_SPANS or size + len(data) > _MOST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(data)
        size += len(data)
    if batch:
        yield batch


# ── sessions ──────────────────────────────────────────────────────────────────────────────────────


def _family(home: Home, session: ReadOnlySession) -> Iterator[ReadOnlySession]:
    """A session and its subagents, and theirs; those that are gone are left out."""
    yield session
    seen = {session.id}
    waiting = list(history_of(session).state.children)
    for name in waiting:  # grows while it is gone through
        if name in seen:
            continue
        seen.add(name)
        try:
            with home.read(name) as child:
                waiting += history_of(child).state.children
                yield child
        except NotFound:
            continue


def _spans(home: Home, session: ReadOnlySession, shown: _Shown) -> Iterator[TraceSpan]:
    """Those of its subagents among them, each below the call that started it."""
    above = _above(home, session, {session.id})
    below: dict[str, TraceSpan] = {} if above is None else {session.id: above}
    for member in _family(home, session):
        finished = _of_one(member, below.get(member.id), shown)
        below = {**finished.parents, **below}
        yield from finished.spans


def _of_one(session: ReadOnlySession, under: TraceSpan | None, shown: _Shown) -> FinishedSpans:
    """What is its own: a fork's beginning is told with the session that it was forked from."""
    history = history_of(session)
    native = origin_of(history).id or session.id
    spawned = _spawned(session)
    agent = (spawned.role if spawned is not None else None) or session.agent
    about = TracedSession(session.id, shown.text(native), None if agent is None else shown.text(agent), under)
    spans = SessionSpans(about, history.at, shown.entry, has_content=shown.has_content)
    for entry in while_wanted(session.entries(after=history.inherited_to)):
        spans.take(entry)
    return spans.finish()


def _spawned(session: ReadOnlySession) -> Spawned | None:
    spawned = history_of(session).state.start.get("spawned")
    return None if spawned is None else msgspec.convert(spawned, Spawned)


def _above(home: Home, session: ReadOnlySession, seen: set[str]) -> TraceSpan | None:
    """The span in the parent's trace that a subagent belongs below; None if there is none."""
    spawned = _spawned(session)
    if spawned is None or spawned.session in seen:
        return None
    try:
        with home.read(spawned.session) as parent:
            under = _above(home, parent, seen | {parent.id})
            return _of_one(parent, under, _Shown(None, has_content=False)).parents.get(session.id)
    except NotFound:
        return None

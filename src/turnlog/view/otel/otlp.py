"""Spans, and how OTLP has them as JSON: the protocol that OpenTelemetry's collectors are sent traces by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, cast

import msgspec
from msgspec import Struct

from turnlog.version import __version__

SCHEMA = "https://opentelemetry.io/schemas/1.41.1"
"""The last version whose registry has `gen_ai`: since then it is a repository of its own, without a release."""
INTERNAL, CLIENT = 1, 3
_FAILED = 2
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class SpanError(Struct, frozen=True):
    """The error that ended a span: its type, and its text."""

    kind: str
    message: str = ""


class SpanEvent(Struct, frozen=True):
    """Something that happened in the course of a span."""

    at: datetime
    name: str
    attributes: dict[str, Any]


class TraceSpan(Struct):
    """One piece of work: when it began and ended, what it was part of, and what is known of it."""

    trace_id: str
    id: str
    name: str
    kind: int
    start: datetime
    end: datetime
    parent_id: str = ""
    attributes: dict[str, Any] = {}
    events: list[SpanEvent] = []
    error: SpanError | None = None

    def to_otlp(self) -> dict[str, Any]:
        """The span in OTLP. If the clock went back, it ends when it begins."""
        error_attribute = {"error.type": self.error.kind} if self.error is not None else {}
        span: dict[str, Any] = {"traceId": self.trace_id, "spanId": self.id}
        if self.parent_id:
            span["parentSpanId"] = self.parent_id
        span |= {
            "name": as_unicode(self.name), "kind": self.kind,
            "startTimeUnixNano": _nanoseconds(self.start),
            "endTimeUnixNano": _nanoseconds(max(self.start, self.end)),
            "attributes": attributes({**self.attributes, **error_attribute}),
        }  # fmt: skip
        if self.events:
            span["events"] = [_event(event) for event in self.events]
        if self.error is not None:
            span["status"] = {"code": _FAILED, "message": as_unicode(self.error.message)}
        return span


def span_id(*parts: object) -> str:
    """An id for a span that depends only on `parts`."""
    return _digest(parts)[:16]


def trace_id(*parts: object) -> str:
    """An id for a trace that depends only on `parts`."""
    return _digest(parts)[-32:]


def _digest(parts: tuple[object, ...]) -> str:
    return sha256("\0".join(map(str, parts)).encode("utf-8", "surrogatepass")).hexdigest()


def moved(at: datetime, ms: int) -> datetime:
    """The time so many milliseconds later; the same time if a corrupt duration leads out of the calendar."""
    try:
        return at + timedelta(milliseconds=ms)
    except OverflowError:
        return at


def request(service: str, spans: Iterable[bytes]) -> bytes:
    """The request to a collector with encoded spans; also a line of a file that a collector reads."""
    scope = {"name": "turnlog", "version": __version__}
    scope_spans = {"scope": scope, "schemaUrl": SCHEMA, "spans": [msgspec.Raw(span) for span in spans]}
    resource = {"attributes": attributes({"service.name": service})}
    return msgspec.json.encode(
        {"resourceSpans": [{"resource": resource, "schemaUrl": SCHEMA, "scopeSpans": [scope_spans]}]}
    )


def attributes(pairs: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Names and values as attributes in OTLP; None is left out."""
    return [{"key": name, "value": _value(value)} for name, value in pairs.items() if value is not None]


def as_unicode(text: str) -> str:
    """The text with lone surrogates escaped, so that UTF-8 can encode it."""
    return text.encode("utf-8", "backslashreplace").decode()


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(int(value))}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(item) for item in cast("list[Any]", value)]}}
    return {"stringValue": as_unicode(str(value))}


def _event(event: SpanEvent) -> dict[str, Any]:
    at = _nanoseconds(event.at)
    return {"timeUnixNano": at, "name": event.name, "attributes": attributes(event.attributes)}


def _nanoseconds(at: datetime) -> str:
    return str(max(0, (at - _EPOCH) // timedelta(microseconds=1)) * 1000)

"""Lines of rho's files that hold more than one message: snapshots, deltas, and the nodes of the tree."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from turnlog.formats._shared.rust import compact
from turnlog.formats._shared.value import fields
from turnlog.formats.seeds.rho.message import Json

_ENVELOPE = ("provider", "compaction", "metadata", "prompt_cache_key")
NO_COMPACTION: Json = {
    "completed_compactions": 0, "removed_messages": 0, "removed_tokens": 0, "removed_cost_usd_micros": 0,
    "last_previous_tokens": None, "last_current_tokens": None, "last_revision": None,
}  # fmt: skip
SCHEMA = 2
HEADER = ("type", "version", "id", "timestamp", "cwd", "agent_id", "agent_fingerprint")
"""The fields of a header, in the order of rho; the first one has no more than five."""


class RhoState(Struct):
    """Where a session of rho stands after a record: what the next one builds on."""

    id: str = ""
    """The node's id, or `legacy:` and the offset of the line."""
    revision: int = 0
    envelope: Json = {}
    is_full: bool = False
    """Whether rho has a snapshot here, so that a delta may follow."""
    is_sure: bool = True
    """Whether the compaction of the envelope is what rho will find: it counts tokens in its own way."""
    waiting: list[str] = []
    """The calls without a result at the end of what people see; known when written only."""


def seconds(text: Any) -> datetime | None:
    """A time as rho writes it, a text of seconds; None where it is anything else."""
    if not isinstance(text, str) or not text.isascii() or not text.isdigit() or str(int(text[:20])) != text:
        return None
    try:
        return datetime.fromtimestamp(int(text), UTC)
    except (ValueError, OverflowError, OSError):
        return None


def as_read(record: Json, data: bytes) -> Json:
    """For an origin: the line that a record was, where we would write another."""
    return {} if compact(record) == data else {"line": data.decode()}


def line_of(origin: Json) -> bytes | None:
    """The line that a record was, where we would write another."""
    return origin["line"].encode() if "line" in origin else None


def message_line(raw: Json, time: str, display: Json | None) -> Json:
    """The line of one message, as version 1 writes it; `shown` is what people see in its place."""
    record: Json = {"type": "message", "timestamp": time, "message": raw}
    return {**record, "display_message": display} if display is not None else record


def stamp(at: datetime | None, origin: Json | None = None) -> str:
    """A time for rho."""
    if origin is not None and "time" in origin:
        return origin["time"]
    return str(max(0, int(at.timestamp()))) if at is not None else "0"


def envelope_of(inner: Json) -> Json:
    """What of a snapshot or delta is neither history nor counting."""
    return {name: inner[name] for name in _ENVELOPE if name in inner}


def spec_of(record: Json, inner: Json, *, before: RhoState | None, session: str, delta: bool) -> Json:
    """What the writer has to know of a record, besides its messages and what it shares with the one before."""
    base = before or RhoState()
    spec: Json = {} if delta else {"full": True}
    for name, value, usual in (
        ("kind", record.get("kind"), "commit"),
        ("facts", record.get("compaction_facts"), None),
        ("revision", inner.get("revision"), base.revision + 1),
        ("base", inner.get("base_revision"), base.revision),
        ("schema", inner.get("schema_version"), SCHEMA),
        ("session", inner.get("session_id"), session),
    ):
        if value is not None and value != usual:
            spec[name] = value
    now = envelope_of(inner)
    fresh = {name: value for name, value in now.items() if base.envelope.get(name) != value}
    gone = [name for name in base.envelope if name not in now]
    return {**spec, **({"new": fresh} if fresh else {}), **({"gone": gone} if gone else {})}


def after(spec: Json, before: RhoState | None, id: str) -> RhoState:
    """The state that a record leads to."""
    base = before or RhoState()
    envelope = {**base.envelope, **spec.get("new", {})}
    for name in spec.get("gone", ()):
        envelope.pop(name, None)
    revision = spec.get("revision", base.revision + 1)
    return RhoState(id, revision if type(revision) is int else base.revision + 1, envelope, True)


def replaced(before: RhoState, id: str) -> RhoState:
    """The state after a history was replaced: a compaction, whose tokens rho counts when it loads it."""
    count = fields(before.envelope.get("compaction")).get("completed_compactions", 0)
    counts = {**NO_COMPACTION, "completed_compactions": (count if type(count) is int else 0) + 1}
    return RhoState(id, before.revision + 1, {**before.envelope, "compaction": counts}, before.is_full, False)


def body(spec: Json, before: RhoState | None, state: RhoState, session: str, messages: list[Json]) -> Json:
    """A snapshot or delta. `messages` is the whole history for the first, what is new for the second."""
    if spec.get("full"):
        start, field = {"schema_version": spec.get("schema", SCHEMA)}, "history"
    else:
        base = before.revision if before is not None else 0
        start, field = {"base_revision": spec.get("base", base)}, "appended_history"
    owner = spec.get("session", session)
    return {**start, "session_id": owner, "revision": state.revision, field: messages, **envelope_of(state.envelope)}


def node(spec: Json, state: RhoState, parent: str | None, time: str, inner: Json, displays: list[Json]) -> Json:
    """A node of the tree."""
    record: Json = {"type": "node", "id": state.id}
    if parent is not None:
        record["parent_id"] = parent
    record["timestamp"] = time
    record["kind"] = spec.get("kind", "commit")
    if "facts" in spec:
        record["compaction_facts"] = spec["facts"]
    kind, name = ("snapshot", "snapshot") if spec.get("full") else ("snapshot_delta", "delta")
    return {**record, "transition": {"type": kind, name: inner}, "display_messages": displays}


def snapshot(spec: Json, time: str, inner: Json, displays: list[Json]) -> Json:
    """A snapshot or delta of versions 2 and 3."""
    kind, name = ("snapshot", "snapshot") if spec.get("full") else ("snapshot_delta", "delta")
    return {"type": kind, "timestamp": time, name: inner, "display_messages": displays}


def display_spec(displays: list[Any], messages: list[Json], time: str) -> list[Any] | None:
    """How what people see differs from what the model got; None if it is the same, less the system's own words."""
    if displays == display(None, messages, time):
        return None
    spec: list[Any] = []
    at = 0
    for item in displays:
        raw = item["message"]
        place = next((i for i in range(at, len(messages)) if messages[i] == raw), None)
        at = at if place is None else place + 1
        spec.append([place if place is not None else raw, *([item["timestamp"]] if item["timestamp"] != time else [])])
    return spec


def display(spec: list[Any] | None, messages: list[Json], time: str) -> list[Json]:
    """What people see, from its difference."""
    if spec is None:
        return [{"timestamp": time, "message": raw} for raw in messages if "System" not in raw]
    displays: list[Json] = []
    for raw, *when in spec:
        message = messages[raw] if isinstance(raw, int) else raw
        displays.append({"timestamp": when[0] if when else time, "message": message})
    return displays

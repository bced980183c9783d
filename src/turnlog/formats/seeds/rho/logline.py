"""Lines of rho's files, the states they lead to, and the history that a model sees there."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from itertools import takewhile
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from turnlog.formats import Record
from turnlog.formats.seeds.rho.message import Json, digest, to_entry
from turnlog.interop.rust import compact
from turnlog.interop.value import as_counter, fields, from_ms
from turnlog.log.block import Text
from turnlog.log.digest import sha256
from turnlog.log.entry import AnyEntry, Compaction, Edit, Message, Ref
from turnlog.log.usage import Usage

_ENVELOPE = ("provider", "compaction", "metadata", "prompt_cache_key")
NO_COMPACTION: Json = {
    "completed_compactions": 0, "removed_messages": 0, "removed_tokens": 0, "removed_cost_usd_micros": 0,
    "last_previous_tokens": None, "last_current_tokens": None, "last_revision": None,
}  # fmt: skip
_SIZES = ("previous_tokens", "current_tokens", "cost_usd_micros")
HEADER = ("type", "version", "id", "timestamp", "cwd", "agent_id", "agent_fingerprint")
"""The fields of a header, in the order of rho; the first one has no more than five."""


class RhoState(Struct):
    """Where a session of rho stands after a record: what the next one builds on."""

    id: str = ""
    """The node's id, or `legacy:` and the offset of the line."""
    revision: int = 0
    envelope: Json = {}
    is_sure: bool = True
    """Whether the compaction of the envelope is what rho will find: it counts tokens in its own way."""
    waiting: list[str] = []
    """The calls without a result at the end of what people see; known when written only."""
    seq: int = 0
    """The entry whose line led to it; 0 for one that was made up."""


def seconds(text: Any) -> datetime | None:
    """A time as rho writes it, a text of seconds; None where it is anything else."""
    if not isinstance(text, str) or not text.isascii() or not text.isdigit() or str(int(text[:20])) != text:
        return None
    return from_ms(int(text) * 1000)


def stamp(entry: AnyEntry, origin: Json | None = None) -> str:
    """The time of an entry for rho, or the one that its origin has to the letter."""
    at = entry.clock or entry.at
    otherwise = str(max(0, int(at.timestamp()))) if at is not None else "0"
    return fields(origin).get("time", otherwise)


def numbered(data: bytes, seen: Counter[str]) -> str:
    """A key for a line: its content, and which of its kind it is, wherever in the file it comes to stand."""
    digest = sha256(data).hexdigest()[:24]
    seen[digest] += 1
    return f"{digest}.{seen[digest]}"


def part_keys(key: str, count: int) -> list[str]:
    """The keys of so many entries that one record became: the last one has that of the record."""
    return [*(f"{key}/{index}" for index in range(count - 1)), key][:count]


def differing_line(record: Json, data: bytes) -> Json:
    """For an origin: the line that a record was, where we would write another."""
    return {} if compact(record) == data else {"line": data.decode()}


def kept_line(origin: Json) -> bytes | None:
    """The line that a record was, where we would write another."""
    return origin["line"].encode() if "line" in origin else None


def message_line(raw: Json, time: str, display: Json | None) -> Json:
    """The line of one message, as version 1 writes it; `display` is what people see in its place."""
    record: Json = {"type": "message", "timestamp": time, "message": raw}
    return {**record, "display_message": display} if display is not None else record


def history_line(time: str, messages: list[Json]) -> Json:
    """The line that puts another history in the place of all before it."""
    return {"type": "replace_history", "timestamp": time, "messages": messages}


def transition(state: RhoState, base: int | None, session: str, messages: Any) -> Json:
    """What a node holds: a snapshot of the whole history, or a delta to a revision, of what is new."""
    envelope = {name: state.envelope[name] for name in _ENVELOPE if name in state.envelope}
    owner = {"session_id": session, "revision": state.revision}
    if base is None:
        return {"type": "snapshot", "snapshot": {"schema_version": 2, **owner, "history": messages, **envelope}}
    delta = {"base_revision": base, **owner, "appended_history": messages, **envelope}
    return {"type": "snapshot_delta", "delta": delta}


def _holder(record: Json) -> Json:
    return record["transition"] if record["type"] == "node" else record


def is_delta(record: Json) -> bool:
    """Whether a snapshot, a delta or a node only adds to what was there."""
    return _holder(record)["type"] == "snapshot_delta"


def inner_of(record: Json) -> Json:
    """The snapshot or the delta in a record."""
    return _holder(record)["delta" if is_delta(record) else "snapshot"]


def state_after(record: Json, before: RhoState, id: str) -> RhoState:
    """The state that a snapshot, a delta or a node leads to."""
    inner = inner_of(record)
    revision = inner.get("revision")
    envelope = {name: inner[name] for name in _ENVELOPE if name in inner}
    return RhoState(id, revision if type(revision) is int else before.revision + 1, envelope)


def may_follow(record: Json, before: RhoState) -> bool:
    """Whether rho takes a node after that state: its revision is higher, and only a compaction changes the counts."""
    state = state_after(record, before, "")
    is_compacted = state.envelope.get("compaction") != before.envelope.get("compaction")
    base = inner_of(record).get("base_revision", before.revision)
    return state.revision > before.revision == base and is_compacted == (record.get("kind") == "compaction")


def state_replaced(before: RhoState, id: str) -> RhoState:
    """The state after a history was replaced: a compaction, whose tokens rho counts when it loads it."""
    count = fields(before.envelope.get("compaction")).get("completed_compactions", 0)
    counts = {**NO_COMPACTION, "completed_compactions": (count if type(count) is int else 0) + 1}
    envelope = {**before.envelope, "compaction": counts}
    return replace(before, id=id, revision=before.revision + 1, envelope=envelope, is_sure=False)


def emptied(record: Json, fresh: list[Json]) -> Json:
    """A snapshot, a delta or a node as it is kept: without its messages, and with places in `fresh` for those shown."""
    places = {digest(raw): index for index, raw in enumerate(fresh)}
    shown = record.get("display_messages", [])
    numbered = [{**item, "message": places.get(digest(item["message"]), item["message"])} for item in shown]
    return _with(record, None, numbered)


def filled(record: Json, messages: list[Json], fresh: list[Json]) -> Json:
    """The same record again. `messages` are the whole history where it is a snapshot."""
    numbered = [(item, item["message"]) for item in record["display_messages"]]
    shown = [{**item, "message": fresh[raw] if isinstance(raw, int) else raw} for item, raw in numbered]
    return _with(record, messages, shown)


def _with(record: Json, messages: Any, shown: Any) -> Json:
    name, list_of = ("delta", "appended_history") if is_delta(record) else ("snapshot", "history")
    holder = {**_holder(record), name: {**inner_of(record), list_of: messages}}
    return {**record, **({"transition": holder} if record["type"] == "node" else holder), "display_messages": shown}


class HistoryItem(Struct, frozen=True):
    """One message of a history, by its digest, and the key of its entry, if it is one."""

    digest: bytes
    key: str | None = None


class RhoHistory(Struct):
    """The history at one point of the session: all of it, or what was added to the one before."""

    before: RhoHistory | None = None
    items: list[HistoryItem] = []
    systems: list[HistoryItem] = []
    """The system messages the session began with, as they read now; a compaction leaves them in place."""
    is_start: bool = True
    """Whether nothing but system messages was said so far."""

    def history(self) -> list[HistoryItem]:
        """All of it, oldest first."""
        parts: list[list[HistoryItem]] = []
        place: RhoHistory | None = self
        while place is not None:
            parts.append(place.items)
            place = place.before
        return [item for part in reversed(parts) for item in part]


def extension(before: RhoHistory, messages: list[Json], keys: list[str]) -> RhoHistory:
    """The history with more at its end."""
    items = [HistoryItem(digest(raw), key) for raw, key in zip(messages, keys, strict=True)]
    lead = len(_lead(messages)) if before.is_start else 0
    is_start = before.is_start and lead == len(messages)
    return RhoHistory(before, items, [*before.systems, *items[:lead]], is_start)


def rewritten(
    before: RhoHistory, messages: list[Json], count: int, key: str, at: datetime | None, facts: Json | None = None
) -> tuple[RhoHistory, list[Record]]:
    """Another history in place of the one before, with `count` new messages at its end: the entries that say so."""
    old, systems = before.history(), before.systems
    rest, new = messages[: len(messages) - count], messages[len(messages) - count :]
    marks = [digest(item) for item in rest]
    kept = _kept(old[len(systems) :], marks)
    lead = _lead(rest[: len(rest) - kept])
    drafts: list[Record] = []
    origin: Json = {}
    dropped = 0
    if systems and len(lead) == len(systems):
        for item, words, mark in zip(systems, lead, marks, strict=False):
            if item.digest != mark:
                edit = Edit(entry=0, blocks=[Text(text=words["System"])], at=at)
                drafts.append(Record(entry=edit, names={"entry": item.key or ""}))
        systems = [HistoryItem(mark, item.key) for item, mark in zip(systems, marks, strict=False)]
        dropped = len(lead)
    elif systems and not lead:
        origin["bare"] = True
    replacement = rest[dropped : len(rest) - kept]
    tail = old[len(old) - kept :]
    if replacement or origin or kept != len(old) - len(systems) or not drafts:
        messages_kept: list[Message | Ref] = [to_entry(item) for item in replacement]
        compaction = Compaction(replacement=messages_kept, trigger="rho", at=at, origin=origin, **_sizes(facts or {}))
        drafts.append(Record(entry=compaction, names={"keep": tail[0].key or ""} if tail else {}))
    drafts += [Record(entry=to_entry(item, at)) for item in new]
    names = part_keys(key, len(drafts))[len(drafts) - len(new) :]
    fresh = [HistoryItem(digest(item), name) for item, name in zip(new, names, strict=True)]
    middle = [HistoryItem(mark) for mark in marks[dropped : len(rest) - kept]]
    return RhoHistory(None, [*(systems if dropped else []), *middle, *tail, *fresh], systems, False), drafts


def _sizes(facts: Json) -> Json:
    before, after, cost = (as_counter(facts.get(name)) for name in _SIZES)
    usage = Usage(cost_micros=cost) if cost is not None else None
    return {"tokens_before": before, "tokens_after": after, "usage": usage}


def _kept(old: list[HistoryItem], marks: list[bytes]) -> int:
    """How many messages at the end of the old history end the new one, too, and are entries."""
    pairs = zip(reversed(old), reversed(marks), strict=False)
    return len(list(takewhile(lambda pair: pair[0].key and pair[0].digest == pair[1], pairs)))


def _lead(messages: list[Json]) -> list[Json]:
    return list(takewhile(lambda item: len(item) == 1 and isinstance(item.get("System"), str), messages))

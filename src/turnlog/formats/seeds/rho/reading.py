"""A session of rho, line by line. Every record becomes entries, and is checked to be written back as it was."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, cast

from msgspec import Struct, field
from msgspec.structs import replace

from turnlog.formats import Jump, Problem, Record, Step
from turnlog.formats._shared.json import MAX_PROBLEMS, JsonLine, lines
from turnlog.formats._shared.origin import UNKNOWN
from turnlog.formats._shared.problem import UnknownRecords
from turnlog.formats._shared.records import record_in
from turnlog.formats._shared.value import counted
from turnlog.formats.seeds.rho.message import NAME, Json, RhoTally, as_text, hear, origin_of, tell, text_shown
from turnlog.formats.seeds.rho.names import chosen_id
from turnlog.formats.seeds.rho.record import (
    RhoState,
    after,
    as_read,
    body,
    display,
    display_spec,
    message_line,
    node,
    replaced,
    seconds,
    snapshot,
    spec_of,
    stamp,
)  # fmt: skip
from turnlog.formats.seeds.rho.rewrite import RhoHistory, digest, extension, rewritten
from turnlog.log.digest import sha256
from turnlog.log.entry import AnyEntry, Custom, Message, Note
from turnlog.log.usage import Usage

NEWEST = 4
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_START = re.compile(rb'\{\s*"type"\s*:\s*"')
_MAX_TRIES = 40


class Point(Struct):
    """One place in the session that others may go on from; as it is made, the very beginning."""

    key: str = ""
    state: RhoState = field(default_factory=RhoState)
    place: RhoHistory = field(default_factory=RhoHistory)


class RhoReader:
    """Turns lines into steps. `points` are all places by rho's id for them."""

    def __init__(self, session: str, problems: list[Problem]) -> None:
        self.session = session
        self.problems = problems
        self.head: Json | None = None
        self.head_line = b""
        self.points: dict[str, Point] = {}
        self.unknown = UnknownRecords(NAME)
        self.start = self.leaf = Point()
        self._keys: dict[str, int] = {}
        self._end = 0
        """Where the last record ended that was kept."""
        self._gap = 0
        self._kinds: dict[str, Callable[[Json, int, bytes], list[Step] | None]] = {
            "message": self._message, "replace_history": self._replace, "snapshot": self._snapshot,
            "snapshot_delta": self._snapshot, "node": self._node, "set_leaf": self._set_leaf,
        }  # fmt: skip

    def problem(self, what: str, offset: int, length: int) -> None:
        """Something that could not be read."""
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(Problem(what, offset=offset, length=length))

    def look_for_head(self, path: str) -> None:
        """A header that is not where it should be."""
        for line in lines(path):
            record = _record(line.data) if b'"session"' in line.data[:64] else None
            if record is not None and record["type"] == "session":
                self.head, self.head_line = record, line.data
                self.problem("the header is not at the beginning", line.offset, line.length)
                return

    def take(self, line: JsonLine) -> Iterator[Step]:
        """The steps that a line stands for."""
        if line.problem is not None:
            self.problems.append(line.problem)
            return
        if not line.data.strip():
            return
        record = _record(line.data)
        if record is not None:
            yield from self._kept(record, line.offset, line.data, is_ended=line.is_ended)
            return
        yield from self._recovered(line)

    def _recovered(self, line: JsonLine) -> Iterator[Step]:
        """Whatever was glued to the remains of another record, as an append after a torn line leaves it."""
        for tries, start in enumerate(_START.finditer(line.data)):
            if tries == _MAX_TRIES:
                break
            data = line.data[start.start() :]
            record = _record(data) if start.start() else None
            if record is not None:
                self.problem("the remains of a record, cut short", offset=line.offset, length=start.start())
                yield from self._kept(record, line.offset + start.start(), data, is_ended=line.is_ended)
                return
        what = "a line that is no record" if line.is_ended else "the last record is cut short"
        self.problem(what, line.offset, line.length)

    def _kept(self, record: Json, offset: int, data: bytes, *, is_ended: bool) -> Iterator[Step]:
        self._gap, self._end = offset - self._end, offset + len(data) + is_ended
        kind = record["type"]
        if kind == "session" and (self.head is None or data == self.head_line):
            self.head, self.head_line = record, data
            return
        steps, take = None, self._kinds.get(kind)
        try:
            if take is not None:
                steps = take(record, offset, data)
        except (KeyError, TypeError, ValueError, AttributeError):
            what = f"a record of the type {kind} that is not as it should be: kept as it is"
            self.problem(what, offset=offset, length=len(data))
        if steps is None:
            yield self._note(record, data, is_unknown=take is None and kind != "upgrade")
        else:
            yield from steps

    def _note(self, record: Json, data: bytes, *, is_unknown: bool) -> Record:
        """A record that says nothing to anybody but rho."""
        kind = str(record["type"])
        text = "rho made this session a tree" if kind == "upgrade" else f"a record of rho: {kind:.60}"
        origin: Json = {"agent": NAME, "is": "record", **self._skipped(), **as_read(record, data)}
        if is_unknown:
            text, origin[UNKNOWN] = self.unknown.note(kind, record).text, kind
        at = seconds(record.get("timestamp"))
        return Record(entry=Note(text=text, data=record, at=at, origin=origin), key=self._key(data))

    def _skipped(self) -> Json:
        return {"gap": self._gap} if self._gap else {}

    def _key(self, data: bytes) -> str:
        """A record's content, and which of its kind it is: the same wherever in the file it comes to stand."""
        digest = sha256(data).hexdigest()[:24]
        self._keys[digest] = self._keys.get(digest, 0) + 1
        return f"{digest}.{self._keys[digest]}"

    def _message(self, record: Json, offset: int, data: bytes) -> list[Step]:
        at = seconds(record["timestamp"])
        raw = _messages([record["message"]])[0]
        message = hear(raw, at, **self._skipped(), **_time(record["timestamp"], at))
        display = record.get("display_message")
        if display is not None:
            message = _displayed(message, display, text_shown(display))
        time = stamp(message.at, message.origin)
        again = message_line(tell(message, RhoTally())[0], time, shown_instead(message))
        message.origin.update(as_read(again, data))
        key = self._key(data)
        before = self.leaf.state
        state = replace(before, id=f"legacy:{offset:016x}", revision=before.revision + 1)
        self._arrived(Point(key, state, extension(self.leaf.place, [raw], [key])))
        return [Record(entry=message, key=key)]

    def _replace(self, record: Json, offset: int, data: bytes) -> list[Step]:
        messages = _messages(record["messages"])
        at = seconds(record["timestamp"])
        key = self._key(data)
        place, drafts = rewritten(self.leaf.place, messages, 0, key, at)
        origin: Json = {"is": "replace", **self._skipped(), **_time(record["timestamp"], at)}
        again = {"type": "replace_history", "timestamp": stamp(at, origin), "messages": messages}
        origin |= as_read(again, data)
        self._arrived(Point(key, replaced(self.leaf.state, f"legacy:{offset:016x}"), place))
        return _closed(drafts, key, origin)

    def _snapshot(self, record: Json, offset: int, data: bytes) -> list[Step]:
        delta = record["type"] == "snapshot_delta"
        inner: Json = record["delta" if delta else "snapshot"]
        key = self._key(data)
        steps, point = self._state(record, inner, key, self.leaf, f"legacy:{offset:016x}", data, delta=delta)
        self._arrived(point)
        return steps

    def _arrived(self, point: Point) -> None:
        self.points[point.state.id] = self.leaf = point

    def _node(self, record: Json, offset: int, data: bytes) -> list[Step]:
        id, parent = record["id"], record.get("parent_id")
        transition = record["transition"]
        delta = transition["type"] == "snapshot_delta"
        inner: Json = transition["delta" if delta else "snapshot"]
        before = self.points.get(parent) if parent is not None else self.start
        is_odd = False
        if not isinstance(id, str) or id in self.points:
            self._odd(f"a node with the id {id!r:.60}, which is taken", data)
            id, is_odd = chosen_id(self._key(data)), True
        if before is None:
            self._odd(f"a node after {parent!r:.60}, which is not there: read as if it followed the one before", data)
            before, is_odd = self.leaf, True
        key = id if _UUID.fullmatch(id) else f"node:{sha256(id.encode()).hexdigest()[:32]}"
        moves: list[Step] = [] if before is self.leaf else [Jump(to=before.key)]
        steps, point = self._state(record, inner, key, before, id, None if is_odd else data, delta=delta)
        self._arrived(point)
        return moves + steps

    def _odd(self, what: str, data: bytes) -> None:
        self.problem(what, offset=max(0, self._end - len(data) - 1), length=len(data))

    def _set_leaf(self, record: Json, offset: int, data: bytes) -> list[Step] | None:
        point = self.points.get(record["target_id"])
        if point is None:
            self.problem("goes on after a node that is not there", offset=self._end - len(data), length=len(data))
            return None
        self.leaf = point
        at = seconds(record["timestamp"])
        origin: Json = {"agent": NAME, "is": "leaf", **self._skipped(), **_time(record["timestamp"], at)}
        origin |= as_read({"type": "set_leaf", "timestamp": stamp(at, origin), "target_id": point.state.id}, data)
        return [Jump(to=point.key, key=self._key(data), at=at, origin=origin)]

    def _state(
        self, record: Json, inner: Json, key: str, before: Point, id: str, data: bytes | None, *, delta: bool
    ) -> tuple[list[Step], Point]:
        """The entries of a snapshot, a delta or a node. Without `data` it need not come back as it was."""
        base = before.state if before is not self.start else None
        messages = _messages(inner["appended_history" if delta else "history"])
        displays = _shown(record.get("display_messages", []))
        at, time = seconds(record["timestamp"]), as_text(record["timestamp"])
        spec = spec_of(record, inner, before=base, session=self.session, delta=delta)
        old = before.place
        whole = [] if delta else old.history()
        if delta or [digest(item) for item in messages[: len(whole)]] == [item.digest for item in whole]:
            fresh = messages[len(whole) :]
            names = [f"{key}/{i}" for i in range(len(fresh) - 1)] + [key][: len(fresh)]
            place = extension(old, fresh, names)
            drafts = [Record(entry=hear(item, at)) for item in fresh]
        else:
            count = _said_now(messages, [item["message"] for item in displays], {item.digest for item in whole})
            fresh = messages[len(messages) - count :]
            place, drafts = rewritten(old, messages, count, key, at)
            drafts = [_with_facts(draft, record.get("compaction_facts")) for draft in drafts]
        looks = display_spec(displays, fresh, time)
        if looks is not None:
            spec["display"] = looks
        if data is None:
            spec.pop("base", None)
        if delta and base is None:
            spec["full"] = True
        state = after(spec, base, id)
        origin: Json = {"is": record["type"], "node": spec, **self._skipped(), **_time(time, at)}
        if record["type"] == "node" and key != id:
            origin["id"] = id
        if data is not None:
            content = body(spec, base, state, self.session, messages)
            people = display(looks, fresh, time)
            again = snapshot(spec, time, content, people)
            if record["type"] == "node":
                again = node(spec, state, base.id if base is not None else None, time, content, people)
            origin |= as_read(again, data)
        if not drafts:
            drafts = [Record(entry=Custom(kind="rho.state", at=at))]
        _show(drafts, displays)
        return _closed(drafts, key, origin), Point(key, state, place)


def shown_instead(message: Message) -> Json | None:
    """The message that people see in place of this one, if it is another."""
    origin = origin_of(message) or {}
    if "display" in origin:
        return origin["display"]
    if not isinstance(message.display, str):
        return None
    return {"User" if message.role == "user" else "Assistant": [{"Text": message.display}]}


def _displayed(message: Message, display: Any, text: str | None) -> Message:
    seen = replace(message, display=text)
    if text is None or shown_instead(seen) != display:
        seen.origin["display"] = display
    return seen


def _record(data: bytes) -> Json | None:
    record = record_in(data)
    return record if isinstance(record.get("type"), str) else None


def _time(text: Any, at: datetime | None) -> Json:
    return {} if at is not None else {"time": text}


def _messages(value: Any) -> list[Json]:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in cast("list[Any]", value)):
        raise TypeError("not a list of messages")
    return cast("list[Json]", value)


def _shown(value: Any) -> list[Json]:
    for item in value:
        if set(item) != {"timestamp", "message"} or not isinstance(item["message"], dict):
            raise TypeError("not what people see")
    return cast("list[Json]", value)


def _said_now(messages: list[Json], displays: list[Any], digests: set[bytes]) -> int:
    """How many messages at the end of a history are this turn's: those that were shown with it.

    A person's message may have been shown as another one.
    """
    count = 0
    for here, there in zip(reversed(messages), reversed(displays), strict=False):
        is_prompt = "User" in here and "User" in there and digest(here) not in digests
        if here != there and not is_prompt:
            break
        count += 1
    return count


def _with_facts(draft: Record, facts: Json | None) -> Record:
    if facts is None or draft.entry.type != "compaction":
        return draft
    cost = counted(facts.get("cost_usd_micros"))
    spent = Usage(cost_micros=cost) if cost is not None else None
    before, now = counted(facts.get("previous_tokens")), counted(facts.get("current_tokens"))
    return replace(draft, entry=replace(draft.entry, tokens_before=before, tokens_after=now, usage=spent))


def _show(drafts: list[Record], displays: list[Json]) -> None:
    """Where people saw another text than the model, the entry says so, too. `origin` has it to the letter."""
    spoken = [i for i, d in enumerate(drafts) if isinstance(d.entry, Message) and d.entry.role != "system"]
    if len(spoken) != len(displays):
        return
    for place, item in zip(spoken, displays, strict=True):
        entry = cast("Message", drafts[place].entry)
        text = text_shown(item["message"])
        if tell(entry, RhoTally())[0] != item["message"] and text is not None:
            drafts[place] = replace(drafts[place], entry=replace(entry, display=text))


def _closed(drafts: list[Record], key: str, origin: Json) -> list[Step]:
    """Entries of one record: the last has the record's key and says what it was."""
    steps: list[Step] = []
    for index, draft in enumerate(drafts):
        is_last = index == len(drafts) - 1
        own: Json = draft.entry.origin or {}
        more = origin if is_last else {"is": "part"}
        entry: AnyEntry = replace(draft.entry, origin={"agent": NAME, **own, **more})
        steps.append(replace(draft, entry=entry, key=key if is_last else f"{key}/{index}"))
    return steps

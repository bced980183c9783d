"""A session of rho, line by line. Every record becomes entries, and is checked to be written back as it was."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, cast

from msgspec import Struct, field
from msgspec.structs import replace

from turnlog.formats import Jump, Problem, Reading, Record, SessionHeader, Source, Step
from turnlog.formats._shared.origin import UNKNOWN, UnknownRecords
from turnlog.formats.seeds.rho import logline
from turnlog.formats.seeds.rho.layout import SESSION, beside, chosen_id, id_in, title_in_index
from turnlog.formats.seeds.rho.message import NAME, Json, as_text, digest, origin_of, text_shown, to_entry
from turnlog.interop.jsonline import JsonLine, lines
from turnlog.interop.problem import tell
from turnlog.interop.records import record_in
from turnlog.interop.rust import compact
from turnlog.interop.value import fields, in_order, mistyped, text, without_none
from turnlog.log.digest import sha256
from turnlog.log.entry import Custom, Message, Note

NEWEST = 4
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_START = re.compile(rb'\{\s*"type"\s*:\s*"')
_MAX_TRIES, _MAX_PROBLEMS = 40, 50
_HEADER: dict[str, type] = {"id": str, "timestamp": str, "cwd": str}


class Point(Struct):
    """A place in the session that a later record may follow; by default the beginning."""

    key: str = ""
    state: logline.RhoState = field(default_factory=logline.RhoState)
    place: logline.RhoHistory = field(default_factory=logline.RhoHistory)


def read(source: Source) -> Reading:
    """One session: its header at once, everything else as it is asked for."""
    return _Reader(source.path).reading()


class _Reader:
    def __init__(self, path: str) -> None:
        self.path = path
        folder, name = os.path.split(os.path.abspath(path))
        self.is_folder = name == SESSION
        self.unit = os.path.basename(folder) if self.is_folder else name.removesuffix(".jsonl")
        self.workspace = os.path.dirname(folder) if self.is_folder else folder
        """The folder of all sessions of one workspace."""
        self.session = id_in(self.unit) or ""
        self.problems: list[Problem] = []
        self.head: Json | None = None
        self.head_line = b""
        self.points: dict[str, Point] = {}
        """All places by rho's id for them."""
        self.unknown = UnknownRecords(NAME)
        self.start = self.leaf = Point()
        self._seen = Counter[str]()
        self._kinds: dict[str, Callable[[Json, int, bytes], list[Step] | None]] = {
            "message": self._message, "replace_history": self._replace, "snapshot": self._snapshot,
            "snapshot_delta": self._snapshot, "node": self._node, "set_leaf": self._set_leaf,
        }  # fmt: skip

    def reading(self) -> Reading:
        rest = lines(self.path)
        first: list[Step] = []
        for line in rest:
            first += self.take(line)
            if self.head is not None or first:
                break
        if self.head is None:
            self.look_for_head()
        header, facts = self.header(), dict[str, Any]()

        def steps() -> Iterator[Step]:
            yield from first
            for line in rest:
                yield from self.take(line)
            self.unknown.report(self.problems)
            yield from beside(self.path, self.problems)
            facts.update(self.facts())

        return Reading(header=header, steps=steps(), problems=self.problems, facts=facts)

    def header(self) -> SessionHeader:
        named, head = id_in(self.unit), self.head or {}
        own = head.get("id") if isinstance(head.get("id"), str) else None
        self.session = named or own or self.unit
        if self.head is None:
            self.problems.append(Problem("it has no header"))
        elif own is not None and own != self.session:
            what = f"its header says that it is {own!r:.60}, its name {self.session!r:.60}"
            self.problems.append(Problem(what, offset=0))
        self.problems += [Problem(f"in its header, {what}", offset=0) for what in mistyped(head, _HEADER)]
        version = head.get("version", 1)
        if type(version) is not int or not 1 <= version <= NEWEST:
            self.problems.append(Problem(f"version {version!r:.20} is not known: read as far as it goes", offset=0))
        title = title_in_index(*os.path.split(self.workspace), self.session, self.problems)
        about: Json = {}  # what the writer has to know of the session as a whole
        if self.head is not None:
            about["header"] = {name: value for name, value in head.items() if name != "cwd" or isinstance(value, str)}
            if self.head_line != compact(in_order(head, logline.HEADER)):
                about["line"] = self.head_line.decode()
        more = {"unit": self.unit if named else None, "folder": self.is_folder or None, "title": title}
        return SessionHeader(
            id=self.session,
            identity=self.unit if named == self.session else f"{self.unit}:{self.session}",
            workspace=text(head.get("cwd")),
            title=title,
            created=logline.seconds(head.get("timestamp")),
            origin={**about, **without_none(more)},
        )

    def facts(self) -> dict[str, Any]:
        """What holds for the session as it stands."""
        envelope, head = self.leaf.state.envelope, self.head or {}
        provider = fields(envelope.get("provider"))
        is_named = isinstance(provider.get("model"), str)
        facts = {"model": provider["model"], "rho.provider": provider} if is_named else {}
        facts |= {"rho.metadata": envelope.get("metadata") or None}
        return without_none(facts | {f"rho.{name}": head.get(name) for name in logline.HEADER[5:]})

    def problem(self, what: str, offset: int, length: int) -> None:
        """Something that could not be read."""
        tell(self.problems, Problem(what, offset=offset, length=length), _MAX_PROBLEMS)

    def look_for_head(self) -> None:
        """A header that is not where it should be."""
        for line in lines(self.path):
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
        yield from self._recovered(line) if record is None else self._kept(record, line.offset, line.data)

    def _recovered(self, line: JsonLine) -> Iterator[Step]:
        """Whatever was glued to the remains of another record, as an append after a torn line leaves it."""
        for start in (match.start() for match in islice(_START.finditer(line.data), _MAX_TRIES)):
            record = _record(line.data[start:]) if start else None
            if record is not None:
                self.problem("the remains of a record, cut short", line.offset, start)
                yield from self._kept(record, line.offset + start, line.data[start:])
                return
        what = "a line that is no record" if line.is_ended else "the last record is cut short"
        self.problem(what, line.offset, line.length)

    def _kept(self, record: Json, offset: int, data: bytes) -> Iterator[Step]:
        kind = record["type"]
        if kind == "session" and (self.head is None or data == self.head_line):
            self.head, self.head_line = record, data
            return
        take = self._kinds.get(kind)
        try:
            steps = take(record, offset, data) if take is not None else None
        except (KeyError, TypeError, ValueError, AttributeError):
            steps = None
            self.problem(f"a record of the type {kind} that is not as it should be: kept as it is", offset, len(data))
        if steps is None:
            steps = [self._note(record, data, is_unknown=take is None and kind != "upgrade")]
        yield from steps

    def _note(self, record: Json, data: bytes, *, is_unknown: bool) -> Record:
        """A record that says nothing to anybody but rho."""
        kind = record["type"]
        text = "rho made this session a tree" if kind == "upgrade" else f"a record of rho: {kind:.60}"
        origin: Json = {"agent": NAME, "is": "record", **logline.differing_line(record, data)}
        if is_unknown:
            text, origin[UNKNOWN] = self.unknown.note(kind, record).text, kind
        at = logline.seconds(record.get("timestamp"))
        return Record(entry=Note(text=text, data=record, at=at, origin=origin), key=logline.numbered(data, self._seen))

    def _message(self, record: Json, offset: int, data: bytes) -> list[Step]:
        at = logline.seconds(record["timestamp"])
        (raw,) = _messages([record["message"]])
        message = to_entry(raw, at, **_time(record["timestamp"]))
        display = record.get("display_message")
        if display is not None:
            message = replace(message, display=text_shown(display))
            if message.display is None or shown_instead(message) != display:
                message.origin["display"] = display
        line = logline.message_line(raw, record["timestamp"], shown_instead(message))
        message.origin.update(logline.differing_line(line, data))
        key = logline.numbered(data, self._seen)
        before = self.leaf.state
        state = replace(before, id=f"legacy:{offset:016x}", revision=before.revision + 1)
        self._arrived(Point(key, state, logline.extension(self.leaf.place, [raw], [key])))
        return [Record(entry=message, key=key)]

    def _replace(self, record: Json, offset: int, data: bytes) -> list[Step]:
        messages = _messages(record["messages"])
        at = logline.seconds(record["timestamp"])
        key = logline.numbered(data, self._seen)
        place, drafts = logline.rewritten(self.leaf.place, messages, 0, key, at)
        self._arrived(Point(key, logline.state_replaced(self.leaf.state, f"legacy:{offset:016x}"), place))
        again = logline.history_line(record["timestamp"], messages)
        return _closed(drafts, key, {"is": "replace", **_as_it_was(again, data)})

    def _snapshot(self, record: Json, offset: int, data: bytes) -> list[Step]:
        inner = logline.inner_of(record)
        return self._state(record, inner, logline.numbered(data, self._seen), self.leaf, f"legacy:{offset:016x}", data)

    def _arrived(self, point: Point) -> None:
        self.points[point.state.id] = self.leaf = point

    def _node(self, record: Json, offset: int, data: bytes) -> list[Step]:
        id, parent, inner = record["id"], record.get("parent_id"), logline.inner_of(record)
        before = self.points.get(parent) if parent is not None else self.start
        is_odd = False
        if not isinstance(id, str) or id in self.points:
            self.problem(f"a node with the id {id!r:.60}, which is taken", offset, len(data))
            id, is_odd = chosen_id(logline.numbered(data, self._seen)), True
        if before is None:
            what = f"a node after {parent!r:.60}, which is not there: read as if it followed the one before"
            self.problem(what, offset, len(data))
            before, is_odd = self.leaf, True
        key = id if _UUID.fullmatch(id) else f"node:{sha256(id.encode()).hexdigest()[:32]}"
        moves: list[Step] = [] if before is self.leaf else [Jump(to=before.key)]
        return moves + self._state(record, inner, key, before, id, None if is_odd else data)

    def _set_leaf(self, record: Json, offset: int, data: bytes) -> list[Step] | None:
        point = self.points.get(record["target_id"])
        if point is None:
            self.problem("goes on after a node that is not there", offset, len(data))
            return None
        self.leaf = point
        again = {"type": "set_leaf", "timestamp": record["timestamp"], "target_id": point.state.id}
        origin = {"agent": NAME, "is": "leaf", **_as_it_was(again, data)}
        key, at = logline.numbered(data, self._seen), logline.seconds(record["timestamp"])
        return [Jump(to=point.key, key=key, at=at, origin=origin)]

    def _state(self, record: Json, inner: Json, key: str, before: Point, id: str, data: bytes | None) -> list[Step]:
        """The entries of a snapshot, a delta or a node. Without `data` it need not come back as it was."""
        delta = logline.is_delta(record)
        messages = _messages(inner["appended_history" if delta else "history"])
        shown = _messages([item["message"] for item in record.get("display_messages", [])])
        at = logline.seconds(as_text(record["timestamp"]))
        old = before.place
        whole = [] if delta else old.history()
        if [digest(item) for item in messages[: len(whole)]] == [item.digest for item in whole]:
            fresh = messages[len(whole) :]
            place = logline.extension(old, fresh, logline.part_keys(key, len(fresh)))
            drafts = [Record(entry=to_entry(item, at)) for item in fresh]
        else:
            count = _said_now(messages, shown, {item.digest for item in whole})
            fresh = messages[len(messages) - count :]
            place, drafts = logline.rewritten(old, messages, count, key, at, record.get("compaction_facts"))
        state = logline.state_after(record, before.state, id)
        kept = logline.emptied(record if data is not None else self._mended(record, state, before), fresh)
        again = logline.differing_line(logline.filled(kept, messages, fresh), data) if data is not None else {}
        origin = {"is": record["type"], **(again or {"record": kept})}
        if not drafts:
            drafts = [Record(entry=Custom(kind="rho.state", at=at))]
        _show(drafts, fresh, shown)
        self._arrived(Point(key, state, place))
        return _closed(drafts, key, origin)

    def _mended(self, record: Json, state: logline.RhoState, before: Point) -> Json:
        """A node as rho would take it: with an id of its own, after one that is there or before all others."""
        owner = logline.inner_of(record).get("session_id") or self.session
        is_first = before is self.start
        base = before.state.revision if logline.is_delta(record) and not is_first else None
        holder = logline.transition(state, base, owner, None)
        again = {**record, "id": state.id, "parent_id": before.state.id, "transition": holder}
        return {name: value for name, value in again.items() if name != "parent_id" or not is_first}


def shown_instead(message: Message) -> Json | None:
    """The message that people see in place of this one, if it is another."""
    origin = origin_of(message) or {}
    if "display" in origin:
        return origin["display"]
    if not isinstance(message.display, str):
        return None
    return {"User" if message.role == "user" else "Assistant": [{"Text": message.display}]}


def _record(data: bytes) -> Json | None:
    record = record_in(data)
    return record if isinstance(record.get("type"), str) else None


def _time(text: Any) -> Json:
    return {} if logline.seconds(text) is not None else {"time": text}


def _as_it_was(again: Json, data: bytes) -> Json:
    """For an origin: what of a line we would write otherwise."""
    return {**_time(again["timestamp"]), **logline.differing_line(again, data)}


def _messages(value: Any) -> list[Json]:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in cast("list[Any]", value)):
        raise TypeError("not a list of messages")
    return cast("list[Json]", value)


def _said_now(messages: list[Json], shown: list[Json], digests: set[bytes]) -> int:
    """How many messages at the end of a history are this turn's: those shown with it, a prompt maybe as another."""
    count = 0
    for here, there in zip(reversed(messages), reversed(shown), strict=False):
        is_prompt = "User" in here and "User" in there and digest(here) not in digests
        if here != there and not is_prompt:
            break
        count += 1
    return count


def _show(drafts: list[Record], fresh: list[Json], shown: list[Json]) -> None:
    """Where people saw another text than the model, the entry says so, too. `origin` has it to the letter."""
    messages = enumerate(fresh, len(drafts) - len(fresh))
    spoken = [(index, raw) for index, raw in messages if cast("Message", drafts[index].entry).role != "system"]
    if len(spoken) != len(shown):
        return
    for (index, raw), other in zip(spoken, shown, strict=True):
        text = text_shown(other)
        if raw != other and text is not None:
            drafts[index] = replace(drafts[index], entry=replace(cast("Message", drafts[index].entry), display=text))


def _closed(drafts: list[Record], key: str, origin: Json) -> list[Step]:
    """Entries of one record: the last has the record's key and says what it was."""
    steps: list[Step] = []
    for draft, name in zip(drafts, logline.part_keys(key, len(drafts)), strict=True):
        own: Json = draft.entry.origin or {}
        more = origin if name == key else {"is": "part"}
        steps.append(replace(draft, entry=replace(draft.entry, origin={"agent": NAME, **own, **more}), key=name))
    return steps

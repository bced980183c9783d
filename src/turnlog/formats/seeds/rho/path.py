"""The conversation as rho is told it: what leads to an entry, what a model sees there, which result goes where, and the
nodes that rho never made.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from itertools import accumulate, takewhile
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from turnlog.formats._shared.rust import compact
from turnlog.formats._shared.view import compactions_on
from turnlog.formats.seeds.rho.message import Json, RhoTally, answers, calls_of, no_result, open_calls, origin_of, tell
from turnlog.formats.seeds.rho.names import chosen_id, is_newer
from turnlog.formats.seeds.rho.reading import shown_instead
from turnlog.formats.seeds.rho.record import NO_COMPACTION, RhoState, after, body, message_line, node, stamp
from turnlog.log.context import spoken, visible
from turnlog.log.entry import AnyEntry, Compaction, Custom, Edit, Head, Message

_T = TypeVar("_T")


class RhoLine(Struct):
    """One line before there is a tree: a message, or a record that stands where it stands."""

    seq: int
    json: Json
    time: str = "0"
    display: Json | None = None
    line: bytes | None = None
    """As it was read, where we would write it otherwise."""
    gap: int = 0
    kind: str = "message"
    is_new: bool = False
    is_hidden: bool = False

    def record(self) -> Json:
        """The line of version 1."""
        return message_line(self.json, self.time, self.display)

    def shown(self) -> Json:
        """What people see of it in a tree."""
        return {"timestamp": self.time, "message": self.display if self.display is not None else self.json}


class Trail:
    """Every node of a session, and the ways between them."""

    def __init__(self, entries: list[AnyEntry], ear: RhoTally, *, is_first: bool = False) -> None:
        self._ear = ear
        self._is_first = is_first
        """Whether what a newer rho said has to be told in the words of the first."""
        self._nodes = {entry.seq: entry for entry in entries if entry.parent is not None}
        children = Counter(entry.parent for entry in self._nodes.values())
        self.forks = {seq for seq, count in children.items() if seq is not None and count > 1}
        self.forks |= {entry.to for entry in entries if isinstance(entry, Head)}
        self._told: dict[int, list[RhoLine]] = {}

    def at(self, seq: int) -> AnyEntry | None:
        """The node with that number."""
        return self._nodes.get(seq)

    def back(self, seq: int) -> Iterator[AnyEntry]:
        """The nodes that lead to one, newest first."""
        entry = self._nodes.get(seq)
        while entry is not None:
            yield entry
            entry = self._nodes.get(entry.parent or 0)

    def nearest(self, seq: int, closed: Mapping[int, _T]) -> _T | None:
        """What is known of the newest node on that way of which anything is."""
        return next((closed[entry.seq] for entry in self.back(seq) if entry.seq in closed), None)

    def span(self, seq: int, closed: Mapping[int, Any]) -> list[AnyEntry]:
        """The nodes since then, oldest first."""
        return [*takewhile(lambda entry: entry.seq not in closed, self.back(seq))][::-1]

    def record(self, entry: AnyEntry) -> list[AnyEntry]:
        """All entries of the record that this one ends, oldest first."""
        before = takewhile(lambda part: (origin_of(part) or {}).get("is") == "part", self.back(entry.parent or 0))
        return [entry, *before][::-1]

    def told(self, entry: AnyEntry) -> list[RhoLine]:
        """The messages that an entry is for rho."""
        if entry.seq not in self._told:
            message = spoken(entry) if isinstance(entry, (Message, Custom)) else None
            self._told[entry.seq] = [] if message is None else self._tell(message)
        return self._told[entry.seq]

    def _tell(self, message: Message) -> list[RhoLine]:
        if self._is_first and is_newer(message):
            message = replace(message, origin=None)
        origin = origin_of(message)
        if origin is None and not message.blocks:
            return []
        time, display = stamp(message.clock or message.at, origin), shown_instead(message)
        is_hidden = message.display is False
        return [
            RhoLine(message.seq, raw, time, display, is_new=origin is None, is_hidden=is_hidden)
            for raw in tell(message, self._ear)
        ]

    def history(self, seq: int) -> list[RhoLine]:
        """What a model sees at a node, oldest first."""
        path = list(self.back(seq))
        replaced, kept = visible(path, self._nodes.get)
        messages = [*replaced, *kept]
        compactions = compactions_on(path)
        is_bare = not compactions or (origin_of(compactions[0]) or {}).get("bare")
        if not is_bare and (not messages or messages[0].role != "system"):
            messages = [*_systems(path), *messages]
        return [raw for message in messages for raw in self._seen(message)]

    def _seen(self, message: Message) -> list[RhoLine]:
        entry = self._nodes.get(message.seq)
        if isinstance(entry, Message) and entry.blocks is message.blocks:
            return self.told(entry)
        origin = origin_of(message)
        if isinstance(entry, Message) and origin is not None:
            # It was edited: what it read like to the letter no longer counts.
            kept = {name: value for name, value in origin.items() if name not in ("message", "line")}
            message = replace(message, origin=kept)
        return self._tell(message)


def _systems(path: list[AnyEntry]) -> list[Message]:
    """The system messages a path (newest first) begins with, as they read now."""
    edits: dict[int, Edit] = {}
    for entry in path:
        if isinstance(entry, Edit):
            edits.setdefault(entry.entry, entry)
    messages: list[Message] = []
    for entry in reversed(path):
        if isinstance(entry, Message):
            if entry.role != "system":
                break
            edit = edits.get(entry.seq)
            if edit is None:
                messages.append(entry)
            elif edit.blocks is not None:
                messages.append(replace(entry, blocks=edit.blocks))
    return messages


def reached_by(lines: list[tuple[int, _T]]) -> dict[int, _T]:
    """Which line an entry stands for: the one by which all that came before it is written, and nothing else."""
    last = {seq: index for index, (seq, _) in enumerate(lines)}
    made_up = list(accumulate(seq == 0 for seq, _ in lines))
    counts = Counter(seq for seq, _ in lines)
    furthest, count = -1, 0
    reached: dict[int, _T] = {}
    for seq in sorted(last):
        if seq:
            furthest, count = max(furthest, last[seq]), count + counts[seq]
            if count + made_up[furthest] == furthest + 1:
                reached[seq] = lines[furthest][1]
    return reached


def settled(items: list[RhoLine], ear: RhoTally, waiting: list[str] | None = None, time: str = "0") -> list[RhoLine]:
    """The same with the results of every call right behind it, in the order of the calls.

    rho hides everything from the first call on that is not answered so. A result that never came is made up, except
    at the very end of what was read from rho: there it may still come.
    """
    messages = [item for item in items if item.kind == "message"]
    if _is_sound(messages, waiting or []):
        return items
    results: dict[str, deque[int]] = {}
    callers: dict[str, list[int]] = {}
    for index, item in enumerate(items):
        call = answers(item.json)
        if call is not None:
            results.setdefault(call, deque()).append(index)
        for name in calls_of(item.json):
            callers.setdefault(name, []).append(index)
    used: set[int] = set()
    history_now: list[RhoLine] = []

    def answer(calls: list[str], at: int, by: RhoLine | None) -> None:
        for call in calls:
            waiting, again = results.get(call, deque()), callers.get(call, [])
            while waiting and waiting[0] <= at:
                waiting.popleft()
            # A later call with the same id has a result of its own.
            rival = again[place] if (place := bisect_right(again, at)) < len(again) else len(items)
            if waiting and waiting[0] < rival:
                used.add(waiting[0])
                history_now.append(items[waiting.popleft()])
            elif by is None or by.is_new or _follows(items, used, at):
                ear.add("missing tool result", "one that says so")
                when = by.time if by is not None else items[0].time if items else time
                history_now.append(RhoLine(0, no_result(call), when, is_new=True))

    answer(waiting or [], -1, None)
    for index, item in enumerate(items):
        if index not in used:
            history_now.append(item)
            answer(calls_of(item.json), index, item)
    return history_now


def _follows(items: list[RhoLine], used: set[int], at: int) -> bool:
    """Whether anything comes after a call, its results aside."""
    return any(i not in used and answers(items[i].json) is None for i in range(at + 1, len(items)))


def _is_sound(messages: list[RhoLine], waiting: list[str]) -> bool:
    expected = deque(waiting)
    last: RhoLine | None = None
    for item in messages:
        call = answers(item.json)
        if expected:
            if call != expected.popleft():
                return False
            continue
        expected.extend(calls_of(item.json))
        last = item
    return not expected or (last is not None and not last.is_new)


_NOBODY = {"provider": "unknown", "api": "unknown", "model": "unknown"}


class Growth:
    """Makes nodes. rho's rules: the first has no parent and is whole; a delta only adds, to a parent that is whole;
    a compaction is whole; whatever changes the state has a higher revision."""

    def __init__(self, session: str, trail: Trail, closed: dict[int, RhoState], ear: RhoTally) -> None:
        self._session = session
        self._trail = trail
        self._closed = closed
        self._ear = ear
        self._made: dict[str, tuple[str | None, list[Json]]] = {}
        """What each node of ours added to which other, or all of it."""
        self._ends: dict[str, tuple[int, list[str] | None]] = {}
        """How long the history at a node is, and which calls at its end have no result."""

    def node(self, last: AnyEntry, leaf: RhoState | None) -> tuple[bytes, RhoState] | None:
        """The line of the node that ends with this entry, and the state it leads to; None if nothing was said."""
        trail, closed = self._trail, self._closed
        before, span = trail.nearest(last.seq, closed), trail.span(last.seq, closed)
        compaction = next((entry for entry in reversed(span) if isinstance(entry, Compaction)), None)
        is_plain = all(isinstance(entry, (Message, Custom)) for entry in span)
        new = _new([item for entry in span for item in trail.told(entry)])
        if is_plain and not new:
            return None
        if before is None and leaf is not None:
            # rho has no second beginning: this branches off from the first node, with a history of its own.
            before, is_plain = next(iter(closed.values())), False
            self._ear.add("branch from the very beginning", "one after the first turn, with its own history")
        length, waiting = self._end(before)
        unseen = before.waiting if before is not None else []
        time = stamp(last.clock or last.at)
        fresh = settled(new, self._ear, unseen, time)
        added: list[Json] = []
        whole: list[Json] | None = None
        if is_plain and waiting is not None:
            again = fresh if waiting == unseen else settled(new, self._ear, waiting)
            added = [item.json for item in again]
        else:
            whole = [item.json for item in settled(_new(trail.history(last.seq)), self._ear)]
            if compaction is None and whole[:length] == self._history(before):
                added, whole = whole[length:], None
        now = length + len(added) if whole is None else len(whole)
        spec = self._spec(span, before, compaction, length, now)
        is_first = before is None or not before.is_full or before.id.startswith("legacy:")
        if whole is not None or before is None or is_first or spec.get("kind"):
            spec["full"] = True
            whole = [*self._history(before), *added] if whole is None else whole
        elif "metadata" not in before.envelope:
            spec["new"]["metadata"] = {}
        state = after(spec, before, chosen_id(f"{self._session}/{last.id}"))
        parent = before.id if before is not None else None
        self._made[state.id] = (None, whole) if whole is not None else (parent, added)
        self._ends[state.id] = (now, [])
        inner = body(spec, before, state, self._session, whole if whole is not None else added)
        display = [item.shown() for item in fresh if not item.is_hidden and "System" not in item.json]
        return compact(node(spec, state, parent, time, inner, display)), state

    def _spec(
        self, span: list[AnyEntry], before: RhoState | None, compaction: Compaction | None, old: int, now: int
    ) -> Json:
        envelope = before.envelope if before is not None else {}
        counts: Json = envelope.get("compaction") or NO_COMPACTION
        spec: Json = {}
        if before is not None and (compaction is not None or not before.is_sure):
            # Where rho has counted tokens in its own way, only a compaction is sure to differ from what it found.
            spec["kind"] = "compaction"
            spec["facts"], counts = _compacted(compaction, counts, old, now, before.revision + 1)
        new: Json = {"provider": _provider(span, envelope), "compaction": counts}
        if "prompt_cache_key" not in envelope:
            new["prompt_cache_key"] = f"rho:{self._session}"
        return {**spec, "new": new}

    def _end(self, state: RhoState | None) -> tuple[int, list[str] | None]:
        if state is None:
            return 0, []
        if state.id not in self._ends:
            history = self._history(state)
            self._ends[state.id] = (len(history), open_calls(history))
        return self._ends[state.id]

    def _history(self, state: RhoState | None) -> list[Json]:
        """What rho has at a node."""
        parts: list[list[Json]] = []
        id = state.id if state is not None else None
        while id is not None and id in self._made:
            id, items = self._made[id]
            parts.append(items)
        if id is not None:
            seq = next((seq for seq, node in self._closed.items() if node.id == id), 0)
            parts.append([item.json for item in self._trail.history(seq)])
        return [raw for part in reversed(parts) for raw in part]


def _new(history: list[RhoLine]) -> list[RhoLine]:
    """As ours, so that also a call at the very end gets a result."""
    return [replace(item, is_new=True) for item in history]


def _provider(span: list[AnyEntry], envelope: Json) -> Json:
    provider: Json = envelope.get("provider") or _NOBODY
    model = next((entry.model for entry in reversed(span) if isinstance(entry, Message) and entry.model), None)
    return provider if model is None or model == provider.get("model") else {**_NOBODY, "model": model}


def _compacted(compaction: Compaction | None, counts: Json, old: int, now: int, revision: int) -> tuple[Json, Json]:
    """The facts of a compaction, and the counts with it."""
    cost = compaction.usage.cost_micros if compaction is not None and compaction.usage is not None else None
    before = (compaction.tokens_before if compaction is not None else None) or 0
    after = (compaction.tokens_after if compaction is not None else None) or 0
    facts = {
        "previous_messages": old, "current_messages": now, "previous_tokens": before, "current_tokens": after,
        "cost_usd_micros": cost,
    }  # fmt: skip
    return facts, {
        "completed_compactions": counts.get("completed_compactions", 0) + 1,
        "removed_messages": counts.get("removed_messages", 0) + max(0, old - now),
        "removed_tokens": counts.get("removed_tokens", 0) + max(0, before - after),
        "removed_cost_usd_micros": counts.get("removed_cost_usd_micros", 0) + (cost or 0),
        "last_previous_tokens": before,
        "last_current_tokens": after,
        "last_revision": revision,
    }

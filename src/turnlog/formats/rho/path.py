"""The conversation as rho is told it: what leads to an entry, what a model sees there, which result goes where, and the
nodes that rho never made.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from itertools import accumulate, takewhile

from msgspec import Struct
from msgspec.structs import replace

from turnlog.formats._shared.compactedview import compactions_on
from turnlog.formats.rho.layout import chosen_id
from turnlog.formats.rho.logline import NO_COMPACTION, RhoState, message_line, stamp, transition
from turnlog.formats.rho.message import NOBODY, Json, RhoTally, origin_of, tell
from turnlog.formats.rho.reading import shown_instead
from turnlog.interop.rust import compact
from turnlog.interop.value import as_counter, as_list, fields
from turnlog.log.block import Image, Thinking, UnknownBlock
from turnlog.log.context import spoken, visible
from turnlog.log.context.toolturn import INTERRUPTED
from turnlog.log.entry import AnyEntry, Compaction, Custom, Edit, Entry, Head, Message


class RhoLine(Struct):
    """One line before there is a tree: a message, or a record that stands where it stands."""

    seq: int
    json: Json
    time: str = "0"
    display: Json | None = None
    line: bytes | None = None
    """As it was read, where we would write it otherwise."""
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

    def __init__(self, entries: list[AnyEntry], ear: RhoTally) -> None:
        self._ear = ear
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

    def nearest(self, seq: int, closed: dict[int, RhoState]) -> RhoState | None:
        """What is known of the newest node on that way of which anything is."""
        return next((closed[entry.seq] for entry in self.back(seq) if entry.seq in closed), None)

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
        if not self._ear.is_rich and is_newer(message):  # it has to be told in the words of the first rho
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
            messages = [*self._systems(path), *messages]
        return [raw for message in messages for raw in self._seen(message)]

    def _systems(self, path: list[AnyEntry]) -> list[Message]:
        """The system messages a path (newest first) begins with, as they read now."""
        lead = takewhile(lambda entry: not isinstance(entry, Message) or entry.role == "system", reversed(path))
        messages = [entry for entry in lead if isinstance(entry, Message)]
        edits = [entry for entry in path if isinstance(entry, Edit)]
        return visible([*edits, *reversed(messages)], self._nodes.get)[1]

    def _seen(self, message: Message) -> list[RhoLine]:
        entry = self._nodes.get(message.seq)
        if isinstance(entry, Message) and entry.blocks is message.blocks:
            return self.told(entry)
        origin = origin_of(message)
        if isinstance(entry, Message) and origin is not None:
            # It was edited: what it read like to the letter no longer counts, apart from what it cost.
            kept = {name: value for name, value in origin.items() if name not in ("message", "patch", "line")}
            usage = fields(fields(origin.get("patch")).get("set")).get("usage")
            kept |= {"patch": {"set": {"usage": usage}}} if usage is not None else {}
            message = replace(message, origin=kept)
        return self._tell(message)


def is_newer(entry: Entry) -> bool:
    """Whether it came from rho and says what the first one would refuse."""
    origin = origin_of(entry)
    if origin is None:
        return False
    if "as" in origin or origin.get("is", "part") != "part":
        return True
    if not isinstance(entry, Message):
        return False
    return entry.display is not None or any(isinstance(b, (Image, Thinking, UnknownBlock)) for b in entry.blocks)


def reached_by(lines: list[tuple[int, RhoState]]) -> dict[int, RhoState]:
    """Which line an entry stands for: the one by which all that came before it is written, and nothing else."""
    last = {seq: index for index, (seq, _) in enumerate(lines)}
    made_up = list(accumulate(seq == 0 for seq, _ in lines))
    counts = Counter(seq for seq, _ in lines)
    furthest, count = -1, 0
    reached: dict[int, RhoState] = {}
    for seq in sorted(last):
        if seq:
            furthest, count = max(furthest, last[seq]), count + counts[seq]
            if count + made_up[furthest] == furthest + 1:
                reached[seq] = lines[furthest][1]
    return reached


def calls_of(raw: Json) -> list[str]:
    """The calls whose results have to follow at once."""
    content = raw.get("Assistant")
    if content is None:
        content = fields(raw.get("EnrichedAssistant")).get("content")
    ids = [fields(fields(block).get("ToolCall")).get("id") for block in as_list(content)]
    return [name for name in ids if isinstance(name, str)]


def answers(raw: Json) -> str | None:
    """The call that a message answers."""
    call = fields(raw.get("ToolResult")).get("id")
    return call if isinstance(call, str) else None


def no_result(call: str) -> Json:
    """What stands for a result that never came: without it, rho hides all that follows."""
    return {"ToolResult": {"id": call, "ok": False, "content": INTERRUPTED}}


def open_calls(history: Iterable[Json], waiting: list[str] | None = None) -> list[str] | None:
    """The calls at the end of a history that still need a result; None if that cannot be mended at its end.

    `waiting` are those that needed one before it.
    """
    pending = deque(waiting or ())
    for raw in history:
        if not pending:
            pending.extend(calls_of(raw))
        elif answers(raw) != pending.popleft():
            return None
    return list(pending)


def still_open(waiting: list[str], messages: Iterable[Json]) -> list[str]:
    """The calls that still need a result after more was said."""
    for message in messages:
        call = answers(message)
        if call is None:
            waiting = calls_of(message)
        elif call in waiting:
            waiting = waiting[1:] if call == waiting[0] else []  # out of order, nothing mends it any more
    return waiting


def settled(items: list[RhoLine], ear: RhoTally, waiting: list[str] | None = None, time: str = "0") -> list[RhoLine]:
    """The same with the results of every call right behind it, in the order of the calls.

    rho hides everything from the first call on that is not answered so. A result that never came is made up, except
    at the very end of what was read from rho: there it may still come.
    """
    messages = [item for item in items if item.kind == "message"]
    unanswered = open_calls([item.json for item in messages], waiting)
    caller = next((item for item in reversed(messages) if calls_of(item.json)), None)
    if unanswered == [] or (unanswered is not None and caller is not None and not caller.is_new):
        return items
    results: dict[str, deque[int]] = {}
    callers: dict[str, list[int]] = {}
    for index, item in enumerate(items):
        call = answers(item.json)
        if call is not None:
            results.setdefault(call, deque()).append(index)
        for name in calls_of(item.json):
            callers.setdefault(name, []).append(index)
    last = max((index for index, item in enumerate(items) if answers(item.json) is None), default=-1)
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
            elif by is None or by.is_new or at < last:
                ear.add("missing tool result", "one that says so")
                when = by.time if by is not None else items[0].time if items else time
                history_now.append(RhoLine(0, no_result(call), when, is_new=True))

    answer(waiting or [], -1, None)
    for index, item in enumerate(items):
        if index not in used:
            history_now.append(item)
            answer(calls_of(item.json), index, item)
    return history_now


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
        before = trail.nearest(last.seq, closed)
        span = [*takewhile(lambda entry: entry.seq not in closed, trail.back(last.seq))][::-1]
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
        envelope = before.envelope if before is not None else {}
        counts: Json = fields(envelope.get("compaction")) or NO_COMPACTION
        record: Json = {"timestamp": time, "kind": "commit"}
        if before is not None and (compaction is not None or not before.is_sure):
            # Where rho has counted tokens in its own way, only a compaction is sure to differ from what it found.
            facts, counts = _compacted(compaction, counts, length, now, before.revision + 1)
            record |= {"kind": "compaction", "compaction_facts": facts}
        cache = {"prompt_cache_key": f"rho:{self._session}"}
        envelope = {**cache, **envelope, "provider": _provider(span, envelope), "compaction": counts}
        # A delta may only follow where rho has a snapshot.
        is_first = before is None or before.id.startswith("legacy:")
        if is_first or record["kind"] == "compaction":
            whole = [*self._history(before), *added] if whole is None else whole
        base = before.revision if before is not None and whole is None else None
        if base is not None:
            envelope = {"metadata": {}, **envelope}
        revision = before.revision + 1 if before is not None else 1
        state = RhoState(chosen_id(f"{self._session}/{last.id}"), revision, envelope)
        parent = before.id if before is not None else None
        self._made[state.id] = (None, whole) if whole is not None else (parent, added)
        self._ends[state.id] = (now, [])
        holder = transition(state, base, self._session, whole if whole is not None else added)
        shown = [item.shown() for item in fresh if not item.is_hidden and "System" not in item.json]
        head = {"type": "node", "id": state.id, **({"parent_id": parent} if parent is not None else {})}
        return compact({**head, **record, "transition": holder, "display_messages": shown}), state

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
    provider: Json = fields(envelope.get("provider")) or NOBODY
    model = next((entry.model for entry in reversed(span) if isinstance(entry, Message) and entry.model), None)
    return provider if model is None or model == provider.get("model") else {**NOBODY, "model": model}


def _compacted(compaction: Compaction | None, counts: Json, old: int, now: int, revision: int) -> tuple[Json, Json]:
    """The facts of a compaction, and the counts with it."""
    cost = compaction.usage.cost_micros if compaction is not None and compaction.usage is not None else None
    before = (compaction.tokens_before if compaction is not None else None) or 0
    after = (compaction.tokens_after if compaction is not None else None) or 0
    more = {
        "completed_compactions": 1, "removed_messages": max(0, old - now), "removed_tokens": max(0, before - after),
        "removed_cost_usd_micros": cost or 0,
    }  # fmt: skip
    facts = {
        "previous_messages": old, "current_messages": now, "previous_tokens": before, "current_tokens": after,
        "cost_usd_micros": cost,
    }  # fmt: skip
    total = {name: (as_counter(counts.get(name)) or 0) + count for name, count in more.items()}
    return facts, {**total, "last_previous_tokens": before, "last_current_tokens": after, "last_revision": revision}

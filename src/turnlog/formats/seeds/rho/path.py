"""The conversation as rho has it: the path to an entry, what a model sees there, the order of results, new nodes."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from itertools import accumulate, takewhile

from msgspec import Struct
from msgspec.structs import replace

from turnlog.formats._shared.compactedview import compactions_on
from turnlog.formats.seeds.rho.layout import chosen_id
from turnlog.formats.seeds.rho.logline import NO_COMPACTION, RhoState, message_line, stamp, transition
from turnlog.formats.seeds.rho.message import NOBODY, Json, RhoTally, is_newer, origin_of, to_messages
from turnlog.formats.seeds.rho.reading import shown_instead
from turnlog.interop.value import as_counter, as_list, fields
from turnlog.log.context import spoken, visible
from turnlog.log.context.toolturn import INTERRUPTED
from turnlog.log.entry import AnyEntry, Compaction, Custom, Edit, Head, Message


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


class Trail:
    """Every node of a session, and the paths between them."""

    def __init__(self, entries: list[AnyEntry], tally: RhoTally) -> None:
        self._tally = tally
        self.nodes = {entry.seq: entry for entry in entries if entry.parent is not None}
        children = Counter(entry.parent for entry in self.nodes.values())
        self.forks = {seq for seq, count in children.items() if seq is not None and count > 1}
        self.forks |= {entry.to for entry in entries if isinstance(entry, Head)}
        self._lines: dict[int, list[RhoLine]] = {}

    def ancestors(self, seq: int) -> Iterator[AnyEntry]:
        """A node and those before it on its path, newest first."""
        entry = self.nodes.get(seq)
        while entry is not None:
            yield entry
            entry = self.nodes.get(entry.parent or 0)

    def nearest(self, seq: int, closed: dict[int, RhoState]) -> RhoState | None:
        """The state after the newest of these nodes that has one."""
        return next((closed[entry.seq] for entry in self.ancestors(seq) if entry.seq in closed), None)

    def record(self, entry: AnyEntry) -> list[AnyEntry]:
        """All entries of the record that this one ends, oldest first."""
        before = takewhile(lambda part: (origin_of(part) or {}).get("is") == "part", self.ancestors(entry.parent or 0))
        return [entry, *before][::-1]

    def lines_of(self, entry: AnyEntry) -> list[RhoLine]:
        """The messages that an entry is for rho."""
        if entry.seq not in self._lines:
            message = spoken(entry) if isinstance(entry, (Message, Custom)) else None
            self._lines[entry.seq] = [] if message is None else self._to_lines(message)
        return self._lines[entry.seq]

    def _to_lines(self, message: Message) -> list[RhoLine]:
        if not self._tally.is_rich and is_newer(message):  # the first rho does not know all that it says
            message = replace(message, origin=None)
        origin = origin_of(message)
        if origin is None and not message.blocks:
            return []
        time, display = stamp(message, origin), shown_instead(message)
        is_hidden = message.display is False
        return [
            RhoLine(message.seq, raw, time, display, is_new=origin is None, is_hidden=is_hidden)
            for raw in to_messages(message, self._tally)
        ]

    def history(self, seq: int) -> list[RhoLine]:
        """What a model sees at a node, oldest first."""
        path = list(self.ancestors(seq))
        replaced, kept = visible(path, self.nodes.get)
        messages = [*replaced, *kept]
        compactions = compactions_on(path)
        is_bare = not compactions or (origin_of(compactions[0]) or {}).get("bare")
        if not is_bare and (not messages or messages[0].role != "system"):
            messages = [*self._systems(path), *messages]
        return [raw for message in messages for raw in self._lines_now(message)]

    def _systems(self, path: list[AnyEntry]) -> list[Message]:
        """The system messages a path (newest first) begins with, as they read now."""
        lead = takewhile(lambda entry: not isinstance(entry, Message) or entry.role == "system", reversed(path))
        messages = [entry for entry in lead if isinstance(entry, Message)]
        edits = [entry for entry in path if isinstance(entry, Edit)]
        return visible([*edits, *reversed(messages)], self.nodes.get)[1]

    def _lines_now(self, message: Message) -> list[RhoLine]:
        entry = self.nodes.get(message.seq)
        if isinstance(entry, Message) and entry.blocks is message.blocks:
            return self.lines_of(entry)
        origin = origin_of(message)
        if isinstance(entry, Message) and origin is not None:
            # It was edited: what it read like to the letter no longer counts, apart from what it cost.
            kept = {name: value for name, value in origin.items() if name not in ("message", "patch", "line")}
            usage = fields(fields(origin.get("patch")).get("set")).get("usage")
            kept |= {"patch": {"set": {"usage": usage}}} if usage is not None else {}
            message = replace(message, origin=kept)
        return self._to_lines(message)


def reached_by(states: list[RhoState]) -> dict[int, RhoState]:
    """The state at each entry by whose line all entries before it are written, and no later one; 0 is no entry."""
    last = {state.seq: index for index, state in enumerate(states)}
    made_up = list(accumulate(state.seq == 0 for state in states))
    counts = Counter(state.seq for state in states)
    furthest, count = -1, 0
    reached: dict[int, RhoState] = {}
    for seq in sorted(last):
        if seq:
            furthest, count = max(furthest, last[seq]), count + counts[seq]
            if count + made_up[furthest] == furthest + 1:
                reached[seq] = states[furthest]
    return reached


def calls_of(raw: Json) -> list[str]:
    """The calls whose results have to follow at once."""
    content = raw.get("Assistant") or fields(raw.get("EnrichedAssistant")).get("content")
    ids = [fields(fields(block).get("ToolCall")).get("id") for block in as_list(content)]
    return [name for name in ids if isinstance(name, str)]


def answers(raw: Json) -> str | None:
    """The call that a message answers."""
    call = fields(raw.get("ToolResult")).get("id")
    return call if isinstance(call, str) else None


def no_result(call: str) -> Json:
    """A result in the place of one that never came: without it, rho hides all that follows."""
    return {"ToolResult": {"id": call, "ok": False, "content": INTERRUPTED}}


def open_calls(history: Iterable[Json], waiting: list[str] | None = None) -> list[str] | None:
    """The calls that need a result after a history, and `waiting` before it; None if its end cannot mend that."""
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


def settled(items: list[RhoLine], tally: RhoTally, waiting: list[str] | None = None, time: str = "0") -> list[RhoLine]:
    """These lines with the results of every call right behind it, in the order of the calls.

    rho hides everything from the first call on that is not answered so. A missing result is added, except at the very
    end of what was read from rho: there it may still come. `waiting` are the calls before these lines without one.
    """
    messages = [item for item in items if item.kind == "message"]
    unanswered = open_calls([item.json for item in messages], waiting)
    caller = next((item for item in reversed(messages) if calls_of(item.json)), None)
    if unanswered == [] or (unanswered is not None and caller is not None and not caller.is_new):
        return items
    return _ResultOrder(items, tally, time).ordered(waiting or [])


class _ResultOrder:
    """Puts results behind their calls. Places are positions in the lines as they were."""

    def __init__(self, items: list[RhoLine], tally: RhoTally, time: str) -> None:
        self._items, self._tally = items, tally
        self._time = items[0].time if items else time
        self._results: dict[str, deque[int]] = {}
        self._callers: dict[str, list[int]] = {}
        for place, item in enumerate(items):
            if (call := answers(item.json)) is not None:
                self._results.setdefault(call, deque()).append(place)
            for name in calls_of(item.json):
                self._callers.setdefault(name, []).append(place)
        self._last = max((place for place, item in enumerate(items) if answers(item.json) is None), default=-1)
        """The last line that is no result."""
        self._used: set[int] = set()

    def ordered(self, waiting: list[str]) -> list[RhoLine]:
        lines = list(self._answers(waiting, -1, None))
        for place, item in enumerate(self._items):
            if place not in self._used:
                lines += [item, *self._answers(calls_of(item.json), place, item)]
        return lines

    def _answers(self, calls: list[str], place: int, caller: RhoLine | None) -> Iterator[RhoLine]:
        for call in calls:
            results, callers = self._results.get(call, deque()), self._callers.get(call, [])
            while results and results[0] <= place:
                results.popleft()
            # A later call with the same id has a result of its own.
            index = bisect_right(callers, place)
            rival = callers[index] if index < len(callers) else len(self._items)
            if results and results[0] < rival:
                self._used.add(results[0])
                yield self._items[results.popleft()]
            elif caller is None or caller.is_new or place < self._last:
                self._tally.add("missing tool result", "one that says so")
                yield RhoLine(0, no_result(call), caller.time if caller is not None else self._time, is_new=True)


class NodeContent(Struct):
    """The messages that a node adds to its parent; without a parent, the whole history."""

    parent: str | None
    messages: list[Json]


class HistoryEnd(Struct):
    """How long the history at a node is, and which calls at its end have no result; None if that cannot be mended."""

    length: int = 0
    waiting: list[str] | None = []


class RhoNode(Struct):
    """A node without its entries, and the state that it leads to."""

    record: Json
    state: RhoState


class NodeMaker:
    """Makes nodes. rho's rules: the first has no parent and is whole; a delta only adds, to a parent that is whole;
    a compaction is whole; whatever changes the state has a higher revision."""

    def __init__(self, session: str, trail: Trail, closed: dict[int, RhoState], tally: RhoTally) -> None:
        self._session = session
        self._trail = trail
        self._closed = closed
        self._tally = tally
        self._made: dict[str, NodeContent] = {}
        self._ends: dict[str, HistoryEnd] = {}

    def make(self, last: AnyEntry, leaf: RhoState | None) -> RhoNode | None:
        """The node that ends with this entry; None if nothing was said."""
        before = self._trail.nearest(last.seq, self._closed)
        span = [*takewhile(lambda entry: entry.seq not in self._closed, self._trail.ancestors(last.seq))][::-1]
        is_plain = all(isinstance(entry, (Message, Custom)) for entry in span)
        new = _as_ours([item for entry in span for item in self._trail.lines_of(entry)])
        if is_plain and not new:
            return None
        if before is None and leaf is not None:
            # rho has no second beginning: this branches off from the first node, with a history of its own.
            before, is_plain = next(iter(self._closed.values())), False
            self._tally.add("branch from the very beginning", "one after the first turn, with its own history")
        time = stamp(last)
        lines = settled(new, self._tally, before.waiting if before is not None else [], time)
        seen = [item for item in lines if not item.is_hidden and "System" not in item.json]
        displays = [item.json if item.display is None else item.display for item in seen]
        shown = [{"timestamp": item.time, "message": raw} for item, raw in zip(seen, displays, strict=True)]
        compaction = next((entry for entry in reversed(span) if isinstance(entry, Compaction)), None)
        content = self._added(new, lines, before) if is_plain else None
        content = content or self._changed(last, before, is_compacted=compaction is not None)
        node = self._node(span, content, before, compaction)
        parent = {"parent_id": before.id} if before is not None else {}
        head = {"type": "node", "id": node.state.id, **parent, "timestamp": time}
        return RhoNode({**head, **node.record, "display_messages": shown}, node.state)

    def _added(self, new: list[RhoLine], lines: list[RhoLine], before: RhoState | None) -> NodeContent | None:
        """What was only added; None where rho's history before it has to be written anew."""
        waiting = self._end(before).waiting
        if waiting is None:
            return None
        if waiting != (before.waiting if before is not None else []):
            lines = settled(new, self._tally, waiting)
        return NodeContent(before.id if before is not None else None, [item.json for item in lines])

    def _changed(self, last: AnyEntry, before: RhoState | None, *, is_compacted: bool) -> NodeContent:
        whole = [item.json for item in settled(_as_ours(self._trail.history(last.seq)), self._tally)]
        length = self._end(before).length
        if before is None or is_compacted or whole[:length] != self._history(before):
            return NodeContent(None, whole)
        return NodeContent(before.id, whole[length:])

    def _node(
        self, span: list[AnyEntry], content: NodeContent, before: RhoState | None, compaction: Compaction | None
    ) -> RhoNode:
        """The kind of a node and what it holds, without its head and what people see of it."""
        before_length = self._end(before).length
        length = len(content.messages) + (0 if content.parent is None else before_length)
        revision = before.revision + 1 if before is not None else 1
        envelope = before.envelope if before is not None else {}
        counts: Json = fields(envelope.get("compaction")) or NO_COMPACTION
        record: Json = {"kind": "commit"}
        if before is not None and (compaction is not None or not before.is_sure):
            # Where rho has counted tokens in its own way, only a compaction is sure to differ from what it found.
            facts = _compaction_facts(compaction, before_length, length)
            counts = _compaction_counts(counts, facts, revision)
            record = {"kind": "compaction", "compaction_facts": facts}
        cache = {"prompt_cache_key": f"rho:{self._session}"}
        envelope = {**cache, **envelope, "provider": _provider(span, envelope), "compaction": counts}
        # A delta may only follow where rho has a snapshot.
        is_odd = before is None or before.id.startswith("legacy:") or record["kind"] == "compaction"
        if is_odd and content.parent is not None:
            content = NodeContent(None, [*self._history(before), *content.messages])
        base = before.revision if before is not None and content.parent is not None else None
        if base is not None:
            envelope = {"metadata": {}, **envelope}
        state = RhoState(chosen_id(f"{self._session}/{span[-1].id}"), revision, envelope)
        self._made[state.id] = content
        self._ends[state.id] = HistoryEnd(length)
        return RhoNode({**record, "transition": transition(state, base, self._session, content.messages)}, state)

    def _end(self, state: RhoState | None) -> HistoryEnd:
        if state is None:
            return HistoryEnd()
        if state.id not in self._ends:
            history = self._history(state)
            self._ends[state.id] = HistoryEnd(len(history), open_calls(history))
        return self._ends[state.id]

    def _history(self, state: RhoState | None) -> list[Json]:
        """What rho has at a node."""
        parts: list[list[Json]] = []
        id = state.id if state is not None else None
        while id is not None and id in self._made:
            parts.append(self._made[id].messages)
            id = self._made[id].parent
        if id is not None:
            seq = next((seq for seq, node in self._closed.items() if node.id == id), 0)
            parts.append([item.json for item in self._trail.history(seq)])
        return [raw for part in reversed(parts) for raw in part]


def _as_ours(history: list[RhoLine]) -> list[RhoLine]:
    """As ours, so that also a call at the very end gets a result."""
    return [replace(item, is_new=True) for item in history]


def _provider(span: list[AnyEntry], envelope: Json) -> Json:
    provider: Json = fields(envelope.get("provider")) or NOBODY
    model = next((entry.model for entry in reversed(span) if isinstance(entry, Message) and entry.model), None)
    return provider if model is None or model == provider.get("model") else {**NOBODY, "model": model}


def _compaction_facts(compaction: Compaction | None, old: int, now: int) -> Json:
    """What rho keeps of a compaction of so many messages to so many."""
    cost = compaction.usage.cost_micros if compaction is not None and compaction.usage is not None else None
    before = (compaction.tokens_before if compaction is not None else None) or 0
    after = (compaction.tokens_after if compaction is not None else None) or 0
    messages = {"previous_messages": old, "current_messages": now}
    return {**messages, "previous_tokens": before, "current_tokens": after, "cost_usd_micros": cost}


def _compaction_counts(counts: Json, facts: Json, revision: int) -> Json:
    """What rho counts of all compactions, with one more."""
    before, after = facts["previous_tokens"], facts["current_tokens"]
    removed = max(0, facts["previous_messages"] - facts["current_messages"])
    cost = facts["cost_usd_micros"] or 0
    more = zip([*NO_COMPACTION][:4], (1, removed, max(0, before - after), cost), strict=True)
    total = {name: (as_counter(counts.get(name)) or 0) + count for name, count in more}
    return {**total, "last_previous_tokens": before, "last_current_tokens": after, "last_revision": revision}

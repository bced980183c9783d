"""Nodes that rho never made: what was said since, as the next state of its tree."""

from __future__ import annotations

from msgspec.structs import replace

from turnlog.formats._shared.rust import compact
from turnlog.formats.seeds.rho.message import Ear, Json, open_calls
from turnlog.formats.seeds.rho.names import chosen_id
from turnlog.formats.seeds.rho.path import RhoTold, Trail, settled
from turnlog.formats.seeds.rho.record import NO_COMPACTION, RhoState, after, body, node, stamp
from turnlog.log.entry import AnyEntry, Compaction, Custom, Message

_NOBODY = {"provider": "unknown", "api": "unknown", "model": "unknown"}


class Growth:
    """Makes nodes. rho's rules: the first has no parent and is whole; a delta only adds, to a parent that is whole;
    a compaction is whole; whatever changes the state has a higher revision."""

    def __init__(self, session: str, trail: Trail, closed: dict[int, RhoState], ear: Ear) -> None:
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
        said = _new([told for entry in span for told in trail.told(entry)])
        if is_plain and not said:
            return None
        if before is None and leaf is not None:
            # rho has no second beginning: this branches off from the first node, with a history of its own.
            before, is_plain = next(iter(closed.values())), False
            self._ear.add("branch from the very beginning", "one after the first turn, with its own history")
        length, waiting = self._end(before)
        unseen = before.waiting if before is not None else []
        time = stamp(last.clock or last.at)
        fresh = settled(said, self._ear, unseen, time)
        added: list[Json] = []
        whole: list[Json] | None = None
        if is_plain and waiting is not None:
            again = fresh if waiting == unseen else settled(said, self._ear, waiting)
            added = [told.json for told in again]
        else:
            whole = [told.json for told in settled(_new(trail.history(last.seq)), self._ear)]
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
        shown = [told.shown() for told in fresh if not told.is_hidden and "System" not in told.json]
        return compact(node(spec, state, parent, time, inner, shown)), state

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
            seq = next((seq for seq, known in self._closed.items() if known.id == id), 0)
            parts.append([told.json for told in self._trail.history(seq)])
        return [said for part in reversed(parts) for said in part]


def _new(history: list[RhoTold]) -> list[RhoTold]:
    """As ours, so that also a call at the very end gets a result."""
    return [replace(told, is_new=True) for told in history]


def _provider(span: list[AnyEntry], envelope: Json) -> Json:
    known: Json = envelope.get("provider") or _NOBODY
    model = next((entry.model for entry in reversed(span) if isinstance(entry, Message) and entry.model), None)
    return known if model is None or model == known.get("model") else {**_NOBODY, "model": model}


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

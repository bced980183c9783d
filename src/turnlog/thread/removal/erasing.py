"""Erasing entries: which lines repeat them, which blobs go with them, and the receipt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import datetime
from math import inf
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from turnlog.errors import Corrupt, Invalid
from turnlog.log.block import Thinking
from turnlog.log.context.nativecompaction import compacted
from turnlog.log.entry import AnyEntry, Compaction, Entry, Fold, Head, Message, Set, Start
from turnlog.log.erasure.content import FACT, STATE, ErasedLog, ErasingPlan, Erasure, refuse_unerasable, stripped
from turnlog.store import Freed, Store, derived
from turnlog.thread.history import History, opened
from turnlog.thread.removal.purging import PlacedLog, all_logs, forks_of
from turnlog.thread.space.garbage import forget_unneeded


class EntryPlace(Struct, frozen=True):
    """An entry whose content was erased: only its place is left."""

    session: str
    seq: int
    id: str
    type: str


class NeededBlob(Struct, frozen=True):
    """A blob that stays, because other entries refer to it."""

    digest: str
    entries: list[EntryPlace]
    """The entries that refer to the blob; empty if the blob is a file of a checkpoint."""


class ErasureReceipt(Struct, frozen=True):
    """What an erasure did, and what it could not reach."""

    at: datetime
    by: str
    reason: str
    entries: list[EntryPlace]
    also: list[EntryPlace]
    """Lines that repeated the content and were changed, too: folds, and lines that repeat facts."""
    blobs: int
    freed_bytes: int
    needed: list[NeededBlob]
    summaries: list[EntryPlace]
    """Later compactions, including those of providers: they may quote the content."""
    copies: list[str]
    """Where else the content was exported to or imported from, and is unchanged."""
    left: list[str]
    """What prevents the erasure from being finished."""


def plan_of(store: Store, history: History, wanted: Iterable[Erasure]) -> tuple[list[ErasedLog], dict[str, str]]:
    """The erasures per log, for these entries and the lines that repeat their content; the types of all, by id."""
    types: dict[str, str] = {}
    erasures: dict[tuple[str, str], dict[tuple[int, str], Erasure]] = {}
    named: dict[tuple[str, str], _Named] = {}
    for erasure in wanted:
        owner, entry = history.owner_of(erasure.seq), history.at(erasure.seq)
        assert entry is not None
        named.setdefault((owner.id, owner.first), _Named(owner, {})).entries[entry.id] = entry
        erasures.setdefault((owner.id, owner.first), {})[erasure.seq, ""] = replace(erasure, id=entry.id)
        types[entry.id] = entry.type
    logs: list[PlacedLog] | None = None
    for key, (owner, entries) in named.items():
        by_id = {erasure.id: erasure for erasure in erasures[key].values()}
        for twin in _twins(store, owner, entries):
            erasures[key][twin.seq, ""] = replace(by_id[twin.id], seq=twin.seq)
        facts = [entry for entry in entries.values() if isinstance(entry, (Set, Start)) and not entry.void]
        if facts:
            logs = all_logs(store) if logs is None else logs
            for repeat in _repeats(store, logs, owner, list(map(owner.whole, facts))):
                line = repeat.line
                erasures.setdefault(repeat.log, {})[line.seq, repeat.part] = replace(
                    by_id[repeat.fact], seq=line.seq, id=line.id, part=repeat.part
                )
                types[line.id] = line.type
    return [ErasedLog(session, first, list(some.values())) for (session, first), some in erasures.items()], types


class _Named(NamedTuple):
    """The entries of one log that are to be erased, by their ids."""

    owner: History
    entries: dict[str, AnyEntry]


def _twins(store: Store, owner: History, entries: dict[str, AnyEntry]) -> Iterator[AnyEntry]:
    """The other lines of these entries: one was written again after a failed sync, and both can be read."""
    begins = {id: entry.again or entry.seq for id, entry in entries.items()}
    with closing(store.open(owner.id, read_only=True, first=owner.first)) as log:
        for item in log.read(after=min(begins.values()) - 1):
            if not isinstance(item, Entry) or item.void or item.seq < begins.get(item.id, inf):
                continue
            if item.seq != entries[item.id].seq:
                yield item


class _Repeat(NamedTuple):
    """A line that repeats a fact."""

    log: tuple[str, str]
    line: AnyEntry
    part: str
    fact: str
    """The id of the entry with the fact."""


def _repeats(store: Store, logs: list[PlacedLog], owner: History, facts: list[Set | Start]) -> Iterator[_Repeat]:
    """The lines that repeat facts of one log, in it and in forks of it. Each log is read once."""
    waiting = [((owner.id, owner.first), facts)]
    for (session, first), known in waiting:  # grows during the iteration
        is_own = first == owner.first
        for fork in forks_of(logs, first):
            if inherited := [fact for fact in known if _inherits(fork, fact.seq)]:
                waiting.append((fork.key, inherited))
        with closing(store.open(session, read_only=True, first=first)) as log:
            reader = History(store, log)
            for item in log.read(after=min(fact.seq for fact in known) if is_own else 0):
                if not isinstance(item, (Fold, Head, Set, Start)):
                    continue
                whole = reader.whole(item)
                for fact in known:
                    if (not is_own or item.seq > fact.seq) and (part := repeated_part(whole, *fact_of(fact))):
                        yield _Repeat((session, first), item, part, fact.id)


def _erasable_at(history: History, seq: int) -> AnyEntry:
    """The entry with that `seq`. Raises `NotFound` or `Invalid` if it cannot be erased."""
    entry = history.get(seq)
    refuse_unerasable(entry)
    if not entry.void and stripped(entry) == entry:
        raise Invalid(f"entry {seq} ({entry.type}) holds nothing that could be erased")
    return entry


def erase_there(store: Store, session: str, first: str, erasures: list[Erasure]) -> None:
    """Repeat an erasure that was made in another copy of the session."""
    with opened(store, store.open(session, read_only=True, first=first)) as history:
        logs, _ = plan_of(store, history, erasures)
        derived.erases(store).erase(ErasingPlan(logs, sorted(_blobs_of(store, logs))))
    settle(store)


def fact_of(entry: Set | Start) -> tuple[str, Any]:
    """The name and the value of the fact that an entry sets, which other lines may repeat."""
    return (entry.key, entry.value) if isinstance(entry, Set) else ("title", entry.title)


def _inherits(placed: PlacedLog, seq: int) -> bool:
    return placed.row.start is not None and placed.row.start.fork is not None and placed.row.start.fork.seq >= seq


def repeated_part(entry: Entry, name: str, value: Any) -> str:
    """Which part of an entry repeats a fact; empty if none does."""
    if isinstance(entry, Fold) and entry.state is not None:
        state: dict[str, Any] = msgspec.to_builtins(entry.state)
        copies = [state.get(where, {}).get(name) for where in ("facts", "wide", "start")]
        return STATE if value in copies or name == "title" else ""
    is_head = isinstance(entry, Head) and entry.facts.get(name) == value
    is_set = isinstance(entry, Set) and entry.key != name and (entry.all or {}).get(name) == value
    is_start = isinstance(entry, Start) and name in ("title", "workspace") and getattr(entry, name) == value
    return FACT + name if is_head or is_set or is_start else ""


def erase(store: Store, history: History, seqs: Iterable[int], *, at: datetime, by: str, why: str) -> ErasureReceipt:
    """Erase entries of a session; inherited ones are erased in the log that has them. See `Session.erase`."""
    eraser = derived.erases(store)
    at = at.replace(microsecond=0)
    wanted = list(dict.fromkeys(seqs))
    entries = [_erasable_at(history, seq) for seq in wanted]
    new = [Erasure(seq=entry.seq, id=entry.id, at=at, by=by, why=why) for entry in entries if not entry.void]
    logs, types = plan_of(store, history, new)
    blobs = _blobs_of(store, logs)
    freed, left = Freed(), list[str]()
    if logs:
        eraser.erase(ErasingPlan(logs, sorted(blobs)))
        freed, left = settle(store)
    erased: dict[EntryPlace, bool] = {}
    """Every entry once, and whether the caller named it."""
    for log in logs:
        for erasure in log.erasures:
            entry = EntryPlace(log.session, erasure.seq, erasure.id, types[erasure.id])
            erased[entry] = erased.get(entry, False) or not erasure.part
    return ErasureReceipt(
        at, by, why,
        [entry for entry, is_named in erased.items() if is_named],
        [entry for entry, is_named in erased.items() if not is_named],
        freed.blobs, freed.size_bytes, _needed(store, blobs), _summaries(history, wanted), [], left,
    )  # fmt: skip


def settle(store: Store) -> tuple[Freed, list[str]]:
    """Finish erasures that were begun: remove the blobs that nothing else needs, and report what prevents that."""
    eraser = derived.erases(store)
    blobs = size = 0
    left: list[str] = []
    for name, plan in eraser.unsettled().items():
        try:
            freed = forget_unneeded(store, set(plan.blobs)) if plan.blobs else Freed()
        except Corrupt as error:
            left.append(f"long texts and files that belonged to it may still be there: {error.message}")
            continue
        blobs, size = blobs + freed.blobs, size + freed.size_bytes
        eraser.settle(name)
    return Freed(blobs, size), left


def _blobs_of(store: Store, logs: list[ErasedLog]) -> set[str]:
    """The blobs that the erased lines refer to."""
    digests: set[str] = set()
    for erased in logs:
        ids = {erasure.id for erasure in erased.erasures}
        with closing(store.open(erased.session, read_only=True, first=erased.first)) as log:
            for entry in log.read(after=min(erasure.seq for erasure in erased.erasures) - 1):
                if isinstance(entry, Entry) and entry.id in ids:
                    digests.update(entry.blobs)
    return digests


def _needed(store: Store, blobs: set[str]) -> list[NeededBlob]:
    """The blobs that are still there, and the entries that refer to them."""
    still_stored = blobs - derived.lacking(store, blobs) if blobs else set[str]()
    if not still_stored:
        return []
    users: dict[str, list[EntryPlace]] = {digest: [] for digest in sorted(still_stored)}
    for log in derived.all_logs(store):
        with closing(log):
            for entry in log.read():
                if isinstance(entry, Entry) and not still_stored.isdisjoint(entry.blobs):
                    for digest in still_stored.intersection(entry.blobs):
                        users[digest].append(EntryPlace(log.id, entry.seq, entry.id, entry.type))
    return [NeededBlob(digest, entries) for digest, entries in users.items()]


def _sums_up(history: History, entry: AnyEntry) -> bool:
    """Whether the entry is a compaction, or contains a provider's compaction."""
    if isinstance(entry, Message) and any(isinstance(block, Thinking) for block in entry.blocks):
        return any(map(compacted, history.whole(entry).blocks))
    return isinstance(entry, Compaction)


def _summaries(history: History, seqs: list[int]) -> list[EntryPlace]:
    later = (entry for entry in history.forward(min(seqs)) if not entry.void and _sums_up(history, entry))
    return [EntryPlace(history.owner_of(entry.seq).id, entry.seq, entry.id, entry.type) for entry in later]


def refuse_blank(text: str) -> None:
    """Raise `Invalid` for a text without a visible character: almost every entry contains it."""
    if not text.strip():
        raise Invalid(f"--matching {text!r:.40}: there is no text to look for", hint="give the text that is to go")


def split_by_erasability(history: History, text: str) -> tuple[list[AnyEntry], list[AnyEntry]]:
    """The entries that contain the text: those that can be erased, and those that cannot."""
    refuse_blank(text)
    can: list[AnyEntry] = []
    cannot: list[AnyEntry] = []
    for entry in history.lines():
        whole = history.whole(entry)
        if (
            entry.void
            or isinstance(entry, Fold)
            or not any(text in content for content in _texts(msgspec.to_builtins(whole)))
        ):
            continue
        try:
            refuse_unerasable(entry)
        except Invalid:
            cannot.append(entry)
        else:
            (cannot if stripped(entry) == entry else can).append(entry)
    return can, cannot


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():  # pyright: ignore[reportUnknownVariableType]
            yield from _texts(key)
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:  # pyright: ignore[reportUnknownVariableType]
            yield from _texts(item)

"""Bounded disk: what every session still needs, what nobody does, and which checkpoints go first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable
from contextlib import closing, suppress
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from turnlog.errors import Corrupt, NotFound
from turnlog.log.codec import Damage
from turnlog.log.entry import Checkpoint, Drop, Head, Intent, Start
from turnlog.store import Freed, Log, Store, derived
from turnlog.store.derived import stamp
from turnlog.thread.appender import appending
from turnlog.thread.content import private_of, trees_of
from turnlog.thread.history import refuse_newer
from turnlog.workspace.tree import FILE, FOLDER, decode_tree


class KeptCheckpoint(Struct):
    """A checkpoint that has not been given up."""

    session: str
    first: str
    """The id of that session's first entry: another one may be called the same."""
    id: str
    at: datetime | None
    is_automatic: bool
    trees: list[str]
    private: list[str]
    others: list[str]
    is_inside: bool = False
    """Of a tool in a turn that has another one at its end."""

    @property
    def name(self) -> tuple[str, str]:
        """What tells it from any other."""
        return self.first, self.id

    @property
    def all_trees(self) -> list[str]:
        """Those of ignored files included, which may be in another home only."""
        return self.trees + self.private


class Needs(Struct):
    """What the logs refer to."""

    blobs: set[str]
    checkpoints: list[KeptCheckpoint]
    parents: dict[str, str] = {}
    """Of forks."""
    busy: set[str] = set()
    """Sessions with a rewind that is not finished."""
    gone: set[str] = set()
    """The root trees of checkpoints that were given up."""

    def give_up(self, given_up: Iterable[KeptCheckpoint]) -> None:
        """These checkpoints need nothing any more."""
        names = {kept.name for kept in given_up}
        for kept in self.checkpoints:
            if kept.name in names:
                self.gone.update(kept.all_trees)
        self.checkpoints = [kept for kept in self.checkpoints if kept.name not in names]


class Collected(Struct, frozen=True):
    """What a collection did."""

    blobs: int
    freed_bytes: int
    dropped: int
    """Checkpoints that were given up to get below the quota."""
    blob_bytes: int
    """What is left."""


NeedsCache = dict[tuple[str, object], tuple[Needs, set[tuple[str, str]]]]
"""What each log needs, by its stamp, and which checkpoints it drops: so that only what changed is read again."""


def needs(store: Store, known: NeedsCache | None = None) -> Needs:
    """Everything that any session refers to. Damage that may hide a reference stops it."""
    needed = Needs(set(), [])
    dropped: set[tuple[str, str]] = set()
    for log in derived.all_logs(store):
        try:
            one, gone = _needs_of(log, {} if known is None else known)
        finally:
            log.close()
        needed.blobs |= one.blobs
        needed.checkpoints += [replace(kept) for kept in one.checkpoints]
        needed.parents |= one.parents
        needed.busy |= one.busy
        dropped |= gone
    needed.give_up([kept for kept in needed.checkpoints if kept.name in dropped])
    lacking = derived.lacking(store, {tree for kept in needed.checkpoints for tree in kept.all_trees})
    if lacking:
        _refuse_doubt(store)
        needed.give_up([kept for kept in needed.checkpoints if not lacking.isdisjoint(kept.trees)])
        for kept in needed.checkpoints:
            kept.private = [tree for tree in kept.private if tree not in lacking]
    busy = needed.busy
    while busy:  # finishing an interrupted rewind needs its checkpoints, inherited ones included
        for kept in needed.checkpoints:
            kept.is_automatic = kept.is_automatic and kept.first not in busy
        busy = {needed.parents[name] for name in busy if name in needed.parents}
    return needed


def _needs_of(log: Log, known: NeedsCache) -> tuple[Needs, set[tuple[str, str]]]:
    key = (log.id, stamp(log))  # before it is read: what comes meanwhile gives it another
    if key[1] is None or key not in known:
        needed, dropped = Needs(set(), [], {}, set()), set[tuple[str, str]]()
        _read(log, needed, dropped)
        known[key] = (needed, dropped)
    return known[key]


def _read(log: Log, needed: Needs, dropped: set[tuple[str, str]]) -> None:
    hidden: Damage | None = None
    intent, first = 0, log.id
    tools: dict[str | None, list[KeptCheckpoint]] = {}
    for item in log.read():
        if isinstance(item, Damage):
            hidden = item if item.seq is None else hidden
            continue
        if hidden is not None and not item.sealed:
            break
        hidden = None  # what a line seals off was never acknowledged: nobody refers to anything with it
        if isinstance(item, Checkpoint):
            trees, private = trees_of(item), private_of(item)
            others = [name for name in item.blobs if name not in (*trees, *private)]
            is_automatic = item.when is not None and item.label is None
            kept = KeptCheckpoint(log.id, first, item.id, item.at, is_automatic, trees, private, others)
            needed.checkpoints.append(kept)
            if item.when in ("tool", "end"):
                for earlier in tools.get(item.turn, ()):
                    earlier.is_inside = True
                tools[item.turn] = [kept] if item.when == "tool" else []
        elif isinstance(item, Drop):
            dropped.update((first, name) for name in item.checkpoints)  # only the session's own
        else:
            needed.blobs.update(item.blobs)
            if isinstance(item, Start):
                refuse_newer(log.id, item.format)
                first = item.id
                if item.fork is not None:
                    needed.parents[first] = item.fork.base
            elif isinstance(item, Intent):
                intent = item.seq
            elif isinstance(item, Head) and item.intent == intent:
                intent = 0
    if intent:
        needed.busy.add(first)
    if hidden is not None:
        raise Corrupt(
            f"nothing was collected: session {log.id} is damaged at byte {hidden.offset}, so its needs are not known",
            hint=f"look with `turnlog doctor {log.id}`, and repair it with --repair",
        )


def _refuse_doubt(store: Store) -> None:
    """A tree is not there. Where that may only be because a pack cannot be read, nobody gives anything up for it."""
    doubt = derived.doubt(store)
    if doubt:
        raise Corrupt(f"nothing was collected: {doubt}", hint="restore it from a backup; see `turnlog doctor`")


def reachable(store: Store, roots: Iterable[str], seen: set[str]) -> int:
    """Add everything below these trees to `seen`; returns the size of the files that were not in it.

    The content of a missing folder is unknown: nothing is kept for it, and the rest stays.
    """
    size = 0
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        try:
            tree = decode_tree(store.get(name))
        except NotFound:
            _refuse_doubt(store)
            continue
        for node in tree.values():
            if node.kind == FOLDER:
                waiting.append(node.digest)
            elif node.kind == FILE and node.digest not in seen:
                seen.add(node.digest)
                size += node.size
    return size


def all_needed(store: Store, needed: Needs, seen: Iterable[str] = ()) -> set[str]:
    """Every blob that has to stay, and what was `seen` to be needed, with all that is below it."""
    seen = {*seen, *needed.blobs}
    for kept in needed.checkpoints:
        seen.update(kept.others)
        reachable(store, kept.all_trees, seen)
    return seen


class _AllBut:
    """Everything but these."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = names

    def __contains__(self, name: object) -> bool:
        return name not in self._names


class _Removal:
    """Removes what is not needed. What takes long is done beside writers; they are locked out for the rest.

    Then only what was appended meanwhile is looked at: a writer may have found a blob that was not needed, and need it.
    A root tree is removed before the content below it, so its presence proves the rest, whatever interrupts this.
    With `drop`, as many checkpoints as hold `excess` bytes are given up first: it writes that into their sessions.
    """

    def __init__(
        self,
        store: Store,
        known: NeedsCache,
        *,
        excess: int = 0,
        drop: Callable[[list[KeptCheckpoint]], None] | None = None,
        spared: Collection[str] = (),
    ) -> None:
        self.given_up: list[KeptCheckpoint] = []
        self._store = store
        self._known = known
        self._excess = excess
        self._drop = drop
        self._spared = spared
        self._chosen: list[KeptCheckpoint] | None = None
        self._needed: set[str] = set()

    def run(self) -> Freed:
        """What was removed, but for root trees."""
        gone: set[str] = set()
        with self._store.keeping(), suppress(NotFound):  # a session is moved under us
            needed = needs(self._store, self._known)
            if self._drop is not None:
                self._chosen = _enough(self._store, needed, self._excess, self._spared)
                needed.give_up(self._chosen)
            self._needed = all_needed(self._store, needed)
            gone = needed.gone - self._needed
            gone -= derived.lacking(self._store, gone)
        if gone or self._drop is not None:
            self._store.collect(self._without_roots, expected=_AllBut(gone), strictly=True)
        if self._drop is not None and not self.given_up:
            return Freed()
        return self._store.collect(self._without_rest, expected=self._needed)

    def _without_roots(self) -> Container[str]:
        needed = needs(self._store, self._known)
        if self._drop is not None:
            self._give_up(needed, self._drop)
        self._needed = all_needed(self._store, needed, self._needed)
        return _AllBut(needed.gone - self._needed)

    def _give_up(self, needed: Needs, drop: Callable[[list[KeptCheckpoint]], None]) -> None:
        """Have it given up. What somebody made, moved or began meanwhile is not."""
        live = {row.first for row in self._store.listing()}
        chosen = _enough(self._store, needed, self._excess, self._spared) if self._chosen is None else self._chosen
        names = {kept.name for kept in chosen}
        there = [kept for kept in needed.checkpoints if kept.is_automatic and kept.first in live]
        self.given_up = [kept for kept in there if kept.name in names]
        if self.given_up:
            drop(self.given_up)
            needed.give_up(self.given_up)

    def _without_rest(self) -> Container[str]:
        needed = needs(self._store, self._known)
        self._needed = all_needed(self._store, needed, self._needed)
        # Damage keeps one here, or somebody gave it up only just now: with the root, all of it stays.
        roots = needed.gone - self._needed
        reachable(self._store, roots - derived.lacking(self._store, roots), self._needed)
        return self._needed


def refers_to(store: Store, session: str, first: str) -> set[str]:
    """Every blob that one log refers to, with all that is below. Raises `Corrupt` where nobody can tell."""
    needed = Needs(set(), [])
    with store.keeping(), closing(store.open(session, read_only=True, first=first)) as log:
        _read(log, needed, set())
        return all_needed(store, needed)


def forget_unneeded(store: Store, blobs: set[str]) -> Freed:
    """Remove those of these blobs that no session needs. Raises `Corrupt` where nobody can tell."""
    known: NeedsCache = {}
    needed: set[str] = set()
    with store.keeping(), suppress(NotFound):  # a session is moved under us
        needed = all_needed(store, needs(store, known))

    def others() -> Container[str]:
        return _AllBut(blobs - all_needed(store, needs(store, known), needed))

    return store.collect(others, expected=_AllBut(blobs - needed), strictly=True)


def tidy(store: Store) -> bool:
    """Write blobs together that lie in many places, where that pays: nothing is given up. Gives whether it did."""
    if not derived.is_scattered(store):
        return False
    store.collect(lambda: _AllBut(()), expected=_AllBut(()))
    return True


def estimate(store: Store, *, quota_bytes: int | None) -> Collected:
    """What `collect` would do, about. Nothing is touched."""
    with store.keeping():
        needed = needs(store)
        unneeded = derived.unneeded(store, all_needed(store, needed))
        size = derived.blob_bytes(store)
        given_up: list[KeptCheckpoint] = []
        if quota_bytes is not None and size - unneeded["bytes"] > quota_bytes:
            given_up = _enough(store, needed, size - unneeded["bytes"] - quota_bytes)
            needed.give_up(given_up)
            unneeded = derived.unneeded(store, all_needed(store, needed))
        return Collected(unneeded["blobs"], unneeded["bytes"], len(given_up), size - unneeded["bytes"])


def collect(
    store: Store,
    *,
    quota_bytes: int | None,
    drop: Callable[[list[KeptCheckpoint]], None],
    spared: Collection[str] = (),
) -> Collected:
    """Remove what nobody needs; where that is not enough for the quota, give up automatic checkpoints, oldest first.

    Those of tools go before those of whole turns; `drop` writes that into their sessions. Labelled and explicit
    checkpoints are never given up, nor is any of the sessions that are `spared`, by their first entries.
    """
    dropped, known = 0, NeedsCache()
    freed = [_Removal(store, known).run()]
    # What a checkpoint takes in the packs is not known before it is gone: they are compressed together.
    while quota_bytes is not None and (left := derived.blob_bytes(store)) > quota_bytes:
        removal = _Removal(store, known, excess=left - quota_bytes, drop=drop, spared=spared)
        freed.append(removal.run())
        if not removal.given_up:
            break
        dropped += len(removal.given_up)
    blobs, size = sum(one.blobs for one in freed), sum(one.size_bytes for one in freed)
    return Collected(blobs, size, dropped, derived.disk(store).get("blobs", 0))


def drop(store: Store, given_up: list[KeptCheckpoint]) -> None:
    """Written into their sessions. Forks, which have them, too, see it by what is there."""
    for session_id in {kept.session: None for kept in given_up}:
        with appending(store, store.open(session_id)) as appender:
            appender.append([Drop(checkpoints=[kept.id for kept in given_up if kept.session == session_id])])


def _enough(store: Store, needed: Needs, wanted: int, spared: Collection[str] = ()) -> list[KeptCheckpoint]:
    """The automatic checkpoints to go first that together hold at least so much that nobody else needs."""
    # Nobody can write into the log of a deleted session that something of it is gone.
    live = {row.first for row in store.listing()} - {*spared}
    for kept in needed.checkpoints:
        kept.is_automatic = kept.is_automatic and kept.first in live
    automatic = sorted(
        (kept for kept in needed.checkpoints if kept.is_automatic),
        key=lambda kept: (not kept.is_inside, kept.at.timestamp() if kept.at is not None else 0.0),
    )
    rest = set(needed.blobs)
    for kept in needed.checkpoints:
        if not kept.is_automatic:
            reachable(store, kept.all_trees, rest)
    sizes = [reachable(store, kept.all_trees, rest) for kept in reversed(automatic)]
    for count, size in enumerate(reversed(sizes), 1):
        wanted -= size
        if wanted <= 0:
            return automatic[:count]
    return automatic

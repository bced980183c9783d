"""Bounded disk: which blobs sessions need, which can be removed, and which checkpoints are given up first."""

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
from turnlog.thread.history import refuse_newer
from turnlog.thread.space.checkpointcontent import private_of, trees_of
from turnlog.workspace.tree import FILE, FOLDER, decode_tree


class KeptCheckpoint(Struct):
    """A checkpoint that has not been given up."""

    session: str
    first: str
    """The id of the session's first entry, because another session may have the same id."""
    id: str
    at: datetime | None
    is_automatic: bool
    trees: list[str]
    private: list[str]
    others: list[str]
    is_inside: bool = False
    """Whether it is a tool's checkpoint in a turn with a later checkpoint."""

    @property
    def name(self) -> tuple[str, str]:
        """What identifies the checkpoint."""
        return self.first, self.id

    @property
    def all_trees(self) -> list[str]:
        """All its trees. Those of ignored files may be missing here and exist in another home only."""
        return self.trees + self.private


class Needs(Struct):
    """What the logs refer to."""

    blobs: set[str]
    checkpoints: list[KeptCheckpoint]
    parents: dict[str, str] = {}
    """For each fork, the first entry of the session it was forked from."""
    busy: set[str] = set()
    """Sessions with an unfinished rewind, by their first entries."""
    gone: set[str] = set()
    """The root trees of checkpoints that were given up."""

    def give_up(self, given_up: Iterable[KeptCheckpoint]) -> None:
        """Remove these checkpoints from what is needed."""
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
    """The size of the blobs that remain."""


NeedsCache = dict[tuple[str, object], tuple[Needs, set[tuple[str, str]]]]
"""What each log needs and which checkpoints it drops, by the log's stamp, so that only changed logs are read again."""


def needs(store: Store, cache: NeedsCache | None = None) -> Needs:
    """Everything that any session refers to. Raises `Corrupt` for damage that may hide a reference."""
    needed = Needs(set(), [])
    dropped: set[tuple[str, str]] = set()
    for log in derived.all_logs(store):
        try:
            own, gone = _needs_of(log, {} if cache is None else cache)
        finally:
            log.close()
        needed.blobs |= own.blobs
        needed.checkpoints += [replace(kept) for kept in own.checkpoints]
        needed.parents |= own.parents
        needed.busy |= own.busy
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


def _needs_of(log: Log, cache: NeedsCache) -> tuple[Needs, set[tuple[str, str]]]:
    key = (log.id, stamp(log))  # before the log is read: a concurrent append changes the stamp
    if key[1] is None or key not in cache:
        needed, dropped = Needs(set(), [], {}, set()), set[tuple[str, str]]()
        _read(log, needed, dropped)
        cache[key] = (needed, dropped)
    return cache[key]


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
        hidden = None  # a line that was sealed off was never acknowledged, so nothing refers to anything by it
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
            dropped.update((first, name) for name in item.checkpoints)  # a session drops only its own checkpoints
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
    """Raise `Corrupt` if a tree may only seem to be missing, because a pack cannot be read."""
    doubt = derived.doubt(store)
    if doubt:
        raise Corrupt(f"nothing was collected: {doubt}", hint="restore it from a backup; see `turnlog doctor`")


def reachable(store: Store, roots: Iterable[str], seen: set[str]) -> int:
    """Add everything below these trees to `seen`; returns the size of the files that were not in it.

    If a folder is missing, its content is unknown: nothing is kept for it, and the rest stays.
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
    """Every blob that has to stay, including everything below its trees.

    `seen` are blobs that are already known as needed.
    """
    seen = {*seen, *needed.blobs}
    for kept in needed.checkpoints:
        seen.update(kept.others)
        reachable(store, kept.all_trees, seen)
    return seen


class _AllBut:
    """A container of everything except these names."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = names

    def __contains__(self, name: object) -> bool:
        return name not in self._names


class _Removal:
    """Removes what is not needed. The long part runs beside writers; they are locked out only for the rest.

    Under the lock only what was appended meanwhile is read: a writer may have come to need a blob that was not needed.
    A root tree is removed before the content below it, so its presence proves the rest, even after an interruption.
    With `drop`, checkpoints that hold `excess` bytes are given up first; `drop` writes that into their sessions.
    """

    def __init__(
        self,
        store: Store,
        cache: NeedsCache,
        *,
        excess: int = 0,
        drop: Callable[[list[KeptCheckpoint]], None] | None = None,
        spared: Collection[str] = (),
    ) -> None:
        self.given_up: list[KeptCheckpoint] = []
        self._store = store
        self._cache = cache
        self._excess = excess
        self._drop = drop
        self._spared = spared
        self._chosen: list[KeptCheckpoint] | None = None
        self._needed: set[str] = set()

    def run(self) -> Freed:
        """Remove what is not needed; returns what was freed, root trees not counted."""
        gone: set[str] = set()
        with self._store.keeping(), suppress(NotFound):  # a session is moved at the same time
            needed = needs(self._store, self._cache)
            if self._drop is not None:
                self._chosen = _checkpoints_to_free(self._store, needed, self._excess, self._spared)
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
        needed = needs(self._store, self._cache)
        if self._drop is not None:
            self._give_up(needed, self._drop)
        self._needed = all_needed(self._store, needed, self._needed)
        return _AllBut(needed.gone - self._needed)

    def _give_up(self, needed: Needs, drop: Callable[[list[KeptCheckpoint]], None]) -> None:
        """Have the chosen checkpoints dropped, except those whose state changed meanwhile."""
        live = {row.first for row in self._store.listing()}
        chosen = (
            _checkpoints_to_free(self._store, needed, self._excess, self._spared)
            if self._chosen is None
            else self._chosen
        )
        names = {kept.name for kept in chosen}
        still_live = [kept for kept in needed.checkpoints if kept.is_automatic and kept.first in live]
        self.given_up = [kept for kept in still_live if kept.name in names]
        if self.given_up:
            drop(self.given_up)
            needed.give_up(self.given_up)

    def _without_rest(self) -> Container[str]:
        needed = needs(self._store, self._cache)
        self._needed = all_needed(self._store, needed, self._needed)
        # Damage may keep a root here, or it was given up only just now: everything below a root that is there stays.
        roots = needed.gone - self._needed
        reachable(self._store, roots - derived.lacking(self._store, roots), self._needed)
        return self._needed


def refers_to(store: Store, session: str, first: str) -> set[str]:
    """Every blob that one log refers to, including everything below its trees.

    Raises `Corrupt` if damage hides that.
    """
    needed = Needs(set(), [])
    with store.keeping(), closing(store.open(session, read_only=True, first=first)) as log:
        _read(log, needed, set())
        return all_needed(store, needed)


def forget_unneeded(store: Store, blobs: set[str]) -> Freed:
    """Remove those of these blobs that no session needs. Raises `Corrupt` if damage hides what is needed."""
    cache: NeedsCache = {}
    needed: set[str] = set()
    with store.keeping(), suppress(NotFound):  # a session is moved at the same time
        needed = all_needed(store, needs(store, cache))

    def others() -> Container[str]:
        return _AllBut(blobs - all_needed(store, needs(store, cache), needed))

    return store.collect(others, expected=_AllBut(blobs - needed), strictly=True)


def tidy(store: Store) -> bool:
    """Pack scattered blobs together, if that pays; nothing is given up. Returns whether it did."""
    if not derived.is_scattered(store):
        return False
    store.collect(lambda: _AllBut(()), expected=_AllBut(()))
    return True


def estimate(store: Store, *, quota_bytes: int | None) -> Collected:
    """An estimate of what `collect` would do. Nothing is changed."""
    with store.keeping():
        needed = needs(store)
        unneeded = derived.unneeded(store, all_needed(store, needed))
        size = derived.blob_bytes(store)
        given_up: list[KeptCheckpoint] = []
        if quota_bytes is not None and size - unneeded.size_bytes > quota_bytes:
            given_up = _checkpoints_to_free(store, needed, size - unneeded.size_bytes - quota_bytes)
            needed.give_up(given_up)
            unneeded = derived.unneeded(store, all_needed(store, needed))
        return Collected(unneeded.blobs, unneeded.size_bytes, len(given_up), size - unneeded.size_bytes)


def collect(
    store: Store,
    *,
    quota_bytes: int | None,
    drop: Callable[[list[KeptCheckpoint]], None],
    spared: Collection[str] = (),
) -> Collected:
    """Remove what is not needed; if that is not enough for the quota, give up automatic checkpoints, oldest first.

    Checkpoints of tools go before those of whole turns; `drop` writes that into their sessions. Labelled and explicit
    checkpoints are never given up, nor are those of `spared` sessions (the ids of their first entries).
    """
    dropped, cache = 0, NeedsCache()
    freed = [_Removal(store, cache).run()]
    # How much a checkpoint takes in the packs is known only after it is gone, because they are compressed together.
    while quota_bytes is not None and (left := derived.blob_bytes(store)) > quota_bytes:
        removal = _Removal(store, cache, excess=left - quota_bytes, drop=drop, spared=spared)
        freed.append(removal.run())
        if not removal.given_up:
            break
        dropped += len(removal.given_up)
    blobs, size = sum(one.blobs for one in freed), sum(one.size_bytes for one in freed)
    return Collected(blobs, size, dropped, derived.disk(store).get("blobs", 0))


def drop(store: Store, given_up: list[KeptCheckpoint]) -> None:
    """Append to their sessions that these checkpoints were given up.

    Forks that inherit one notice that its tree is gone.
    """
    for session_id in {kept.session: None for kept in given_up}:
        with appending(store, store.open(session_id)) as appender:
            appender.append([Drop(checkpoints=[kept.id for kept in given_up if kept.session == session_id])])


def _checkpoints_to_free(
    store: Store, needed: Needs, size_bytes: int, spared: Collection[str] = ()
) -> list[KeptCheckpoint]:
    """The automatic checkpoints to give up first, enough to free `size_bytes` that nothing else needs."""
    # A drop cannot be appended to the log of a deleted session.
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
        size_bytes -= size
        if size_bytes <= 0:
            return automatic[:count]
    return automatic

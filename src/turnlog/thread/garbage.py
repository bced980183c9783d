"""Bounded disk: what every session still needs, what nobody does, and which checkpoints go first."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from turnlog.errors import Corrupt, NotFound, OutOfSpace
from turnlog.log.codec import Damage
from turnlog.log.entry import Checkpoint, Drop, Head, Intent, Start
from turnlog.store import Log, Store
from turnlog.store.question import stamp
from turnlog.thread.content import private_of, trees_of
from turnlog.workspace.tree import FILE, FOLDER, decode_tree


class Kept(Struct):
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

    @property
    def all_trees(self) -> list[str]:
        """Those of ignored files included, which may be in another home only."""
        return self.trees + self.private


class Needs(Struct):
    """What the logs refer to."""

    blobs: set[str]
    checkpoints: list[Kept]
    parents: dict[str, str] = {}
    """Of forks."""
    busy: set[str] = set()
    """Sessions with a rewind that is not finished."""
    gone: set[str] = set()
    """The root trees of checkpoints that were given up."""

    def give_up(self, is_gone: Callable[[Kept], bool]) -> None:
        """These checkpoints need nothing any more."""
        for kept in self.checkpoints:
            if is_gone(kept):
                self.gone.update(kept.all_trees)
        self.checkpoints = [kept for kept in self.checkpoints if not is_gone(kept)]


class Collected(Struct, frozen=True):
    """What a collection did."""

    blobs: int
    freed_bytes: int
    dropped: int
    """Checkpoints that were given up to get below the quota."""
    blob_bytes: int
    """What is left."""


Known = dict[tuple[str, object], tuple[Needs, set[tuple[str, str]]]]
"""What each log needs, by its stamp, and which checkpoints it drops: so that only what changed is read again."""


def needs(store: Store, known: Known | None = None) -> Needs:
    """Everything that any session refers to. Damage that may hide a reference stops it."""
    found = Needs(set(), [])
    dropped: set[tuple[str, str]] = set()
    for log in store.all_logs():
        try:
            one, gone = _needs_of(log, {} if known is None else known)
        finally:
            log.close()
        found.blobs |= one.blobs
        found.checkpoints += [replace(kept) for kept in one.checkpoints]
        found.parents |= one.parents
        found.busy |= one.busy
        dropped |= gone
    found.give_up(lambda kept: (kept.first, kept.id) in dropped)
    lacking = store.lacking({tree for kept in found.checkpoints for tree in kept.all_trees})
    if lacking:
        _refuse_doubt(store)
        found.give_up(lambda kept: not lacking.isdisjoint(kept.trees))
        for kept in found.checkpoints:
            kept.private = [tree for tree in kept.private if tree not in lacking]
    busy = found.busy
    while busy:  # whoever finishes an interrupted rewind needs its checkpoints, inherited ones included
        for kept in found.checkpoints:
            kept.is_automatic = kept.is_automatic and kept.first not in busy
        busy = {found.parents[name] for name in busy if name in found.parents}
    return found


def _needs_of(log: Log, known: Known) -> tuple[Needs, set[tuple[str, str]]]:
    key = (log.id, stamp(log))  # before it is read: what comes meanwhile gives it another
    if key[1] is None or key not in known:
        found, dropped = Needs(set(), [], {}, set()), set[tuple[str, str]]()
        _read(log, found, dropped)
        known[key] = (found, dropped)
    return known[key]


def _read(log: Log, found: Needs, dropped: set[tuple[str, str]]) -> None:
    hidden: Damage | None = None
    intent, first = 0, log.id
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
            kept = Kept(log.id, first, item.id, item.at, is_automatic, trees, private, others)
            found.checkpoints.append(kept)
        elif isinstance(item, Drop):
            dropped.update((first, name) for name in item.checkpoints)  # only the session's own
        else:
            found.blobs.update(item.blobs)
            if isinstance(item, Start):
                first = item.id
                if item.fork is not None:
                    found.parents[first] = item.fork.base
            elif isinstance(item, Intent):
                intent = item.seq
            elif isinstance(item, Head) and item.intent == intent:
                intent = 0
    if intent:
        found.busy.add(first)
    if hidden is not None:
        raise Corrupt(
            f"nothing was collected: session {log.id} is damaged at byte {hidden.offset}, so its needs are not known",
            hint=f"look with `turnlog doctor {log.id}`, and repair it with --repair",
        )


def _refuse_doubt(store: Store) -> None:
    """A tree is not there. Where that may only be because a pack cannot be read, nobody gives anything up for it."""
    doubt = store.doubt()
    if doubt:
        raise Corrupt(f"nothing was collected: {doubt}", hint="restore it from a backup; see `turnlog doctor`")


def reachable(store: Store, roots: Iterable[str], seen: set[str]) -> int:
    """Add everything below these trees to `seen`; returns the size of the files that were not in it.

    Of a folder that is missing nobody knows what was in it: it is not needed for that one, and the rest stays.
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


def all_needed(store: Store, found: Needs, seen: Iterable[str] = ()) -> set[str]:
    """Every blob that has to stay, and what was `seen` to be needed, with all that is below it."""
    seen = {*seen, *found.blobs}
    for kept in found.checkpoints:
        seen.update(kept.others)
        reachable(store, kept.all_trees, seen)
    return seen


def remove(store: Store, known: Known) -> dict[str, int]:
    """Remove what is not needed. What takes long is done beside everybody else; they are kept out for the rest.

    Then only what was appended meanwhile is looked at: somebody may have found a blob that nobody needed, and need it.
    The root trees of what was given up go before any content: who has one of those has all of it, whatever stops this.
    """
    needed: set[str] = set()
    with store.keeping(), suppress(NotFound, OutOfSpace):  # a session is moved under us; what is removed makes room
        needed = all_needed(store, needs(store, known))
        store.prepare(needed)
    with store.exclusively():
        found = needs(store, known)
        needed = all_needed(store, found, needed)
        stay = store.forget(found.gone - needed)
        reachable(store, stay, needed)
        return store.collect(needed)


def forget_unneeded(store: Store, trees: set[str]) -> None:
    """Remove those of these trees that no session needs. Raises `Corrupt` where nobody can tell."""
    known: Known = {}
    needed: set[str] = set()
    with store.keeping(), suppress(NotFound):  # a session is moved under us
        needed = all_needed(store, needs(store, known))
    with store.exclusively():
        store.forget(trees - all_needed(store, needs(store, known), needed))


def estimate(store: Store, *, quota_bytes: int | None) -> Collected:
    """What `collect` would do, about. Nothing is touched."""
    with store.keeping():
        found = needs(store)
        done = store.unneeded(all_needed(store, found))
        size = store.disk()["blobs"]
        given_up: list[Kept] = []
        if quota_bytes is not None and size - done["bytes"] > quota_bytes:
            given_up = _enough(store, found, size - done["bytes"] - quota_bytes)
            gone = {kept.id for kept in given_up}
            found.give_up(lambda kept: kept.id in gone)
            done = store.unneeded(all_needed(store, found))
        return Collected(done["blobs"], done["bytes"], len(given_up), size - done["bytes"])


def collect(store: Store, *, quota_bytes: int | None, drop: Callable[[list[Kept]], None]) -> Collected:
    """Remove what nobody needs; where that is not enough for the quota, give up automatic checkpoints, oldest first.

    `drop` writes that into their sessions. Labelled and explicit checkpoints are never given up.
    """
    dropped, known = 0, Known()
    done = remove(store, known)
    blobs, freed = done["blobs"], done["bytes"]
    # What a checkpoint takes in the packs is not known before it is gone: they are compressed together.
    while quota_bytes is not None and (left := store.disk()["blobs"]) > quota_bytes:
        given_up = _give_up(store, known, left - quota_bytes, drop)
        if not given_up:
            break
        dropped += len(given_up)
        done = remove(store, known)
        blobs, freed = blobs + done["blobs"], freed + done["bytes"]
    return Collected(blobs, freed, dropped, store.disk()["blobs"])


def _give_up(store: Store, known: Known, size: int, drop: Callable[[list[Kept]], None]) -> list[Kept]:
    """Have so much given up. What somebody made, moved or began meanwhile is not."""
    chosen: list[Kept] | None = None
    with store.keeping(), suppress(NotFound):  # a session is moved under us
        chosen = _enough(store, needs(store, known), size)
    with store.exclusively():
        found, live = needs(store, known), {row.first for row in store.sessions()}
        names = {(kept.first, kept.id) for kept in (_enough(store, found, size) if chosen is None else chosen)}
        there = [kept for kept in found.checkpoints if kept.is_automatic and kept.first in live]
        given_up = [kept for kept in there if (kept.first, kept.id) in names]
        if given_up:
            drop(given_up)
    return given_up


def _enough(store: Store, found: Needs, wanted: int) -> list[Kept]:
    """The oldest automatic checkpoints that together hold at least so much that nobody else needs."""
    # Nobody can write into the log of a deleted session that something of it is gone.
    live = {row.first for row in store.sessions()}
    for kept in found.checkpoints:
        kept.is_automatic = kept.is_automatic and kept.first in live
    automatic = sorted(
        (kept for kept in found.checkpoints if kept.is_automatic),
        key=lambda kept: kept.at.timestamp() if kept.at is not None else 0.0,
    )
    rest = set(found.blobs)
    for kept in found.checkpoints:
        if not kept.is_automatic:
            reachable(store, kept.all_trees, rest)
    sizes = [reachable(store, kept.all_trees, rest) for kept in reversed(automatic)]
    for count, size in enumerate(reversed(sizes), 1):
        wanted -= size
        if wanted <= 0:
            return automatic[:count]
    return automatic

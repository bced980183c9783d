"""Whether a checkpoint still has its content: that is asked of the store, because no log can tell every fork."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import islice

from turnlog.errors import Invalid
from turnlog.log.entry import AnyEntry, Checkpoint, Root
from turnlog.log.payload import digest, digest_key
from turnlog.store import Store, derived
from turnlog.workspace.tree import encode_tree

_MOST = 256
_NOTHING = digest(encode_tree({}))


def trees_of(entry: Checkpoint) -> list[str]:
    """The trees without which a checkpoint is given up."""
    return [root.tree for root in entry.roots if not root.is_private]


def private_of(entry: Checkpoint) -> list[str]:
    """The trees that stay in their home: where they are not, ignored files are unknown, and the rest counts."""
    return [root.tree for root in entry.roots if root.is_private]


def left_out(entries: Iterable[AnyEntry]) -> int:
    """How many of these are checkpoints with something that stays in its home."""
    return sum(any(map(stays, entry.roots)) for entry in entries if isinstance(entry, Checkpoint))


def stays(root: Root) -> bool:
    """Whether a root stays in the home it was taken in, unless somebody asks for it."""
    return root.is_private and root.tree != _NOTHING


def given_up(store: Store, checkpoints: Iterable[Checkpoint], dropped: Collection[str] = ()) -> frozenset[str]:
    """The ids of those that were given up. `dropped` are those of which the session's log says so.

    A root tree is removed before and stored after the content below it, so its presence proves the rest.
    """
    left = list(checkpoints)
    dropped_ids = frozenset(dropped)
    trees = {tree for entry in left if entry.id not in dropped_ids for tree in trees_of(entry)}
    lacking = {tree for tree in trees if not _is_digest(tree)}
    lacking |= derived.lacking(store, trees - lacking) if trees - lacking else set()
    return frozenset(entry.id for entry in left if entry.id in dropped_ids or not lacking.isdisjoint(trees_of(entry)))


def newest_kept(store: Store, entries: Iterable[AnyEntry], dropped: Collection[str]) -> Checkpoint | None:
    """The first checkpoint of these that was not given up."""
    points: Iterator[Checkpoint] = (entry for entry in entries if isinstance(entry, Checkpoint))
    size = 1  # nearly always the first one will do
    while some := list(islice(points, size)):
        gone = given_up(store, some, dropped)
        for entry in some:
            if entry.id not in gone:
                return entry
        size = min(2 * size, _MOST)
    return None


def _is_digest(name: str) -> bool:
    try:
        digest_key(name)
    except Invalid:
        return False
    return True

"""Whether a checkpoint still has its content. The store decides that, because a log does not know of every fork."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import islice

from turnlog.errors import Invalid
from turnlog.log.entry import AnyEntry, Checkpoint
from turnlog.log.part import Root
from turnlog.log.payload import digest, digest_key
from turnlog.store import Store, derived
from turnlog.workspace.tree import encode_tree

_MOST = 256
_NOTHING = digest(encode_tree({}))


def trees_of(entry: Checkpoint) -> list[str]:
    """The trees that a checkpoint cannot do without: it is given up if one is missing."""
    return [root.tree for root in entry.roots if not root.is_private]


def private_of(entry: Checkpoint) -> list[str]:
    """The trees of ignored files, which stay in their home. Without them the rest of a checkpoint is still valid."""
    return [root.tree for root in entry.roots if root.is_private]


def count_with_private_roots(entries: Iterable[AnyEntry]) -> int:
    """How many of these entries are checkpoints with a root that stays in its home."""
    return sum(any(map(is_kept_at_home, entry.roots)) for entry in entries if isinstance(entry, Checkpoint))


def is_kept_at_home(root: Root) -> bool:
    """Whether a root stays in its home unless a transfer asks for it: a root of ignored files that is not empty."""
    return root.is_private and root.tree != _NOTHING


def given_up(store: Store, checkpoints: Iterable[Checkpoint], dropped: Collection[str] = ()) -> frozenset[str]:
    """The ids of the checkpoints that were given up. `dropped` are the ids that the session's log lists as dropped.

    A root tree is removed before the content below it and stored after it, so its presence proves the rest.
    """
    left = list(checkpoints)
    dropped_ids = frozenset(dropped)
    trees = {tree for entry in left if entry.id not in dropped_ids for tree in trees_of(entry)}
    lacking = {tree for tree in trees if not _is_digest(tree)}
    lacking |= derived.lacking(store, trees - lacking) if trees - lacking else set()
    return frozenset(entry.id for entry in left if entry.id in dropped_ids or not lacking.isdisjoint(trees_of(entry)))


def newest_kept(store: Store, entries: Iterable[AnyEntry], dropped: Collection[str]) -> Checkpoint | None:
    """The first of these checkpoints that was not given up."""
    points: Iterator[Checkpoint] = (entry for entry in entries if isinstance(entry, Checkpoint))
    size = 1  # nearly always the first one is still there
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

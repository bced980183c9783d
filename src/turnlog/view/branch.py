"""The shape of a conversation: stretches without a fork in them, and what hangs on each."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from msgspec import Struct

from turnlog.log.context import text_of
from turnlog.log.entry import AnyEntry, Child, Message
from turnlog.log.prompt import typed, without_preamble
from turnlog.log.text import one_line

_PREVIEW = 120
_LONG = 20_000


class BranchStretch(Struct):
    """A run of nodes, up to an end or to where the conversation splits."""

    first: int
    last: int = 0
    messages: int = 0
    preview: str = ""
    """The first thing a person said in it; else the first thing anybody said."""
    at: datetime | None = None
    """The time of its last entry."""
    is_current: bool = False
    """Whether its end is the head of the conversation."""
    is_path: bool = False
    """Whether it is on the path to the head."""
    continuations: list[BranchStretch] = []
    children: list[str] = []
    """The sessions of subagents that were started in this run."""


class _Node(NamedTuple):
    parent: int
    at: datetime | None
    is_message: bool
    is_asking: bool
    preview: str


def stretches(entries: Iterable[AnyEntry], head: int) -> list[BranchStretch]:
    """Where a conversation begins, each with what comes after it. Reads every entry once, in the order of the log."""
    nodes: dict[int, _Node] = {}
    after: dict[int, list[int]] = {}
    children: dict[int, list[str]] = {}
    latest = 0
    for entry in entries:
        if entry.parent is not None:
            nodes[entry.seq] = _node(entry, entry.parent)
            parent = entry.parent if entry.parent in nodes else 0
            after.setdefault(parent, []).append(entry.seq)
            latest = entry.seq
        elif isinstance(entry, Child):
            children.setdefault(latest, []).append(entry.session)
    path: set[int] = set()
    node = head
    while node in nodes and node not in path:
        path.add(node)
        node = nodes[node].parent
    roots: list[BranchStretch] = []
    waiting: list[tuple[int, list[BranchStretch]]] = [(seq, roots) for seq in after.get(0, ())]
    for seq, siblings in waiting:  # grows during iteration
        stretch = _stretch(seq, nodes, after, children, head, path)
        siblings.append(stretch)
        waiting += [(next_seq, stretch.continuations) for next_seq in after.get(stretch.last, ())]
    return roots


def _node(entry: AnyEntry, parent: int) -> _Node:
    if not isinstance(entry, Message):
        return _Node(parent, entry.at, is_message=False, is_asking=False, preview="")
    preview = one_line(typed(without_preamble(text_of(entry.blocks)[:_LONG])), _PREVIEW)
    return _Node(parent, entry.at, is_message=True, is_asking=entry.role == "user", preview=preview)


def _stretch(
    seq: int,
    nodes: dict[int, _Node],
    after: dict[int, list[int]],
    children: dict[int, list[str]],
    head: int,
    path: set[int],
) -> BranchStretch:
    stretch = BranchStretch(first=seq, continuations=[], children=[])
    first_text = ""
    while True:
        node = nodes[seq]
        stretch.last, stretch.at = seq, node.at
        stretch.children += children.get(seq, [])
        stretch.is_path = seq in path
        stretch.messages += node.is_message
        if node.is_asking:
            stretch.preview = stretch.preview or node.preview
        first_text = first_text or node.preview
        following = after.get(seq, ())
        # Where the conversation was taken back to is an end, too, until it goes on.
        if len(following) != 1 or seq == head:
            stretch.is_current = seq == head
            stretch.preview = stretch.preview or first_text
            return stretch
        seq = following[0]

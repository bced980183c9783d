"""The branches of a conversation: every entry at which it ends."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from msgspec import Struct

from turnlog.log.context import text_of
from turnlog.log.entry import AnyEntry, Message
from turnlog.log.prompt.promptmessage import is_prompt


class Branch(Struct, frozen=True):
    """One end of the conversation: where it was left, or where it is."""

    head: int
    at: datetime | None
    messages: int
    is_current: bool
    preview: str
    """The beginning of the last prompt of a person on it."""


def branches(entries: Iterator[AnyEntry], head: int) -> list[Branch]:
    """Every end of the conversation, newest first."""
    nodes: dict[int, AnyEntry] = {}
    counts: dict[int, int] = {0: 0}
    labels: dict[int, str] = {0: ""}
    inner: set[int] = set()
    for entry in entries:
        if entry.parent is None:
            continue
        nodes[entry.seq] = entry
        inner.add(entry.parent)
        counts[entry.seq] = counts.get(entry.parent, 0) + isinstance(entry, Message)
        preview = labels.get(entry.parent, "")
        if isinstance(entry, Message) and is_prompt(entry):
            preview = text_of(entry.blocks)[:120] or preview
        labels[entry.seq] = preview
    ends = {seq for seq in nodes if seq not in inner} | ({head} & (nodes.keys() | {0}))
    return [
        Branch(seq, nodes[seq].at if seq else None, counts[seq], seq == head, labels[seq])
        for seq in sorted(ends, reverse=True)
    ]

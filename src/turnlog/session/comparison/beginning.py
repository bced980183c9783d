"""Where the paths of two sides part: the longest beginning that both have."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from turnlog.errors import NotFound
from turnlog.log.context import text_of
from turnlog.log.entry import AnyEntry, Compaction, Message
from turnlog.log.prompt import typed, without_preamble
from turnlog.log.prompt.promptmessage import is_prompt
from turnlog.log.text import one_line
from turnlog.session.comparison import CommonBeginning, Comparable

_PROMPT = 100


class PathNode(NamedTuple):
    """The part of an entry that is kept to find where two paths part."""

    seq: int
    parent: int
    id: str
    content_hash: int | None
    """None for nodes other than messages and compactions, which are not compared."""
    prompt: str | None
    at: datetime | None


def path_of(side: Comparable) -> list[PathNode]:
    """The nodes that lead to the head of a side, oldest first."""
    nodes = {entry.seq: _node(entry, entry.parent) for entry in side.forward(0) if entry.parent is not None}
    if side.head and side.head not in nodes:
        hint = "`turnlog tree` shows the last entry of each branch"
        raise NotFound(f"no branch {side.head} in session {side.name}", hint=hint)
    path: list[PathNode] = []
    seq = side.head
    while seq in nodes:
        path.append(nodes.pop(seq))
        seq = path[-1].parent
    path.reverse()
    return path


def common_nodes(a: list[PathNode], b: list[PathNode]) -> list[tuple[PathNode, PathNode]]:
    """The compared nodes that both paths begin with, in pairs: the same id, or the same content."""
    pairs = zip(
        (node for node in a if node.content_hash is not None),
        (node for node in b if node.content_hash is not None),
        strict=False,
    )
    common: list[tuple[PathNode, PathNode]] = []
    for of_a, of_b in pairs:
        if of_a.id != of_b.id and of_a.content_hash != of_b.content_hash:
            break
        common.append((of_a, of_b))
    return common


def beginning_of(common: list[tuple[PathNode, PathNode]]) -> CommonBeginning:
    """What two sides with these common nodes begin with."""
    prompts = [node.prompt for node, _ in common if node.prompt is not None]
    last_a, last_b = common[-1] if common else (None, None)
    return CommonBeginning(len(common), prompts, last_a.seq if last_a else 0, last_b.seq if last_b else 0)


def prompt_in(entry: AnyEntry) -> str | None:
    """The beginning of the prompt, if the entry is one."""
    return first_line(entry, _PROMPT) if isinstance(entry, Message) and is_prompt(entry) else None


def first_line(message: Message, limit: int) -> str:
    """What a person or an agent wrote in a message, on one line of at most `limit` characters."""
    return one_line(typed(without_preamble(text_of(message.blocks))), limit)


def _node(entry: AnyEntry, parent: int) -> PathNode:
    content_hash = None
    if isinstance(entry, Message):
        content_hash = hash((entry.role, repr(entry.blocks)))
    elif isinstance(entry, Compaction):
        content_hash = hash(repr(entry.replacement))
    return PathNode(entry.seq, parent, entry.id, content_hash, prompt_in(entry), entry.clock or entry.at)

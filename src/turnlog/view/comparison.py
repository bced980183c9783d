"""Two sessions side by side, in words and rows: the same on a terminal and in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from turnlog.thread.report import lasting
from turnlog.view.number import count, dollars, tokens

if TYPE_CHECKING:
    from turnlog.pricing import Cost
    from turnlog.session.comparison import ChangedFile, ComparedSide, ComparedTurn, Comparison

UNKNOWN = "not known"
"""Said of files where no checkpoints were taken."""


class ComparedRow(NamedTuple):
    """A row of a table: what it is about, and both."""

    what: str
    a: str
    b: str


def common_in_words(found: Comparison) -> str:
    """How much both begin with."""
    common = found.common
    if not common.messages:
        return "nothing in common"
    begun = f"{count(len(common.prompts), 'prompt')}, {count(common.messages, 'message')} in common"
    return begun + ("" if found.a.turns or found.b.turns else ", and nothing else: they are the same")


def sums(found: Comparison) -> list[ComparedRow]:
    """What each did and took behind what they have in common."""
    sides = (found.a, found.b)
    return [
        ComparedRow("turns", *(f"{len(side.turns):,}" for side in sides)),
        ComparedRow("messages", *(f"{side.messages:,}" for side in sides)),
        ComparedRow("tool calls", *(f"{side.tool_calls:,}" for side in sides)),
        ComparedRow("tokens in", *(f"{side.usage.all_input_tokens:,}" for side in sides)),
        ComparedRow("tokens out", *(f"{side.usage.output_tokens:,}" for side in sides)),
        ComparedRow("cost", *(_price(side.cost) for side in sides)),
        ComparedRow("time", *(lasting(side.duration) for side in sides)),
        ComparedRow("files", *(changed(side.files) for side in sides)),
    ]


def _price(cost: Cost) -> str:
    return dollars(cost.micros, is_partial=not cost.is_complete)


def changed(files: list[ChangedFile] | None) -> str:
    """`+120 −8, 3 files`."""
    if files is None:
        return UNKNOWN
    if not files:
        return "none changed"
    plus, minus = sum(file.added for file in files), sum(file.removed for file in files)
    return f"+{plus:,} −{minus:,}, {count(len(files), 'file')}"


def paths(found: Comparison) -> list[ComparedRow]:
    """What became of every path that either changed."""
    known = [{file.path: file for file in side.files or ()} for side in (found.a, found.b)]
    return [ComparedRow(path, *(_one(files.get(path)) for files in known)) for path in sorted({**known[0], **known[1]})]


def _one(file: ChangedFile | None) -> str:
    if file is None:
        return ""
    return file.action + (f" +{file.added:,} −{file.removed:,}" if file.added or file.removed else "")


def pairs(found: Comparison) -> Iterator[tuple[ComparedTurn | None, ComparedTurn | None]]:
    """The first turn of each, the second ones, and so on."""
    return zip_longest(found.a.turns, found.b.turns)


def facts(turn: ComparedTurn) -> list[str]:
    """What a turn took, in few words."""
    used = turn.usage.all_input_tokens + turn.usage.output_tokens
    return [
        count(turn.messages, "message"),
        count(turn.tool_calls, "call") if turn.tool_calls else "",
        f"{tokens(used)} tokens" if used else "",
        _price(turn.cost) if turn.cost.micros or turn.cost.unpriced else "",
        lasting(turn.duration),
        changed(turn.files) if turn.files else "",
    ]


def name(side: ComparedSide) -> str:
    """What it is called."""
    return side.title or "(no title)"

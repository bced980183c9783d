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
"""Shown for files if there are no checkpoints."""


class ComparedRow(NamedTuple):
    """A row of a table: its label, and the values of both sessions."""

    what: str
    a: str
    b: str


def common_in_words(comparison: Comparison) -> str:
    """How much of their beginnings both sessions share."""
    common = comparison.common
    if not common.messages:
        return "nothing in common"
    begun = f"{count(len(common.prompts), 'prompt')}, {count(common.messages, 'message')} in common"
    return begun + ("" if comparison.a.turns or comparison.b.turns else ", and nothing else: they are the same")


def total_rows(comparison: Comparison) -> list[ComparedRow]:
    """What each session did and used after their common beginning."""
    sides = (comparison.a, comparison.b)
    return [
        ComparedRow("turns", *(f"{len(side.turns):,}" for side in sides)),
        ComparedRow("messages", *(f"{side.messages:,}" for side in sides)),
        ComparedRow("tool calls", *(f"{side.tool_calls:,}" for side in sides)),
        ComparedRow("tokens in", *(f"{side.usage.all_input_tokens:,}" for side in sides)),
        ComparedRow("tokens out", *(f"{side.usage.output_tokens:,}" for side in sides)),
        ComparedRow("cost", *(_price(side.cost) for side in sides)),
        ComparedRow("time", *(lasting(side.duration) for side in sides)),
        ComparedRow("files", *(change_counts(side.files) for side in sides)),
    ]


def _price(cost: Cost) -> str:
    return dollars(cost.micros, is_partial=not cost.is_complete)


def change_counts(files: list[ChangedFile] | None) -> str:
    """`+120 −8, 3 files`."""
    if files is None:
        return UNKNOWN
    if not files:
        return "none changed"
    plus, minus = sum(file.added for file in files), sum(file.removed for file in files)
    return f"+{plus:,} −{minus:,}, {count(len(files), 'file')}"


def path_rows(comparison: Comparison) -> list[ComparedRow]:
    """The changes of every path that either session changed."""
    files = [{file.path: file for file in side.files or ()} for side in (comparison.a, comparison.b)]
    return [
        ComparedRow(path, *(_file_counts(by_path.get(path)) for by_path in files))
        for path in sorted({**files[0], **files[1]})
    ]


def _file_counts(file: ChangedFile | None) -> str:
    if file is None:
        return ""
    return file.action + (f" +{file.added:,} −{file.removed:,}" if file.added or file.removed else "")


def turn_pairs(comparison: Comparison) -> Iterator[tuple[ComparedTurn | None, ComparedTurn | None]]:
    """The first turn of each, the second ones, and so on."""
    return zip_longest(comparison.a.turns, comparison.b.turns)


def turn_facts(turn: ComparedTurn) -> list[str]:
    """Messages, calls, tokens, cost, time and files of a turn, in few words."""
    used = turn.usage.all_input_tokens + turn.usage.output_tokens
    return [
        count(turn.messages, "message"),
        count(turn.tool_calls, "call") if turn.tool_calls else "",
        f"{tokens(used)} tokens" if used else "",
        _price(turn.cost) if turn.cost.micros or turn.cost.unpriced else "",
        lasting(turn.duration),
        change_counts(turn.files) if turn.files else "",
    ]


def title_of(side: ComparedSide) -> str:
    """The title of one side."""
    return side.title or "(no title)"

"""The outline beside a conversation: prompts, compactions, subagents and errors, with what prompts changed and cost."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from turnlog.catalog.ask import detail
from turnlog.thread.outline import PROMPT
from turnlog.view.number import money
from turnlog.web.element import esc, link

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnlog.catalog import Card
    from turnlog.reader.viewing.conversation import ConversationPieces, Landmark
    from turnlog.reader.viewing.viewedsession import ViewedSession
    from turnlog.thread.outline import Outline, OutlineItem
    from turnlog.web.query import ConversationQuery
    from turnlog.web.viewer import Viewer

_NEAR = 60
"""How many lines of the outline are shown on either side of the current one."""


def outline_around(
    viewer: Viewer, viewed: ViewedSession, query: ConversationQuery, pieces: ConversationPieces, first: int
) -> str:
    """Prompts, compactions, subagents and errors near a piece."""
    marks = pieces.landmarks()
    if not marks:
        return '<nav class="outline" aria-label="Outline"></nav>'
    low, high = _near(marks, first)
    before = marks[high].item.seq if high < len(marks) else None
    prompts = _prompts_in(pieces.outline, marks[low].item.seq, before)
    has_next = before is not None and prompts and prompts[-1] >= before
    costs = costs_by_prompt(viewer, viewed.card, prompts, until=prompts[-1] if has_next else None)
    lines: list[str] = []
    if low:
        lines.append(f'<li class="rest">{link(query.address(at=marks[0].item.seq), f"{low:,} before")}</li>')
    for item in (mark.item for mark in marks[low:high]):
        label = _line(item, viewed.redacted_label(item) if query.is_redacted else item.label)
        cost = costs.get(item.seq, 0)
        facts = [viewed.file_change_of(item.turn) if item.is_prompt else "", money(cost) if cost else ""]
        facts_html = "".join(f"<small>{fact}</small>" for fact in facts if fact)
        lines.append(
            f'<li class="{_kind(item)}"><a href="{esc(query.address(at=item.seq))}" data-seq="{item.seq}">'
            f"{esc(label)}</a>{facts_html}</li>"
        )
    if high < len(marks):
        rest = f"{len(marks) - high:,} after"
        lines.append(f'<li class="rest">{link(query.address(at=marks[high].item.seq), rest)}</li>')
    more = ' data-more="1"' if unknown_turns(viewed, pieces, first) else ""
    return f'<nav class="outline" aria-label="Outline"{more}><ol>{"".join(lines)}</ol></nav>'


def _near(marks: list[Landmark], first: int) -> tuple[int, int]:
    here = bisect_left(marks, first, key=lambda mark: mark.piece)
    return max(0, here - _NEAR), min(len(marks), here + _NEAR)


def unknown_turns(viewed: ViewedSession, pieces: ConversationPieces, first: int) -> set[str]:
    """The turns near a piece whose file changes were not asked for yet."""
    if viewed.session is None:
        return set()
    marks = pieces.landmarks()
    low, high = _near(marks, first)
    turns = {mark.item.turn for mark in marks[low:high] if mark.item.is_prompt and mark.item.turn}
    return viewed.unknown_turns(turns)


def _kind(item: OutlineItem) -> str:
    if item.is_prompt:
        return "prompt"
    return "error" if item.is_error else "event"


def _line(item: OutlineItem, label: str) -> str:
    if item.is_prompt:
        return label or "(a picture)"
    if item.is_error:
        return f"failed: {item.tool or item.kind}"
    if item.kind == "head":
        return label
    what = {"compaction": "compacted", "child": "subagent"}.get(item.kind, item.kind)
    return f"{what} {label}".strip()


def _prompts_in(outline: Outline, first: int, before: int | None) -> list[int]:
    """The prompts of every branch from entry `first` on and before another, and the next one after these."""
    prompts: list[int] = []
    for index in range(bisect_left(outline.seqs, first), len(outline)):
        if outline.flags[index] & PROMPT:
            prompts.append(outline.seqs[index])
            if before is not None and prompts[-1] >= before:
                break
    return prompts


def costs_by_prompt(viewer: Viewer, card: Card, prompts: Sequence[int], *, until: int | None = None) -> dict[int, int]:
    """What was spent from each prompt up to the next one, in micro-dollars; the last one ends before entry `until`.

    These are the prompts of every branch, or one would pay for a prompt that was left. What was spent before the first
    of them was asked for by none.
    """
    if not prompts:
        return {}
    sums: dict[int, int] = {}
    for seq, cost in viewer.catalog.ask(detail.spent_by_entry, card, first=prompts[0], last=until):
        index = bisect_left(prompts, seq + 1) - 1
        if index >= 0:
            sums[prompts[index]] = sums.get(prompts[index], 0) + cost
    return sums

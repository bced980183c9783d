"""The tree of a session: a line for each stretch of its conversation, each fork and each subagent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from turnlog.cli.fields.tree import TreeBranch, TreeFork, TreeSession
from turnlog.cli.frame.terminal import screen_width
from turnlog.view.number import count
from turnlog.view.visible import clip, one_line, width

if TYPE_CHECKING:
    from turnlog.view.terminal.typeset import LineStyle

_DEEPEST = 40
_Piece = tuple[str, str]
"""Text that is safe, and its colour."""


def tree_lines(tree: TreeSession, screen: LineStyle) -> Iterator[str]:
    """Yield a line for each session, and for each stretch of its conversation."""
    yield _fitted("", _name(tree), "", screen)
    waiting: list[tuple[str, list[_Item], str]] = [("", _inside(tree), "")]
    while waiting:  # by hand, not by recursion: a conversation may split a thousand times
        lead, inner, line = waiting.pop()
        if line:
            yield line
        below: list[tuple[str, list[_Item], str]] = []
        for index, item in enumerate(inner):
            is_last = index == len(inner) - 1
            pieces, tail = item.label()
            deeper = lead + ("   " if is_last else "│  ")
            drawn = _fitted(lead + ("└─ " if is_last else "├─ "), pieces, tail, screen)
            below.append((deeper if len(deeper) < 3 * _DEEPEST else lead, item.inner(), drawn))
        waiting += reversed(below)


class _Item(NamedTuple):
    """Something that hangs on a session or on a branch of it."""

    owner: TreeSession
    """The session that a branch is of; of anything else, itself."""
    branch: TreeBranch | None = None
    fork: TreeFork | None = None

    def inner(self) -> list[_Item]:
        """What hangs on it."""
        return _inside(self.owner) if self.branch is None else _branches(self.owner, self.branch.last)

    def label(self) -> tuple[list[_Piece], str]:
        """The text of its line, and what stands at the end of that."""
        if self.branch is not None:
            return _branch_label(self.branch)
        if self.fork is not None:
            name = f" “{one_line(self.fork.name)}”" if self.fork.name else ""
            return [("fork", "yellow"), (f" at {self.fork.at}{name}  ", ""), *_name(self.owner)], ""
        return [("subagent  ", "purple"), *_name(self.owner)], ""


def _branches(session: TreeSession, after: int) -> list[_Item]:
    return [_Item(session, branch=branch) for branch in session.branches if branch.after == after]


def _inside(session: TreeSession) -> list[_Item]:
    items = _branches(session, 0)
    items += [_Item(fork.session, fork=fork) for fork in session.forks]
    return items + [_Item(other) for other in session.subagents]


def _branch_label(branch: TreeBranch) -> tuple[list[_Piece], str]:
    span = str(branch.first) if branch.first == branch.last else f"{branch.first}–{branch.last}"
    mark = ("● ", "green") if branch.is_current else ("", "")
    text = one_line(branch.preview or "(nothing said)")
    tail = count(branch.messages, "message") + (" ← now" if branch.is_current else "")
    return [mark, (f"{span}  ", "cyan"), (text, "" if branch.is_path else "dim")], tail


def _name(session: TreeSession) -> list[_Piece]:
    facts = one_line(" · ".join(filter(None, (session.handle, session.agent))))
    return [(f"{facts}  ", "dim"), (one_line(session.title or "(no title)"), "bold" if session.is_asked else "")]


def _fitted(lead: str, pieces: list[_Piece], tail: str, screen: LineStyle) -> str:
    """Fit a line to the screen: the text is cut, the tail is kept."""
    room = screen.room if screen.room is not None else screen_width()
    left = None if room is None else max(16, room - width(lead) - (width(tail) + 2 if tail else 0))
    line = lead
    for text, colour in pieces:
        fitted = text if left is None else clip(text, left)
        left = None if left is None else left - width(fitted)
        line += screen.paint(fitted, colour)
        if left is not None and left <= 0:
            break
    return line + (screen.paint(f"  {tail}", "dim") if tail else "")

"""A session that somebody reads, a screen at a time. Knows no terminal; one thread uses it."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from turnlog.errors import NotFound
from turnlog.tui.finder import TextFinder
from turnlog.tui.frame import ARRIVED, NOWHERE, Frame, MoveResult
from turnlog.tui.linecache import LineCache, LinePlace
from turnlog.view.number import count
from turnlog.view.visible import one_line

if TYPE_CHECKING:
    from turnlog.log.entry import Note
    from turnlog.reader.viewing.conversation import ConversationPieces
    from turnlog.reader.viewing.viewedsession import ViewedSession
    from turnlog.view.terminal.typeset import LineStyle


class PagedSession:
    """The position in a session and the moves that change it."""

    def __init__(self, viewed: ViewedSession, style: LineStyle, height: int, notes: Sequence[Note] = ()) -> None:
        self.viewed = viewed
        self.cache = LineCache(viewed, style, notes)
        self.finder = TextFinder(self.cache)
        self._note_count = len(notes)
        self._height = max(1, height)
        self._seen = len(self._pieces)
        self._top = LinePlace(0, 0)
        self.to_end()

    @property
    def _pieces(self) -> ConversationPieces:
        return self.viewed.pieces

    # ── where ─────────────────────────────────────────────────────────────────────────────────────

    def frame(self, result: MoveResult = ARRIVED) -> Frame:
        """What is on the screen now, after a move with that result."""
        lines: list[str] = []
        pieces: list[int] = []
        total, piece, skipped = len(self._pieces), self._top.piece, self._top.line
        while piece < total and len(lines) < self._height:
            piece_lines = self.cache.lines(piece)[skipped:]
            lines += piece_lines
            pieces += [piece] * len(piece_lines)
            piece, skipped = piece + 1, 0
        is_end = piece >= total and len(lines) <= self._height
        if is_end:
            self._seen = total
        lines, pieces = lines[: self._height], pieces[: self._height]
        return Frame(
            lines=lines,
            pieces=pieces,
            begin=self._fraction(self._top) if total else 0.0,
            end=1.0 if is_end else self._fraction(LinePlace(pieces[-1], self._line_of_last(pieces))),
            piece=self._top.piece,
            total=total,
            is_end=is_end,
            new=total - self._seen,
            title=self.viewed.title,
            result=result,
            tags_and_notes=self._tags_and_notes(),
        )

    def _tags_and_notes(self) -> str:
        notes = count(self._note_count, "note") if self._note_count else ""
        return " ".join([*(f"#{one_line(tag)}" for tag in self.viewed.card.tags), *filter(None, [notes])])

    def _line_of_last(self, pieces: list[int]) -> int:
        line_count = len(pieces) - bisect_left(pieces, pieces[-1])
        return line_count if pieces[-1] != self._top.piece else self._top.line + line_count

    def _fraction(self, place: LinePlace) -> float:
        total = max(1, len(self._pieces))
        return (place.piece + place.line / max(1, len(self.cache.lines(place.piece)))) / total

    def _last_top(self) -> LinePlace:
        """What is at the top when the end is at the bottom."""
        if not len(self._pieces):
            return LinePlace(0, 0)
        last = len(self._pieces) - 1
        return self.cache.moved(LinePlace(last, len(self.cache.lines(last)) - 1), 1 - self._height)

    def _go(self, place: LinePlace) -> None:
        self._top = max(LinePlace(0, 0), min(place, self._last_top()))

    def _bottom(self) -> LinePlace:
        return self.cache.moved(self._top, self._height - 1)

    def _show(self, place: LinePlace) -> None:
        """Bring a line onto the screen, a third from its top; one that is there already stays."""
        if not self._top <= place <= self._bottom():
            self._go(self.cache.moved(place, -(self._height // 3)))

    # ── moves ─────────────────────────────────────────────────────────────────────────────────────

    def scroll(self, by: int) -> MoveResult:
        """Scroll this many lines down, or up."""
        if len(self._pieces):
            self._go(self.cache.moved(self._top, by))
        return ARRIVED

    def page(self, by: int) -> MoveResult:
        """Scroll this many screens; one line of the previous screen stays."""
        return self.scroll(by * max(1, self._height - 1))

    def to_end(self) -> MoveResult:
        """Go to the newest message."""
        self._top = self._last_top()
        return ARRIVED

    def to_beginning(self) -> MoveResult:
        """Go to the oldest message."""
        self._top = LinePlace(0, 0)
        return ARRIVED

    def to_part(self, fraction: float) -> MoveResult:
        """Go so far into the session: 0 to 1."""
        self._go(LinePlace(min(len(self._pieces) - 1, int(fraction * len(self._pieces))), 0))
        return ARRIVED

    def to_entry(self, word: str) -> MoveResult:
        """Go to the piece with an entry, by number or id, if it is on this way."""
        try:
            seq = self.viewed.find(word)
        except NotFound:
            return NOWHERE
        if not self._pieces.has(seq):
            return NOWHERE
        self._show(self.finder.begin_in(self._pieces.position(seq)))
        return ARRIVED

    def to_prompt(self, by: int) -> MoveResult:
        """Go to the prompt after what is at the top, or to the one before."""
        prompts = [mark.piece for mark in self._pieces.landmarks() if mark.item.is_prompt]
        here = self._top.piece
        if by > 0:
            index = bisect_right(prompts, here if self._top.line or here in prompts else here - 1)
        else:
            index = bisect_left(prompts, here + (self._top.line > 2)) - 1
        if not 0 <= index < len(prompts):
            return NOWHERE
        before = self._top
        self._go(LinePlace(prompts[index], 0))
        return NOWHERE if self._top == before else ARRIVED

    def find(self, pattern: re.Pattern[str] | None, by: int) -> MoveResult:
        """Go to the next match, below or above what was found last, or what is at the top."""
        match = self.finder.find(pattern, by, self._top if by > 0 else self._bottom())
        if match is None:
            return NOWHERE
        self._show(match.place)
        if not match.is_around:
            return ARRIVED
        return MoveResult(message="from the beginning on" if by > 0 else "from the end on")

    def turn_at_top(self) -> int:
        """The number of the turn that what is at the top belongs to, of those with checkpoints; 0 if there is none."""
        from turnlog.reader.takeback import turns_in

        last = len(self._pieces) - 1 if self._top >= self._last_top() else self._top.piece
        if last < 0:
            return 0
        seq = self._pieces.seqs(last, last + 1)[-1]
        return next((turn.number for turn in reversed(turns_in(self.viewed)) if turn.seq <= seq), 0)

    # ── changes of what is shown ──────────────────────────────────────────────────────────────────

    def resize(self, style: LineStyle, height: int) -> MoveResult:
        """Resize to this width and this many lines; the top line stays."""
        was_end = self._top == self._last_top()
        self._height = max(1, height)
        if self.cache.set_style(style) and self._top.line:
            self._top = LinePlace(self._top.piece, 0)
        if was_end:
            self.to_end()
        else:
            self._go(self._top)
        return ARRIVED

    def unfold(self, pieces: list[int]) -> MoveResult:
        """Show all lines of the first of these pieces that has some folded away; if none has, fold one again."""
        existing = [piece for piece in dict.fromkeys(pieces) if 0 <= piece < len(self._pieces)]
        folded = (piece for piece in existing if not self.cache.is_unfolded(piece) and self.cache.has_fold(piece))
        piece = next(folded, next(filter(self.cache.is_unfolded, existing), None))
        if piece is None:
            return NOWHERE
        self.cache.toggle(piece)
        top = self._top
        self._go(LinePlace(top.piece, min(top.line, len(self.cache.lines(top.piece)) - 1)))
        return ARRIVED

    def refresh(self) -> MoveResult:
        """Take in what was written since, and stay where one reads; at the end, follow."""
        was_end = self._top >= self._last_top()
        changed = self.viewed.refresh()
        if changed is None:
            return MoveResult(is_changed=False)
        self.cache.forget_from(changed)
        if was_end:
            self.to_end()
        elif len(self._pieces):
            self._go(self._top)
        return ARRIVED


Move = Callable[[PagedSession], MoveResult]
"""A step through a paged session."""

"""A session as lines, of which only those are made that are looked at. Knows no terminal; one thread uses it."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from turnlog.catalog.waiter import still_wanted
from turnlog.errors import Corrupt, NotFound
from turnlog.tui.paper import bare, parted
from turnlog.view.cost import Costs
from turnlog.view.number import count
from turnlog.view.plain import lines_of, texts_of
from turnlog.view.row import Row, Rows
from turnlog.view.visible import one_line, width

if TYPE_CHECKING:
    from turnlog.log.entry import AnyEntry, Note
    from turnlog.reader.conversation import ConversationPieces
    from turnlog.reader.desk import LookedAt
    from turnlog.view.typeset import Screen

_CHUNK = 16
"""How many pieces are read together."""
_KEPT = 40
"""How many chunks are cached as lines."""
_SCANNED = 64
_CUT = 12
"""A line that is cut ends so near the edge at least."""


class LinePlace(NamedTuple):
    """A line of a piece."""

    piece: int
    line: int


class Frame(NamedTuple):
    """What is on the screen, and where that is."""

    lines: list[str]
    pieces: list[int]
    """For each line, the piece that it is of."""
    begin: float
    end: float
    """From where to where, of all there is: 0 to 1."""
    piece: int
    total: int
    is_end: bool
    new: int
    """How many pieces arrived below while the reader is further up."""
    title: str
    is_found: bool = True
    """Whether there was such a place."""
    said: str = ""
    """What is to be known of the way there."""
    marks: str = ""
    """Its tags, and how many notes stand above it."""


def glanced(title: str, entries: list[AnyEntry], screen: Screen, height: int) -> Frame | None:
    """The end of a session before all of it is known; None where that would not fill the screen."""
    lines = list(lines_of(Rows(price=Costs()).paired(entries), screen))[-height:]
    return Frame(lines, [-1] * height, 0.0, 1.0, -1, 1, True, 0, title) if len(lines) == height else None


class PagedSession:
    """One session that somebody reads: which line is at the top, what is unfolded, what is looked for."""

    def __init__(self, looked: LookedAt, screen: Screen, height: int, notes: Sequence[Note] = ()) -> None:
        self.looked = looked
        self._notes: list[Row] = list(Rows().paired(notes))
        """What somebody noted on another agent's session: it stands above the first piece."""
        self._screen = screen
        self._height = max(1, height)
        self._chunks: dict[int, list[list[str]]] = {}
        self._unfolded: set[int] = set()
        self.pattern: re.Pattern[str] | None = None
        self._hit: LinePlace | None = None
        self._seen = len(self._pieces)
        self._top = LinePlace(0, 0)
        self.to_end()

    @property
    def _pieces(self) -> ConversationPieces:
        return self.looked.pieces

    # ── lines ─────────────────────────────────────────────────────────────────────────────────────

    def _lines(self, piece: int) -> list[str]:
        number = piece // _CHUNK
        chunk = self._chunks.pop(number, None)
        if chunk is None:
            chunk = self._read(number * _CHUNK)
        self._chunks[number] = chunk  # what is used last is kept longest
        while len(self._chunks) > _KEPT:
            del self._chunks[next(iter(self._chunks))]
        return chunk[piece % _CHUNK]

    def _read(self, first: int) -> list[list[str]]:
        end = min(first + _CHUNK, len(self._pieces))
        price = Costs()
        for piece in self.looked.read(max(0, first - 1), first):
            for entry in piece:
                price(entry)  # a request that became several messages is paid once
        rows = Rows(price=price, size=self._size)
        return [
            self._drawn(number, self._paired(rows, number, entries))
            for number, entries in enumerate(self.looked.read(first, end), first)
        ]

    def _paired(self, rows: Rows, number: int, entries: list[AnyEntry]) -> list[Row]:
        return [*([] if number else self._notes), *rows.paired(entries)]

    def _drawn(self, number: int, rows: list[Row]) -> list[str]:
        is_full = number in self._unfolded
        lines = lines_of(rows, replace(self._screen, is_full=is_full), self._day(number - 1))
        room = self._screen.room or 80
        return [part for line in lines for part in (parted(line, room) if is_full else (line,))] or [""]

    def _day(self, number: int) -> str:
        """The day on which what is above was said; empty at the beginning."""
        if number < 0:
            return ""
        outline = self._pieces.outline
        index = outline.find(self._pieces.seq(number))
        ms = 0 if index is None else outline.times[index]
        return self._screen.moment(datetime.fromtimestamp(ms / 1000, UTC))[:10] if ms else ""

    def _size(self, digest: str) -> int | None:
        try:
            return len(self.looked.blob(digest))
        except (NotFound, Corrupt):
            return None

    def _forget(self, first: int = 0) -> None:
        for number in [number for number in self._chunks if number >= first // _CHUNK]:
            del self._chunks[number]

    # ── where ─────────────────────────────────────────────────────────────────────────────────────

    def frame(self, answer: object = None) -> Frame:
        """What is on the screen now; `answer` is what the move said that led there."""
        lines: list[str] = []
        pieces: list[int] = []
        total, piece, skipped = len(self._pieces), self._top.piece, self._top.line
        while piece < total and len(lines) < self._height:
            made = self._lines(piece)[skipped:]
            lines += made
            pieces += [piece] * len(made)
            piece, skipped = piece + 1, 0
        is_end = piece >= total and len(lines) <= self._height
        if is_end:
            self._seen = total
        lines, pieces = lines[: self._height], pieces[: self._height]
        begin = self._fraction(self._top) if total else 0.0
        end = 1.0 if is_end else self._fraction(LinePlace(pieces[-1], self._line_of_last(lines, pieces)))
        return Frame(
            lines, pieces, begin, end, self._top.piece, total, is_end, total - self._seen, self.looked.title,
            answer is not False, answer if isinstance(answer, str) else "", self._marks(),
        )  # fmt: skip

    def _marks(self) -> str:
        notes = count(len(self._notes), "note") if self._notes else ""
        return " ".join([*(f"#{one_line(tag)}" for tag in self.looked.card.tags), *filter(None, [notes])])

    def _line_of_last(self, lines: list[str], pieces: list[int]) -> int:
        shown = len(pieces) - bisect_left(pieces, pieces[-1])
        return shown if pieces[-1] != self._top.piece else self._top.line + shown

    def _fraction(self, place: LinePlace) -> float:
        total = max(1, len(self._pieces))
        return (place.piece + place.line / max(1, len(self._lines(place.piece)))) / total

    def _moved(self, place: LinePlace, by: int) -> LinePlace:
        """This many lines forward or back; not beyond either end."""
        piece, line = place.piece, place.line + by
        while line < 0 and piece > 0:
            piece -= 1
            line += len(self._lines(piece))
        while piece < len(self._pieces) and line >= (size := len(self._lines(piece))):
            if piece + 1 >= len(self._pieces):
                return LinePlace(piece, size - 1)
            piece, line = piece + 1, line - size
        return LinePlace(piece, max(0, line))

    def _last_top(self) -> LinePlace:
        """What is at the top when the end is at the bottom."""
        if not len(self._pieces):
            return LinePlace(0, 0)
        last = len(self._pieces) - 1
        return self._moved(LinePlace(last, len(self._lines(last)) - 1), 1 - self._height)

    def _go(self, place: LinePlace) -> None:
        last = self._last_top()
        self._top = max(LinePlace(0, 0), min(place, last))

    def scroll(self, by: int) -> None:
        """Scroll this many lines down, or up."""
        if len(self._pieces):
            self._go(self._moved(self._top, by))

    def page(self, by: int) -> None:
        """Scroll this many screens; one line of the previous screen stays."""
        self.scroll(by * max(1, self._height - 1))

    def to_end(self) -> None:
        """The newest."""
        self._top = self._last_top()

    def to_beginning(self) -> None:
        """The oldest."""
        self._top = LinePlace(0, 0)

    def to_part(self, fraction: float) -> None:
        """So far into it."""
        self._go(LinePlace(min(len(self._pieces) - 1, int(fraction * len(self._pieces))), 0))

    def to_entry(self, word: str) -> bool:
        """The piece with an entry, by number or id; whether there is one on this way."""
        try:
            seq = self.looked.find(word)
        except NotFound:
            return False
        if not self._pieces.has(seq):
            return False
        piece = self._pieces.position(seq)
        self._hit = self._best_line(piece, 0, is_last=False)
        self._show(self._hit or LinePlace(piece, 0))
        return True

    def to_prompt(self, by: int) -> bool:
        """The prompt after what is at the top, or the one before; whether there is one."""
        prompts = [piece for piece, item in self._pieces.landmarks() if item.is_prompt]
        here = self._top.piece
        if by > 0:
            index = bisect_right(prompts, here if self._top.line or here in prompts else here - 1)
        else:
            index = bisect_left(prompts, here + (self._top.line > 2)) - 1
        if not 0 <= index < len(prompts):
            return False
        before, place = self._top, LinePlace(prompts[index], 0)
        self._go(place)
        return self._top != before

    @property
    def turn(self) -> int:
        """The number of the turn that what is at the top belongs to, of those with checkpoints; 0 where it is none."""
        from turnlog.reader.takeback import turns_in

        frame = self.frame()
        last = len(self._pieces) - 1 if frame.is_end else self._top.piece
        if last < 0:
            return 0
        seq = self._pieces.seqs(last, last + 1)[-1]
        return next((turn.number for turn in reversed(turns_in(self.looked)) if turn.seq <= seq), 0)

    # ── size, folds ───────────────────────────────────────────────────────────────────────────────

    def resize(self, screen: Screen, height: int) -> None:
        """Resize to this width and this many lines; the top line stays."""
        was_end = self._top == self._last_top()
        is_narrower = screen.room != self._screen.room
        self._screen, self._height = screen, max(1, height)
        if is_narrower:
            self._forget()
            self._top = LinePlace(self._top.piece, 0) if self._top.line else self._top
        if was_end:
            self.to_end()
        else:
            self._go(self._top)

    def unfold(self, pieces: list[int]) -> bool:
        """All lines of the first of these that has some folded away; else it is folded again. Whether it had any."""
        there = [piece for piece in dict.fromkeys(pieces) if 0 <= piece < len(self._pieces)]
        for piece in there:
            if piece not in self._unfolded and self._has_fold(piece):
                return self._toggle(piece)
        for piece in there:
            if piece in self._unfolded:
                return self._toggle(piece)
        return False

    def _has_fold(self, piece: int) -> bool:
        hint, nearly = f"({self._screen.unfolding})", (self._screen.room or 80) - _CUT
        lines = map(bare, self._lines(piece))
        return any(hint in line or (line.endswith("…") and width(line) > nearly) for line in lines)

    def _toggle(self, piece: int) -> bool:
        self._unfolded ^= {piece}
        self._forget_one(piece)
        self._go(LinePlace(self._top.piece, min(self._top.line, len(self._lines(self._top.piece)) - 1)))
        return True

    def _forget_one(self, piece: int) -> None:
        self._chunks.pop(piece // _CHUNK, None)

    # ── what is new ───────────────────────────────────────────────────────────────────────────────

    def look(self) -> bool:
        """Take in what was written since, and stay where one reads; at the end, follow. Whether anything changed."""
        was_end = self._top >= self._last_top()
        changed = self.looked.look()
        if changed is None:
            return False
        self._forget(changed)
        self._unfolded = {piece for piece in self._unfolded if piece < changed}
        if was_end:
            self.to_end()
        elif len(self._pieces):
            self._go(self._top)
        return True

    # ── finding ───────────────────────────────────────────────────────────────────────────────────

    def find(self, pattern: re.Pattern[str] | None, by: int) -> str | bool:
        """The next place that fits, below or above what was found last, or what is at the top. False for none.

        Behind the last one comes the first; then it says so.
        """
        if pattern != self.pattern:
            self.pattern, self._hit = pattern, None
        if pattern is None or not len(self._pieces):
            return False
        start = self._hit or self._start(by)
        behind = by if self._hit else 0
        found = self._in_piece(start.piece, start.line + behind, by) or self._elsewhere(start.piece + behind, by)
        said = ""
        if found is None:
            found = self._elsewhere(0 if by > 0 else len(self._pieces) - 1, by)
            said = "from the beginning on" if by > 0 else "from the end on"
        if found is None:
            return False
        self._hit = found
        self._show(found)
        return said

    def _start(self, by: int) -> LinePlace:
        return self._top if by > 0 else self._moved(self._top, self._height - 1)

    def _in_piece(self, piece: int, line: int, by: int) -> LinePlace | None:
        assert self.pattern is not None
        lines = self._lines(piece)
        some = range(max(0, line), len(lines)) if by > 0 else range(min(line, len(lines) - 1), -1, -1)
        return next((LinePlace(piece, at) for at in some if self.pattern.search(bare(lines[at]))), None)

    def _elsewhere(self, piece: int, by: int) -> LinePlace | None:
        for number, rows in self._rows_from(piece, by):
            if self._fits(rows):
                return self._best_line(number, 0 if by > 0 else 1 << 30, is_last=by < 0)
        return None

    def _best_line(self, piece: int, line: int, *, is_last: bool) -> LinePlace | None:
        """The line of a piece that fits; what is folded away is unfolded for it."""
        if self.pattern is None:
            return None
        by = -1 if is_last else 1
        found = self._in_piece(piece, line, by)
        if found is None and self._has_fold(piece):
            self._unfolded.add(piece)
            self._forget_one(piece)
            found = self._in_piece(piece, line, by)
        return found or LinePlace(piece, 0)

    def _rows_from(self, first: int, by: int) -> Iterator[tuple[int, list[Row]]]:
        total = len(self._pieces)
        while 0 <= first < total:
            still_wanted()
            low, high = (first, min(total, first + _SCANNED)) if by > 0 else (max(0, first - _SCANNED + 1), first + 1)
            read = enumerate(self.looked.read(low, high), low)
            made = [(number, self._paired(Rows(), number, entries)) for number, entries in read]
            yield from made if by > 0 else reversed(made)
            first = high if by > 0 else low - 1

    def _fits(self, rows: list[Row]) -> bool:
        assert self.pattern is not None
        return any(self.pattern.search(text) for row in rows for text in texts_of(row))

    def _show(self, place: LinePlace) -> None:
        """Bring a line onto the screen, a third from its top; one that is there already stays."""
        bottom = self._moved(self._top, self._height - 1)
        if not self._top <= place <= bottom:
            self._go(self._moved(place, -(self._height // 3)))


Move = Callable[[PagedSession], object]
"""Something that is done to a transcript; False where there was no such place, or words about the way there."""

"""The lines of a session, drawn when somebody looks at them. Knows no terminal; one thread uses it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from turnlog.catalog.waiter import still_wanted
from turnlog.tui.style import split_painted
from turnlog.view.row import Row
from turnlog.view.rowmaker import Rows
from turnlog.view.terminal.line import lines_of

if TYPE_CHECKING:
    from turnlog.log.entry import AnyEntry, Note
    from turnlog.reader.viewing.conversation import ConversationPieces
    from turnlog.reader.viewing.viewedsession import ViewedSession
    from turnlog.view.terminal.typeset import LineStyle

_CHUNK = 16
"""How many pieces are read together."""
_KEPT = 40
"""How many chunks are cached as lines."""
_SCANNED = 64
"""How many pieces are read together to find something in them."""


class LinePlace(NamedTuple):
    """A line of a piece."""

    piece: int
    line: int


class _DrawnPiece(NamedTuple):
    """The lines of a piece, and whether some are folded away or cut."""

    lines: list[str]
    has_fold: bool


class LineCache:
    """Draws the pieces of a session as lines, several at once, and keeps those that were used last."""

    def __init__(self, viewed: ViewedSession, style: LineStyle, notes: Sequence[Note] = ()) -> None:
        self.viewed = viewed
        self._note_rows: list[Row] = list(Rows().paired(notes))
        """What somebody noted on another agent's session: it stands above the first piece."""
        self._style = style
        self._chunks: dict[int, list[_DrawnPiece]] = {}
        self._unfolded: set[int] = set()

    @property
    def pieces(self) -> ConversationPieces:
        """The pieces that there are now."""
        return self.viewed.pieces

    def lines(self, piece: int) -> list[str]:
        """The lines of a piece, of which there is at least one."""
        return self._piece(piece).lines

    def _piece(self, piece: int) -> _DrawnPiece:
        number = piece // _CHUNK
        chunk = self._chunks.pop(number, None)
        if chunk is None:
            chunk = self._read(number * _CHUNK)
        self._chunks[number] = chunk  # what is used last is kept longest
        while len(self._chunks) > _KEPT:
            del self._chunks[next(iter(self._chunks))]
        return chunk[piece % _CHUNK]

    def _read(self, first: int) -> list[_DrawnPiece]:
        end = min(first + _CHUNK, len(self.pieces))
        costs, read = self.viewed.read_with_costs(first, end)
        rows = Rows(price=costs, size=self.viewed.blob_size)
        return [self._drawn(number, self._paired(rows, number, entries)) for number, entries in enumerate(read, first)]

    def _paired(self, rows: Rows, number: int, entries: list[AnyEntry]) -> list[Row]:
        return [*([] if number else self._note_rows), *rows.paired(entries)]

    def _drawn(self, number: int, rows: list[Row]) -> _DrawnPiece:
        is_full = number in self._unfolded
        folds: list[None] = []
        style = replace(self._style, is_full=is_full, on_shortened=lambda: folds.append(None))
        lines = lines_of(rows, style, self._day(number - 1))
        room = self._style.room or 80
        drawn = [part for line in lines for part in (split_painted(line, room) if is_full else (line,))]
        return _DrawnPiece(drawn or [""], has_fold=bool(folds))

    def _day(self, number: int) -> str:
        """The day on which what is above was said; empty at the beginning."""
        if number < 0:
            return ""
        outline = self.pieces.outline
        index = outline.find(self.pieces.seq(number))
        ms = 0 if index is None else outline.times[index]
        return self._style.moment(datetime.fromtimestamp(ms / 1000, UTC))[:10] if ms else ""

    def rows_from(self, first: int, by: int) -> Iterator[tuple[int, list[Row]]]:
        """The rows of each piece from one on, forward or back, with its number. Nothing is drawn."""
        total = len(self.pieces)
        while 0 <= first < total:
            still_wanted()
            low, high = (first, min(total, first + _SCANNED)) if by > 0 else (max(0, first - _SCANNED + 1), first + 1)
            read = enumerate(self.viewed.read(low, high), low)
            rows = [(number, self._paired(Rows(), number, entries)) for number, entries in read]
            yield from rows if by > 0 else reversed(rows)
            first = high if by > 0 else low - 1

    def moved(self, place: LinePlace, by: int) -> LinePlace:
        """The place so many lines forward or back; not beyond either end."""
        piece, line = place.piece, place.line + by
        while line < 0 and piece > 0:
            piece -= 1
            line += len(self.lines(piece))
        while piece < len(self.pieces) and line >= (size := len(self.lines(piece))):
            if piece + 1 >= len(self.pieces):
                return LinePlace(piece, size - 1)
            piece, line = piece + 1, line - size
        return LinePlace(piece, max(0, line))

    # ── folds ─────────────────────────────────────────────────────────────────────────────────────

    def is_unfolded(self, piece: int) -> bool:
        """Whether all lines of a piece are shown."""
        return piece in self._unfolded

    def has_fold(self, piece: int) -> bool:
        """Whether some lines of a piece are folded away, or one is cut."""
        return self._piece(piece).has_fold

    def toggle(self, piece: int) -> None:
        """Unfold a piece, or fold it again."""
        self._unfolded ^= {piece}
        self._chunks.pop(piece // _CHUNK, None)

    # ── forgetting ────────────────────────────────────────────────────────────────────────────────

    def set_style(self, style: LineStyle) -> bool:
        """Draw in another style from now on; returns whether the lines are other ones now."""
        has_other_room = style.room != self._style.room
        self._style = style
        if has_other_room:
            self._chunks.clear()
        return has_other_room

    def forget_from(self, first: int) -> None:
        """Read the pieces from `first` on anew, and fold them."""
        for number in [number for number in self._chunks if number >= first // _CHUNK]:
            del self._chunks[number]
        self._unfolded = {piece for piece in self._unfolded if piece < first}

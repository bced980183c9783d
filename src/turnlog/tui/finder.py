"""Finding in a session: from match to match, also in what is folded away."""

from __future__ import annotations

import re
from typing import NamedTuple

from turnlog.tui.linecache import LineCache, LinePlace
from turnlog.tui.style import bare
from turnlog.view.row import Row, texts_of


class Match(NamedTuple):
    """A line that fits. `is_around` if it lies behind the other end of the session."""

    place: LinePlace
    is_around: bool


class TextFinder:
    """Remembers what is looked for, and the last match."""

    def __init__(self, cache: LineCache) -> None:
        self._cache = cache
        self.pattern: re.Pattern[str] | None = None
        self._hit: LinePlace | None = None
        """The last match. Width and folds change its line: `_hit_number` says which match of its piece it is."""
        self._hit_number = 0

    def find(self, pattern: re.Pattern[str] | None, by: int, start: LinePlace) -> Match | None:
        """The next match after the last one, or from `start` on, downwards or up; behind the last comes the first."""
        if pattern != self.pattern:
            self.pattern, self._hit = pattern, None
        total = len(self._cache.pieces)
        if pattern is None or not total:
            return None
        hit = self.hit()
        place = self._from(start, by) if hit is None else self._after(hit, by)
        is_around = place is None
        if place is None:
            place = self._in_pieces(0 if by > 0 else total - 1, by)
        if place is None:
            return None
        self._keep(place)
        return Match(place, is_around)

    def begin_in(self, piece: int) -> LinePlace:
        """Take the first match in a piece as the last one that was found; its first line if there is none."""
        place = LinePlace(piece, 0)
        if self.pattern is None:
            self._hit = None
        else:
            place = self._in_any_fold(piece, 1)
            self._keep(place)
        return place

    def hit(self) -> LinePlace | None:
        """The last match, in the lines as they are now."""
        if self._hit is None or self._hit.piece >= len(self._cache.pieces):
            return None
        matches = self._matches(self._hit.piece)
        return self._hit._replace(line=matches[min(self._hit_number, len(matches) - 1)] if matches else 0)

    def _keep(self, hit: LinePlace) -> None:
        self._hit = hit
        self._hit_number = sum(line < hit.line for line in self._matches(hit.piece))

    def _matches(self, piece: int) -> list[int]:
        pattern = self.pattern
        if pattern is None:
            return []
        return [number for number, line in enumerate(self._cache.lines(piece)) if pattern.search(bare(line))]

    def _after(self, hit: LinePlace, by: int) -> LinePlace | None:
        return self._in_piece(hit.piece, hit.line + by, by) or self._in_pieces(hit.piece + by, by)

    def _from(self, start: LinePlace, by: int) -> LinePlace | None:
        last = len(self._cache.lines(start.piece)) - 1
        if start.line == (0 if by > 0 else last):
            return self._in_piece(start.piece, start.line, by) or self._in_pieces(start.piece, by)
        return (
            self._in_piece(start.piece, start.line, by)
            or self._in_fold(start.piece, start.line, by)
            or self._in_pieces(start.piece + by, by)
        )

    def _in_piece(self, piece: int, line: int, by: int) -> LinePlace | None:
        """The next line that fits in a piece, as it is folded."""
        lines = [number for number in self._matches(piece) if (number - line) * by >= 0]
        return LinePlace(piece, lines[0 if by > 0 else -1]) if lines else None

    def _in_fold(self, piece: int, line: int, by: int) -> LinePlace | None:
        """The next line that fits in what is folded away of a piece, which is unfolded for it."""
        if not self._cache.has_fold(piece):
            return None
        self._cache.toggle(piece)
        place = self._in_piece(piece, line, by)
        if place is None:
            self._cache.toggle(piece)
        return place

    def _in_pieces(self, first: int, by: int) -> LinePlace | None:
        """The next line that fits, from a piece on."""
        for piece, rows in self._cache.rows_from(first, by):
            if self._fits(rows):
                return self._in_any_fold(piece, by)
        return None

    def _in_any_fold(self, piece: int, by: int) -> LinePlace:
        """The first or last line that fits in a piece; its first line if the words are on several lines."""
        line = 0 if by > 0 else 1 << 30
        place = self._in_piece(piece, line, by)
        if place is None and self._cache.has_fold(piece):
            if not self._cache.is_unfolded(piece):
                self._cache.toggle(piece)
            place = self._in_piece(piece, line, by)
        return place or LinePlace(piece, 0)

    def _fits(self, rows: list[Row]) -> bool:
        assert self.pattern is not None
        return any(self.pattern.search(text) for row in rows for text in texts_of(row))

"""Entries as the list of a document."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from turnlog.cli.frame.document.itemlist import DocumentItems, cursor_number
from turnlog.cli.frame.document.request import JsonRequest
from turnlog.log.codec import body_text
from turnlog.log.entry import AnyEntry


class EntryPage(DocumentItems):
    """Entries of a log while they are read. The cursor is the number of the last one."""

    def __init__(
        self,
        entries: Iterable[AnyEntry],
        *,
        limit: int | None = None,
        is_reverse: bool = False,
        other_fields: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        cursor = JsonRequest.cursor
        self._after = None if cursor is None else cursor_number(cursor, cursor)
        self._is_reverse, self._limit, self._other_fields = is_reverse, limit, other_fields
        self._seqs: list[int] = []
        self._is_more = False
        self.items = self._read(entries)

    def _read(self, entries: Iterable[AnyEntry]) -> Iterator[bytes]:
        for entry in entries:
            if self._after is not None and not (
                entry.seq < self._after if self._is_reverse else entry.seq > self._after
            ):
                continue
            if len(self._seqs) == self._limit:
                self._is_more = True
                return
            self._seqs.append(entry.seq)
            yield body_text(entry).encode()

    def cursor(self, shown: int) -> str | None:
        """See `DocumentItems`."""
        return str(self._seqs[shown - 1]) if shown and (self._is_more or shown < len(self._seqs)) else None

    def other_fields(self, shown: int) -> Mapping[str, Any]:
        """See `DocumentItems`."""
        return self._other_fields()

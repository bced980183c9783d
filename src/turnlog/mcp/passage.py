"""Entries of a session as a model reads them: one text each; the output of tools is folded unless all is wanted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, assert_never

from turnlog.log.entry import Custom, Message
from turnlog.mcp.caller import is_of_ours
from turnlog.mcp.page import minute
from turnlog.view.number import count
from turnlog.view.row import Attachment, Call, Event, Output, Preamble, Prose, Row, Speaker, Thought
from turnlog.view.rowmaker import Rows
from turnlog.view.terminal.line import HEAD, TAIL, folded
from turnlog.view.visible import one_line, readable

if TYPE_CHECKING:
    from turnlog.log.entry import AnyEntry
    from turnlog.view.secret.redactor import Redactor

_WIDEST = 240
_LONGEST = 1_600
"""The number of characters that are shown at each end of a message; another call gives the rest."""
_THOUGHT = 300


class EntryText:
    """The text of one entry."""

    def __init__(self, entry: AnyEntry, rows: list[Row]) -> None:
        self.seq = entry.seq
        self.at = minute(entry.at)
        self.role = entry.role if isinstance(entry, (Message, Custom)) else "event"
        self.rows = [row for row in rows if not isinstance(row, Speaker)]

    def text(self, *, is_full: bool = False) -> str:
        """The whole text, or a short one."""
        return "\n".join(part for row in self.rows for part in self._parts(row, is_full)).strip("\n")

    def _parts(self, row: Row, is_full: bool) -> Iterator[str]:
        match row:
            case Prose():
                yield readable(row.text) if is_full else self._shortened(readable(row.text))
            case Thought() | Preamble():
                text = readable(row.text) if is_full else one_line(row.text)
                if text:
                    yield f"({text if is_full or len(text) <= _THOUGHT else text[:_THOUGHT] + ' …'})"
            case Call():
                yield from self._call(row, is_full)
            case Output():
                yield from self._output(row, is_full)
            case Attachment():
                yield one_line(row.label)
            case Event():
                yield one_line(f"-- {row.kind}: {row.text}" if row.text else f"-- {row.kind}")
                if row.body and is_full:
                    yield readable(row.body)
            case Speaker():
                return  # the heading of the entry names the speaker
            case _:
                assert_never(row)

    def _call(self, row: Call, is_full: bool) -> Iterator[str]:
        about = one_line(row.about)
        counts = f" +{row.added} -{row.removed}" if row.changes else ""
        yield f"> {one_line(row.name)} {about if is_full else about[:_WIDEST]}{counts}".rstrip()
        if is_full and not is_of_ours(row.name):
            yield from (readable(line) for change in row.changes for line in change.lines)
            if not row.changes and row.has_more:
                yield readable(row.body)

    def _output(self, row: Output, is_full: bool) -> Iterator[str]:
        yield f"< {one_line(row.name) or 'output'}{' failed' if row.is_error else ''}"
        text = readable(row.text).strip("\n")
        if is_full:
            yield text
        elif is_of_ours(row.name):
            yield "(what Turnlog answered is left out here)"
        else:
            fold = folded(text.split("\n"), HEAD, TAIL)
            yield from (_clipped(line) for line in fold.head)
            if fold.hidden:
                yield f"… {count(fold.hidden, 'more line')}, {len(text):,} characters in all: {self._hint}"
            yield from (_clipped(line) for line in fold.tail)

    def _shortened(self, text: str) -> str:
        if len(text) <= 2 * _LONGEST + 200:
            return text
        return f"{text[:_LONGEST]}\n… {len(text) - 2 * _LONGEST:,} more characters: {self._hint}\n{text[-_LONGEST:]}"

    @property
    def _hint(self) -> str:
        """The arguments of `read_session` that give all of the entry."""
        return f"around {self.seq}, limit 1"


def _clipped(line: str) -> str:
    return line if len(line) <= _WIDEST else f"{line[:_WIDEST]} … ({len(line):,} characters)"


class EntryTexts:
    """Makes texts of entries, without the secrets of their session."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._rows = Rows()

    def of(self, entry: AnyEntry) -> EntryText | None:
        """The text of an entry; None if it has none."""
        rows = list(self._rows.of(self._redactor.entry(entry)))
        text = EntryText(entry, rows)
        return text if text.rows else None

    def take(self, entry: AnyEntry | None) -> None:
        """Remember the calls of an entry that is not shown."""
        self._rows.take(entry)

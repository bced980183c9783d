"""A session as text: from its beginning, around an entry, or after one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from turnlog.errors import Invalid, NotFound
from turnlog.log.entry import Message
from turnlog.mcp.page import READING_BYTES, fitted, result, room
from turnlog.mcp.passage import EntryText, EntryTexts
from turnlog.mcp.quote import QUOTED
from turnlog.reader.part import Part, numbered, part_of
from turnlog.thread.reader import history_of

if TYPE_CHECKING:
    from turnlog.catalog import Card
    from turnlog.mcp.library import Library
    from turnlog.reader.opening.opener import OpenedSession

_LIMIT = 20
_INSIDE = "+"
"""A cursor inside an entry is its number, this sign, and the number of characters that were read."""
_BEGINNING = (0, "0", "")
"""Places that mean the beginning of a session, not an entry."""
_Place = int | str


def call(library: Library, arguments: dict[str, Any], meta: dict[str, Any]) -> dict[str, Any]:
    """See `turnlog.mcp.offer`."""
    around, after = arguments.get("around"), arguments.get("after")
    if around is not None and after is not None:
        raise Invalid("around and after: either one or the other", hint="leave one of them out")
    with library.session(arguments["session"]) as (card, opened):
        return SessionPages(library, card, opened).page(around, after, arguments.get("limit", _LIMIT))


class SessionPages:
    """One session, read page by page."""

    def __init__(self, library: Library, card: Card, opened: OpenedSession) -> None:
        self._card = card
        self._session = opened.session
        self._texts = EntryTexts(library.quotes.of(opened.session, card.id if card.is_ours else card.name))
        self._title = library.quotes.title(card.title or card.preview)
        self._notes = library.notes()

    def page(self, around: _Place | None, after: _Place | None, limit: int) -> dict[str, Any]:
        """A page with at most `limit` messages, as far as they fit."""
        if around not in (None, *_BEGINNING):
            mark = self._seq(around)
            return self._whole(mark, 0) if limit == 1 else self._around(mark, limit)
        seq, _, inside = str(after or 0).partition(_INSIDE)
        offset, entry = numbered(inside), numbered(seq)
        if offset is not None and entry is not None:
            return self._whole(entry, offset)
        begin = 0 if after in (None, *_BEGINNING) else self._seq(after)
        texts = list(islice(self._after(begin), limit + 1))
        answer = fitted(texts[:limit], lambda some: self._answer(some, len(some) < len(texts)), READING_BYTES)
        return answer if answer["structuredContent"]["entries"] or not texts else self._whole(texts[0].seq, 0)

    def _seq(self, at: _Place | None) -> int:
        try:
            return part_of(self._session, last=1, at=str(at), branch=None).mark
        except NotFound:
            hint = f"its entries are numbers from 1 to {self._session.seq}"
            raise NotFound(f"no entry {at!r:.80} in session {self._card.id}", hint=hint) from None

    def _after(self, seq: int) -> Iterator[EntryText]:
        part = Part(self._session.head, after=seq)
        self._texts.take(part.before(self._session))
        yield from filter(None, map(self._texts.of, part.entries(self._session)))

    def _around(self, mark: int, limit: int) -> dict[str, Any]:
        """The entry, and as many others as fit on both sides of it."""
        part = part_of(self._session, last=max(1, limit // 2), at=str(mark), branch=None)
        self._texts.take(part.before(self._session))
        texts = [text for text in map(self._texts.of, part.entries(self._session)) if text is not None]
        middle = next((number for number, text in enumerate(texts) if text.seq >= mark), max(0, len(texts) - 1))
        first, end = middle, min(middle + 1, len(texts))
        best = self._answer(texts[first:end], end < len(texts) or not part.is_end)
        is_growing = True
        while is_growing and end - first < limit:
            is_growing = False
            for low, high in ((first, end + 1), (first - 1, end)):
                if low >= 0 and high <= len(texts) and high - low <= limit:
                    answer = self._answer(texts[low:high], high < len(texts) or not part.is_end)
                    if room(answer, READING_BYTES) >= 0:
                        first, end, best, is_growing = low, high, answer, True
        return best if room(best, READING_BYTES) >= 0 else self._whole(mark, 0)

    def _whole(self, seq: int, inside: int) -> dict[str, Any]:
        """One entry in full, from a character on."""
        history = history_of(self._session)
        entry = history.at(seq)
        if entry is None:
            raise NotFound(f"no entry {seq} in session {self._card.id}")
        if entry.parent is not None:
            before = history.at(entry.parent)
            while before is not None and isinstance(before, Message) and before.role == "tool" and before.parent:
                before = history.at(before.parent)
            self._texts.take(None if before is None else history.whole(before))
        text = self._texts.of(history.whole(entry))
        whole = "" if text is None else text.text(is_full=True)
        if text is None or inside > len(whole):
            raise NotFound(f"nothing to read in entry {seq} from character {inside} on")
        low, high = 0, min(len(whole) - inside, READING_BYTES)
        while low < high:
            middle = (low + high + 1) // 2
            fits = room(self._piece(text, whole, inside, inside + middle), READING_BYTES) >= 0
            low, high = (middle, high) if fits else (low, middle - 1)
        return self._piece(text, whole, inside, inside + max(1, low))

    def _piece(self, text: EntryText, whole: str, start: int, end: int) -> dict[str, Any]:
        is_more = end < len(whole)
        row = {"entry": text.seq, "role": text.role, "at": text.at, "text": whole[start:end]}
        cursor = f"{text.seq}{_INSIDE}{end}" if is_more else str(text.seq)
        which = f"characters {start:,} to {end:,} of {len(whole):,}" if is_more or start else ""
        return self._result([row], cursor if is_more or text.seq < self._session.seq else None, which)

    def _answer(self, texts: Sequence[EntryText], is_more: bool) -> dict[str, Any]:
        rows = [{"entry": one.seq, "role": one.role, "at": one.at, "text": one.text()} for one in texts]
        return self._result(rows, str(texts[-1].seq) if is_more and texts else None, "")

    def _result(self, rows: list[dict[str, Any]], cursor: str | None, which: str) -> dict[str, Any]:
        card = self._card
        facts = f"session {card.id} · {card.agent or 'turnlog'} · {self._title} · {self._session.seq} entries"
        lines = [f"[{row['entry']}] {row['role']} {row['at']}\n{row['text']}" for row in rows]
        foot = [f'go on: after "{cursor}"'] if cursor else ["that is the end"]
        text = "\n\n".join([f"{QUOTED}\n{facts}", *lines, *([which] if which else []), *foot, *self._notes])
        data: dict[str, Any] = {
            "session": card.id, "agent": card.agent, "title": self._title, "entries": rows, "last": self._session.seq,
            "cursor": cursor, "note": QUOTED,
        }  # fmt: skip
        return result(text, {**data, "notes": self._notes} if self._notes else data)

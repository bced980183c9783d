"""One session on its way into the catalog: each entry as text, as spending, and in the counts."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from turnlog.catalog.index.batch import Batch, Doc, IndexedSession
from turnlog.catalog.index.columns import clean, ms_of
from turnlog.catalog.index.keys import sum_of, token_of
from turnlog.catalog.index.prices import NOTHING, Paid
from turnlog.catalog.index.totals import counts_of
from turnlog.catalog.read.counts import SessionCounts, paid_in
from turnlog.catalog.read.tooltime import close_calls, open_calls, tools_used
from turnlog.catalog.read.words import passage_of

if TYPE_CHECKING:
    from typing import Protocol, TypeVar

    from turnlog.catalog.index.rows import SessionRow
    from turnlog.catalog.index.sqlite.watchlist import Stamp
    from turnlog.interop.copied import Copied
    from turnlog.log.entry import Entry

    class SavedReading(Protocol):
        """The saved state of reading, with the counts."""

        counts: tuple[Any, ...]

    _T = TypeVar("_T", bound=SavedReading)


class Intake:
    """Takes entries from step `start` on. Equal texts in the index from there on are kept; `finish` drops the rest."""

    def __init__(self, batch: Batch, session: int, *, start: int, is_new: bool) -> None:
        self._batch = batch
        self._prices = batch.prices
        self.session, self.start = session, start
        self.counts = SessionCounts()
        self.default_at = 0
        """The time of entries without one, before any that has one."""
        self._old: dict[int, tuple[int, int, str, int]] = {}
        """What the index has, by step: the row of a text, its time, the id of its entry, and its hash."""
        self._seen: set[int] = set()
        self.at: int | None = None
        """The time of the previous entry."""
        self.copied: Copied | None = None
        """The original, if the session is a copy."""
        self.copied_to: int | None = None
        """The last step that the copy has from its original."""
        if is_new:
            return
        for row, at, step, entry, hash in batch.docs(session):
            if step >= start:
                self._old[step] = (row, at, entry, hash)
            else:
                self._seen.add(hash)
        batch.drop_spent(session, start)
        batch.drop_used(session, start)

    def add(self, step: int, name: str, entry: Entry) -> None:
        """Add an entry with its step and id."""
        at = ms_of(entry.clock or entry.at)
        self.counts.add(entry, at)
        if at is None:
            at = self.at if self.at is not None else self.default_at
        self.at = at
        is_copied = self.copied is not None and self.counts.messages <= self.copied.messages and at <= self.copied.until
        if is_copied:
            self.copied_to = step
        calls = self.counts.calls
        open_calls(entry, calls, at)
        for tool, did in tools_used(entry, calls, at).items():
            self._batch.add_tool_use((self.session, step, clean(tool), *did))
        passage = passage_of(entry, calls, self._seen)
        close_calls(entry, calls)
        if passage is not None:
            hash = sum_of(passage.text)
            self._seen.add(hash)
            id, old = clean(name), self._old.get(step)
            if old is not None and old[1:] == (at, id, hash):
                del self._old[step]
            else:
                self._batch.add(Doc(at, self.session, step, id, passage, hash))
        paid = paid_in(entry)
        if paid is not None and not is_copied:
            self.pay(step, name, paid, entry.clock or entry.at or datetime.fromtimestamp(at / 1000, UTC), at)

    def pay(self, step: int, name: str, paid: Paid, when: datetime, at: int) -> None:
        """Add the spending of an entry."""
        usage = paid.usage
        is_reported = usage.cost_micros is not None
        # In the row, `is_total` marks what an import booked for totals, and not that the usage is of several requests.
        is_booked = paid.why == "import"
        if not is_reported and usage == NOTHING and (paid.request is None or not paid.model):
            return  # a message by the agent in the place of a model's, such as an error, was no request
        cost = self._prices.cost(paid, when)
        token, model = token_of(paid.request, name), clean(paid.model)
        self._batch.add_spent((self.session, step, token, at, model, is_reported, is_booked, cost, *counts_of(usage)))

    def finish(self) -> None:
        """Delete the old texts that were not read again."""
        for row, *_ in self._old.values():
            self._batch.delete_text(row)


def copy_of(intake: Intake) -> SessionRow:
    """The columns about the original of a copy; unchanged if only the end of the session was read."""
    if intake.copied is None:
        return {} if intake.start else {"copied": ""}
    row: SessionRow = {"copied": clean(msgspec.json.encode(intake.copied).decode())}
    if intake.copied_to is not None:
        row["carried"] = intake.copied_to
    return row


def row_of(counts: SessionCounts) -> SessionRow:
    """The counts as columns."""
    return {
        "messages": counts.messages,
        "turns": counts.turns,
        "tool_calls": counts.tool_calls,
        "branches": counts.branches,
        "preview": counts.preview,
        "model": counts.model,
        "ending": counts.ending,
    }


def saved_reading(kind: type[_T], before: IndexedSession | None, stamp: Stamp) -> _T | None:
    """The saved state of reading, if it is of the same file and under the same rules; else None."""
    if before is None or before.resume_point is None or before.inode != stamp.inode:
        return None
    try:
        saved = msgspec.msgpack.decode(before.resume_point, type=kind)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None
    return saved if SessionCounts.can_thaw(saved.counts) else None


def shrank(stamp: Stamp, before: IndexedSession | None) -> str:
    """The problem of a file that is shorter than before; "" if it is not."""
    if before is None or before.inode != stamp.inode or stamp.size >= before.size:
        return ""
    return f"it was cut: {before.size:,} bytes before, {stamp.size:,} now"

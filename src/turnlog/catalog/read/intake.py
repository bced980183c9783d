"""One session on its way into the catalog: each entry as text, as spending, and as part of the story."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from turnlog.catalog.index.batch import Batch, Before, Doc
from turnlog.catalog.index.cards import ms_of
from turnlog.catalog.index.prices import NOTHING, Paid
from turnlog.catalog.index.texts import clean, sum_of, token_of
from turnlog.catalog.index.totals import counts_of
from turnlog.catalog.read.digest import SessionDigest, paid_in
from turnlog.catalog.read.tooltime import ToolTimes
from turnlog.catalog.read.words import said_in

if TYPE_CHECKING:
    from typing import Protocol, TypeVar

    from turnlog.catalog.index.sqlite.watchlist import Stamp
    from turnlog.formats import Copied
    from turnlog.log.entry import Entry

    class Carried(Protocol):
        """What was kept: the story, among others."""

        story: tuple[Any, ...]

    _T = TypeVar("_T", bound=Carried)

_COUNTED = len(SessionDigest().freeze())


class Intake:
    """Takes in what follows behind step `start`; what was there from that step on is replaced by it."""

    def __init__(self, batch: Batch, session: int, *, start: int, is_new: bool) -> None:
        self._batch = batch
        self._prices = batch.prices
        self.session, self.start = session, start
        self.story = SessionDigest()
        self.default_at = 0
        """The time of entries that do not say when, before any that does."""
        self._old: dict[int, tuple[int, int, str, int]] = {}
        """What the index has: the row of a text, its time, the id of its entry, and the sum of it, by step."""
        self._seen: set[int] = set()
        self.at: int | None = None
        """The time of the entry before."""
        self.copied: Copied | None = None
        """What the session was written from."""
        self.carried: int | None = None
        """The last step that was there then."""
        self._tools = ToolTimes()
        if is_new:
            return
        for row, at, step, entry, hash in batch.docs(session):
            if step >= start:
                self._old[step] = (row, at, entry, hash)
            else:
                self._seen.add(hash)
        batch.drop_spent(session, start)
        batch.drop_used(session, start)

    def take(self, step: int, name: str, entry: Entry) -> None:
        """One more entry, of that number and id."""
        at = ms_of(entry.clock or entry.at)
        self.story.take(entry, at)
        if at is None:
            at = self.at if self.at is not None else self.default_at
        self.at = at
        is_carried = self.copied is not None and self.story.messages <= self.copied.messages and at <= self.copied.until
        if is_carried:
            self.carried = step
        for tool, did in self._tools.take(entry, at).items():
            self._batch.use((self.session, step, clean(tool), *did))
        passage = said_in(entry, self.story.calls, self._seen)
        if passage is not None:
            hash = sum_of(passage.text)
            self._seen.add(hash)
            id, old = clean(name), self._old.get(step)
            if old is not None and old[1:] == (at, id, hash):
                del self._old[step]
            else:
                self._batch.add(Doc(at, self.session, step, id, passage, hash))
        paid = paid_in(entry)
        if paid is not None and not is_carried:
            self.pay(step, name, paid, entry.clock or entry.at or datetime.fromtimestamp(at / 1000, UTC), at)

    def pay(self, step: int, name: str, paid: Paid, when: datetime, at: int) -> None:
        """What was spent with that entry."""
        usage = paid.usage
        is_reported = usage.cost_micros is not None
        is_booked = paid.why == "import"
        if not is_reported and usage == NOTHING and (paid.request is None or not paid.model):
            return  # what an agent put in a model's place, such as an error, was no request
        cost = self._prices.cost(paid, when)
        token, model = token_of(paid.request, name), clean(paid.model)
        self._batch.pay((self.session, step, token, at, model, is_reported, is_booked, cost, *counts_of(usage)))

    def finish(self) -> None:
        """Nothing more comes: what was there and did not come again is gone."""
        for row, *_ in self._old.values():
            self._batch.forget(row)


def copy_of(taking: Intake) -> dict[str, Any]:
    """The columns that say what a session was written from; nothing new where only its end was read."""
    if taking.copied is None:
        return {} if taking.start else {"copied": ""}
    carried = {} if taking.carried is None else {"carried": taking.carried}
    return {"copied": clean(msgspec.json.encode(taking.copied).decode()), **carried}


def row_of(story: SessionDigest) -> dict[str, Any]:
    """What a story says, as columns."""
    return {
        "messages": story.messages,
        "turns": story.turns,
        "tool_calls": story.tool_calls,
        "branches": story.branches,
        "preview": story.preview,
        "model": story.model,
        "ending": story.ending,
    }


def carried(kind: type[_T], before: Before | None, stamp: Stamp) -> _T | None:
    """What was kept for whoever goes on reading, if it is of the same file, and by whoever counts as we do."""
    if before is None or before.mark is None or before.inode != stamp.inode:
        return None
    try:
        kept = msgspec.msgpack.decode(before.mark, type=kind)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None
    return kept if len(kept.story) == _COUNTED else None


def shrank(stamp: Stamp, before: Before | None) -> str:
    """What is wrong with a file that is shorter than it was."""
    if before is None or before.inode != stamp.inode or stamp.size >= before.size:
        return ""
    return f"it was cut: {before.size:,} bytes before, {stamp.size:,} now"

"""One session on its way into the catalog: each entry as text, as spending, and as part of the story."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from turnlog.catalog.index.batch import Batch, Doc, Old, token_of
from turnlog.catalog.index.texts import clean, sum_of
from turnlog.catalog.read.digest import Paid, SessionDigest, ms_of, paid_in
from turnlog.catalog.read.prices import NOTHING
from turnlog.catalog.read.words import said_in

if TYPE_CHECKING:
    import sqlite3

    from turnlog.log.entry import Entry


class Taking:
    """Takes in what follows behind step `start`; what was there from that step on is replaced by it."""

    def __init__(self, db: sqlite3.Connection, batch: Batch, session: int, *, start: int, is_new: bool) -> None:
        self._batch = batch
        self._prices = batch.prices
        self.session = session
        self.story = SessionDigest()
        self.default_at = 0
        """The time of entries that do not say when, before any that does."""
        self._old: dict[int, Old] = {}
        self._seen: set[int] = set()
        self.at: int | None = None
        """The time of the entry before."""
        if is_new:
            return
        rows = db.execute("SELECT id, step, entry, hash FROM docs WHERE session = ?", (session,))
        for id, step, entry, hash in rows:
            if step >= start:
                self._old[step] = Old(id, entry, hash)
            else:
                self._seen.add(hash)
        batch.do("DELETE FROM spent WHERE session = ? AND step >= ?", (session, start))

    def take(self, step: int, name: str, entry: Entry) -> None:
        """One more entry, of that number and id."""
        at = ms_of(entry.clock or entry.at)
        self.story.take(entry, at)
        if at is None:
            at = self.at if self.at is not None else self.default_at
        self.at = at
        said = said_in(entry, self.story.calls, self._seen)
        if said is not None:
            hash = sum_of(said.text)
            self._seen.add(hash)
            old = self._old.get(step)
            if old is not None and old.hash == hash and old.entry == clean(name) and old.id >> 20 == at:
                del self._old[step]
            else:
                self._batch.add(Doc(at, self.session, step, name, said, hash))
        paid = paid_in(entry)
        if paid is not None:
            self.pay(step, name, paid, entry.clock or entry.at or datetime.fromtimestamp(at / 1000, UTC), at)

    def pay(self, step: int, name: str, paid: Paid, when: datetime, at: int) -> None:
        """What was spent with that entry."""
        usage = paid.usage
        is_reported = usage.cost_micros is not None
        is_booked = paid.why == "import"
        if not is_reported and paid.request is None and usage == NOTHING:
            return
        cost = self._prices.cost(paid, when)
        counts = (
            usage.input_tokens, usage.cache_read_tokens, usage.cache_write_tokens, usage.cache_write_1h_tokens,
            usage.output_tokens, usage.reasoning_tokens,
        )  # fmt: skip
        token, model = token_of(paid.request, name), clean(paid.model)
        self._batch.pay((self.session, step, token, at, model, is_reported, is_booked, cost, *counts))

    def finish(self) -> None:
        """Nothing more comes: what was there and did not come again is gone."""
        for old in self._old.values():
            self._batch.forget(old.id)


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

"""Importing one reading: its records are appended, then its facts, its totals and its problems.

Nothing that is in the session is removed. Where it continued both here and in its agent, the head stays here.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import chain
from typing import Any

import msgspec
from msgspec.structs import replace

from turnlog.exchange.importing.entrybatch import EntryBatch
from turnlog.exchange.importing.keyedimport import KeyedImport
from turnlog.exchange.importing.resumestate import ResumeState
from turnlog.exchange.importing.sourceindex import SourceIndex
from turnlog.exchange.origin import SOURCE_HEADER, SourceHeader, origin_of
from turnlog.formats import Jump, Problem, Reading, Record, Source, Step
from turnlog.log.entry import WIDE_FACTS, Note, Set, Spent
from turnlog.log.secret import mask
from turnlog.log.usage import Usage
from turnlog.store import Store
from turnlog.thread.appender import Appender
from turnlog.thread.reader import SessionReader

_TITLE = "source_title"
"""The fact with the title that came from the source: if the session has another one, that was given here, and stays."""


class Importer:
    """Appends what is new in one reading to one session."""

    def __init__(
        self,
        store: Store,
        appender: Appender,
        source: Source,
        reading: Reading,
        written: datetime | None,
        resumed: ResumeState | None = None,
    ) -> None:
        state = resumed or ResumeState()
        self._appender = appender
        self._history = appender.history
        self._session = SessionReader(appender.history)
        self._source = source
        self._reading = reading
        self._origin = {"agent": source.agent}
        self._resumed = resumed
        self._index = SourceIndex(appender.history, source, reading, state)
        self._batch = EntryBatch(store, appender, self._index, self._origin, written)
        self._keyed: KeyedImport | None = None
        for entry in self._session.entries(after=state.seq):
            self._index.take_in(entry)
        if resumed is not None:
            self._index.cursor = resumed.cursor  # where it stood at the resume point

    @property
    def added(self) -> int:
        """The number of new entries."""
        return self._batch.added

    @property
    def problems(self) -> list[Problem]:
        """What could not be imported as it is."""
        return self._batch.problems

    def run(self, steps: Iterator[Step]) -> None:
        """Import everything that is new."""
        title_before = self._session.get(_TITLE)  # on the branch on which it was imported last
        first = next(steps, None)
        if first is not None:
            self._import_steps(first, chain([first], steps))
            self._batch.flush()
        title = self._reading.header.title
        self._set_facts()
        self._book_totals()
        self._batch.flush()
        if title and title != title_before and self._session.title in (None, title_before):
            self._appender.set(self._batch.timed(Set(key="title", value=title)))
        self._restore_head()
        self._note_problems()

    def _import_steps(self, first: Step, steps: Iterator[Step]) -> None:
        if isinstance(first, Jump) or first.key is not None:
            self._keyed = KeyedImport(self._history, self._index, self._batch, self._origin, self._resumed)
            self._keyed.run(steps)
        else:
            records = [step for step in steps if isinstance(step, Record)]
            from turnlog.exchange.importing.contentimport import ContentImport  # few sources have no keys

            ContentImport(self._history, self._index, self._batch, self._origin).run(records)

    def _set_facts(self) -> None:
        """Set the facts of the source that are not set yet."""
        title = self._reading.header.title
        facts = {**self._reading.facts, **({_TITLE: title} if title else {}), **self._source_header()}
        for key, value in facts.items():
            masked, secrets = mask(key, value)
            if self._session.get(key) == masked:
                continue
            if key in WIDE_FACTS:
                self._appender.set(self._batch.timed(Set(key=key, value=masked)))
            else:
                self._batch.add(Set(key=key, value=masked, at=self._index.latest, origin=self._origin))
            self._batch.problems += [Problem(f"a secret was left out: {name}") for name in secrets]

    def _source_header(self) -> dict[str, Any]:
        """The fact with the header of the source, if a hook created the session before that could be read."""
        if not self._history.state.is_relayed:
            return {}
        origin, header = origin_of(self._history), self._reading.header
        if origin.id != header.id or origin.header is not None or not (header.origin or header.created):
            return {}
        return {SOURCE_HEADER: SourceHeader(header.origin, header.created).to_json()}

    def _book_totals(self) -> None:
        """Book what was spent since the last reading, for a source that has only totals."""
        for model, total in self._reading.totals.items():
            booked = self._booked(model, total)
            cost = 0 if total.cost_micros is None else total.cost_micros - (booked.cost_micros or 0)
            if booked.beyond(total) != Usage() or cost < 0:
                what = "its totals are smaller than when it was last read: nothing is taken back"
                self._batch.problems.append(Problem(what))
            more = replace(total.beyond(booked), cost_micros=max(0, cost) or None)
            if more != Usage():
                at = self._index.latest
                self._batch.add(Spent(usage=more, model=model or None, why="import", at=at, origin=self._origin))

    def _booked(self, model: str, total: Usage) -> Usage:
        """What is booked here of a total."""
        if len(self._reading.totals) != 1:
            return self._index.booked.get(model, Usage())
        # A single total is that of the whole session, under the model of the day.
        own = self._session.usage().own
        if self._batch.repeats_own_nodes and own.beyond(total) == Usage():  # it has what was spent here
            return own
        return sum(self._index.booked.values(), Usage())

    def _restore_head(self) -> None:
        """Move the head back if it was moved here last, or if the session continued here."""
        own_head = self._batch.own_head
        if self._index.was_moved_here() and self._session.head != own_head:
            self._batch.jump(own_head, why="branch")
        elif self._was_made_here(own_head) and all(
            node.seq != own_head for node in self._history.path(self._session.head)
        ):
            self._batch.jump(own_head, why="branch")
            self._batch.problems.append(Problem("it went on both here and there: what is new there is a branch here"))

    def _was_made_here(self, node: int) -> bool:
        entry = self._history.at(node) if node else None
        return entry is not None and entry.origin is None

    def _note_problems(self) -> None:
        """Append a note on the problems of the reading, if anything was new."""
        problems = [problem for problem in self._reading.problems if not problem.is_news]
        if self._batch.added and problems:
            text = f"{self._source.path} was read with {len(problems)} problem{'s' * (len(problems) != 1)}"
            self._batch.append([Note(text=text, data=msgspec.to_builtins(problems[:100]), at=self._index.latest)])

    def resume_state(self) -> ResumeState | None:
        """What the next import has to know to resume after this one; None if it has to read everything."""
        point = self._reading.mark
        return None if point is None or self._keyed is None else self._keyed.resume_state(point)

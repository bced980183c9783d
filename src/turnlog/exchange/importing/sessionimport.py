"""Importing one session of another agent, or bringing it up to date."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing

from msgspec import Struct
from msgspec.structs import replace

from turnlog.errors import Corrupt, NotFound, Unavailable, Unsupported
from turnlog.exchange.importing.counterpart import find_session, repeated_session, with_known_copy
from turnlog.exchange.importing.creation import create_session
from turnlog.exchange.importing.importer import Importer
from turnlog.exchange.importing.resumestate import resumed_reading, save_resume_state, stamp_of
from turnlog.exchange.source import written_at
from turnlog.formats import Problem, Reading, SessionHeader, Source, Step, format_of, is_known
from turnlog.log.entry import Child
from turnlog.log.ids import imported_id
from turnlog.store import Store
from turnlog.thread.appender import Appender, appending
from turnlog.thread.history import History
from turnlog.thread.home.creator import Creator
from turnlog.thread.home.foreignmarks import copy_marks, marks_in
from turnlog.thread.reader import SessionReader


class Imported(Struct, frozen=True):
    """What came of one source: the session it is now, how much was new, and what was wrong with it."""

    id: str
    source: Source
    added: int
    problems: list[Problem]
    copy_of: str | None = None
    """The session that the source is a copy of, if it has nothing new: then nothing was imported."""


def import_source(
    creator: Creator, source: Source, reading: Reading, readable: Source | None = None, *, is_locked: bool = False
) -> Imported:
    """Import one session, or bring it up to date.

    `readable` is the source at the place where it is read, if that is another one. With `is_locked` the caller holds
    the lock of the session: see `one_at_a_time`.
    """
    readable = readable or source
    reading.header = with_known_copy(creator, source, reading.header)
    steps = reading.steps
    session_id, history = find_session(creator.store, source, reading.header)
    if history is None:
        if (original := repeated_session(creator.store, readable, reading.header)) is not None:
            return Imported(original, source, 0, list(reading.problems), original)
        if any(row.id == session_id for row in creator.store.listing("deleted")):
            problem = Problem(f"session {session_id} was deleted here: `turnlog restore {session_id}` brings it back")
            return Imported(session_id, source, 0, [*reading.problems, problem])
        history, steps = create_session(creator, source, session_id, reading)
    with closing(history), ExitStack() as lock:
        if history.state.is_relayed and not is_locked:
            from turnlog.exchange.turnlock import one_at_a_time  # few sessions have hooks

            try:
                lock.enter_context(one_at_a_time(creator.store, session_id))
            except Unavailable as error:
                return Imported(session_id, source, 0, [*reading.problems, Problem(error.message)])
        return _append_new(creator, history, source, reading, steps, readable)


def _append_new(
    creator: Creator, history: History, source: Source, reading: Reading, steps: Iterator[Step], readable: Source
) -> Imported:
    """Append what is new in a source to its session."""
    appender = Appender(creator.store, history)
    appender.writes_no_writer_entry = history.state.is_relayed  # the importing process does not work in the session
    appender.refresh()
    stamp = stamp_of(source)
    state = None
    if is_known(source.agent):
        resumed = resumed_reading(creator.store, history, source, format_of(source.agent))
        if resumed is not None:
            reading, state = resumed
            steps = reading.steps
    importer = Importer(creator.store, appender, source, reading, written_at(readable), state)
    importer.run(steps)
    save_resume_state(creator.store, history, source, reading, stamp, importer.resume_state())
    copy_marks(appender, marks_in(creator.store).get(f"{source.agent}:{reading.header.id}"))
    problems = [*reading.problems, *importer.problems]
    try:
        _link_to_parent(creator.store, source, reading.header, history.id)
    except (Corrupt, Unsupported) as error:
        problems.append(Problem(f"not recorded in the session that started it: {error.message}"))
    return Imported(history.id, source, importer.added, problems)


def _link_to_parent(store: Store, source: Source, header: SessionHeader, session_id: str) -> None:
    """Record a subagent in the session that started it, if that is here."""
    if header.spawned is None:
        return
    try:
        log = store.open(imported_id(source.agent, header.spawned.session))
    except NotFound:
        return
    with appending(store, log) as parent:
        if SessionReader(parent.history).find(f"child.{session_id}") is None:
            called = header.spawned
            child = Child(id=f"child.{session_id}", session=session_id, call=called.call, agent=called.role)
            parent.append([replace(child, at=header.created or parent.state.last_at)])

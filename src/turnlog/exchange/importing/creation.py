"""The new session of a source that was never imported. A fork shares the beginning that its parent has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from itertools import chain
from typing import Any

from turnlog.exchange.importing.counterpart import open_session
from turnlog.exchange.origin import Origin
from turnlog.exchange.source import lies_at_home, written_at
from turnlog.formats import Jump, Reading, Record, SessionHeader, Source, Step
from turnlog.formats._shared.origin import unknown_type
from turnlog.log.entry import Start
from turnlog.log.identity import id_of, key_id
from turnlog.log.ids import imported_id
from turnlog.log.part import Spawned
from turnlog.log.secret import mask
from turnlog.thread.history import History
from turnlog.thread.home.creator import Creator
from turnlog.thread.reader import SessionReader

_FORK_FIELDS = ("id", "agent", "title", "labels", "hidden", "origin", "at")
"""The fields of a first line that a fork has from its own source, and not from its parent."""


def create_session(
    creator: Creator, source: Source, session_id: str, reading: Reading
) -> tuple[History, Iterator[Step]]:
    """Create the session of a source. Returns it with the steps of the source, all of which are still to be taken."""
    header, steps = reading.header, reading.steps
    start = _start(source, session_id, header)
    if header.fork is not None and header.fork.session:
        parent = open_session(creator.store, imported_id(source.agent, header.fork.session))
        if parent is not None:
            with closing(parent):
                shared, examined = _shared(SessionReader(parent), steps)
                steps = chain(examined, steps)
                if shared:
                    fields: Any = {name: getattr(start, name) for name in _FORK_FIELDS}
                    fork = creator.fork(parent, shared, header.fork.name, fields)
                    if lies_at_home(source):
                        creator.created_here.note(start)
                    return fork, steps
        start.labels.setdefault("forked_from", header.fork.session)
    return creator.begin([start], is_own=lies_at_home(source)), steps


def _start(source: Source, session_id: str, header: SessionHeader) -> Start:
    """The first line of the session. Its id is that of the session: importing the same elsewhere gives the same."""
    origin = Origin(
        agent=source.agent,
        id=header.id,
        identity=header.identity or header.id,
        path=source.path,
        header=None if header.origin is None else mask("", header.origin)[0],
        copied=header.copied,
    )
    spawned = None
    if header.spawned is not None:
        spawned = Spawned(imported_id(source.agent, header.spawned.session), header.spawned.call, header.spawned.role)
    return Start(
        id=session_id,
        agent=source.agent,
        title=header.title,
        labels=dict(header.labels),
        hidden=header.hidden,
        origin=origin.to_json(),
        at=header.created or written_at(source),
        workspace=header.workspace,
        spawned=spawned,
    )


def _shared(parent: SessionReader, steps: Iterator[Step]) -> tuple[int, list[Step]]:
    """The last entry of the parent that its fork still has, and the steps that were examined to find it."""
    imported = {entry.id: entry for entry in parent.entries() if entry.origin is not None}
    counts: Counter[str] = Counter()
    examined: list[Step] = []
    last = 0
    for step in steps:
        examined.append(step)
        if isinstance(step, Jump) and step.key is None:
            continue  # only where the next one hangs
        if isinstance(step, Record) and unknown_type(step.entry):
            continue  # which of them a fork has is no sign of where it was made
        entry = imported.get(key_id(str(step.key)) if isinstance(step, Jump) else id_of(step.key, step.entry, counts))
        if entry is None or entry.seq < last:
            break
        last = entry.seq
    return last, examined

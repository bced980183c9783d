"""Importing many sessions of other agents: each one once, forks and subagents after their parents."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack

from turnlog.errors import Corrupt, Invalid, Unavailable, Unsupported
from turnlog.exchange.importing.counterpart import is_here
from turnlog.exchange.importing.sessionimport import Imported, import_source
from turnlog.formats import Problem, Reading, SessionHeader, Source, format_of
from turnlog.log.startup import NamedTuple
from turnlog.thread.home.creator import Creator

Progress = Callable[[int, int, Source], None]
"""Called before each source: with how many are done, how many there are, and the source."""


class OpenedSource(NamedTuple):
    """A source and its reading, of which only the header was read."""

    source: Source
    reading: Reading

    @property
    def key(self) -> tuple[str, str]:
        """The agent, and the id there."""
        return self.source.agent, self.reading.header.id

    @property
    def parent(self) -> tuple[str, str]:
        """The key of the session that it was forked from or started by; with an empty id if there is none."""
        return self.source.agent, _parent(self.reading.header)


def import_all(creator: Creator, wanted: list[Source], progress: Progress | None = None) -> Iterator[Imported]:
    """Import every source, forks and subagents after their parents if those are among them.

    A source that its agent deleted is read from the copy that is kept of it.
    """
    queue = list(wanted)
    chosen = set(queue)
    waiting: list[OpenedSource] = []
    for index, source in enumerate(queue):  # grows while it is gone through: parents that nobody asked for
        if progress is not None:
            progress(index, len(queue), source)
        if not os.path.lexists(source.path):
            yield _import_kept(creator, source)
            continue
        try:
            reading = format_of(source.agent).read(source)
        except OSError as error:
            yield _unreadable(source, error)
            continue
        parent, fork = _parent(reading.header), reading.header.fork
        if not parent or is_here(creator.store, source.agent, parent):
            yield _import_one(creator, source, reading)
            continue
        waiting.append(OpenedSource(source, reading))
        if fork is not None and fork.source is not None and fork.source not in chosen:
            chosen.add(fork.source)
            queue.append(fork.source)
    for source, reading in parents_first(waiting):
        yield _import_one(creator, source, reading)


def parents_first(opened: list[OpenedSource]) -> Iterator[OpenedSource]:
    """The same sources in an order in which each comes after its parent, if that is among them."""
    children: dict[tuple[str, str], list[OpenedSource]] = {}
    for session in opened:
        children.setdefault(session.parent, []).append(session)
    keys = {session.key for session in opened}
    roots = [session for session in opened if session.parent not in keys]
    yielded: set[Source] = set()
    for first in [*roots, *opened]:  # those of a circle have no root
        ready = [first]
        for session in ready:  # grows while it is gone through
            if session.source not in yielded:
                yielded.add(session.source)
                yield session
                ready += children.pop(session.key, [])


def _parent(header: SessionHeader) -> str:
    return header.fork.session if header.fork else header.spawned.session if header.spawned else ""


def _unreadable(source: Source, error: OSError) -> Imported:
    return Imported("", source, 0, [Problem(f"cannot be opened: {error.strerror or error}")])


def _import_kept(creator: Creator, source: Source) -> Imported:
    from turnlog.exchange.keeping.keptfile import KeptFiles

    with ExitStack() as stack:
        try:
            readable = stack.enter_context(KeptFiles(creator.created_here.location).readable(source))
            reading = format_of(source.agent).read(readable)
        except (Corrupt, Unavailable) as error:
            return Imported("", source, 0, [Problem(error.message)])
        except OSError as error:
            return _unreadable(source, error)
        return _import_one(creator, source, reading, readable)


def _import_one(creator: Creator, source: Source, reading: Reading, readable: Source | None = None) -> Imported:
    """Import one session. A problem with one is no reason to stop before the others."""
    try:
        return import_source(creator, source, reading, readable)
    except (Corrupt, Invalid, Unsupported) as error:
        return Imported("", source, 0, [*reading.problems, Problem(error.message)])
    except OSError as error:
        problem = Problem(f"could not be read to its end: {error.strerror or error}")
        return Imported("", source, 0, [*reading.problems, problem])

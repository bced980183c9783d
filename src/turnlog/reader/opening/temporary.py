"""A session of another agent, read where it lies: into a home that is gone afterwards."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec import Struct

from turnlog.errors import NotFound, Unavailable
from turnlog.reader.naming.candidate import Candidate, SeveralFit
from turnlog.reader.naming.sessionref import SessionRef
from turnlog.reader.part import numbered
from turnlog.session import Home, open_home
from turnlog.session.interior import interior
from turnlog.thread.appender import appending
from turnlog.thread.home.foreignmarks import ForeignMarks, copy_marks

if TYPE_CHECKING:
    from turnlog.formats import Problem, SessionHeader, Source

_SMALL_BYTES = 50 << 20
_NAMED = 8
"""The maximum number of ids in a hint."""
_TIGHT = 10
"""How much larger a compressed file may be when it is read."""


class ForeignSession(Struct, frozen=True):
    """A session that was read from a file: its id in the temporary home, and the problems of reading it."""

    home: Home
    id: str
    native: str
    """Its id where it was read."""
    source: Source
    problems: list[Problem]


class _Listed(Struct, frozen=True):
    source: Source
    header: SessionHeader


@contextmanager
def read_from(
    path: str,
    key: str | None,
    agent: str | None,
    progress: Callable[[str, int, int], None],
    marks: ForeignMarks | None = None,
    beside: Iterable[Source] = (),
) -> Generator[ForeignSession]:
    """The one session at a path, or the one that is chosen of several: by its number there, or by its id.

    `marks` is what somebody said of it. `beside` are sessions that lie elsewhere, which it started or was started by.
    """
    from turnlog.exchange.importing.run import import_all

    listed = _listed_at(path, agent)
    chosen = _chosen(path, listed, key)
    wanted = [item.source for item in _family(chosen, [*listed, *_listed(beside, [])])]
    with _home(wanted) as home:
        read = import_all(interior(home).creator, wanted, lambda number, total, _: progress("reading", number, total))
        by_source = {item.source: item for item in read}
        imported = by_source[chosen.source]
        if not imported.id:
            raise Unavailable(f"{imported.source.path}: {imported.problems[-1].what}")
        if marks is not None:
            with appending(interior(home).store, interior(home).store.open(imported.id)) as appender:
                copy_marks(appender, marks)
        yield ForeignSession(home, imported.id, chosen.header.id, imported.source, imported.problems)


def ref_at(path: str) -> SessionRef:
    """The one session at a path."""
    chosen = _chosen(path, _listed_at(path), None)
    return SessionRef(chosen.header.id, chosen.source)


@contextmanager
def _home(wanted: Iterable[Source]) -> Generator[Home]:
    paths = {source.path for source in wanted}
    if sum(map(_size, paths)) <= _SMALL_BYTES:
        with open_home("memory:") as home:
            yield home
        return
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="turnlog-") as folder, open_home(folder, durability="flush") as home:
        yield home


def _size(path: str) -> int:
    """How many bytes are read there: in a file, or in all files of a folder."""
    inside = [os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names]
    try:
        sizes = [os.stat(one).st_size * (_TIGHT if one.endswith(".zst") else 1) for one in inside or [path]]
    except OSError as error:
        raise Unavailable(f"{path}: {error.strerror or error}") from None
    return sum(sizes)


def _listed_at(path: str, agent: str | None = None) -> list[_Listed]:
    """The sessions at a path that can be read. `Unavailable` if there are some, and none of them can."""
    from turnlog.exchange.source import sources

    problems: list[Unavailable] = []
    listed = _listed(sources(path, agent=agent), problems)
    if problems and not listed:
        raise problems[0]
    return listed


def _listed(sources: Iterable[Source], problems: list[Unavailable]) -> list[_Listed]:
    """Those that can be read; why the others cannot goes into `problems`."""
    from turnlog.formats import format_of

    listed: list[_Listed] = []
    for source in sources:
        try:
            listed.append(_Listed(source, format_of(source.agent).read(source).header))
        except OSError as error:
            problems.append(Unavailable(f"{source.path}: {error.strerror or error}"))
    return listed


def _chosen(path: str, listed: list[_Listed], key: str | None) -> _Listed:
    own = [item for item in listed if item.header.spawned is None] or listed
    if key is None:
        if len(own) == 1:
            return own[0]
        raise _several(f"there are {len(own)} sessions at {path}", own)
    exact = [item for item in listed if key in (item.header.id, item.source.key)]
    number = numbered(key)
    if not exact and number is not None and 0 < number <= len(own):
        return own[number - 1]
    fits = exact or [item for item in listed if item.header.id.startswith(key)]
    if len(fits) == 1:
        return fits[0]
    if not fits:
        ids = ", ".join(item.header.id for item in own[:_NAMED]) + (" …" if len(own) > _NAMED else "")
        raise NotFound(
            f"no session at {path} answers to --key {key!r:.80}",
            hint=f"--key chooses one by its number or id; there {'is' if len(own) == 1 else 'are'} {ids}",
        )
    raise _several(f"{len(fits)} sessions at {path} answer to --key {key!r:.80}", own)


def _several(message: str, candidates: list[_Listed]) -> SeveralFit:
    rows = [Candidate(i.header.id, i.header.id, i.source.agent, i.header.created, i.header.title) for i in candidates]
    hint = "--key chooses one by its number or id; `turnlog import` takes all"
    return SeveralFit(message, rows, hint=hint, is_numbered=True)


def _family(chosen: _Listed, listed: list[_Listed]) -> list[_Listed]:
    """It, whatever it was forked or started from, and the subagents of all of these."""
    by_id = {item.header.id: item for item in listed}
    below: dict[str, list[_Listed]] = {}
    for item in listed:
        if item.header.spawned:
            below.setdefault(item.header.spawned.session, []).append(item)
    family = [chosen]
    seen = {id(chosen)}
    for item in family:
        fork, spawned = item.header.fork, item.header.spawned
        near = [by_id.get(fork.session) if fork else None, by_id.get(spawned.session) if spawned else None]
        for other in [*near, *below.get(item.header.id, [])]:
            if other is not None and id(other) not in seen:
                seen.add(id(other))
                family.append(other)
    return [item for item in listed if id(item) in seen]

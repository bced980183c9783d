"""A session of another agent, read where it lies: into a home that is gone afterwards."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec import Struct

from turnlog.errors import Unavailable
from turnlog.reader.candidate import Candidate, SeveralFit
from turnlog.session import Home, open_home
from turnlog.session.interior import interior
from turnlog.thread.appender import appending
from turnlog.thread.marking import ForeignMarks, copy_marks

if TYPE_CHECKING:
    from turnlog.formats import Problem, SessionHeader, Source

_SMALL_BYTES = 50 << 20
_TIGHT = 10
"""How much larger a compressed file may be when it is read."""


class ForeignSession(Struct, frozen=True):
    """A session that was read from a file: under which id it is in that home, and what was wrong with it."""

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
    from turnlog.exchange.source import bring_all, sources

    listed = _listed(sources(path, agent=agent))
    chosen = _chosen(path, listed, key)
    wanted = [item.source for item in _family(chosen, [*listed, *_listed(list(beside))])]
    with _home(wanted) as home:
        read = bring_all(interior(home).creator, wanted, lambda number, total, _: progress("reading", number, total))
        by_source = {item.source: item for item in read}
        mine = by_source[chosen.source]
        if not mine.id:
            raise Unavailable(f"{mine.source.path}: {mine.problems[-1].what}")
        if marks is not None:
            with appending(interior(home).store, interior(home).store.open(mine.id)) as appender:
                copy_marks(appender, marks)
        yield ForeignSession(home, mine.id, chosen.header.id, mine.source, mine.problems)


def source_at(path: str, key: str | None) -> tuple[Source, str]:
    """Where that session lies, and its id there."""
    from turnlog.exchange.source import sources

    chosen = _chosen(path, _listed(sources(path)), key)
    return chosen.source, chosen.header.id


@contextmanager
def _home(wanted: Iterable[Source]) -> Generator[Home]:
    paths = {source.path for source in wanted}
    size = sum(os.stat(path).st_size * (_TIGHT if path.endswith(".zst") else 1) for path in paths)
    if size <= _SMALL_BYTES:
        with open_home("memory:") as home:
            yield home
        return
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="turnlog-") as folder, open_home(folder, durability="flush") as home:
        yield home


def _listed(sources: list[Source]) -> list[_Listed]:
    from turnlog.formats import format_of

    listed: list[_Listed] = []
    for source in sources:
        try:
            listed.append(_Listed(source, format_of(source.agent).read(source).header))
        except OSError as error:
            if len(sources) == 1:
                raise Unavailable(f"{source.path}: {error.strerror or error}") from None
    return listed


def _chosen(path: str, listed: list[_Listed], key: str | None) -> _Listed:
    own = [item for item in listed if item.header.spawned is None] or listed
    if key is None:
        if len(own) == 1:
            return own[0]
        raise _several(f"there are {len(own)} sessions at {path}", own)
    exact = [item for item in listed if key in (item.header.id, item.source.key)]
    if not exact and key.isdecimal() and 0 < int(key) <= len(own):
        return own[int(key) - 1]
    fits = exact or [item for item in listed if item.header.id.startswith(key)]
    if len(fits) == 1:
        return fits[0]
    raise _several(f"{len(fits) or 'no'} sessions at {path} answer to --key {key!r:.80}", own)


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

"""Which session is meant: every command that takes a SESSION finds it here.

    with session_to_read(word) as found:       a session to read from, whosever it is
        found.look                             what `Readable` offers, and more; nothing is locked, nothing is written
        found.source, found.problems           where it was read, if it is another agent's; None and [] for ours
    session_to_change(home, word) -> Session   one of ours; of another agent's its imported copy, or an error
    session_brought(home, word) -> Session     the same, but another agent's is imported first, and stderr says so
    named(home, word) -> Named                 only which one: our id, or the `Source` where another agent keeps it
    own_id(home, word) -> str                  only which one of ours, deleted or not
    session_here(home, …) -> str | None        the newest of ours for here: see `here`
    session_at(home, folder) -> str | None     the newest of ours for exactly that folder

A word is, in this order: a path with a slash in it; the id of one of ours; `@`, `@-`, `@-2`, `latest`; a unique
beginning of an id or handle of ours, deleted or not; another file; `agent:id`, or a unique beginning of that. No word
means `@`, or else `latest`; with `own=True`, and for whoever changes something, only ours count then. Several that fit
raise `Several`, which the program lists.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from turnlog.cli.draw.text import one_line
from turnlog.cli.frame.option import home_location, this_home
from turnlog.cli.pick.here import levels
from turnlog.cli.pick.several import Candidate, Several
from turnlog.errors import Ambiguous, Invalid, NotFound, Unavailable
from turnlog.machine import expand, workspace_path

if TYPE_CHECKING:
    from datetime import datetime

    from turnlog.catalog import Card, Catalog
    from turnlog.cli.pick.look import Look
    from turnlog.formats import Problem, Source
    from turnlog.session import Home, Session
    from turnlog.thread.report import Info

_LOOKED_AT = 100
_RECENT = re.compile(r"@(?:-([1-9]\d{0,5})?)?")


class Named(NamedTuple):
    """One session: `id` is ours where there is no source, else that agent's own."""

    id: str
    source: Source | None = None

    @property
    def name(self) -> str:
        """What to type for it."""
        return self.id if self.source is None else f"{self.source.agent}:{self.id}"


class Opened(NamedTuple):
    """A session that is open for reading: in our home, or in one that is gone afterwards."""

    home: Home
    look: Look
    source: Source | None
    problems: list[Problem]
    native: str = ""
    """Another agent's id for it."""

    @property
    def name(self) -> str:
        """What to type for it."""
        return self.look.id if self.source is None else f"{self.source.agent}:{self.native}"


# ── to read ───────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def session_to_read(word: str | None, *, key: str | None = None, own: bool = False) -> Generator[Opened]:
    """The session that is meant, open until this is left. `key` chooses one of several in a file."""
    if word is not None and "/" in word and is_path(word):  # needs no home, and works where there is none
        with _elsewhere(word, key) as found:
            yield found
        return
    with this_home() as home:
        chosen = _named(home, word, own=own)
        if chosen is not None and chosen.source is None:
            if key is not None:
                raise Invalid(f"session {chosen.id} is one of ours", hint="--key is for a file of another agent")
            with look_at(home, chosen.id) as look:
                yield Opened(home, look, None, [])
            return
    with _elsewhere(str(word), key) if chosen is None else opened(chosen) as found:
        yield found


@contextmanager
def opened(chosen: Named) -> Generator[Opened]:
    """Another agent's session that was found, read where it lies."""
    source = chosen.source
    assert source is not None
    with _elsewhere(source.path, source.key or chosen.id, source.agent) as found:
        yield found


@contextmanager
def _elsewhere(path: str, key: str | None, agent: str | None = None) -> Generator[Opened]:
    from turnlog.cli.pick.elsewhere import read_from

    with read_from(path, key, agent) as there, look_at(there.home, there.id) as look:
        yield Opened(there.home, look, there.source, there.problems, there.native)


def look_at(home: Home, session_id: str) -> Look:
    """A session of that home to read from. Nothing is locked, and a deleted one can be read as well."""
    from turnlog.cli.pick.look import Look
    from turnlog.thread.history import History

    history = History(home.store, home.store.base(session_id))
    history.load()
    return Look(home, history)


# ── to change ─────────────────────────────────────────────────────────────────────────────────────


def session_to_change(home: Home, word: str | None) -> Session:
    """A session to write to. Without a word it is one of this folder: nothing is changed by mistake."""
    if word is None:
        found = session_here(home)
        if found is None:
            hint = "`turnlog checkpoint` begins one; `turnlog ls --all` shows those of other folders"
            raise NotFound(f"no session for {workspace_path('.')}", hint=hint)
        return home.resume(found)
    chosen = named(home, word, deleted=False)
    if chosen.source is None:
        return home.resume(chosen.id)
    copy = _copy(home, chosen)
    if copy is None:
        raise Invalid(
            f"{chosen.name} is a session of {chosen.source.agent}, which is only read",
            hint=f"`turnlog import {one_line(chosen.name)}` makes it one of ours; the original stays as it is",
        )
    return home.resume(copy)


def session_brought(home: Home, word: str | None, chosen: Named | None = None) -> Session:
    """A session of ours to go on with; another agent's is imported first, or brought up to date."""
    chosen = chosen or named(home, word, deleted=False)
    if chosen.source is None:
        return home.resume(chosen.id)
    from turnlog.cli.frame.progress import patience
    from turnlog.errors import Unavailable
    from turnlog.exchange.source import bring_all

    with patience():
        done = next(item for item in bring_all(home, [chosen.source]) if item.source == chosen.source)
    if not done.id:
        raise Unavailable(f"{chosen.source.path}: {done.problems[-1].what}")
    if done.added:
        print(one_line(f"imported {chosen.name} as session {done.id}"), file=sys.stderr)
    return home.resume(done.id)


def _copy(home: Home, chosen: Named) -> str | None:
    """The session of ours that another agent's was imported as."""
    from turnlog.exchange.source import imported_as

    return None if chosen.source is None else imported_as(home, chosen.source)


# ── which ─────────────────────────────────────────────────────────────────────────────────────────


def named(home: Home, word: str | None, *, own: bool = False, deleted: bool = True) -> Named:
    """The one session that is meant, ours or another agent's."""
    if word is not None and "/" in word and is_path(word):
        return _at(word)
    found = _named(home, word, own=own, deleted=deleted)
    return _at(str(word)) if found is None else found


def own_id(home: Home, word: str | None, *, deleted: bool = True) -> str:
    """The one session of ours that is meant; of another agent's, the copy that was imported."""
    found = named(home, word, own=True, deleted=deleted)
    if found.source is None:
        return found.id
    copy = _copy(home, found)
    if copy is None:
        hint = f"`turnlog import {one_line(found.name)}` makes it one of ours"
        raise Invalid(f"{found.name} is a session of {found.source.agent}, not one of ours", hint=hint)
    return copy


def _named(home: Home, word: str | None, *, own: bool, deleted: bool = True) -> Named | None:
    """None where the word is a file."""
    ids = home.store.ids()  # also where it is not needed: a home that cannot be read says so here
    if word is None:
        return _default(home, own=own)
    if word in ids:
        return Named(word)
    if word == "latest" or _RECENT.fullmatch(word):
        return _recent(home, word)
    try:
        return Named(_match(home, word, deleted=deleted))
    except Ambiguous:
        raise
    except NotFound as error:
        if is_path(word):
            return None
        there = None if word.startswith((".", "/", "~")) else _foreign(word)
        if there is None:
            raise error from None
        return there


def _default(home: Home, *, own: bool) -> Named:
    if own:
        return Named(session_here(home) or home.find("latest"))
    try:
        return _recent(home, "@")
    except NotFound:
        return _recent(home, "latest")


def _match(home: Home, word: str, *, deleted: bool) -> str:
    try:
        return home.find(word)
    except Ambiguous as error:
        raise _several(word, home.sessions()) from error
    except NotFound as error:
        if not deleted:
            raise
        try:
            return home.find(word, deleted=True)
        except Ambiguous:
            raise _several(word, home.sessions(deleted=True)) from None
        except NotFound:
            raise error from None


def _several(word: str, rows: list[Info]) -> Several:
    fits = [row for row in rows if row.id.startswith(word) or row.handle.startswith(word)]
    found = [Candidate(row.handle, row.id, row.agent, row.updated_at, row.title) for row in fits]
    return Several(f"{word!r} fits {len(found)} sessions", found, hint="give more of the id")


# ── ours, of this folder ──────────────────────────────────────────────────────────────────────────


def session_here(home: Home, *, agent: str | None = None) -> str | None:
    """The newest session of here: see `here.levels`; of that agent only, if told."""
    return next(iter(_here(home, agent)), None)


def session_at(home: Home, folder: str, *, agent: str | None = None) -> str | None:
    """The newest session of exactly that folder; of that agent only, if told."""
    return next(iter(_by_folder(home, agent).get(folder, [])), None)


def _by_folder(home: Home, agent: str | None) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in home.sessions():
        if row.workspace and not row.hidden and row.parent is None and agent in (None, row.agent):
            found.setdefault(row.workspace, []).append(row.id)
    return found


def _here(home: Home, agent: str | None = None) -> list[str]:
    by_folder = _by_folder(home, agent)
    for level in levels():
        ids = {id for folder in level for id in by_folder.get(folder, [])}
        if ids:
            return [row.id for row in home.sessions() if row.id in ids]
    return []


# ── other agents' ─────────────────────────────────────────────────────────────────────────────────


def is_path(word: str) -> bool:
    """Whether a word is the path of something."""
    return "\0" not in word and os.path.lexists(expand(word))


def _at(path: str) -> Named:
    """The one session in a file."""
    from turnlog.cli.pick.elsewhere import source_at

    source, native = source_at(path, None)
    return Named(native, source)


def _recent(home: Home, word: str) -> Named:
    """`latest`, `@` and those before it, whosever they are."""
    from turnlog.cli.frame.asking import catalog

    match = _RECENT.fullmatch(word)
    back = 0 if match is None or word == "@" else int(match[1] or 1)
    try:
        with catalog(home_location()) as cards:
            found = _newest(cards, back, anywhere=match is None)
    except Unavailable as error:  # where nothing can be indexed, ours are still there
        print(f"warning: other agents' sessions are left out: {one_line(error.message)}", file=sys.stderr)
        found = []
    rows = [(card.updated_at, _of(card)) for card in found]
    if not rows or home.backend != "files":  # the catalog knows the files of a folder, and other agents' sessions
        rows += _ours(home, anywhere=match is None)
        rows.sort(key=lambda row: (row[0] is not None, row[0]), reverse=True)
    if back < len(rows):
        return rows[back][1]
    place = "" if match is None else f" for {workspace_path('.')}"
    count = f"there are only {len(rows)}" if rows else "there is none yet"
    raise NotFound(f"no session {word!r}{place}: {count}", hint="`turnlog ls --all` shows all there are")


def _newest(cards: Catalog, back: int, *, anywhere: bool) -> list[Card]:
    if anywhere:
        rows = cards.cards(limit=_LOOKED_AT)
        return [row for row in rows if row.messages] or rows
    for level in levels():
        rows = [row for folder in level for row in cards.cards(workspace=folder, limit=back + 1)]
        if rows:
            return sorted(rows, key=lambda row: (row.updated_at is not None, row.updated_at), reverse=True)
    return []


def _ours(home: Home, *, anywhere: bool) -> list[tuple[datetime | None, Named]]:
    rows = home.sessions()
    if anywhere:
        rows = [row for row in rows if not row.hidden and row.parent is None]
        chosen = [row for row in rows if row.seq > 1] or rows
    else:
        ids = set(_here(home))
        chosen = [row for row in rows if row.id in ids]
    return [(row.updated_at, Named(row.id)) for row in chosen]


def foreign(word: str) -> Source | None:
    """Where another agent keeps the session of that name."""
    found = _foreign(word)
    return None if found is None else found.source


def _foreign(word: str) -> Named | None:
    """`agent:id`, or a unique beginning of it."""
    from turnlog.catalog.ask.naming import Fits
    from turnlog.cli.frame.asking import catalog

    try:
        with catalog(home_location()) as cards:
            return _of(cards.find(word))
    except Fits as error:
        rows = [Candidate(c.name, c.id, c.agent, c.updated_at, c.title or c.preview) for c in error.cards]
        raise Several(f"{word!r} fits {len(rows)} sessions", rows, hint="give more of the id") from None
    except (NotFound, Invalid):
        return None


def _of(card: Card) -> Named:
    from turnlog.formats import Source

    return Named(card.id) if card.is_ours else Named(card.id, Source(card.agent or "", card.path, card.key))

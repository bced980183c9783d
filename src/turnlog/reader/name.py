"""Which session a word means.

A word is, in this order: a path with a slash in it; the id of one of ours; `@`, `@-`, `@-2`, `latest`; a unique
beginning of an id or handle of ours, deleted or not; another file; `agent:id`, or a unique beginning of that. No word
means `@`, or else `latest`; where only ours count, the newest of ours, but in a repository none of elsewhere. Several
that fit raise `SeveralFit`.

The newest is the newest conversation. A safety net, which `turnlog run` and `turnlog checkpoint` open, is only meant
where there is no conversation. Where it is about files, it is the newest session that has checkpoints, a net or not.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from msgspec import Struct

from turnlog.errors import Ambiguous, Invalid, NotFound, TurnlogError, Unavailable
from turnlog.log.ids import imported_id
from turnlog.log.text import pattern
from turnlog.machine.folder import expand, workspace_path
from turnlog.reader.candidate import Candidate, SeveralFit
from turnlog.reader.folder import in_repository, newest_cards, newest_conversation, newest_with_files, sessions_here
from turnlog.reader.lastseen import last_seen
from turnlog.session.interior import interior
from turnlog.session.lookup import is_net_in
from turnlog.store import derived
from turnlog.store.capability import KeepFiles, ability
from turnlog.thread.alias import is_relayed, session_of
from turnlog.view.visible import one_line

if TYPE_CHECKING:
    from datetime import datetime

    from turnlog.catalog import Card, Catalog
    from turnlog.formats import Source
    from turnlog.session import Home
    from turnlog.thread.report import Info

_RECENT = pattern(r"@(?:-([1-9]\d{0,5})?)?")
OpenCatalog = Callable[[], AbstractContextManager["Catalog"]]
"""Opens the catalog of the same home and of the other agents; only asked where a word may mean one of theirs."""


class SessionRef(Struct, frozen=True):
    """One session: `id` is ours where there is no source, else that agent's own."""

    id: str
    source: Source | None = None
    workspace: str | None = None
    """Where another agent's was last, if the catalog told."""

    @property
    def name(self) -> str:
        """What to type for it."""
        return self.id if self.source is None else f"{self.source.agent}:{self.id}"


def is_path(word: str) -> bool:
    """Whether a word is the path of something."""
    return "\0" not in word and os.path.lexists(expand(word))


def is_plainly_path(word: str | None) -> bool:
    """Whether a word is a path whatever sessions there are: it has a slash in it, and something is there."""
    return word is not None and "/" in word and is_path(word)


class SessionNames:
    """The sessions of one home, and those of other agents on this machine, by what people call them."""

    def __init__(self, home: Home, catalog: OpenCatalog, warn: Callable[[str], None]) -> None:
        self._home = home
        self._catalog = catalog
        self._warn = warn
        self._is_partial = False
        """Whether the catalog is still being made, and may know more later."""

    def find(self, word: str | None, *, own: bool = False, deleted: bool = True) -> SessionRef:
        """The one session that is meant, ours or another agent's; without a word, with `own`, only ours count."""
        meant = None if is_plainly_path(word) else self.find_or_path(word, own=own, deleted=deleted)
        if meant is not None:
            return meant
        from turnlog.reader.foreign import source_at

        source, native = source_at(str(word), None)
        return SessionRef(native, source)

    def own(self, word: str | None, *, deleted: bool = True) -> str:
        """The one session of ours that is meant; of another agent's, the copy that was imported."""
        meant = self.find(word, own=True, deleted=deleted)
        if meant.source is None:
            return meant.id
        copy = self.copy_of(meant.source)
        if copy is None:
            hint = f"`turnlog import {one_line(meant.name)}` imports it first"
            raise Invalid(f"{meant.name} is a session of {meant.source.agent}, not one of ours", hint=hint)
        return copy

    def to_change(self, word: str | None, *, files: bool = False) -> str:
        """The one of ours that may be changed. Without a word it is one of this folder: nothing happens by mistake."""
        if word is None:
            newest = newest_with_files(self._home) if files else newest_conversation(self._home)
            if newest is None:
                raise _none_here(files=files)
            return self._followed(SessionRef(newest)).id
        chosen = self.find(word, deleted=False)
        copy = chosen.id if chosen.source is None else self.copy_of(chosen.source)
        if copy is None:
            assert chosen.source is not None
            raise Invalid(
                f"{chosen.name} is a session of {chosen.source.agent}, which is only read",
                hint=f"`turnlog import {one_line(chosen.name)}` imports it; the original is not changed",
            )
        return copy

    def copy_of(self, source: Source) -> str | None:
        """The session of ours that another agent's was imported as."""
        from turnlog.exchange.source import imported_as

        return imported_as(interior(self._home).store, source)

    def find_or_path(
        self, word: str | None, *, own: bool = False, files: bool = False, deleted: bool = True
    ) -> SessionRef | None:
        """The same as `find`; None where the word is no session but a file. With `files`, nets count as well.

        A session whose turns hooks report is ours, whichever name is used; its conversation is imported.
        """
        meant = self._find_or_path(word, own=own, files=files, deleted=deleted)
        return None if meant is None else self._followed(meant)

    def _followed(self, ref: SessionRef) -> SessionRef:
        store, name = interior(self._home).store, ref.id
        if ref.source is not None:
            name = session_of(store, ref.source.agent, ref.id) or ""
        try:
            if not name or not is_relayed(store, name):
                return ref
            from turnlog.live.follow import catch_up

            catch_up(store, name)
        except NotFound:
            return ref  # it is in the trash
        except TurnlogError as error:  # what is there can be read all the same
            self._warn(f"what is new in session {name} could not be brought in: {error.message}")
        return SessionRef(name)

    def _find_or_path(self, word: str | None, *, own: bool, files: bool, deleted: bool) -> SessionRef | None:
        ids = derived.ids(
            interior(self._home).store
        )  # also where it is not needed: a home that cannot be read says so here
        if word is None:
            return self._default(own=own, files=files)
        if word in ids:
            return SessionRef(word)
        if word == "latest" or _RECENT.fullmatch(word):
            return self._recent(word)
        try:
            return SessionRef(self._match(word, deleted=deleted))
        except Ambiguous:
            raise
        except NotFound as error:
            if is_path(word):
                return None
            there = None if word.startswith((".", "/", "~")) else self.foreign(word)
            if there is not None:
                return there
            agent, _, native = word.partition(":")  # its agent may not have written anything yet
            imported = [id for id in ids if native and id.startswith(imported_id(agent, native))]
            if len(imported) != 1:
                raise (_not_yet(error) if self._is_partial else error) from None
            return SessionRef(imported[0])

    def _default(self, *, own: bool, files: bool) -> SessionRef:
        if own or files:
            newest = newest_with_files(self._home) if files else newest_conversation(self._home)
            if newest is None and (in_repository() or not derived.ids(interior(self._home).store)):
                raise _none_here(files=files)
            return SessionRef(newest or self._home.find("latest"))
        newest = self.newest(1)
        return newest[0] if newest else self._recent("latest")

    def newest(self, most: int) -> list[SessionRef]:
        """Sessions of here, the newest first; where there is none, of anywhere."""
        return self._rows(most, False, True)

    def _match(self, word: str, *, deleted: bool) -> str:
        try:
            return self._home.find(word)
        except Ambiguous as error:
            raise _several(word, self._home.sessions()) from error
        except NotFound as error:
            if not deleted:
                raise
            try:
                return self._home.find(word, deleted=True)
            except Ambiguous:
                raise _several(word, self._home.sessions(deleted=True)) from None
            except NotFound:
                raise error from None

    # ── the newest ────────────────────────────────────────────────────────────────────────────────

    def _recent(self, word: str) -> SessionRef:
        """`latest`, `@` and those before it, whosever they are."""
        match = _RECENT.fullmatch(word)
        back = 0 if match is None or word == "@" else int(match[1] or 1)
        rows = self._rows(back + 1, match is None)
        if back < len(rows):
            return rows[back]
        place = "" if match is None else f" for {workspace_path('.')}"
        count = f"there are only {len(rows)}" if rows else "there is none yet"
        raise NotFound(f"no session {word!r}{place}: {count}", hint="`turnlog ls --all` shows all there are")

    def _rows(self, most: int, *anywhere: bool) -> list[SessionRef]:
        """The newest, so many of them at least if there are: of here, or of anywhere; of the first that has any."""
        by_place: dict[bool, list[Card]] = {}
        try:
            with self._catalog() as cards:
                for place in anywhere:
                    by_place[place] = newest_cards(cards, most, anywhere=place)
                    if by_place[place]:
                        break
        except Unavailable as error:  # where nothing can be indexed, ours are still there
            self._warn(f"other agents' sessions are left out: {error.message}")
        for place in anywhere:
            rows = [(card.updated_at, _ref(card)) for card in by_place.get(place, ())]
            is_in_files = ability(interior(self._home).store, KeepFiles) is not None
            if not rows or not is_in_files:  # the catalog is sure to know what is in files
                own_ids = {ref.id for _, ref in rows if ref.source is None}
                rows += [row for row in self._ours(anywhere=place) if row[1].id not in own_ids]
                rows.sort(key=lambda row: (row[0] is not None, row[0]), reverse=True)
            if rows:
                return [ref for _, ref in rows]
        return []

    def _ours(self, *, anywhere: bool) -> list[tuple[datetime | None, SessionRef]]:
        rows = self._home.sessions()
        if anywhere:
            rows = [row for row in rows if not row.hidden and row.parent is None]
            rows = [row for row in rows if row.seq > 1] or rows
        else:
            ids = set(sessions_here(self._home))
            rows = [row for row in rows if row.id in ids]
        chosen = [row for row in rows if not is_net_in(interior(self._home).store, row)] or rows
        return [(row.updated_at, SessionRef(row.id)) for row in chosen]

    # ── other agents' ─────────────────────────────────────────────────────────────────────────────

    def foreign(self, word: str) -> SessionRef | None:
        """Another agent's session by `agent:id`, or a unique beginning of it."""
        seen = last_seen(interior(self._home).made.location, word)
        if seen is not None:
            from turnlog.formats import Source

            native, agent, path, workspace = seen
            return SessionRef(native, Source(agent, path), workspace)
        from turnlog.catalog.ask.naming import Fits

        try:
            with self._catalog() as cards:
                try:
                    return _ref(cards.find(word))
                finally:
                    self._is_partial = cards.is_partial
        except Fits as error:
            rows = [Candidate(c.name, c.id, c.agent, c.updated_at, c.title or c.preview) for c in error.cards]
            raise SeveralFit(f"{word!r} fits {len(rows)} sessions", rows, hint="give more of the id") from None
        except (NotFound, Invalid):
            return None


def _not_yet(error: NotFound) -> NotFound:
    return NotFound(f"{error.message} so far", hint="`turnlog index` reads what is not indexed yet; then try again")


def _none_here(*, files: bool) -> NotFound:
    """Sessions of other agents may be here all the same: they have no checkpoints, and are only read."""
    if files:
        hint = "`turnlog run -- AGENT` takes them around an agent, `turnlog hooks install` around every turn"
        return NotFound(f"no checkpoints for {workspace_path('.')} yet", hint=hint)
    hint = "`turnlog import` brings one in; `turnlog ls --all` shows those of other folders"
    return NotFound(f"no session of Turnlog's own for {workspace_path('.')}", hint=hint)


def _several(word: str, rows: list[Info]) -> SeveralFit:
    fits = [row for row in rows if row.id.startswith(word) or row.handle.startswith(word)]
    candidates = [Candidate(row.handle, row.id, row.agent, row.updated_at, row.title) for row in fits]
    return SeveralFit(f"{word!r} fits {len(candidates)} sessions", candidates, hint="give more of the id")


def _ref(card: Card) -> SessionRef:
    if card.is_ours:
        return SessionRef(card.id)
    from turnlog.formats import Source

    return SessionRef(card.id, Source(card.agent or "", card.path, card.key), card.workspace)

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
from typing import TYPE_CHECKING

from turnlog.errors import Ambiguous, Invalid, NotFound, TurnlogError
from turnlog.log.ids import imported_id
from turnlog.machine.folder import expand, workspace_path
from turnlog.reader.naming.candidate import Candidate, SeveralFit
from turnlog.reader.naming.here import in_repository, newest_conversation, newest_with_files
from turnlog.reader.naming.lastseen import last_seen
from turnlog.reader.naming.recent import RecentSessions, is_recent
from turnlog.reader.naming.sessionref import OpenCatalog, SessionRef, ref_of
from turnlog.session.interior import interior
from turnlog.store import derived
from turnlog.thread.home.alias import is_relayed, session_of
from turnlog.view.visible import one_line

if TYPE_CHECKING:
    from turnlog.formats import Source
    from turnlog.session import Home
    from turnlog.thread.report import Info


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
        self._recent = RecentSessions(home, catalog, warn)
        self._is_partial = False
        """Whether the catalog is still being made, and may know more later."""

    def find(self, word: str | None, *, own: bool = False, deleted: bool = True) -> SessionRef:
        """The one session that is meant, ours or another agent's; without a word, with `own`, only ours count."""
        ref = None if is_plainly_path(word) else self.find_or_path(word, own=own, deleted=deleted)
        if ref is not None:
            return ref
        from turnlog.reader.opening.temporary import ref_at

        return ref_at(str(word))

    def own_id(self, word: str | None, *, deleted: bool = True) -> str:
        """The id of the one session of ours that is meant; of another agent's, of the copy that was imported."""
        return self._own_or_copy(self.find(word, own=True, deleted=deleted), "not one of ours", "imports it first")

    def deleted_id(self, word: str) -> str:
        """The id of the one deleted session that is meant; of another agent's, of the copy that was imported."""
        try:
            return self._home.find(word, deleted=True)
        except Ambiguous:
            raise _several(word, self._home.sessions(deleted=True)) from None
        except NotFound:
            copy = self._deleted_copy(word)
        if copy is None:
            hint = "`turnlog ls --deleted` shows what is in the trash"
            raise NotFound(f"no deleted session {word!r:.80}", hint=hint)
        return copy

    def _deleted_copy(self, word: str) -> str | None:
        """The deleted session that another agent's was imported as: `agent:id`, or a unique beginning of it."""
        agent, _, native = word.partition(":")
        begin = imported_id(agent, native)
        copies = [row for row in self._home.sessions(deleted=True) if row.id.startswith(begin)] if native else []
        if len(copies) > 1:
            raise _several(begin, copies)
        if copies:
            return copies[0].id
        theirs = self.foreign(word)
        if theirs is None or theirs.source is None:
            return None
        try:
            return self._home.find(imported_id(theirs.source.agent, theirs.id), deleted=True)
        except NotFound:
            return None

    def changeable_id(self, word: str | None, *, files: bool = False) -> str:
        """The id of one of ours that may be changed. Without a word: only a session of this folder."""
        if word is None:
            newest = newest_with_files(self._home) if files else newest_conversation(self._home)
            if newest is None:
                raise _none_here(files=files)
            return self._followed(SessionRef(newest)).id
        chosen = self.find(word, deleted=False)
        return self._own_or_copy(chosen, "which is only read", "imports it; the original is not changed")

    def _own_or_copy(self, ref: SessionRef, refusal: str, importing: str) -> str:
        if ref.source is None:
            return ref.id
        copy = self.copy_of(ref.source)
        if copy is None:
            hint = f"`turnlog import {one_line(ref.name)}` {importing}"
            raise Invalid(f"{ref.name} is a session of {ref.source.agent}, {refusal}", hint=hint)
        return copy

    def copy_of(self, source: Source) -> str | None:
        """The session of ours that another agent's was imported as."""
        from turnlog.exchange.importing.counterpart import imported_as

        return imported_as(interior(self._home).store, source)

    def find_or_path(
        self, word: str | None, *, own: bool = False, files: bool = False, deleted: bool = True
    ) -> SessionRef | None:
        """The same as `find`; None where the word is no session but a file. With `files`, nets count as well.

        A session whose turns hooks report is ours, whichever name is used; its conversation is imported.
        """
        ref = self._find_or_path(word, own=own, files=files, deleted=deleted)
        return None if ref is None else self._followed(ref)

    def _followed(self, ref: SessionRef) -> SessionRef:
        store, name = interior(self._home).store, ref.id
        if ref.source is not None:
            name = session_of(store, ref.source.agent, ref.id) or ""
        try:
            if not name or not is_relayed(store, name):
                return ref
            from turnlog.live.transcript import import_new

            import_new(store, name)
        except NotFound:
            return ref  # it is in the trash
        except TurnlogError as error:  # what is there can be read all the same
            self._warn(f"what is new in session {name} could not be brought in: {error.message}")
        return SessionRef(name)

    def _find_or_path(self, word: str | None, *, own: bool, files: bool, deleted: bool) -> SessionRef | None:
        # Also where it is not needed: a home that cannot be read says so here.
        ids = derived.ids(interior(self._home).store)
        if word is None:
            return self._default(own=own, files=files)
        if word in ids:
            return SessionRef(word)
        if is_recent(word):
            return self._recent.find(word)
        try:
            return SessionRef(self._match(word, deleted=deleted))
        except Ambiguous:
            raise
        except NotFound as error:
            if is_path(word):
                return None
            foreign = None if word.startswith((".", "/", "~")) else self.foreign(word)
            if foreign is not None:
                return foreign
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
        return newest[0] if newest else self._recent.find("latest")

    def newest(self, most: int) -> list[SessionRef]:
        """Sessions of here, the newest first; where there is none, of anywhere."""
        return self._recent.newest(most, ["here", "anywhere"])

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

    # ── other agents' ─────────────────────────────────────────────────────────────────────────────

    def foreign(self, word: str) -> SessionRef | None:
        """Another agent's session by `agent:id`, or a unique beginning of it."""
        seen = last_seen(interior(self._home).created_here.location, word)
        if seen is not None:
            from turnlog.formats import Source

            return SessionRef(seen.native, Source(seen.agent, seen.path), seen.workspace)
        from turnlog.catalog.ask.naming import AmbiguousName

        try:
            with self._catalog() as cards:
                try:
                    return ref_of(cards.find(word))
                finally:
                    self._is_partial = cards.is_partial
        except AmbiguousName as error:
            rows = [Candidate(c.name, c.id, c.agent, c.updated_at, c.title or c.preview) for c in error.cards]
            raise SeveralFit(f"{word!r} fits {len(rows)} sessions", rows, hint=error.hint) from None
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

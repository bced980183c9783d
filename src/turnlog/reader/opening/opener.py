"""Opens the session that a word means, for reading: in our home, or where another agent keeps it."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from turnlog.errors import Corrupt, Invalid, NotFound
from turnlog.reader.naming.name import SessionNames, is_plainly_path
from turnlog.reader.naming.sessionref import OpenCatalog, SessionRef
from turnlog.session.interior import interior
from turnlog.session.opening import open_home
from turnlog.view.number import money

if TYPE_CHECKING:
    from turnlog.catalog import Catalog
    from turnlog.formats import Problem, Source
    from turnlog.session.home import Home
    from turnlog.session.readonly import ReadOnlySession
    from turnlog.thread.home.foreignmarks import ForeignMarks

Progress = Callable[[str, int, int], None]
"""Told what is being done, how much is done, and how much there is."""


class OpenedSession(Struct, frozen=True):
    """A session that is open for reading: in our home, or in one that is gone afterwards."""

    home: Home
    session: ReadOnlySession
    source: Source | None = None
    """Where it was read, if it is another agent's."""
    problems: list[Problem] = []
    """What was wrong there."""
    native: str = ""
    """Another agent's id for it."""

    @property
    def name(self) -> str:
        """What to type for it."""
        return self.session.id if self.source is None else f"{self.source.agent}:{self.native}"

    def blob_size(self, digest: str) -> int | None:
        """How large a blob of its home is; None if that is not there."""
        try:
            return len(self.home.get_blob(digest))
        except (NotFound, Corrupt):
            return None

    def spent(self) -> str:
        """What it cost in all, for people; empty where that is not known."""
        total = self.session.cost().total
        if not total.micros:
            return ""
        return money(total.micros) + ("" if total.is_complete else " and more")


class SessionOpener:
    """Sessions of one home, and of other agents on this machine. Nothing is locked, and nothing of theirs is written.

    `home` and `catalog` say how those are opened, where the defaults for the location will not do.
    """

    def __init__(
        self,
        location: str | None = None,
        *,
        home: Callable[[], Home] | None = None,
        catalog: OpenCatalog | None = None,
        progress: Progress = lambda what, done, total: None,
        warn: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._location = location
        self._open_home = home or partial(open_home, location)
        self._catalog = catalog or partial(_catalog, location)
        self._progress = progress
        self._warn = warn

    def names(self, home: Home) -> SessionNames:
        """What words mean in that home, which is open."""
        return SessionNames(home, self._catalog, self._warn)

    @contextmanager
    def read(
        self, word: str | None, *, key: str | None = None, files: bool = False, family: bool = False
    ) -> Generator[OpenedSession]:
        """The session that is meant, open until this is left. `key` chooses one of several in a file.

        With `family`, subagents of another agent's session are read as well where they lie in files of their own.
        """
        chosen: SessionRef | None = None
        if not is_plainly_path(word):  # a path needs no home, and works where there is none
            with self._open_home() as home:
                chosen = self.names(home).find_or_path(word, files=files)
                if chosen is not None and chosen.source is None:
                    if key is not None:
                        raise Invalid(
                            f"session {chosen.id} is one of ours", hint="--key is for a file of another agent"
                        )
                    with home.read(chosen.id) as session:
                        yield OpenedSession(home, session)
                    return
        with self._read_path(str(word), key) if chosen is None else self.read_foreign(chosen, family=family) as opened:
            yield opened

    def read_foreign(self, chosen: SessionRef, *, family: bool = False) -> AbstractContextManager[OpenedSession]:
        """Another agent's session that was found, read where it lies."""
        assert chosen.source is not None
        beside = self._beside(chosen.source, chosen.id) if family else []
        return self._read_source(chosen.source, chosen.id, beside)

    def _beside(self, source: Source, native: str) -> list[Source]:
        """The sessions that one started or was started by, and so on, as far as the catalog knows them."""
        with self._catalog() as catalog:
            cards = [card for card in catalog.cards(f"agent:{source.agent}", everything=True) if not card.is_ours]
        linked, size = {native}, 0
        while size != len(linked):
            size = len(linked)
            linked |= {card.id for card in cards if card.parent in linked}
            linked |= {card.parent for card in cards if card.parent is not None and card.id in linked}
        others = [card for card in cards if card.id in linked and card.path != source.path]
        return [replace(source, path=card.path, key=card.key) for card in others if os.path.lexists(card.path)]

    @contextmanager
    def _read_source(self, source: Source, native: str, beside: list[Source]) -> Generator[OpenedSession]:
        """Where it lies; or, if its agent deleted it, where it is kept."""
        key = source.key or native
        from turnlog.thread.home.foreignmarks import marks_in

        with self._open_home() as home:
            marks = marks_in(interior(home).store).get(f"{source.agent}:{native}")
        with self._there(source) as there, self._read_path(there.path, key, source.agent, marks, beside) as opened:
            yield replace(opened, source=source)

    def _there(self, source: Source) -> AbstractContextManager[Source]:
        if os.path.lexists(source.path):
            return nullcontext(source)
        from turnlog.exchange.keeping.keptfile import KeptFiles

        return KeptFiles(self._location).readable(source)

    @contextmanager
    def _read_path(
        self,
        path: str,
        key: str | None,
        agent: str | None = None,
        marks: ForeignMarks | None = None,
        beside: Iterable[Source] = (),
    ) -> Generator[OpenedSession]:
        from turnlog.reader.opening.temporary import read_from

        with read_from(path, key, agent, self._progress, marks, beside) as there, there.home.read(there.id) as session:
            yield OpenedSession(there.home, session, there.source, there.problems, there.native)


def _catalog(location: str | None) -> Catalog:
    from turnlog.catalog import Catalog

    return Catalog(location, agents=True)

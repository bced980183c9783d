"""What a glance tells, as an index that can be asked like any other; in memory, for this answer."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from turnlog.catalog.glance.places import places
from turnlog.catalog.glance.survey import COLUMNS, FileSurvey, Glances
from turnlog.catalog.index.index import Index
from turnlog.catalog.index.sqlite.database import MemoryDatabase
from turnlog.catalog.index.sqlite.engine import SqliteEngine
from turnlog.catalog.index.sqlite.watchlist import Watchlist
from turnlog.log.ids import MARKS
from turnlog.machine.environment import environment, user_folder
from turnlog.session.interior import interior

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from turnlog.session import Home

_PATIENCE_S = 1.0
"""How long to wait for formats that have no glance."""


def surveyed(
    roots: list[tuple[str, str]] | None, watchlist: Watchlist | None, own: list[tuple[str, str]], workspace: str
) -> FileSurvey:
    """What is new in these folders; where they are not known, wherever agents keep sessions, and we our own."""
    if roots is None:
        roots = [*own, *places(user_folder(), environment(), workspace)]
    if watchlist is None:
        return FileSurvey(roots)
    return FileSurvey(roots, is_known=watchlist.has_file, is_known_folder=watchlist.has_folder)


class GlanceIndex:
    """The newest sessions of a survey. `is_beside` says whether there is an index of others besides."""

    def __init__(self, survey: FileSurvey, workspace: str, home: Callable[[], Home], *, is_beside: bool) -> None:
        self.is_beside = is_beside
        self._database = MemoryDatabase()
        self._database.make()
        self.index = Index(SqliteEngine(self._database.connection))
        self._glances = Glances(survey, workspace)
        self._add(self._glances.rows)
        if survey.own:
            from turnlog.catalog.glance import own

            self._add(own.rows(home(), survey.own))
        if survey.others:
            from turnlog.catalog.glance import heading

            until = time.monotonic() + _PATIENCE_S
            self._add(heading.rows(survey, lambda: time.monotonic() > until))
        if any(name.startswith(MARKS) for _, _, _, name, _ in survey.own):
            from turnlog.catalog.index.marked import put_over

            put_over(self.index.engine, interior(home()).store)

    @property
    def unseen(self) -> int:
        """How many sessions were not even looked at."""
        return self._glances.unseen

    @property
    def first(self) -> int | None:
        """When the oldest of those last changed."""
        return self._glances.first

    def look_for(self, name: str) -> None:
        """Take a glance at those of the others that may be called so."""
        self._add(self._glances.called(name))

    def _add(self, rows: Iterable[tuple[Any, ...]]) -> None:
        marks = ", ".join("?" * len(COLUMNS))
        sql = f"INSERT OR IGNORE INTO sessions ({', '.join(COLUMNS)}) VALUES ({marks})"
        self._database.connection.executemany(sql, rows)

"""Glances as an index in memory that can be queried like any other, for one answer."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from turnlog.catalog.glance.places import places
from turnlog.catalog.glance.survey import FileSurvey, Glances
from turnlog.catalog.index.index import Index
from turnlog.catalog.index.sqlite.database import MemoryDatabase
from turnlog.catalog.index.sqlite.engine import SqliteEngine
from turnlog.catalog.index.sqlite.watchlist import Watchlist, add_glances
from turnlog.log.ids import MARKS
from turnlog.machine.environment import environment, user_folder
from turnlog.session.interior import interior

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from turnlog.catalog.index.rows import GlanceRow
    from turnlog.session import Home

_PATIENCE_S = 1.0
"""How long to wait for formats that have no glance."""


def surveyed(
    roots: list[tuple[str, str]] | None, watchlist: Watchlist | None, own: list[tuple[str, str]], workspace: str
) -> FileSurvey:
    """Survey what is new in these folders; if they are None, in all folders of agents and our own."""
    if roots is None:
        roots = [*own, *places(user_folder(), environment(), workspace)]
    if watchlist is None:
        return FileSurvey(roots)
    return FileSurvey(roots, is_known=watchlist.has_file, is_known_folder=watchlist.has_folder)


class GlanceIndex:
    """The newest sessions of a survey. `has_main_index`: whether there is also an index of other sessions."""

    def __init__(self, survey: FileSurvey, workspace: str, home: Callable[[], Home], *, has_main_index: bool) -> None:
        self.has_main_index = has_main_index
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
            from turnlog.catalog.index.sqlite.marked import overlay

            overlay(self.index.engine, interior(home()).store)

    @property
    def unseen(self) -> int:
        """The number of files that were not examined."""
        return self._glances.unseen

    @property
    def first(self) -> int | None:
        """When the oldest file last changed, if there are some that were not examined."""
        return self._glances.first

    def close(self) -> None:
        """Discard the glances."""
        self._database.close()

    def look_for(self, name: str) -> None:
        """Take a glance at other files whose sessions may have this name."""
        self._add(self._glances.look_up(name))

    def _add(self, rows: Iterable[GlanceRow]) -> None:
        add_glances(self._database.connection, rows)

"""Where the sessions of a catalog are, and where its index is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from turnlog.catalog.index.sqlite.database import Database, MemoryDatabase
from turnlog.catalog.index.sqlite.indexfile import index_path
from turnlog.errors import Invalid
from turnlog.machine.environment import default_home
from turnlog.session.interior import interior

if TYPE_CHECKING:
    from turnlog.session import Home


def database_for(home: Home | None, location: str, *, agents: bool) -> Database:
    """The index of this machine: in a file, or in memory if no folder can have it, or if it would be empty.

    It would be if all sessions are in the home's database, which has an index of its own.
    """
    if home is not None and not agents:
        from turnlog.store.capability import KeepTables, ability

        if ability(interior(home).store, KeepTables) is not None:
            return MemoryDatabase()
    path = index_path(location, agents=agents)
    return MemoryDatabase() if path is None else Database(path)


def location_of(location: str | os.PathLike[str] | Home | None) -> str:
    """The location of the sessions of a catalog."""
    if location is None:
        return default_home()
    if isinstance(location, (str, os.PathLike)):
        return os.fspath(location)
    created_at = interior(location).created_here.location
    if created_at is None:
        raise Invalid("this home has no location", hint="pass the location to `Catalog`")
    return created_at

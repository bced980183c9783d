"""The sessions and files that a client may see: those of this workspace and its worktrees, of another one, or all."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from turnlog.catalog.ask.naming import AmbiguousName
from turnlog.catalog.ask.query import Filter, Query, parse
from turnlog.errors import Invalid, NotFound
from turnlog.machine.folder import expand, workspace_path
from turnlog.machine.workspacetop import refuses_checkpoints
from turnlog.reader.naming.here import is_in, project
from turnlog.workspace.git import worktrees_of

if TYPE_CHECKING:
    from turnlog.catalog import Card, Catalog

_WORDS = ("latest", "@", "@-")


class Scope:
    """The folders whose sessions a client may see, and the folders below them. Without folders, it may see all.

    If a folder is no project, such as the home folder, the folders below it are not included.
    """

    def __init__(self, workspace: str | None = None, *, everywhere: bool = False) -> None:
        self.folders: tuple[str, ...] = ()
        self._is_alone = False
        if everywhere:
            return
        top = project() if workspace is None else workspace_path(expand(workspace))
        self._is_alone = workspace is None and bool(refuses_checkpoints(top))
        self.folders = tuple(dict.fromkeys([top, *map(workspace_path, worktrees_of(top))]))

    @property
    def words(self) -> str:
        """The folders, for people and models."""
        return " and ".join(self.folders) if self.folders else "every folder"

    def covers(self, workspace: str | None) -> bool:
        """Whether the sessions of a folder are in the scope."""
        if not self.folders or workspace is None:
            return not self.folders
        return workspace in self.folders or (not self._is_alone and any(is_in(workspace, one) for one in self.folders))

    def narrowed(self, query: str, *more: Filter) -> Query:
        """The query, limited to the scope: its own filters can only narrow it further."""
        asked = parse(query)
        values = tuple(f"={one}" for one in self.folders) if self._is_alone else self.folders
        own = (Filter("workspace", values),) if values else ()
        return asked.within(*own, *more)

    def session(self, catalog: Catalog, name: str) -> Card:
        """The session of that name. Raises `NotFound` also for one outside of the scope."""
        if name in _WORDS or "/" in name:
            raise Invalid(f"{name!r:.80} is no id of a session", hint="search_sessions and list_sessions give ids")
        card = _found(catalog, name)
        if card is None:
            catalog.refresh(at_once=True)  # it may have begun a moment ago
            card = _found(catalog, name)
        if card is None or not self.covers(card.workspace):
            where = f" in {self.words}" if self.folders else ""
            raise NotFound(f"no session {name!r:.80}{where}", hint="search_sessions and list_sessions give ids")
        return card

    def file(self, path: str) -> str:
        """The absolute path of a file in the scope. Links to its folder are resolved before that is checked."""
        base = self.folders[0] if self.folders else workspace_path(".")
        full = os.path.normpath(os.path.join(base, expand(path)))
        real = os.path.join(os.path.realpath(os.path.dirname(full)), os.path.basename(full))
        if not self.covers(workspace_path(os.path.dirname(real))) or os.path.islink(real):
            raise Invalid(f"{path!r:.200} is not in {self.words}", hint="only files of the workspace can be asked for")
        return real


def _found(catalog: Catalog, name: str) -> Card | None:
    try:
        return catalog.find(name)
    except AmbiguousName as error:
        originals = [card for card in error.cards if card.copy_of != card.id]
        return originals[0] if len(originals) == 1 else None  # the others are copies of its file
    except NotFound:
        return None

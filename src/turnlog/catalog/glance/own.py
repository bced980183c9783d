"""Our own sessions at a glance, as a listing of their home has them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from turnlog.catalog.glance.survey import FoundFile, Sighting, found_file
from turnlog.catalog.index.cards import UNREAD, ms_of
from turnlog.catalog.index.texts import clean, path_column
from turnlog.layout import TRASH
from turnlog.log.ids import handle_of
from turnlog.store.files.names import is_session_file, session_id_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from turnlog.session import Home
    from turnlog.thread.report import Info


def rows(home: Home, files: Iterable[Sighting]) -> Iterator[tuple[Any, ...]]:
    """Those of these files, as `COLUMNS`."""
    infos = {(info.id, is_deleted): info for is_deleted in (False, True) for info in home.sessions(deleted=is_deleted)}
    for seen in files:
        _, _, folder, name, _ = seen
        native = session_id_of(name) if is_session_file(name) else None
        if native:
            is_deleted = os.path.basename(folder) == TRASH
            yield row_of_info(found_file(seen), native, infos.get((native, is_deleted)), is_deleted=is_deleted)


def row_of_info(file: FoundFile, native: str, info: Info | None, *, is_deleted: bool) -> tuple[Any, ...]:
    """One of them."""
    facts: tuple[Any, ...] = (None, None, None, None, None, None, False)
    if info is not None:
        facts = (
            info.agent, path_column(info.workspace) if info.workspace else None,
            clean(info.title) if info.title else None, ms_of(info.created_at), ms_of(info.updated_at), info.parent,
            info.hidden,
        )  # fmt: skip
    is_said = info is not None and info.seq > 1 and info.agent != "turnlog"
    agent, workspace, title, created, updated, parent, is_hidden = facts
    return (
        handle_of(native), native, 1, agent, path_column(file.path), "", workspace, title, "", created,
        updated if updated is not None else file.mtime // 1_000_000, None, parent, is_hidden, is_deleted, is_said,
        file.size, UNREAD,
    )  # fmt: skip

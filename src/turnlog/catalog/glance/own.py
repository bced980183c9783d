"""Our own sessions at a glance, as a listing of their home has them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from turnlog.catalog.glance.survey import FileStat, FoundFile, found_file
from turnlog.catalog.index.columns import clean, ms_of, path_column
from turnlog.catalog.index.ending import UNREAD
from turnlog.catalog.index.rows import GlanceRow
from turnlog.layout import TRASH
from turnlog.log.ids import handle_of
from turnlog.store.files.names import is_session_file, session_id_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from turnlog.session import Home
    from turnlog.thread.report import Info


def rows(home: Home, files: Iterable[FileStat]) -> Iterator[GlanceRow]:
    """Our sessions in these files."""
    infos = infos_of(home, (False, True))
    for file in files:
        _, _, folder, name, _ = file
        native = session_id_of(name) if is_session_file(name) else None
        if native:
            is_deleted = os.path.basename(folder) == TRASH
            if is_deleted and (native, False) in infos:
                continue  # of two with one id, the one in use counts
            yield row_of_info(found_file(file), native, infos.get((native, is_deleted)), is_deleted=is_deleted)


def infos_of(home: Home, places: Iterable[bool]) -> dict[tuple[str, bool], Info]:
    """The sessions of a home, by id and whether they are deleted: an id may be in both places."""
    return {(info.id, is_deleted): info for is_deleted in places for info in home.sessions(deleted=is_deleted)}


def row_of_info(file: FoundFile, native: str, info: Info | None, *, is_deleted: bool) -> GlanceRow:
    """A session as a row of the index; without `info`, only its file is known."""
    updated = ms_of(info.updated_at) if info is not None else None
    return GlanceRow(
        name=handle_of(native),
        native=native,
        is_ours=True,
        agent=info.agent if info is not None else None,
        path=path_column(file.path),
        key="",
        workspace=path_column(info.workspace) if info is not None and info.workspace else None,
        title=clean(info.title) if info is not None and info.title else None,
        preview="",
        created=ms_of(info.created_at) if info is not None else None,
        updated=updated if updated is not None else file.mtime // 1_000_000,
        fork=None,
        parent=info.parent if info is not None else None,
        is_hidden=info is not None and info.hidden,
        is_deleted=is_deleted,
        is_conversation=info is not None and info.seq > 1 and info.agent != "turnlog",
        size=file.size,
        ending=UNREAD,
    )

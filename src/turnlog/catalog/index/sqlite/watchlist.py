"""Which files and folders were examined, how they looked, and which sessions were read from them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from turnlog.catalog.index.columns import path_column, path_of
from turnlog.catalog.index.ending import UNREAD
from turnlog.log.startup import NamedTuple

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable

    from turnlog.catalog.index.batch import Batch, IndexedSession
    from turnlog.catalog.index.rows import GlanceRow

OURS = ""
"""The agent of folders with our own sessions."""
_OF_SESSION = (
    ("sessions", "id"), ("spent", "session"), ("quarters", "session"), ("parts", "session"), ("outlines", "session"),
    ("used", "session"), ("marked", "session"),
)  # fmt: skip


class Stamp(NamedTuple):
    """How a file looks from outside."""

    size: int
    mtime: int
    inode: int


class KnownSession(NamedTuple):
    """A session in the index: where it lies."""

    id: int
    native: str
    is_ours: int
    agent: str | None
    path: str
    key: str


class Watchlist:
    """The tables of files and folders."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    # ── what is known ─────────────────────────────────────────────────────────────────────────────

    def folders(self) -> Iterable[tuple[int, str, Any, Any, int]]:
        """Every folder: number, agent, home, path, and time of the last change. Paths are as in columns."""
        return self._db.execute("SELECT id, agent, home, path, mtime FROM folders")

    def files(self) -> Iterable[tuple[Any, ...]]:
        """Every file that may change: number, path, how it looked, and whether it is another agent's."""
        return self._db.execute("SELECT id, path, size, mtime, inode, is_foreign FROM files WHERE is_watched")

    def files_of(self, agent: str) -> list[tuple[int, str]]:
        """Number and path of the files of one agent."""
        rows = self._db.execute("SELECT id, path FROM files WHERE agent = ?", (agent,))
        return [(number, path_of(path)) for number, path in rows]

    def inodes_of(self, agent: str) -> list[tuple[int, str, int]]:
        """Number, path and inode of the files of one agent."""
        rows = self._db.execute("SELECT id, path, inode FROM files WHERE agent = ?", (agent,))
        return [(number, path_of(path), inode) for number, path, inode in rows]

    def agent_of(self, file: int) -> str | None:
        """The agent of a file; None if the file is no longer known."""
        return self._one("SELECT agent FROM files WHERE id = ?", file)

    def has_file(self, path: str) -> bool:
        """Whether a file was examined."""
        return self._one("SELECT id FROM files WHERE path = ?", path_column(path)) is not None

    def has_folder(self, agent: str, path: str) -> bool:
        """Whether a folder was examined."""
        return self._one("SELECT id FROM folders WHERE agent = ? AND path = ?", agent, path_column(path)) is not None

    def foreign_paths(self) -> set[str]:
        """The files of other agents' sessions."""
        return {path_of(path) for (path,) in self._db.execute("SELECT path FROM sessions WHERE NOT is_ours")}

    def has_source(self, agent: str, path: str, key: str) -> bool:
        """Whether a session was read or announced; false if reading was never finished."""
        sql = (
            "SELECT 1 FROM sessions s WHERE path = ? AND key = ? AND agent = ? "
            "AND EXISTS (SELECT 1 FROM parts p WHERE p.session = s.id)"
        )
        return self._one(sql, path_column(path), key, agent) is not None

    def read_from(self, file: int) -> list[KnownSession]:
        """The sessions that were read from a file."""
        rows = self._db.execute(
            "SELECT s.id, s.native, s.is_ours, s.agent, s.path, s.key FROM parts p JOIN sessions s ON s.id = p.session "
            "WHERE p.file = ?",
            (file,),
        )
        return [
            KnownSession(id, native, ours, agent, path_of(path), key) for id, native, ours, agent, path, key in rows
        ]

    def forks_of(self, native: str) -> list[KnownSession]:
        """The forks of one of our sessions."""
        rows = self._db.execute(
            "SELECT id, native, is_ours, agent, path, key FROM sessions WHERE is_ours AND fork = ?", (native,)
        )
        return [
            KnownSession(id, native, ours, agent, path_of(path), key) for id, native, ours, agent, path, key in rows
        ]

    def source(self, agent: str, path: str, key: str) -> IndexedSession | None:
        """What the index has of another agent's session."""
        id = self.number_of(agent, path, key)
        return None if id is None else self.session(id)

    def number_of(self, agent: str, path: str, key: str) -> int | None:
        """The number of another agent's session, even if it is gone."""
        sql = "SELECT id FROM sessions WHERE path = ? AND key = ? AND agent = ? AND NOT is_ours"
        return self._one(sql, path_column(path), key, agent)

    def own(self, native: str) -> IndexedSession | None:
        """What the index has of a session of ours."""
        id = self._one("SELECT id FROM sessions WHERE native = ? AND is_ours", native)
        return None if id is None else self.session(id)

    def own_ends(self) -> dict[str, tuple[int, str, int]]:
        """Our sessions that are in no file, by id: number, the ends of its log when it was read, whether deleted."""
        rows = self._db.execute("SELECT native, id, stamp, is_deleted FROM sessions WHERE is_ours AND path = ''")
        return {native: (number, end, is_deleted) for native, number, end, is_deleted in rows}

    def session(self, id: int) -> IndexedSession:
        """What the index has of a session."""
        from turnlog.catalog.index.batch import IndexedSession

        row = self._db.execute(
            "SELECT s.id, s.native, s.size, CASE WHEN s.ending = ? THEN NULL "
            "WHEN m.session THEN m.title ELSE s.title END, s.preview, s.mark, coalesce(f.inode, 0) FROM sessions s "
            "LEFT JOIN files f ON f.path = s.path LEFT JOIN marked m ON m.session = s.id WHERE s.id = ?",
            (UNREAD, id),
        ).fetchone()
        return IndexedSession(*row)

    def is_unread(self, session: int) -> bool:
        """Whether a session had only a glance."""
        return self._one("SELECT ending FROM sessions WHERE id = ?", session) == UNREAD

    def growth(self, file: int, path: str) -> int:
        """By how many bytes a file has grown; its whole size if it is shorter now."""
        try:
            size = os.stat(path).st_size
        except OSError:
            return 0
        before = self._one("SELECT size FROM files WHERE id = ?", file) or 0
        return size - before if 0 <= before <= size else size

    def unread(self, most: int, can_read: Callable[[str], bool]) -> list[KnownSession]:
        """Sessions that had only a glance, of agents that can be read: the newest ones, up to `most` bytes in total."""
        rows = self._db.execute(
            "SELECT id, native, is_ours, agent, path, key, size FROM sessions WHERE ending = ? ORDER BY updated DESC",
            (UNREAD,),
        )
        sessions: list[KnownSession] = []
        for id, native, ours, agent, path, key, size in rows:
            if not ours and not can_read(agent):
                continue
            sessions.append(KnownSession(id, native, ours, agent, path_of(path), key))
            most -= size
            if most <= 0:
                break
        return sessions

    def version_of(self, session: int) -> str:
        """The version of a session that its database reported when it was read."""
        return self._one("SELECT stamp FROM sessions WHERE id = ?", session)

    def untouched(self, agent: str, since_ns: int) -> int:
        """The number of sessions of an agent, without subagents, in files that were not written to since a time."""
        sql = (
            "SELECT count(*) FROM sessions s JOIN files f ON f.path = s.path WHERE s.agent = ? AND NOT s.is_ours "
            "AND s.key = '' AND s.parent IS NULL AND f.mtime BETWEEN 1 AND ?"
        )
        return self._one(sql, agent, since_ns)

    def last(self) -> int:
        """The number of the newest session; 0 if there is none."""
        return self._one("SELECT max(id) FROM sessions") or 0

    def _one(self, sql: str, *values: Any) -> Any:
        row = self._db.execute(sql, values).fetchone()
        return None if row is None else row[0]

    # ── what is new ───────────────────────────────────────────────────────────────────────────────

    def put_file(self, batch: Batch, path: str, agent: str, stamp: Stamp, *, is_watched: bool = True) -> None:
        """Record how a file looked before it was read."""
        batch.execute(
            "INSERT INTO files (path, agent, is_foreign, is_watched, size, mtime, inode) VALUES (?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (path) DO UPDATE SET is_watched = excluded.is_watched, size = excluded.size, "
            "mtime = excluded.mtime, inode = excluded.inode, agent = excluded.agent",
            (path_column(path), agent, bool(agent), is_watched, *stamp),
        )

    def put_stamp(self, batch: Batch, file: int, stamp: Stamp) -> None:
        """Record how a file looks that has no session."""
        batch.execute("UPDATE files SET size = ?, mtime = ?, inode = ? WHERE id = ?", (*stamp, file))

    def drop_file(self, batch: Batch, file: int) -> None:
        """Remove a file that no longer exists."""
        batch.execute("DELETE FROM files WHERE id = ?", (file,))
        batch.execute("DELETE FROM parts WHERE file = ?", (file,))

    def put_folder(self, batch: Batch, path: str, agent: str, home: str, mtime: int) -> None:
        """Record how a folder looked."""
        batch.execute(
            "INSERT INTO folders (path, agent, home, mtime) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (agent, path) DO UPDATE SET mtime = excluded.mtime",
            (path_column(path), agent, path_column(home), mtime),
        )

    def drop_folder(self, batch: Batch, folder: int) -> None:
        """Remove a folder that no longer exists."""
        batch.execute("DELETE FROM folders WHERE id = ?", (folder,))

    def put_parts(self, batch: Batch, session: int, agent: str, parts: dict[str, Stamp]) -> None:
        """Record the files that a session was read from."""
        batch.execute("DELETE FROM parts WHERE session = ?", (session,))
        for path, stamp in parts.items():
            self.put_file(batch, path, agent, stamp)
            batch.execute(
                "INSERT OR IGNORE INTO parts SELECT ?, id FROM files WHERE path = ?", (session, path_column(path))
            )

    def begin(self, batch: Batch, session: int, name: str, native: str, agent: str | None, path: str, key: str) -> None:
        """Add a session of which only the location is known. Without an agent, it is ours."""
        batch.execute(
            "INSERT INTO sessions (id, name, native, is_ours, agent, path, key) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (session, name, native, agent is None, agent, path_column(path), key),
        )

    def announce(self, batch: Batch, session: int, row: GlanceRow, *, is_back: bool = False) -> None:
        """Add a session that had a glance; `is_back` if it was gone and has its old number."""
        if is_back:
            columns = ", ".join(f"{column} = ?" for column in row._fields)
            batch.execute(f"UPDATE sessions SET {columns} WHERE id = ?", (*row, session))
            return
        placeholders = ", ".join("?" * (len(row) + 1))
        batch.execute(f"INSERT INTO sessions (id, {', '.join(row._fields)}) VALUES ({placeholders})", (session, *row))

    def forget_said(self, batch: Batch, session: int) -> None:
        """Remove another agent's session that is gone, except what it spent."""
        for (doc,) in self._db.execute("SELECT id FROM docs WHERE session = ?", (session,)).fetchall():
            batch.delete_text(doc)
        for table in ("parts", "used", "marked"):
            batch.execute(f"DELETE FROM {table} WHERE session = ?", (session,))
        batch.execute(
            "UPDATE sessions SET is_deleted = 1, title = NULL, preview = '', mark = NULL, "
            "ending = CASE ending WHEN ? THEN '' ELSE ending END WHERE id = ?",
            (UNREAD, session),
        )

    def drop_session(self, batch: Batch, session: int) -> None:
        """Remove a session with everything that was said in it."""
        for (doc,) in self._db.execute("SELECT id FROM docs WHERE session = ?", (session,)).fetchall():
            batch.delete_text(doc)
        for table, column in _OF_SESSION:
            batch.execute(f"DELETE FROM {table} WHERE {column} = ?", (session,))


def add_glances(db: sqlite3.Connection, rows: Iterable[GlanceRow]) -> None:
    """Add sessions that had a glance to an index of glances alone, unless they are there."""
    from turnlog.catalog.index.rows import GlanceRow

    columns, placeholders = ", ".join(GlanceRow._fields), ", ".join("?" * len(GlanceRow._fields))
    db.executemany(f"INSERT OR IGNORE INTO sessions ({columns}) VALUES ({placeholders})", rows)

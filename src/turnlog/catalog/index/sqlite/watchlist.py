"""What was looked at on the disk, how it looked then, and which sessions were read from it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from turnlog.catalog.index.cards import UNREAD
from turnlog.catalog.index.texts import path_column, path_of

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

    from turnlog.catalog.index.batch import Batch, Before

OURS = ""
"""Stands for the agent where a folder has sessions of ours."""
_OF_SESSION = (
    ("sessions", "id"), ("spent", "session"), ("quarters", "session"), ("parts", "session"), ("outlines", "session"),
    ("used", "session"), ("marked", "session"),
)  # fmt: skip


# As calls: from the texts that annotations are here, each class would be compiled when this is imported.
class Stamp(NamedTuple("Stamp", [("size", int), ("mtime", int), ("inode", int)])):
    """How a file looks from outside."""

    __slots__ = ()


class Watchlist:
    """The tables of files and folders."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    # ── what is known ─────────────────────────────────────────────────────────────────────────────

    def folders(self) -> Iterable[tuple[int, str, Any, Any, int]]:
        """Every folder: its number, agent, home, path, and when it last changed. Paths as columns have them."""
        return self._db.execute("SELECT id, agent, home, path, mtime FROM folders")

    def files(self) -> Iterable[tuple[Any, ...]]:
        """Every file that may change: its number and path, how it looked, and whether it is another agent's."""
        return self._db.execute("SELECT id, path, size, mtime, inode, is_foreign FROM files WHERE is_watched")

    def files_of(self, agent: str) -> list[tuple[int, str]]:
        """Number and path of the files of one agent."""
        rows = self._db.execute("SELECT id, path FROM files WHERE agent = ?", (agent,))
        return [(number, path_of(path)) for number, path in rows]

    def inodes_of(self, agent: str) -> list[tuple[int, str, int]]:
        """The same with their inodes."""
        rows = self._db.execute("SELECT id, path, inode FROM files WHERE agent = ?", (agent,))
        return [(number, path_of(path), inode) for number, path, inode in rows]

    def agent_of(self, file: int) -> str | None:
        """Whose file it is; None if it is not known any more."""
        return self._one("SELECT agent FROM files WHERE id = ?", file)

    def has_file(self, path: str) -> bool:
        """Whether somebody looked at it."""
        return self._one("SELECT id FROM files WHERE path = ?", path_column(path)) is not None

    def has_folder(self, agent: str, path: str) -> bool:
        """Whether somebody looked into it."""
        return self._one("SELECT id FROM folders WHERE agent = ? AND path = ?", agent, path_column(path)) is not None

    def foreign_paths(self) -> set[str]:
        """The files of other agents' sessions."""
        return {path_of(path) for (path,) in self._db.execute("SELECT path FROM sessions WHERE NOT is_ours")}

    def has_source(self, agent: str, path: str, key: str) -> bool:
        """Whether that session was read; not if it was begun and never finished."""
        sql = (
            "SELECT 1 FROM sessions s WHERE path = ? AND key = ? AND agent = ? "
            "AND EXISTS (SELECT 1 FROM parts p WHERE p.session = s.id)"
        )
        return self._one(sql, path_column(path), key, agent) is not None

    def read_from(self, file: int) -> list[tuple[int, str, int, str | None, str, str]]:
        """The sessions that were read from a file: number, id, whether it is ours, agent, its own file, and key."""
        rows = self._db.execute(
            "SELECT s.id, s.native, s.is_ours, s.agent, s.path, s.key FROM parts p JOIN sessions s ON s.id = p.session "
            "WHERE p.file = ?",
            (file,),
        )
        return [(id, native, ours, agent, path_of(path), key) for id, native, ours, agent, path, key in rows]

    def forks_of(self, native: str) -> list[tuple[int, str, int, str | None, str, str]]:
        """The same of our sessions that continue one of ours."""
        rows = self._db.execute(
            "SELECT id, native, is_ours, agent, path, key FROM sessions WHERE is_ours AND fork = ?", (native,)
        )
        return [(id, native, ours, agent, path_of(path), key) for id, native, ours, agent, path, key in rows]

    def source(self, agent: str, path: str, key: str) -> Before | None:
        """Another agent's session."""
        id = self.number_of(agent, path, key)
        return None if id is None else self.session(id)

    def number_of(self, agent: str, path: str, key: str) -> int | None:
        """The number of another agent's session, also of one that is gone."""
        sql = "SELECT id FROM sessions WHERE path = ? AND key = ? AND agent = ? AND NOT is_ours"
        return self._one(sql, path_column(path), key, agent)

    def own(self, native: str) -> Before | None:
        """A session of ours."""
        id = self._one("SELECT id FROM sessions WHERE native = ? AND is_ours", native)
        return None if id is None else self.session(id)

    def own_ends(self) -> dict[str, tuple[int, str, int]]:
        """Our sessions that are in no file, by their ids: number, how it ended when it was read, whether deleted."""
        rows = self._db.execute("SELECT native, id, stamp, is_deleted FROM sessions WHERE is_ours AND path = ''")
        return {native: (number, end, is_deleted) for native, number, end, is_deleted in rows}

    def session(self, id: int) -> Before:
        """What is known of a session."""
        from turnlog.catalog.index.batch import Before

        row = self._db.execute(
            "SELECT s.id, s.native, s.size, CASE WHEN s.ending = ? THEN NULL "
            "WHEN m.session THEN m.title ELSE s.title END, s.preview, s.mark, coalesce(f.inode, 0) FROM sessions s "
            "LEFT JOIN files f ON f.path = s.path LEFT JOIN marked m ON m.session = s.id WHERE s.id = ?",
            (UNREAD, id),
        ).fetchone()
        return Before(*row)

    def growth(self, file: int, path: str) -> int:
        """By how much a file has grown since; all of it, if it is shorter now."""
        try:
            size = os.stat(path).st_size
        except OSError:
            return 0
        before = self._one("SELECT size FROM files WHERE id = ?", file) or 0
        return size - before if 0 <= before <= size else size

    def unread(self, most: int) -> list[tuple[int, str, int, str | None, str, str]]:
        """Sessions that have only a glance, as in `read_from`: the newest, up to this many bytes together."""
        rows = self._db.execute(
            "SELECT id, native, is_ours, agent, path, key, size FROM sessions WHERE ending = ? ORDER BY updated DESC",
            (UNREAD,),
        )
        files: list[tuple[int, str, int, str | None, str, str]] = []
        for id, native, ours, agent, path, key, size in rows:
            files.append((id, native, ours, agent, path_of(path), key))
            most -= size
            if most <= 0:
                break
        return files

    def stamp_of(self, session: int) -> str:
        """What its database said of when it changed."""
        return self._one("SELECT stamp FROM sessions WHERE id = ?", session)

    def untouched(self, agent: str, since_ns: int) -> int:
        """How many sessions of an agent, without subagents, lie in files that were not written to since then."""
        sql = (
            "SELECT count(*) FROM sessions s JOIN files f ON f.path = s.path WHERE s.agent = ? AND NOT s.is_ours "
            "AND s.key = '' AND s.parent IS NULL AND f.mtime BETWEEN 1 AND ?"
        )
        return self._one(sql, agent, since_ns)

    def noted(self, key: str) -> bool:
        """Whether that is noted."""
        return self._one("SELECT 1 FROM meta WHERE key = ?", key) is not None

    def note(self, db: sqlite3.Connection, key: str) -> None:
        """Note it."""
        db.execute("INSERT OR REPLACE INTO meta VALUES (?, 1)", (key,))

    def last(self) -> int:
        """The number of the newest session; 0 if there is none."""
        return self._one("SELECT max(id) FROM sessions") or 0

    def _one(self, sql: str, *values: Any) -> Any:
        row = self._db.execute(sql, values).fetchone()
        return None if row is None else row[0]

    # ── what is new ───────────────────────────────────────────────────────────────────────────────

    def put_file(self, batch: Batch, path: str, agent: str, stamp: Stamp, *, is_watched: bool = True) -> None:
        """How a file looked before it was read."""
        batch.do(
            "INSERT INTO files (path, agent, is_foreign, is_watched, size, mtime, inode) VALUES (?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (path) DO UPDATE SET is_watched = excluded.is_watched, size = excluded.size, "
            "mtime = excluded.mtime, inode = excluded.inode, agent = excluded.agent",
            (path_column(path), agent, bool(agent), is_watched, *stamp),
        )

    def put_stamp(self, batch: Batch, file: int, stamp: Stamp) -> None:
        """How a file looks from which nothing was read."""
        batch.do("UPDATE files SET size = ?, mtime = ?, inode = ? WHERE id = ?", (*stamp, file))

    def drop_file(self, batch: Batch, file: int) -> None:
        """A file that is no longer there."""
        batch.do("DELETE FROM files WHERE id = ?", (file,))
        batch.do("DELETE FROM parts WHERE file = ?", (file,))

    def put_folder(self, batch: Batch, path: str, agent: str, home: str, mtime: int) -> None:
        """How a folder looked."""
        batch.do(
            "INSERT INTO folders (path, agent, home, mtime) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (agent, path) DO UPDATE SET mtime = excluded.mtime",
            (path_column(path), agent, path_column(home), mtime),
        )

    def drop_folder(self, batch: Batch, folder: int) -> None:
        """A folder that is no longer there."""
        batch.do("DELETE FROM folders WHERE id = ?", (folder,))

    def put_parts(self, batch: Batch, session: int, agent: str, parts: dict[str, Stamp]) -> None:
        """The files that a session was read from."""
        batch.do("DELETE FROM parts WHERE session = ?", (session,))
        for path, stamp in parts.items():
            self.put_file(batch, path, agent, stamp)
            batch.do("INSERT OR IGNORE INTO parts SELECT ?, id FROM files WHERE path = ?", (session, path_column(path)))

    def begin(self, batch: Batch, session: int, name: str, native: str, agent: str | None, path: str, key: str) -> None:
        """A session of which nothing is known yet but where it lies. It is ours without an agent."""
        batch.do(
            "INSERT INTO sessions (id, name, native, is_ours, agent, path, key) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (session, name, native, agent is None, agent, path_column(path), key),
        )

    def announce(
        self, batch: Batch, session: int, columns: Iterable[str], row: tuple[Any, ...], *, is_back: bool = False
    ) -> None:
        """A session of which a glance was taken; `is_back` if it has its number from before it was gone."""
        if is_back:
            set_ = ", ".join(f"{column} = ?" for column in columns)
            batch.do(f"UPDATE sessions SET {set_} WHERE id = ?", (*row, session))
            return
        marks = ", ".join("?" * (len(row) + 1))
        batch.do(f"INSERT INTO sessions (id, {', '.join(columns)}) VALUES ({marks})", (session, *row))

    def forget_said(self, batch: Batch, session: int) -> None:
        """Another agent's session that is gone: of all that is known of it, what it spent stays."""
        for (doc,) in self._db.execute("SELECT id FROM docs WHERE session = ?", (session,)).fetchall():
            batch.forget(doc)
        for table in ("parts", "used", "marked"):
            batch.do(f"DELETE FROM {table} WHERE session = ?", (session,))
        batch.do("UPDATE sessions SET is_deleted = 1, title = NULL, preview = '', mark = NULL WHERE id = ?", (session,))

    def drop_session(self, batch: Batch, session: int) -> None:
        """A session that is gone, and what was said in it."""
        for (doc,) in self._db.execute("SELECT id FROM docs WHERE session = ?", (session,)).fetchall():
            batch.forget(doc)
        for table, column in _OF_SESSION:
            batch.do(f"DELETE FROM {table} WHERE {column} = ?", (session,))

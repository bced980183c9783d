"""Where opencode's sessions lie, and what is in them: a database, folders of JSON, an export, or a capture of events.

Each gives the same: what is known of the session, and its messages with their parts, in order.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from turnlog.formats import Problem, Source
from turnlog.formats._shared.finding import opened_for, read_from
from turnlog.interop import sqlite
from turnlog.interop.folder import files_under, head_of, names_in
from turnlog.interop.json import decoded
from turnlog.interop.problem import report
from turnlog.interop.records import load_document, load_sidecar, objects_in, rows
from turnlog.interop.sqlite import ERRORS, ForeignDatabase, opened
from turnlog.interop.value import fields, text

NAME = "opencode"
_MARKS = ("type", "event")


class DatabaseMark(Struct, frozen=True):
    """A place in a database, before a message, and numbers that show whether anything before it was changed since."""

    created: int
    id: str
    messages: int = 0
    parts: int = 0
    updated: int = 0
    """The sum of the times of the last change of these rows; it only grows."""
    seq: int = 0
    event: str = ""
    """The newest event of the session when it was read: opencode logs every change of a message as one."""


class StoredMessage(Struct):
    """One message: what is known of it, and its parts."""

    info: dict[str, Any]
    parts: list[dict[str, Any]]
    place: DatabaseMark | None = None


class StoredSession(Struct):
    """One session as it lies there."""

    info: dict[str, Any]
    messages: Iterator[StoredMessage]
    fork: str | None = None
    """The session that it is a copy of, "" where that is not known."""
    is_whole: bool = False
    """Whether all of its messages could be read, as far as they were asked for."""


def stamps(path: str) -> dict[str, str]:
    """Of each session in a database: when it, its messages and their parts were last changed, and how many they are."""
    try:
        with opened(path) as base:
            if not all(base.has(table, *names) for table, names in _STAMPED.items()):
                return {}
            stamps_by_id = {str(row[0]): str(row[1]) for row in base.ask("select id, time_updated from session")}
            for table in ("message", "part"):
                rows = base.ask(f"select session_id, count(*), max(time_updated) from {table} group by session_id")
                for id, *counts in rows:
                    stamps_by_id[str(id)] = f"{stamps_by_id.get(str(id))} {counts}"
            return stamps_by_id
    except (OSError, *ERRORS):
        return {}


_TABLES = {
    "session": ("id", "time_created"), "message": ("id", "session_id", "time_created", "data"),
    "part": ("id", "message_id", "data"),
}  # fmt: skip
_STAMPED = {
    "session": ("id", "time_updated"), "message": ("session_id", "time_updated"),
    "part": ("session_id", "time_updated"),
}  # fmt: skip


def is_database(path: str) -> bool:
    """Whether a file is SQLite with opencode's tables."""
    return sqlite.is_database(path, **_TABLES)


def open_session(source: Source, problems: list[Problem], start: DatabaseMark | None = None) -> StoredSession:
    """One session, wherever it lies; or what comes behind a place in a database."""
    if start is not None or is_database(source.path):
        return _open_database(source, problems, start)
    if root := storage_of(source.path):
        info = fields(load_document(source.path, problems, os.path.basename(source.path)))
        return StoredSession(info, _from_storage(root, str(info.get("id")), problems))
    return _open_export(source, problems)


def _open_database(source: Source, problems: list[Problem], start: DatabaseMark | None) -> StoredSession:
    with opened_for(source) as base:
        about = base.row("session", "id = ?", (source.key,)) or {"id": source.key}
        fork = _copied(base, about)
    info: dict[str, Any] = {
        "id": about.get("id"), "title": about.get("title"), "directory": about.get("directory"),
        "parentID": about.get("parent_id"), "version": about.get("version"),
        "time": {"created": about.get("time_created"), "updated": about.get("time_updated")},
        "revert": decoded(about.get("revert")), "projectID": about.get("project_id"), "slug": about.get("slug"),
        "metadata": decoded(about.get("metadata")),
    }  # fmt: skip
    session = StoredSession(info, iter(()), fork)
    session.messages = _from_database(source, problems, start, session)
    return session


_BEFORE = "message.session_id = ? and (message.time_created, message.id) < (?, ?)"
_EVENT = ("id", "aggregate_id", "seq", "type", "data")


def unchanged(source: Source, place: DatabaseMark) -> DatabaseMark | None:
    """That place as of now; None if what is before it in the database is not what it was, or nothing tells."""
    if not is_database(source.path):
        return None
    with opened_for(source) as base:
        if not all(base.has(table, *names) for table, names in _STAMPED.items()):
            return None
        seq, event = _newest_event(base, source.key)
        before = (source.key, place.created, place.id)
        is_same = _is_in_no_event(base, before, place) or _is_as_counted(base, before, place)
        return replace(place, seq=seq, event=event) if is_same else None


def _newest_event(base: ForeignDatabase, session: str) -> tuple[int, str]:
    if not base.has("event", *_EVENT):
        return 0, ""
    newest = base.row("event", "aggregate_id = ?", (session,), only=("seq", "id"), order="seq desc limit 1")
    seq, id = newest.get("seq"), newest.get("id")
    return (seq, id) if type(seq) is int and type(id) is str else (0, "")


def _is_in_no_event(base: ForeignDatabase, before: tuple[str, int, str], place: DatabaseMark) -> bool:
    """Whether the events since then are all there, and about nothing before a place: that costs what is new."""
    if not place.event or not base.has("event", *_EVENT):
        return False
    events = base.rows("event", "aggregate_id = ? and seq >= ?", (before[0], place.seq), only=_EVENT, order="seq")
    first = next(events, None)
    if first is None or (first["seq"], first["id"]) != (place.seq, place.event):
        return False
    touched: set[str | None] = set()
    for seq, row in enumerate(events, place.seq + 1):
        if row["seq"] != seq:
            return False
        touched.add(_touched(row))
    # What was removed is in no table any more, and what `opencode import` adds is no event.
    messages = next(base.ask(f"select count(*) from message where {_BEFORE}", before))[0]
    is_before = f"select 1 from message where id = ? and {_BEFORE}"
    is_touched = any(id is None or any(base.ask(is_before, (id, *before))) for id in touched)
    return messages == place.messages and not is_touched


def _touched(event: sqlite3.Row) -> str | None:
    """The message that an event is about, "" if about none; None if that cannot be told."""
    data = fields(decoded(event["data"]))
    kind = str(event["type"]).rpartition(".")[0]
    if kind in ("session.created", "session.updated"):
        return ""
    own = fields(data.get("info")).get("id") if kind == "message.updated" else None
    return text(own) or text(fields(data.get("part")).get("messageID")) or text(data.get("messageID"))


def _is_as_counted(base: ForeignDatabase, before: tuple[str, int, str], place: DatabaseMark) -> bool:
    """Whether as much is before a place as there was, as far as times tell: every row is looked at."""
    messages = next(base.ask(f"select count(*), sum(time_updated) from message where {_BEFORE}", before))
    parts = next(base.ask(
        "select count(*), sum(part.time_updated) from message join part on part.message_id = message.id"
        f" where {_BEFORE}", before,
    ))  # fmt: skip
    return (messages[0], parts[0], (messages[1] or 0) + (parts[1] or 0)) == (place.messages, place.parts, place.updated)


_TIMES = "select time_created from message where session_id = ? order by time_created, id"


def _copied(base: ForeignDatabase, about: dict[str, Any]) -> str | None:
    """The session that a fork is a copy of: it says nowhere that it is one, but its messages are older than itself.

    Of those of its project that begin with the same messages, the one that shares most with it.
    """
    id, created, project = about.get("id"), about.get("time_created"), about.get("project_id")
    [first] = next(base.ask(f"{_TIMES} limit 1", (id,)), [None])
    if not isinstance(created, int) or not isinstance(first, int) or first >= created or about.get("parent_id"):
        return None
    times_here = [row[0] for row in base.ask(_TIMES, (id,))]
    if not base.has("session", "project_id"):
        return ""
    older_sessions = base.ask(
        "select session.id from session join message on session.id = message.session_id"
        " where message.time_created = ? and session.project_id = ? and session.id != ? and session.time_created < ?"
        " group by session.id order by session.time_created, session.id",
        (first, project, id, created),
    )
    original, longest = "", 0
    for (older,) in list(older_sessions):
        times = (row[0] for row in base.ask(_TIMES, (older,)))
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(times_here, times, strict=False)))
        if shared > longest:
            original, longest = str(older), shared
    return original


def _from_database(
    source: Source, problems: list[Problem], start: DatabaseMark | None, session: StoredSession
) -> Iterator[StoredMessage]:
    where, values = "session_id = ?", (source.key,)
    messages = parts_before = updated = 0
    with read_from(source, problems) as base:
        newest = _newest_event(base, source.key)  # before anything else: what comes meanwhile is looked at again
        if start is not None:
            where, values = f"{where} and (time_created, id) >= (?, ?)", (source.key, start.created, start.id)
            messages, parts_before, updated = start.messages, start.parts, start.updated
            newest = start.seq, start.event
        order, only = "time_created, id", ("id", "time_created", "time_updated", "data")
        for row in base.rows("message", where, values, only=only, order=order):
            place = _place(row, messages, parts_before, updated, *newest)
            parts: list[dict[str, Any]] = []
            for part in base.rows("part", "message_id = ?", (row["id"],), only=only, order="id"):
                parts_before, updated = parts_before + 1, updated + _updated(part)
                parts += _decoded(part, "a part", problems)
            messages, updated = messages + 1, updated + _updated(row)
            for info in _decoded(row, "a message", problems) or [{"id": row["id"]}] * bool(parts):
                yield StoredMessage(info, parts, place)
        session.is_whole = True


def _decoded(row: sqlite3.Row, what: str, problems: list[Problem]) -> list[dict[str, Any]]:
    """What a row says, with its id; nothing where that is no object."""
    data = decoded(row["data"])
    if isinstance(data, dict):
        return [{"id": row["id"], **fields(data)}]
    report(problems, f"{what} that is not JSON", where=str(row["id"]))
    return []


def _place(row: sqlite3.Row, *values: Any) -> DatabaseMark | None:
    created, id = row["time_created"], row["id"]
    usable = type(created) is int and type(id) is str and "time_updated" in row.keys()  # noqa: SIM118
    return DatabaseMark(created, id, *values) if usable else None


def _updated(row: sqlite3.Row) -> int:
    time = row["time_updated"] if "time_updated" in row.keys() else 0  # noqa: SIM118
    return time if type(time) is int else 0


def in_storage(root: str) -> Iterator[Source]:
    """The sessions under a `storage` folder of earlier versions."""
    return (Source(NAME, file) for file in files_under(os.path.join(root, "session")) if file.endswith(".json"))


def storage_of(path: str) -> str:
    """The `storage` folder that a session's file lies in; "" if it lies in none."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(path))))
    here = os.path.basename(os.path.dirname(os.path.dirname(os.path.abspath(path))))
    return root if here == "session" and os.path.isdir(os.path.join(root, "message")) else ""


def _from_storage(root: str, session: str, problems: list[Problem]) -> Iterator[StoredMessage]:
    folder = _inner(root, "message", session)
    loose: dict[str, list[dict[str, Any]]] = {}
    for part in _objects_in(os.path.join(root, "part"), problems):  # side by side, of whichever message
        loose.setdefault(str(part.get("messageID")), []).append(part)
    for info in sorted(_objects_in(folder, problems), key=_when):
        parts = _objects_in(_inner(root, "part", str(info.get("id"))), problems)
        yield StoredMessage(info, [*parts, *loose.get(str(info.get("id")), [])])


def _objects_in(folder: str, problems: list[Problem]) -> list[dict[str, Any]]:
    return [fields(load_sidecar(os.path.join(folder, name), problems)) for name in names_in(folder, ".json")]


def _inner(root: str, kind: str, id: str) -> str:
    """The folder of a message or session. An id that is no name of a folder has none."""
    return "" if id in (".", "..") or "/" in id or "\0" in id else os.path.join(root, kind, id)


def _when(info: dict[str, Any]) -> tuple[float, str]:
    created = fields(info.get("time")).get("created")
    return (created if isinstance(created, (int, float)) else 0, str(info.get("id")))


def is_export(path: str) -> bool:
    """Whether a file is an export, a list of messages, or a capture of events, by its beginning."""
    head = head_of(path) or b""
    if b'"message.updated"' in head or b'"message.part.updated"' in head:
        return b'"sessionID"' in head
    return b'"info"' in head and (b'"parts"' in head or b'"projectID"' in head) and b'"sessionID"' in head


def in_export(path: str) -> Iterator[Source]:
    """The sessions in such a file; a capture may hold several."""
    ids = [message.info.get("sessionID") for message in _messages_in(_whole(path, []), [])]
    is_of_several = len(set(filter(text, ids))) > 1
    return (Source(NAME, path, key) for key in (dict.fromkeys(map(str, ids)) if is_of_several else ("",)))


def _open_export(source: Source, problems: list[Problem]) -> StoredSession:
    value = _whole(source.path, problems)
    about = fields(fields(value).get("info"))
    every = _messages_in(value, problems)
    messages = [message for message in every if source.key in ("", str(message.info.get("sessionID")))]
    if not about and messages:
        first = messages[0].info
        paths = (fields(message.info.get("path")) for message in messages)
        folder = next((path.get("cwd") for path in paths if path), None)
        about = {"id": source.key or first.get("sessionID"), "time": first.get("time"), "directory": folder}
    return StoredSession(about, iter(messages))


def _whole(path: str, problems: list[Problem]) -> Any:
    if path.endswith(".jsonl"):
        return [row.data for row in rows(path, problems, marks=_MARKS)]
    return load_document(path, problems)


def _messages_in(value: Any, problems: list[Problem]) -> list[StoredMessage]:
    listed = objects_in(fields(value).get("messages") if isinstance(value, dict) else value, "messages", problems)
    if any("info" in item for item in listed):
        return [
            StoredMessage(fields(item.get("info")), objects_in(item.get("parts"), "parts", problems)) for item in listed
        ]
    return _from_events(listed, problems)


def _from_events(events: list[dict[str, Any]], problems: list[Problem]) -> list[StoredMessage]:
    """Events say how each message and part is now; the last one counts."""
    infos: dict[str, dict[str, Any]] = {}
    parts: dict[str, dict[str, dict[str, Any]]] = {}
    for item in events:
        event = fields(item.get("event")) or item
        about = fields(event.get("properties"))
        kind = event.get("type")
        if kind == "message.updated":
            info = fields(about.get("info"))
            infos[str(info.get("id"))] = info
        elif kind == "message.part.updated":
            part = fields(about.get("part"))
            message = str(part.get("messageID"))
            infos.setdefault(message, {})
            parts.setdefault(message, {})[str(part.get("id"))] = part
        elif kind == "message.removed":
            message = str(about.get("messageID"))
            infos.pop(message, None)
            parts.pop(message, None)
        elif kind == "message.part.removed":
            parts.get(str(about.get("messageID")), {}).pop(str(about.get("partID")), None)
    for id in [id for id, info in infos.items() if not text(info.get("sessionID"))]:
        del infos[id]
        report(problems, "a message of which no event gives the session: left out", where=id)
    in_order = sorted(infos.items(), key=lambda pair: _when(pair[1]))
    return [StoredMessage(info, list(parts.get(id, {}).values())) for id, info in in_order]

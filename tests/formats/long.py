"""Sessions of any length for every format, and what it takes to read them."""

import hashlib
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from time import process_time
from typing import Any

import turnlog
from tests.formats.composing import placed
from turnlog.exchange.exporting.transcript import transcript_of
from turnlog.exchange.exporting.writing import written_for
from turnlog.exchange.importing.sessionimport import import_source
from turnlog.formats import Source, format_of, names
from turnlog.session.interior import interior

_AT = "2026-01-01T00:00:00.000Z"
_ID = "7d3f0c1e-1111-4222-8333-944455566677"


def _lines(path: Path, lines: list[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def _qwen(folder: Path, count: int) -> Path:
    about = {"sessionId": _ID, "timestamp": _AT, "cwd": "/there", "version": "0.20.1"}
    rows: list[Any] = []
    for n in range(count):
        mine = {"uuid": f"u{n}", "parentUuid": f"u{n - 1}" if n else None, **about}
        role, kind = ("user", "user") if n % 2 == 0 else ("model", "assistant")
        rows.append({**mine, "type": kind, "message": {"role": role, "parts": [{"text": f"line {n}"}]}})
    return _lines(folder / f"{_ID}.jsonl", rows)


def _copilot(folder: Path, count: int) -> Path:
    start = {
        "sessionId": _ID,
        "version": 1,
        "producer": "copilot-agent",
        "startTime": _AT,
        "context": {"cwd": "/there"},
    }
    rows: list[Any] = [{"type": "session.start", "data": start, "id": "e0", "timestamp": _AT, "parentId": None}]
    for n in range(1, count):
        kind = "user.message" if n % 2 else "assistant.message"
        data = {"content": f"line {n}", **({} if n % 2 else {"messageId": f"m{n}", "toolRequests": []})}
        rows.append({"type": kind, "data": data, "id": f"e{n}", "timestamp": _AT, "parentId": f"e{n - 1}"})
    return _lines(folder / _ID / "events.jsonl", rows)


def _kimi(folder: Path, count: int) -> Path:
    rows: list[Any] = [{"role": "_system_prompt", "content": "You are Kimi."}]
    rows += [{"role": "assistant" if n % 2 else "user", "content": f"line {n}"} for n in range(count)]
    return _lines(folder / "sessions" / "0123" / _ID / "context.jsonl", rows).parent


def _goose(folder: Path, count: int) -> Path:
    rows: list[Any] = [{"working_dir": "/there", "description": "long", "message_count": count}]
    for n in range(count):
        content = [{"type": "text", "text": f"line {n}"}]
        rows.append({"role": "assistant" if n % 2 else "user", "created": 1750000000 + n, "content": content})
    return _lines(folder / "20250615_3.jsonl", rows)


def _cline(folder: Path, count: int) -> Path:
    task = folder / "saoudrizwan.claude-dev" / "tasks" / "1740000000000"
    task.mkdir(parents=True)
    said = [
        {"role": "assistant" if n % 2 else "user", "content": [{"type": "text", "text": f"line {n}"}]}
        for n in range(count)
    ]
    (task / "api_conversation_history.json").write_text(json.dumps(said))
    return task


def _aider(folder: Path, count: int) -> Path:
    folder.mkdir(parents=True)
    lines = (f"#### line {n}  \n\n" if n % 2 == 0 else f"line {n}\n\n" for n in range(count))
    (path := folder / ".aider.chat.history.md").write_text(
        "# aider chat started at 2026-01-01 00:00:00\n\n" + "".join(lines)
    )
    return path


def _droid(folder: Path, count: int) -> Path:
    rows: list[Any] = [{"type": "session_start", "id": _ID, "title": "long", "owner": "a", "cwd": "/there"}]
    for n in range(count):
        message = {"role": "assistant" if n % 2 else "user", "content": [{"type": "text", "text": f"line {n}"}]}
        parent = {"parentId": f"m{n - 1}"} if n else {}
        rows.append({"type": "message", "id": f"m{n}", **parent, "timestamp": _AT, "message": message})
    return _lines(folder / "-there" / f"{_ID}.jsonl", rows)


def _crush(folder: Path, count: int) -> Path:
    folder = folder / ".crush"
    folder.mkdir(parents=True)
    path = folder / "crush.db"
    with closing(sqlite3.connect(path)) as base:
        base.executescript(CRUSH)
        base.execute("insert into sessions (id, title, created_at, updated_at) values (?, 'long', 1, 1)", (_ID,))
        for n in range(count):
            parts = [
                {"type": "text", "data": {"text": f"line {n}"}},
                {"type": "finish", "data": {"reason": "end_turn"}},
            ]
            row = (f"m{n}", _ID, "assistant" if n % 2 else "user", json.dumps(parts), 1750000000 + n)
            base.execute("insert into messages (id, session_id, role, parts, created_at) values (?, ?, ?, ?, ?)", row)
        base.commit()
    return path


def _cursor(folder: Path, count: int) -> Path:
    said = [{"role": "assistant" if n % 2 else "user", "content": f"line {n}"} for n in range(count)]
    return cursor_chat(folder / "chats" / "0123" / _ID, said)


def cursor_chat(folder: Path, said: list[Any], *, more: list[bytes] = [], **about: Any) -> Path:  # noqa: B006
    """A chat as Cursor CLI keeps it: messages under their digests, and a root that names them; `more` are others."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "store.db"
    path.unlink(missing_ok=True)
    blobs = [json.dumps(message).encode() for message in said]
    root = b"".join(b"\x0a\x20" + hashlib.sha256(blob).digest() for blob in blobs) + b"\xd0\x01\x05"
    told = {"agentId": folder.name, "latestRootBlobId": hashlib.sha256(root).hexdigest(), "name": "long", **about}
    with closing(sqlite3.connect(path)) as base:
        base.executescript(
            "pragma page_size = 1024; create table blobs (id text primary key, data blob);"
            "create table meta (key text primary key, value text);"
        )
        base.execute("insert into meta values ('0', ?)", (json.dumps(told).encode().hex(),))
        for blob in (*blobs, root, *more):
            base.execute("insert or ignore into blobs values (?, ?)", (hashlib.sha256(blob).hexdigest(), blob))
        base.commit()
    return path


CRUSH = """
pragma page_size = 1024;
create table sessions (
    id text primary key, parent_session_id text, title text not null, message_count integer not null default 0,
    prompt_tokens integer not null default 0, completion_tokens integer not null default 0, cost real default 0,
    updated_at integer not null, created_at integer not null, summary_message_id text, todos text
);
create table messages (
    id text primary key, session_id text not null, role text not null, parts text not null default '[]', model text,
    created_at integer not null default 0, updated_at integer not null default 0, finished_at integer, provider text,
    is_summary_message integer default 0 not null
);
create index messages_by_session on messages (session_id);
"""


def opencode_database(path: Path, count: int) -> Path:
    with closing(sqlite3.connect(path)) as base:
        base.executescript(
            "create table session (id text, title text, directory text, parent_id text, version text, project_id text, "
            "time_created int, time_updated int, revert text, slug text);"
            "create table message (id text, session_id text, time_created int, time_updated int, data text);"
            "create table part (id text, message_id text, session_id text, time_created int, time_updated int, "
            "data text);"
            "create index m on message (session_id); create index p on part (message_id);"
        )
        base.execute("insert into session (id, time_created, directory) values ('ses_1', 1, '/there')")
        for n in range(count):
            role = "assistant" if n % 2 else "user"
            info = json.dumps({"role": role, "sessionID": "ses_1", "time": {"created": 10 + n}})
            text = json.dumps({"type": "text", "text": f"line {n}"})
            base.execute("insert into message values (?, 'ses_1', ?, ?, ?)", (f"msg_{n:08}", 10 + n, 10 + n, info))
            base.execute("insert into part values (?, ?, 'ses_1', 1, 1, ?)", (f"prt_{n:08}", f"msg_{n:08}", text))
        base.commit()
    return path


def goose_database(path: Path, count: int) -> Path:
    with closing(sqlite3.connect(path)) as base:
        base.executescript(
            "create table sessions (id text primary key, name text, working_dir text, created_at text);"
            "create table messages (id integer primary key, message_id text, session_id text, role text, "
            "content_json text, created_timestamp int, metadata_json text);"
        )
        base.execute("insert into sessions values ('20250615_3', 'long', '/there', '2026-01-01 00:00:00')")
        for n in range(count):
            text = json.dumps([{"type": "text", "text": f"line {n}"}])
            row = (n, f"m{n}", "assistant" if n % 2 else "user", text, 1750000000 + n)
            base.execute("insert into messages values (?, ?, '20250615_3', ?, ?, ?, null)", row)
        base.commit()
    return path


def _written(agent: str) -> Callable[[Path, int], Path]:
    def make(folder: Path, count: int) -> Path:
        with turnlog.open("memory:", checkpoints=False) as home:
            session = home.create(workspace="/there")
            batch = [
                turnlog.Message(role="assistant" if n % 2 else "user", blocks=[turnlog.Text(f"line {n}")])
                for n in range(count)
            ]
            session.append(*batch)
            written, _ = written_for(transcript_of(session), agent)
        return Path(placed(agent, written, str(folder)))

    return make


_MAKERS: dict[str, Callable[[Path, int], Path]] = {
    "qwen-code": _qwen, "copilot-cli": _copilot, "kimi": _kimi, "goose": _goose, "cline": _cline, "aider": _aider,
    "droid": _droid, "crush": _crush, "cursor-cli": _cursor,
}  # fmt: skip
AGENTS = names()


def long_session(agent: str, folder: Path, count: int) -> Source:
    """A session of that agent with so many messages."""
    path = (_MAKERS.get(agent) or _written(agent))(folder, count)
    return next(iter(format_of(agent).find(str(path))))


def cost(work: Callable[[], Any]) -> float:
    """Seconds of processor time."""
    begin = process_time()
    work()
    return process_time() - begin


def read_all(source: Source) -> int:
    return sum(1 for _ in format_of(source.agent).read(source).steps)


def import_all(source: Source) -> int:
    with turnlog.open("memory:", checkpoints=False) as home:
        return import_source(interior(home).creator, source, format_of(source.agent).read(source)).added

"""Sessions as plain values, put into the tables without the help of any reader; and a naive search over them."""

import re
import sqlite3
import unicodedata
from functools import cache
from typing import NamedTuple

from turnlog.catalog.ask.filters import span_of
from turnlog.catalog.ask.query import Filter, parse
from turnlog.catalog.index.index import Index
from turnlog.catalog.index.keys import hash_of
from turnlog.catalog.index.lookup import TimeSpan
from turnlog.catalog.index.settle import roll_up
from turnlog.catalog.index.sqlite.bundle import packed
from turnlog.catalog.index.sqlite.engine import SqliteEngine, regexp
from turnlog.catalog.index.sqlite.rowid import Rowids
from turnlog.catalog.index.sqlite.schema import TABLES
from turnlog.catalog.index.terms import Term
from turnlog.catalog.values import COUNTS

NOW = 1_794_753_000_000
MINUTE = 60_000


class Doc(NamedTuple):
    text: str
    at: int = NOW - MINUTE
    role: str = "user"
    tools: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


class Spent(NamedTuple):
    at: int = NOW - MINUTE
    model: str = "m-1"
    cost: int | None = 1_500_000
    counts: tuple[int, ...] = (1, 2, 3, 0, 4, 0)
    is_inherited: bool = False


class Plain(NamedTuple):
    docs: tuple[Doc, ...] = ()
    agent: str = "codex"
    workspace: str = "/home/ada/api"
    title: str = "A title"
    tags: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    spent: tuple[Spent, ...] = ()
    is_ours: bool = False
    cost: int = 0
    more: tuple[tuple[str, object], ...] = ()
    """Other columns."""


def listed(values: tuple[str, ...]) -> str:
    return "\n".join(("", *values, "")) if values else ""


@cache
def tables() -> sqlite3.Connection:
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.create_function("regexp", 2, regexp, deterministic=True)
    db.executescript(TABLES)
    return db


def fill(sessions: list[Plain]) -> Index:
    """An index with these sessions in them; always the same ones, for making them takes longer than most tests."""
    db = tables()
    for table in ("sessions", "docs", "texts", "paths", "touched", "spent", "quarters", "meta"):
        db.execute(f"DELETE FROM {table}")
    db.execute("INSERT INTO words (words) VALUES ('delete-all')")
    rowids = Rowids(db, ())
    for number, session in enumerate(sessions, 1):
        add(db, number, session, rowids)
    rowids.remember()
    return Index(SqliteEngine(db))


def add(db: sqlite3.Connection, number: int, session: Plain, rowids: Rowids) -> None:
    times = [doc.at for doc in session.docs] or [NOW]
    name = f"handle{number}" if session.is_ours else f"{session.agent}:s{number}"
    columns: dict[str, object] = {
        "id": number, "name": name, "native": f"s{number}", "is_ours": session.is_ours, "agent": session.agent,
        "path": f"/logs/{number}", "key": "", "workspace": session.workspace, "title": session.title,
        "created": min(times), "updated": max(times), "tags": listed(session.tags), "models": listed(session.models),
        "cost": session.cost, "is_conversation": True, **dict(session.more),
    }  # fmt: skip
    marks = ", ".join("?" * len(columns))
    db.execute(f"INSERT INTO sessions ({', '.join(columns)}) VALUES ({marks})", tuple(columns.values()))
    for step, doc in enumerate(session.docs, 1):
        one, at = rowids.assign(doc.at)
        row = (one, at, number, step, f"e{number}-{step}", doc.role, listed(doc.tools), hash_of(doc.text), one, 0)
        db.execute("INSERT INTO docs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        db.execute("INSERT INTO texts VALUES (?, ?)", (one, packed([[doc.text]])[0]))
        db.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (one, doc.text))
        for path in doc.files:
            db.execute("INSERT OR IGNORE INTO paths (path) VALUES (?)", (path,))
            db.execute("INSERT INTO touched SELECT id, ? FROM paths WHERE path = ?", (one, path))
    for step, row in enumerate(session.spent, 1):
        values = (number, step, number * 1000 + step, row.at, row.model, row.is_inherited, 0, 0, row.cost, *row.counts)
        names = f"session, step, token, at, model, is_inherited, is_reported, is_total, cost, {', '.join(COUNTS)}"
        db.execute(f"INSERT INTO spent ({names}) VALUES ({', '.join('?' * len(values))})", values)
    roll_up(SqliteEngine(db), [number])


# ── the naive search ──────────────────────────────────────────────────────────────────────────────


def tokens(text: str) -> list[str]:
    bare = "".join(one for one in unicodedata.normalize("NFD", text.lower()) if not unicodedata.combining(one))
    return "".join(one if one.isalnum() else " " for one in bare).split()


def squeezed(text: str) -> str:
    return re.sub(r"\s+", " ", text.lower())


def has(term: Term, text: str, *, inside: bool = False) -> bool:
    words, asked = tokens(text), tokens(term.text)
    if term.kind in ("word", "phrase"):
        return any(words[at : at + len(asked)] == asked for at in range(len(words)))
    if term.kind == "prefix":
        return any(word.startswith(asked[0]) for word in words)
    whole, piece = squeezed(text), squeezed(term.text)
    at = whole.find(piece)
    while at >= 0:
        is_begin = at == 0 or not whole[at - 1].isalnum() or not piece[0].isalnum()
        if is_begin or term.kind == "part" or (inside and not term.negated):
            return True
        at = whole.find(piece, at + 1)
    return False


def fits(found: Filter, session: Plain, doc: Doc) -> bool:
    def one(value: str) -> bool:
        match found.name:
            case "agent":
                return session.agent == value or session.agent.startswith(f"{value}-")
            case "workspace":
                return session.workspace.endswith(f"/{value}")
            case "role":
                return doc.role == value
            case "tool":
                return value.lower() in [tool.lower() for tool in doc.tools]
            case "tag":
                return value in session.tags
            case "file":
                return any(f"/{path}".endswith(f"/{value}") for path in doc.files)
            case "title":
                return value.lower() in session.title.lower()
            case _:
                return True

    return found.name in ("since", "until") or any(map(one, found.values)) != found.negated


def naive(sessions: list[Plain], text: str) -> list[str]:
    """The entries that a search finds, the newest first, as it was written down and not as it is done."""
    asked = parse(text)
    if asked.others:
        together = {entry for side in asked.sides for entry in naive(sessions, str(side))}
        return [entry for entry in naive(sessions, "") if entry in together]
    query = asked
    span: TimeSpan = span_of(query, now_ms=NOW)
    for inside in (False, True):
        found: list[tuple[int, int, int]] = []
        for number, session in enumerate(sessions, 1):
            for step, doc in enumerate(session.docs, 1):
                is_then = (span.since is None or doc.at >= span.since) and (span.until is None or doc.at < span.until)
                if (
                    is_then
                    and all(has(term, doc.text, inside=inside) != term.negated for term in query.terms)
                    and all(fits(one, session, doc) for one in query.filters)
                ):
                    found.append((doc.at, number, step))
        if found:
            break
    # Of the same moment, what was put in later counts as newer.
    return [f"e{number}-{step}" for _, number, step in sorted(found, reverse=True)]

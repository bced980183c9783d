"""Our own sessions in PostgreSQL: read into tables there, once for all machines, and looked up there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, cast

from turnlog.catalog.ask.filters import Clause
from turnlog.catalog.ask.query import Term
from turnlog.catalog.ask.terms import phrases_of, words_of
from turnlog.catalog.index import settle
from turnlog.catalog.index.batch import SPENT, Doc
from turnlog.catalog.index.shelf import EntryMatch, SqliteShelf, Wanted
from turnlog.catalog.index.texts import clean, lines, pack, unpack
from turnlog.catalog.read import own as ours
from turnlog.catalog.read.foreign import Before
from turnlog.catalog.read.prices import Prices
from turnlog.catalog.values import Synced
from turnlog.catalog.watch.sweep import Stamp
from turnlog.errors import TurnlogError, Unavailable
from turnlog.log.ids import handle_of
from turnlog.store.postgres.tables import forget

if TYPE_CHECKING:
    import sqlite3

    from turnlog.catalog.index.batch import Batch
    from turnlog.store.postgres import PostgresStore
    from turnlog.store.postgres.tables import Outdated, Tables

_PORTION = 2 << 20
"""So many characters are written at once."""
_CHUNK = 1000
"""So many entries are looked at at once."""
_MANY = 10_000
"""More sessions than this are not named one by one."""
_LONGEST_WORD = 200
_MOST_WORDS = 900_000
"""So many bytes of words a `tsvector` can have, and some to spare."""
_LONGEST_PATH = 2000
_NEVER = "'-'"
"""No word."""
_DOCS = """
insert into turnlog.own_docs (id, session, step, entry, role, tool, hash)
select * from unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::text[], %s::text[], %s::text[], %s::bigint[])
"""
_TEXTS = "insert into turnlog.own_texts (id, data) select * from unnest(%s::bigint[], %b::bytea[])"
_WORDS = """
insert into turnlog.own_words (id, session, words)
select id, session, array_to_tsvector(string_to_array(words, ' '))
from unnest(%s::bigint[], %s::bigint[], %s::text[]) as new (id, session, words)
"""


class PostgresShelf(SqliteShelf):
    """The same tables in a database. It knows words and how they begin; what has to stand together is read."""

    sure: frozenset[str] = frozenset(("word", "prefix"))
    patience = 64 << 20

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.db = cast("sqlite3.Connection", tables)

    def entries(
        self, wanted: Wanted, *, before: int | None = None, limit: int | None = None, with_text: bool = False
    ) -> Iterator[EntryMatch]:
        """See `Shelf.entries`."""
        first, last = wanted.ids(before)
        within = self._within(wanted)
        words = wanted_words(wanted.terms)
        left = limit
        chunk = _CHUNK // 16
        while left is None or left > 0:
            chunk = min(2 * chunk, _CHUNK)  # most of the time what is wanted is among the newest
            ids = self._ids(wanted, words, first, last, within, chunk)
            for found in self._these(ids, wanted, with_text):
                yield found
                left = None if left is None else left - 1
                if left == 0:
                    return
            if len(ids) < chunk:
                return
            last = ids[-1]

    def _within(self, wanted: Wanted) -> list[int] | None:
        """The sessions that come into question, where it helps to know."""
        if not wanted.sessions.sql:
            return None
        sql = f"SELECT sessions.id FROM sessions WHERE NOT is_deleted AND {wanted.sessions.sql} LIMIT {_MANY}"
        rows = self.tables.execute(sql, wanted.sessions.values).fetchall()
        return [row[0] for row in rows] if len(rows) < _MANY else None

    def _ids(
        self, wanted: Wanted, words: str, first: int, last: int, within: list[int] | None, chunk: int
    ) -> list[int]:
        if within == []:
            return []
        if words:
            sql = "select turnlog.own_found(%s::tsquery, %s, %s, %s::bigint[], %s)"
            return [row[0] for row in self.tables.ask(sql, (words, first, last, within, chunk))]
        where = Clause("docs.id >= ? AND docs.id < ? AND NOT sessions.is_deleted", (first, last))
        where = where.and_(wanted.entries).and_(wanted.sessions)
        sql = (
            "SELECT docs.id FROM docs JOIN sessions ON sessions.id = docs.session "
            f"WHERE {where.sql} ORDER BY docs.id DESC LIMIT {chunk}"
        )
        return [row[0] for row in self.tables.execute(sql, where.values)]

    def _these(self, ids: list[int], wanted: Wanted, with_text: bool) -> Iterator[EntryMatch]:
        if not ids:
            return
        where = Clause("docs.id = ANY(?) AND NOT sessions.is_deleted").and_(wanted.entries).and_(wanted.sessions)
        text = "texts.data" if with_text else "NULL"
        join = "JOIN texts ON texts.id = docs.id " if with_text else ""
        rows = self.tables.execute(
            f"SELECT docs.id, docs.session, docs.step, docs.entry, docs.role, docs.tool, {text} "
            f"FROM docs JOIN sessions ON sessions.id = docs.session {join}WHERE {where.sql} ORDER BY docs.id DESC",
            (ids, *where.values),
        )
        for id, session, step, entry, role, tools, data in rows:
            yield EntryMatch(id, session, step, entry, role, tools, None if data is None else unpack(bytes(data)))

    def with_entries(self, wanted: Wanted) -> Clause:
        """See `Shelf.with_entries`."""
        first, last = wanted.ids()
        words = wanted_words(wanted.terms)
        where = Clause("docs.id >= ? AND docs.id < ?", (first, last))
        if words and not wanted.entries.sql:
            found = "SELECT turnlog.own_having(CAST(? AS tsquery), ?, ?)"
            return Clause(f"sessions.id IN ({found})", (words, first, last))
        if words:
            found = "SELECT turnlog.own_found(CAST(? AS tsquery), ?, ?, NULL, 2147483647)"
            where = Clause(f"docs.id IN ({found})", (words, first, last))
        where = where.and_(wanted.entries)
        return Clause(f"sessions.id IN (SELECT docs.session FROM docs WHERE {where.sql})", where.values)

    def texts(self, ids: Iterable[int]) -> dict[int, str]:
        """See `Shelf.texts`."""
        rows = self.tables.ask("select id, data from turnlog.own_texts where id = any(%s)", (list(ids),))
        return {one: unpack(bytes(data)) for one, data in rows}


def wanted_words(terms: Iterable[Term]) -> str:
    """What words tell of these terms, as a `tsquery`. Only letters and digits, in quotes."""
    parts: list[str] = []
    for term in terms:
        if term.negated and term.kind not in PostgresShelf.sure:
            continue
        for words, goes_on in phrases_of(term):
            known = words_of(" ".join(words))
            if not known and not term.negated:
                parts.append(_NEVER)
            for number, word in enumerate(known):
                is_open = (goes_on and number == len(known) - 1) or len(word) > _LONGEST_WORD
                parts.append(f"{'!' if term.negated else ''}'{word[:_LONGEST_WORD]}'{':*' if is_open else ''}")
    return " & ".join(parts)


# ── reading ───────────────────────────────────────────────────────────────────────────────────────


class Portion:
    """What was read, on its way into the tables; see `Batch`."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self.prices = Prices(cast("sqlite3.Connection", tables))
        self._steps: list[tuple[str, tuple[Any, ...]]] = []
        self._docs: list[Doc] = []
        self._gone: list[int] = []
        self._spent: list[tuple[Any, ...]] = []
        self._size = 0

    def do(self, statement: str, values: tuple[Any, ...] = ()) -> None:
        """See `Batch.do`."""
        self._steps.append((statement, values))

    def add(self, doc: Doc) -> None:
        """See `Batch.add`."""
        self._docs.append(doc)
        self._size += len(doc.said.text)
        if self._size >= _PORTION:
            self.flush()

    def forget(self, doc: int) -> None:
        """See `Batch.forget`."""
        self._gone.append(doc)

    def pay(self, row: tuple[Any, ...]) -> None:
        """See `Batch.pay`."""
        self._spent.append(row)

    def flush(self) -> None:
        """Write what there is."""
        with self._tables.writing():
            for statement, values in self._steps:
                self._tables.execute(statement, values)
            if self._gone:
                self._tables.ask("select turnlog.own_drop_docs(%s::bigint[])", (self._gone,))
            if self._docs:
                self._add()
            if self._spent:
                self._tables.executemany(SPENT, self._spent)
        self._steps, self._docs, self._gone, self._spent, self._size = [], [], [], [], 0

    def _add(self) -> None:
        self._docs.sort(key=lambda doc: doc[:3])
        free = self._free({doc.at for doc in self._docs})
        docs: list[tuple[Any, ...]] = []
        words: list[tuple[int, int, str, bytes]] = []
        touched: list[tuple[int, str]] = []
        for at, session, step, entry, said, hash in self._docs:
            number = free[at] = free[at] + 1
            docs.append((number, session, step, clean(entry), said.role, lines(said.tools), hash))
            words.append((number, session, _words(said.text), pack(said.text)))
            touched += [(number, clean(path)) for path in set(said.files) if len(path.encode()) <= _LONGEST_PATH]
        # One statement for all of them: the way to the server and back takes longer than the work.
        self._tables.ask(_DOCS, [list(column) for column in zip(*docs, strict=True)])
        ids, sessions, said_words, texts = (list(column) for column in zip(*words, strict=True))
        self._tables.ask(_TEXTS, (ids, texts))
        self._tables.ask(_WORDS, (ids, sessions, said_words))
        if touched:
            paths = sorted({path for _, path in touched})
            self._tables.executemany("INSERT OR IGNORE INTO paths (path) VALUES (?)", [(path,) for path in paths])
            self._tables.executemany(
                "INSERT OR IGNORE INTO touched (path, doc) SELECT paths.id, ? FROM paths WHERE paths.path = ?", touched
            )

    def _free(self, times: set[int]) -> dict[int, int]:
        """The last id that is taken at each of these times."""
        rows = self._tables.ask(
            "select t, (select max(id) from turnlog.own_docs where id >= t << 20 and id < (t + 1) << 20) "
            "from unnest(%s::bigint[]) as t",
            (sorted(times),),
        )
        return {at: (at << 20) - 1 if last is None else last for at, last in rows}


def _words(text: str) -> str:
    found = " ".join(dict.fromkeys(words_of(text)))
    if len(found) * 4 < _MOST_WORDS and (len(found) < _LONGEST_WORD or max(map(len, found.split())) <= _LONGEST_WORD):
        return found
    short = dict.fromkeys(word[:_LONGEST_WORD] for word in found.split())
    kept: list[str] = []
    size = 0
    for word in short:
        size += len(word.encode()) + 4
        if size > _MOST_WORDS:
            break
        kept.append(word)
    return " ".join(kept)


def catch_up(
    tables: Tables, store: PostgresStore, progress: Callable[[str, int, int], None] | None, waiting: Callable[[], None]
) -> Synced:
    """Read what was appended since somebody last did. Appending goes on meanwhile, and so does asking."""
    since = tables.since()
    if since.passed is not None and not tables.changed(since) and not _is_dirty(tables):
        return Synced(since.sessions, 0, 0, 0, is_rebuilt=False)
    with tables.lock(waiting):
        since = tables.since()
        changed, gone = tables.changed(since), tables.gone() if since.passed is None else []
        was_dirty = _is_dirty(tables)
        loose: set[int] = set()
        for one in gone + _left_over(tables, [one.num for one in changed if one.is_new]):
            loose |= _remove(tables, one)
        done, total = 0, sum(one.size for one in changed)
        portion = Portion(tables)
        for one in changed:
            if progress is not None:
                progress("indexing", done, total)
            loose |= _take(tables, store, portion, one)
            done += one.size
        portion.flush()
        with tables.writing():
            touched = {one.num for one in changed} | _priced(tables, portion.prices)
            if touched or gone or was_dirty:
                settle.settle(cast("sqlite3.Connection", tables), None if was_dirty else touched, loose)
        tables.remember(since)
        if progress is not None and changed:
            progress("indexing", total, total)
    return Synced(tables.since().sessions, len(changed), done, len(gone), is_rebuilt=False)


def _priced(tables: Tables, prices: Prices) -> set[int]:
    """Try what had no price once more, if nobody did with these prices; gives the sessions that have one now."""
    key = f"prices {prices.stamp}"
    if tables.execute("SELECT 1 FROM meta WHERE key = ?", (key,)).fetchall():
        return set()
    tables.execute("INSERT OR IGNORE INTO meta (key, value) VALUES (?, 1)", (key,))
    return prices.again(cast("sqlite3.Connection", tables))


def _left_over(tables: Tables, sessions: list[int]) -> list[int]:
    """Those of which there is something, though they are not known."""
    sql = (
        "select session from turnlog.own_docs where session = any(%s) "
        "union select session from turnlog.own_spent where session = any(%s)"
    )
    return [row[0] for row in tables.ask(sql, (sessions, sessions))] if sessions else []


def _is_dirty(tables: Tables) -> bool:
    return settle.is_dirty(cast("sqlite3.Connection", tables))


def _remove(tables: Tables, session: int) -> set[int]:
    """A session that is not there; gives what others may count from now on."""
    tokens = {row[0] for row in tables.execute("SELECT token FROM spent WHERE session = ?", (session,))}
    with tables.writing():
        forget(tables.connection, session)
    return tokens


def _take(tables: Tables, store: PostgresStore, portion: Portion, one: Outdated) -> set[int]:
    """Read what one session has that is new; gives what it shared with others."""
    stamp = Stamp(one.size, one.last_ms * 1_000_000, one.num)
    rows = tables.execute("SELECT native, size, title, preview, mark FROM sessions WHERE id = ?", (one.num,)).fetchall()
    before, loose = None, set[int]()
    portion.do(settle.MARK_DIRTY)
    if rows:
        native, size, title, preview, mark = rows[0]
        before = Before(one.num, native, size, title, preview, None if mark is None else bytes(mark), one.num)
        shared = "SELECT token FROM spent WHERE session = ? AND token IN (SELECT token FROM spent WHERE session <> ?)"
        loose = {row[0] for row in tables.execute(shared, (one.num, one.num))}
    else:
        columns = "id, name, native, is_ours"
        portion.do(
            f"INSERT OR IGNORE INTO sessions ({columns}) VALUES (?, ?, ?, ?)",
            (one.num, handle_of(one.id), clean(one.id), True),
        )
    try:
        db, batch = cast("sqlite3.Connection", tables), cast("Batch", portion)
        row = ours.take(db, batch, store, one.id, one.num, stamp, before)
    except Unavailable:
        raise
    except (TurnlogError, ValueError, RecursionError, LookupError) as error:
        row = {"problem": clean(f"it cannot be read: {error}"), "size": one.size, "updated": one.last_ms}
    row |= {"seq": one.seq, "is_deleted": one.is_deleted}
    columns = ", ".join(f"{name} = ?" for name in row)
    portion.do(f"UPDATE sessions SET {columns} WHERE id = ?", (*row.values(), one.num))
    return loose

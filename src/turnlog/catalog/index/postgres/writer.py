"""Writes portions into the tables of a database with few statements: round trips take longer than the work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnlog.catalog.index.batch import columns_of
from turnlog.catalog.index.keys import SHIFT
from turnlog.catalog.index.postgres.engine import PostgresEngine
from turnlog.catalog.index.postgres.texts import pack_all
from turnlog.catalog.index.terms import LONGEST_WORD, words_of
from turnlog.catalog.index.totals import insert_spent_sql

if TYPE_CHECKING:
    from turnlog.catalog.index.batch import Doc, Portion
    from turnlog.store.capability import TableConnection

_MOST_WORDS = 900_000
"""The maximum size of a `tsvector`, with some reserve."""
_LONGEST_PATH = 2000
_TAKEN = """
select t, (select max(id) from turnlog.own_docs where id >= t << 20 and id < (t + 1) << 20)
from unnest(%s::bigint[]) as t
"""
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
_PATHS = "insert into turnlog.own_paths (path) select * from unnest(%s::text[]) on conflict do nothing"
_TOUCHED = """
insert into turnlog.own_touched (path, doc)
select p.id, new.doc from unnest(%s::bigint[], %s::text[]) as new (doc, path)
join turnlog.own_paths as p on p.path = new.path on conflict do nothing
"""


class PostgresWriter:
    """See `PortionWriter`."""

    most = 2 << 20

    def __init__(self, connection: TableConnection) -> None:
        self._connection = connection
        self.has_failed = False
        """Whether something could not be written."""

    def write(self, portion: Portion) -> None:
        """See `PortionWriter.write`."""
        self.has_failed = True
        with self._connection.writing():
            for statement, values in portion.statements:
                self._connection.rows(statement, values)
            if portion.deleted_docs:
                self._connection.rows("select turnlog.own_drop_docs(%s::bigint[])", (portion.deleted_docs,))
            if portion.docs:
                self._add(portion)
            if portion.spent:
                self._connection.run(insert_spent_sql(PostgresEngine(self._connection)), portion.spent)
        self.has_failed = False

    def wait(self) -> None:
        """See `PortionWriter.wait`. A no-op: `write` returns after the commit."""

    def _add(self, portion: Portion) -> None:
        rows = self._connection.rows
        docs = _with_ids(portion.docs, dict(rows(_TAKEN, (sorted({doc.at for doc in portion.docs}),))))
        columns: list[list[Any]] = [list(column) for column in zip(*docs, strict=True)]
        ids, sessions = columns[:2]
        texts = [doc.passage.text for doc in portion.docs]
        rows(_DOCS, columns)
        rows(_TEXTS, (ids, pack_all(texts)))
        rows(_WORDS, (ids, sessions, [_words(text) for text in texts]))
        touched = [
            (id, path)
            for id, doc in zip(ids, portion.docs, strict=True)
            for path in set(doc.passage.files)
            if len(path.encode()) <= _LONGEST_PATH
        ]
        if touched:
            rows(_PATHS, (sorted({path for _, path in touched}),))
            rows(_TOUCHED, [list(column) for column in zip(*touched, strict=True)])


def _with_ids(docs: list[Doc], taken: dict[int, int | None]) -> list[tuple[Any, ...]]:
    """The texts as rows of `docs`, each with a free id. `taken` has the last id in use at each time."""
    free = {at: at << SHIFT if last is None else last + 1 for at, last in taken.items()}
    rows: list[tuple[Any, ...]] = []
    for at, session, step, entry, passage, hash in docs:
        # The first free id at or after its time.
        while (number := free.get(at, at << SHIFT)) >= (at + 1) << SHIFT:
            at += 1
        free[at] = number + 1
        rows.append((number, *columns_of(session, step, entry, passage, hash)))
    return rows


def _words(text: str) -> str:
    text_words = " ".join(dict.fromkeys(words_of(text)))
    if len(text_words) * 4 < _MOST_WORDS and (
        len(text_words) < LONGEST_WORD or max(map(len, text_words.split())) <= LONGEST_WORD
    ):
        return text_words
    short = dict.fromkeys(word[:LONGEST_WORD] for word in text_words.split())
    kept: list[str] = []
    size = 0
    for word in short:
        size += len(word.encode()) + 4
        if size > _MOST_WORDS:
            break
        kept.append(word)
    return " ".join(kept)

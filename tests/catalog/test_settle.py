"""Relations between sessions, in tables that are filled by hand."""

import sqlite3

from tests.catalog.plain import fill
from turnlog.catalog.index.settle import HOOKED, settle
from turnlog.catalog.index.sqlite.engine import SqliteEngine


def test_hooks_may_report_the_turns_of_more_sessions_than_a_statement_takes_values():
    engine = fill([]).engine
    assert isinstance(engine, SqliteEngine)
    ours = [(id, f"s{id}", f"claude-code\n{id}{HOOKED}") for id in range(1, 200)]
    begin = "INSERT INTO sessions (id, name, native, is_ours, agent, path, key, origin) VALUES"
    engine.run(f"{begin} (?1, ?2, ?2, 1, NULL, ?2, '', ?3)", ours)
    engine.run(f"{begin} (0, 'claude-code:7', '7', 0, 'claude-code', '', '', ?)", [("claude-code\n7",)])
    usual = engine.db.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 50)  # the default is 32,766, or more
    try:
        settle(engine, {0})
    finally:
        engine.db.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, usual)
    assert list(engine.rows("SELECT copy_of, is_copied FROM sessions WHERE id = 0")) == [("s7", 1)]

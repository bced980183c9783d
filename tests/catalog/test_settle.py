"""Relations between sessions, in tables that are filled by hand."""

import sqlite3
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.catalog.plain import fill
from turnlog.catalog.index.origin import HOOKED
from turnlog.catalog.index.reconcile import _changed_pairs, _imports
from turnlog.catalog.index.settle import _roots, _subagents, settle
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


def _session(engine: SqliteEngine, id: int, name: str, native: str, is_ours: int, **columns: object) -> None:
    given = {"id": id, "name": name, "native": native, "is_ours": is_ours, "path": native, "key": "", **columns}
    engine.run(f"INSERT INTO sessions ({', '.join(given)}) VALUES ({', '.join('?' * len(given))})", [[*given.values()]])


def _engine() -> SqliteEngine:
    engine = fill([]).engine
    assert isinstance(engine, SqliteEngine)
    return engine


@pytest.mark.parametrize("origin", ["droid\nabc", f"droid\nabc{HOOKED}", f"droid\nolder{HOOKED}droid\nabc{HOOKED}"])
def test_what_an_import_has_booked_of_a_total_counts_there_alone(origin: str):
    engine = _engine()
    totals = '[["m", 1700000000000, 100, 0, 0, 0, 50, 0, 2000000]]'
    _session(engine, 1, "droid:abc", "abc", 0, agent="droid", origin="droid\nabc", totals=totals)
    _session(engine, 2, "ours", "ours", 1, origin=origin)
    engine.run(
        "INSERT INTO spent (session, step, token, at, model, is_reported, is_total, cost, input_tokens, "
        "cache_read_tokens, cache_write_tokens, cache_write_1h_tokens, output_tokens, reasoning_tokens) "
        "VALUES (2, 5, 3, 1700000000000, 'm', 1, 1, 2000000000000, 100, 0, 0, 0, 50, 0)",
        [()],
    )
    settle(engine, None)
    assert list(engine.rows("SELECT id, cost FROM sessions ORDER BY id")) == [(1, 0), (2, 2_000_000)]


@pytest.mark.parametrize("origin", [f"claude-code\nabc{HOOKED}", f"claude-code\nabc{HOOKED}claude-code\nnew{HOOKED}"])
def test_a_session_whose_turns_hooks_report_into_a_database_is_an_import_of_the_one_here(origin: str):
    engine = _engine()
    _session(engine, 1, "claude-code:abc", "abc", 0, agent="claude-code", origin="claude-code\nabc")

    class Server:
        def rows(self, sql: str) -> list[tuple[object, ...]]:
            return [(7, origin, "id7", 3)]

    imports = _imports(Server())  # pyright: ignore[reportArgumentType]
    [pair], gone = _changed_pairs(engine, imports)
    assert (pair.here, pair.there.id, pair.there.is_hooked, gone) == (1, 7, True, set())


@given(st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from("abcdefghx"), max_size=8))
def test_a_family_has_one_root_also_in_a_cycle(above: dict[str, str]):
    def root(name: str) -> tuple[str, int]:
        path = [name]
        while (up := above.get(path[-1])) is not None:
            if up in path:
                return min(path[path.index(up) :]), 0
            path.append(up)
        return path[-1], len(path) - 1

    assert _roots(above, "abcdefgh") == {name: root(name) for name in {*"abcdefgh", *above.values()}}


def test_a_long_chain_of_forks_takes_one_pass():
    above = {f"s{number}": f"s{number - 1}" for number in range(1, 20_001)}
    began = time.process_time()
    assert _roots(above, reversed(above))["s20000"] == ("s0", 20_000)
    assert time.process_time() - began < 2


@pytest.mark.parametrize("counting", [2, 3])
def test_a_subagent_whose_file_was_copied_is_still_in_the_sum_of_its_parent(counting: int):
    engine = _engine()
    _session(engine, 1, "codex:main", "main", 0, agent="codex")
    for id in (2, 3):
        spent = "1 0 0 0 2 0 7" if id == counting else ""  # of two copies, one counts
        _session(engine, id, "codex:sub", "sub", 0, agent="codex", parent="main", own=spent, path=f"/{id}")
    _subagents(engine)
    assert list(engine.rows("SELECT subagents FROM sessions WHERE id = 1")) == [("1 0 0 0 2 0 7",)]

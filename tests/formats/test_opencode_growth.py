"""What was added to a session in opencode's database is read behind a prompt, unless what is before was changed."""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import turnlog
from tests.formats.test_growth import facts, stored, used_up
from turnlog.exchange.importing import resumestate
from turnlog.formats import Source, format_of
from turnlog.log.ids import is_ours
from turnlog.session.interior import interior
from turnlog.thread.history import opened

RECORDED = Path(__file__).parent / "agents/opencode/recorded/opencode.db"
FORM: Any = format_of("opencode")
_AT = 1_900_000_000_000


@pytest.fixture(params=["with events", "without"])
def base(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A database in which opencode is at work, with an empty session; earlier versions logged no events."""
    shutil.copy(RECORDED, tmp_path / "opencode.db")
    with sqlite3.connect(tmp_path / "opencode.db", isolation_level=None) as made:
        made.execute("pragma journal_mode = wal")
        made.execute("pragma wal_autocheckpoint = 0")
        made.execute("create temp table one as select * from session limit 1")
        made.execute(f"update one set id = 'ses_b', parent_id = null, revert = null, time_created = {_AT - 1}")
        made.execute("insert into session select * from one")
        if request.param == "without":
            made.execute("drop table event")
        log(made, "session.created", {"info": {"id": "ses_b"}})
        yield made
    made.close()


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return Source("opencode", str(tmp_path / "opencode.db"), "ses_b")


def log(base: sqlite3.Connection, kind: str, data: dict[str, Any]) -> None:
    if base.execute("select 1 from sqlite_schema where name = 'event'").fetchone():
        [seq] = base.execute("select coalesce(max(seq) + 1, 0) from event where aggregate_id = 'ses_b'").fetchone()
        row = (f"evt_{time.monotonic_ns()}", seq, f"{kind}.1", json.dumps({"sessionID": "ses_b", **data}))
        base.execute("insert into event values (?, 'ses_b', ?, ?, ?)", row)


def say(base: sqlite3.Connection, id: str, at: int, info: dict[str, Any], *parts: dict[str, Any]) -> None:
    data = json.dumps({**info, "time": {"created": _AT + at, "completed": _AT + at}})
    base.execute("insert into message values (?, 'ses_b', ?, ?, ?)", (id, _AT + at, _AT + at, data))
    log(base, "message.updated", {"info": {"id": id}})
    for number, part in enumerate(parts):
        row = (f"{id}.{number}", id, _AT + at, _AT + at, json.dumps(part))
        base.execute("insert into part values (?, ?, 'ses_b', ?, ?, ?)", row)
        log(base, "message.part.updated", {"part": {"id": row[0], "messageID": id}})


def turn(base: sqlite3.Connection, number: int) -> None:
    at, asked = number * 1000, f"u{number}"
    tool = {"type": "tool", "callID": f"c{number}", "tool": "read", "state": {"status": "completed", "output": "7"}}
    answer = {"role": "assistant", "parentID": asked, "modelID": "m", "finish": "stop"}
    say(base, asked, at, {"role": "user", "model": {"modelID": "m"}}, {"type": "text", "text": "go on"})
    say(base, f"v{number}", at + 1, {**answer, "finish": "tool-calls"}, tool)
    say(base, f"w{number}", at + 2, answer, {"type": "text", "text": "ok"})


def turns(base: sqlite3.Connection, source: Source, most: int = 4) -> tuple[Any, list[Any]]:
    for number in range(most):
        turn(base, number)
    reading = FORM.read(source)
    told = used_up(reading)
    assert reading.mark.state["place"]["id"] == f"u{most - 1}"
    return reading, told


def gone_on(source: Source, mark: Any) -> Any:
    """What reading goes on with, which is the end of all of it; None where all has to be read."""
    more = FORM.growth(source, stored(mark))
    if more is None:
        return None
    found, whole = used_up(more), FORM.read(source)
    assert used_up(whole)[mark.steps :] == found
    assert (more.header, more.mark, facts(more)) == (whole.header, whole.mark, facts(whole))
    return more


def test_a_session_that_goes_on_is_read_behind_its_last_prompt(base: sqlite3.Connection, source: Source) -> None:
    reading, _ = turns(base, source)
    for number in range(4, 9):
        mark = reading.mark
        turn(base, number)
        reading = gone_on(source, mark)
        assert reading.mark.steps == mark.steps + 4


def test_recorded_sessions_go_on_message_by_message(tmp_path: Path) -> None:
    place = tmp_path / "opencode.db"
    went_on = 0
    for source in FORM.find(str(RECORDED)):
        shutil.copy(RECORDED, place)
        here = Source("opencode", str(place), source.key)
        with sqlite3.connect(place) as base:
            query = "select * from message where session_id = ? order by time_created, id"
            messages = base.execute(query, (source.key,)).fetchall()
            parts = base.execute("select * from part where session_id = ?", (source.key,)).fetchall()
            base.execute("delete from part where session_id = ?", (source.key,))
            base.execute("delete from message where session_id = ?", (source.key,))
            mark = None
            for row in messages:
                base.execute("insert into message values (?, ?, ?, ?, ?)", row)
                mine = [part for part in parts if part[1] == row[0]]
                base.executemany("insert into part values (?, ?, ?, ?, ?, ?)", mine)
                base.commit()
                went_on += mark is not None and gone_on(here, mark) is not None
                whole = FORM.read(here)
                used_up(whole)
                mark = whole.mark
        base.close()
    assert went_on > 5


CHANGES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "a result is cleared": (
        "update part set data = json_set(data, '$.state.time', json('{\"compacted\": 1}')), "
        f"time_updated = {_AT + 9999} where id = 'v0.0'",
        "message.part.updated",
        {"part": {"id": "v0.0", "messageID": "v0"}},
    ),
    "a message is changed": (
        f"update message set time_updated = {_AT + 9999} where id = 'w1'",
        "message.updated",
        {"info": {"id": "w1"}},
    ),
    "a part is removed": (
        "delete from part where id = 'v1.0'",
        "message.part.removed",
        {"messageID": "v1", "partID": "v1.0"},
    ),
    "a message is removed": ("delete from message where id = 'w1'", "message.removed", {"messageID": "w1"}),
    "a message comes in between": (
        f"insert into message values ('x', 'ses_b', {_AT + 5}, {_AT + 5}, '{{}}')",
        "session.updated",  # nothing tells of what is taken in from a file
        {},
    ),
    "something unheard of happens to a message": (
        f"update message set time_updated = {_AT + 9999} where id = 'w1'",
        "message.embroidered",
        {},
    ),
    "it is reverted to an early prompt": (
        "update session set revert = '{\"messageID\": \"u1\"}' where id = 'ses_b'",
        "session.updated",
        {},
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_was_changed_before_the_mark_is_read_again(change: str, base: sqlite3.Connection, source: Source) -> None:
    reading, _ = turns(base, source)
    assert gone_on(source, reading.mark) is not None
    done, kind, data = CHANGES[change]
    base.execute(done)
    log(base, kind, data)
    assert gone_on(source, reading.mark) is None


@pytest.mark.parametrize("base", ["with events"], indirect=True)
def test_where_the_log_of_events_begins_anew_it_proves_nothing(base: sqlite3.Connection, source: Source) -> None:
    reading, _ = turns(base, source)
    assert reading.mark.state["place"]["event"]
    [most] = base.execute("select max(seq) from event where aggregate_id = 'ses_b'").fetchone()
    base.execute("delete from event")
    for _ in range(most + 3):
        log(base, "session.updated", {})
    assert gone_on(source, reading.mark) is not None  # for nothing was changed
    base.execute(f"update message set time_updated = {_AT + 9999} where id = 'w1'")
    assert gone_on(source, reading.mark) is None
    base.execute("delete from event where seq = ?", (most + 1,))
    assert gone_on(source, reading.mark) is None


@pytest.mark.parametrize(("tail", "goes_on"), [("u1", False), ("u3", True), (None, True)])
def test_a_compaction_that_keeps_what_is_before_the_mark_is_read_with_it(
    tail: str | None, goes_on: bool, base: sqlite3.Connection, source: Source
) -> None:
    reading, _ = turns(base, source)
    say(base, "x", 9000, {"role": "user"}, {"type": "compaction", "auto": True, "tail_start_id": tail})
    summary = {"role": "assistant", "parentID": "x", "summary": True}
    say(base, "y", 9001, summary, {"type": "text", "text": "short"})
    assert (gone_on(source, reading.mark) is not None) == goes_on
    # The newest mark may stand between what was asked for and what came of it.
    whole = FORM.read(source)
    used_up(whole)
    turn(base, 10)
    gone_on(source, whole.mark)


def test_a_revert_behind_the_mark_and_what_it_removes_are_followed(base: sqlite3.Connection, source: Source) -> None:
    reading, _ = turns(base, source)
    base.execute("update session set revert = '{\"messageID\": \"u3\"}' where id = 'ses_b'")
    assert gone_on(source, reading.mark) is not None
    base.execute("delete from message where id in ('u3', 'v3', 'w3')")
    log(base, "message.removed", {"messageID": "u3"})
    base.execute("update session set revert = null where id = 'ses_b'")
    turn(base, 5)
    assert gone_on(source, reading.mark) is not None


def test_a_mark_of_another_version_is_none(base: sqlite3.Connection, source: Source) -> None:
    reading, _ = turns(base, source)
    reading.mark.state.pop("last")
    assert FORM.growth(source, reading.mark) is None


def test_what_is_in_the_wal_is_noticed_and_brought_in_once(
    base: sqlite3.Connection, source: Source, tmp_path: Path
) -> None:
    turns(base, source)
    found = {}
    for way in ("carried over", "all of it again"):
        with turnlog.open(tmp_path / way, durability="flush") as home:
            store = interior(home).creator.store
            for number in range(10, 13) if way == "carried over" else (13,):
                name = bring(home, source)
                with opened(store, store.open(name, read_only=True)) as history:
                    assert resumestate.is_up_to_date(store, history, source)
                    if number < 13:
                        before = Path(source.path).stat()
                        turn(base, number)
                        assert Path(source.path).stat().st_mtime_ns == before.st_mtime_ns, "it is in the WAL"
                        assert not resumestate.is_up_to_date(store, history, source)
            with home.read(bring(home, source)) as session:
                entries = [(e.type, e.id) for e in session.entries() if not is_ours(e.id)]
                found[way] = entries, [(m.role, m.blocks) for m in session.context()]
    assert found["carried over"] == found["all of it again"]


def bring(home: turnlog.Home, source: Source) -> str:
    done = home.import_sessions(source.path, agent="opencode")
    return next(one.id for one in done if one.source.key == source.key)

"""`turnlog hook` at both ends of a turn, as whole processes beside a bare Python: what an agent waits for.

And what it takes to end a turn, and to bring in what was said, when there were 2,000 turns before it and not 20.
"""

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import turnlog
from bench.ground import Ground
from bench.measures import Row, ratio
from turnlog.exchange.importing.sessionimport import import_source
from turnlog.formats import Source, format_of
from turnlog.hooks import hooked_agent
from turnlog.live.event import LiveEvent
from turnlog.live.payload import Payload
from turnlog.session.interior import interior
from turnlog.thread.space.limit import keep_limit

TITLE = "a hook, whole processes"
SIZES = ((3, 7.0), (2_000, 12.0), (20_000, 30.0))
ROUNDS = 11
FEW, MANY = 20, 2_000
PROGRAM = Path(sys.executable).with_name("turnlog")


def measure(ground: Ground) -> list[Row]:
    rows = [row for files, bar in SIZES for row in _processes(ground, files, bar)]
    return [*rows, *_histories(ground)]


def _processes(ground: Ground, files: int, bar: float) -> list[Row]:
    place = ground.folder / f"hook-{files}" / "project"
    for number in range(files):
        path = place / f"pkg{number % 40:02}" / f"file{number:05}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"number = {number}\n" * 20)
    env = _environment(ground, place.parent)
    times: dict[str, list[float]] = {"begin": [], "end": [], "python -c pass": []}
    for number in range(-2, ROUNDS):
        told = {"session_id": "bench", "turn_id": f"t{number + 2}", "cwd": str(place)}
        (place / "pkg00/file00000.py").write_text(f"round = {number}\n")
        taken = {
            "begin": _took(lambda told=told: _hook(env, "UserPromptSubmit", told)),
            "end": _took(lambda told=told: _hook(env, "Stop", told)),
            "python -c pass": _took(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True)),
        }
        time.sleep(1.6)  # what goes on behind the agent's back is not what it waits for
        for name in times if number >= 0 else ():
            times[name].append(taken[name])
    best = {name: [min(taken)] for name, taken in times.items()}
    return [
        ratio(f"{TITLE}, {name}, {files:,} files, best of {ROUNDS}", best, name, "python -c pass", bar=bar)
        for name in ("begin", "end")
    ]


def _environment(ground: Ground, place: Path) -> dict[str, str]:
    env = {**os.environ, "TURNLOG_HOME": str(place / "home"), "PYTHONPYCACHEPREFIX": str(ground.folder / "bytecode")}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    return env


def _hook(env: dict[str, str], event: str, told: dict[str, str], name: str = "codex") -> None:
    subprocess.run([PROGRAM, "hook", name, event], input=json.dumps(told).encode(), env=env, check=True)


def _took(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _histories(ground: Ground) -> list[Row]:
    ends: dict[str, list[float]] = {}
    brought: dict[str, list[float]] = {}
    shelved: dict[str, list[float]] = {}
    for turns in (FEW, MANY):
        place = ground.folder / f"hook-after-{turns}"
        ends[f"after {turns:,}"], brought[f"after {turns:,}"] = _grown(ground, place, turns)
        shelved[f"after {turns:,}"] = _in_database(place / "opencode", turns)
    few, many = f"after {FEW:,}", f"after {MANY:,}"
    return [
        ratio(f"the end of a turn, whole processes, best of {ROUNDS}", _best(ends), many, few, bar=1.5),
        ratio(f"bringing in what was said, best of {ROUNDS}", _best(brought), many, few, bar=2.0),
        ratio(f"the same from opencode's database, best of {ROUNDS}", _best(shelved), many, few, bar=2.0),
    ]


def _best(times: dict[str, list[float]]) -> dict[str, list[float]]:
    return {name: [min(taken)] for name, taken in times.items()}


def _grown(ground: Ground, place: Path, turns: int) -> tuple[list[float], list[float]]:
    """How long each took in the last rounds of so many turns of Claude Code."""
    project, file = place / "project", place / ".claude/projects/-p/bench.jsonl"
    project.mkdir(parents=True)
    file.parent.mkdir(parents=True)
    (project / "a.py").write_text("x = 1\n")
    os.environ["TURNLOG_HOME"] = str(place / "home")
    env = _environment(ground, place)
    source, parent = Source("claude-code", str(file)), None
    ends: list[float] = []
    brought: list[float] = []
    with turnlog.open(place / "home", durability="flush") as home:
        for number in range(turns + ROUNDS):
            native = f"p{number}"
            _event(project, native).apply("begin")
            parent = _said(file, native, number, parent)
            (project / "a.py").write_text(f"x = {number}\n")
            if number >= turns:
                told = {"session_id": "bench", "prompt_id": native, "cwd": str(project)}
                ends.append(_took(lambda told=told: _hook(env, "Stop", told, "claude-code")))
                time.sleep(1.6)
            else:
                over = _event(project, native)
                over.apply("end")
                if number % 20 == 0:  # as hooks do behind an agent's back
                    keep_limit(over.store, over.limit_bytes, is_full=over.is_full)
            if number % 50 == 0 or number >= turns:
                read = format_of("claude-code").read
                brought.append(_took(lambda read=read: import_source(interior(home).creator, source, read(source))))
    del os.environ["TURNLOG_HOME"]
    return ends[-ROUNDS:], brought[-ROUNDS:]


def _event(project: Path, native: str) -> LiveEvent:
    told = json.dumps({"session_id": "bench", "prompt_id": native, "prompt": "go", "cwd": str(project)})
    return LiveEvent.open(hooked_agent("claude-code"), Payload(told.encode(), {}), os.getpid())


def _said(file: Path, native: str, number: int, parent: str | None) -> str:
    """A prompt, four calls with their results, and an answer, as Claude Code writes them."""
    lines: list[dict[str, object]] = []

    def add(kind: str, message: dict[str, object]) -> None:
        nonlocal parent
        uuid = f"{number:08}-0000-4000-8000-{len(lines):012}"
        lines.append({
            "parentUuid": parent, "isSidechain": False, "type": kind, "uuid": uuid, "sessionId": "bench",
            "cwd": "/p", "version": "2.1.197", "timestamp": "2026-11-15T12:00:00.000Z", "promptId": native,
            "message": {"role": kind, **message},
        })  # fmt: skip
        parent = uuid

    add("user", {"content": f"prompt {number}"})
    for call in range(4):
        id = f"call_{number}_{call}"
        used = {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "ls " * 50}}
        add("assistant", {"id": f"msg_{number}_{call}", "model": "m", "content": [used], "usage": {"input_tokens": 9}})
        add("user", {"content": [{"type": "tool_result", "tool_use_id": id, "content": "line\n" * 200}]})
    add("assistant", {"id": f"msg_{number}", "model": "m", "content": [{"type": "text", "text": "Done. " * 40}]})
    with file.open("a") as out:
        out.writelines(json.dumps(line) + "\n" for line in lines)
    assert parent is not None
    return parent


TABLES = """
create table session (id text primary key, time_created integer, time_updated integer);
create table message (id text primary key, session_id text, time_created integer, time_updated integer, data text);
create table part (id text primary key, message_id text, session_id text, time_created integer,
  time_updated integer, data text);
create table event (id text primary key, aggregate_id text, seq integer, type text, data text);
create index message_session_time_created_id_idx on message (session_id, time_created, id);
create index part_message_id_id_idx on part (message_id, id);
create index part_session_idx on part (session_id);
create unique index event_aggregate_seq_idx on event (aggregate_id, seq);
insert into session values ('ses_bench', 1, 1);
"""


def _in_database(place: Path, turns: int) -> list[float]:
    """How long it took to bring in each of the last turns of opencode."""
    place.mkdir()
    source, read = Source("opencode", str(place / "opencode.db"), "ses_bench"), format_of("opencode").read
    brought: list[float] = []
    with (
        sqlite3.connect(place / "opencode.db", isolation_level=None) as base,
        turnlog.open(place / "home", durability="flush") as home,
    ):
        base.execute("pragma journal_mode = wal")
        base.executescript(TABLES)
        for number in range(turns + ROUNDS):
            base.execute("begin")
            _told(base, number)
            base.execute("commit")
            if number % 200 == 0 or number >= turns:
                brought.append(_took(lambda: import_source(interior(home).creator, source, read(source))))
    base.close()
    return brought[-ROUNDS:]


def _told(base: sqlite3.Connection, number: int) -> None:
    """The same turn as opencode writes it: messages, their parts, and an event for each."""
    [seq] = base.execute("select count(*) from event").fetchone()

    def log(kind: str, data: dict[str, object]) -> None:
        nonlocal seq
        row = (f"evt_{seq:09}", seq, f"{kind}.1", json.dumps(data))
        base.execute("insert into event values (?, 'ses_bench', ?, ?, ?)", row)
        seq += 1

    def add(role: str, *parts: dict[str, object]) -> None:
        at, id = 1_900_000_000_000 + seq, f"msg_{seq:09}"
        info = {"role": role, "modelID": "m", "finish": "stop", "time": {"created": at, "completed": at}}
        base.execute("insert into message values (?, 'ses_bench', ?, ?, ?)", (id, at, at, json.dumps(info)))
        log("message.updated", {"info": {**info, "id": id}})
        for part in parts:
            row = (f"prt_{seq:09}", id, at, at, json.dumps(part))
            base.execute("insert into part values (?, ?, 'ses_bench', ?, ?, ?)", row)
            log("message.part.updated", {"part": {**part, "messageID": id}})

    add("user", {"type": "text", "text": f"prompt {number}"})
    for call in range(4):
        state = {"status": "completed", "input": {"command": "ls " * 50}, "output": "line\n" * 200}
        tool: dict[str, object] = {"type": "tool", "callID": f"call_{number}_{call}", "tool": "bash", "state": state}
        add("assistant", {"type": "step-start"}, tool, {"type": "step-finish"})
    add("assistant", {"type": "step-start"}, {"type": "text", "text": "Done. " * 40}, {"type": "step-finish"})

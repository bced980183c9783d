"""Files of other agents that are out to take time and memory: what they may take is bounded by their size, and told."""

import json
import random
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import zstandard

import turnlog
from tests.formats.long import AGENTS, cost, goose_database, import_all, long_session, opencode_database, read_all
from turnlog.errors import Corrupt
from turnlog.exchange.importing.run import import_all as bring_all
from turnlog.formats import Source, find, format_of
from turnlog.interop import sqlite as _sqlite
from turnlog.interop.jsonline import RATIO, UNPACKED, lines
from turnlog.log.zstd import unpacked
from turnlog.session.interior import interior
from turnlog.store.memory.log import MemoryLog

MEGABYTE = 1 << 20
# ── databases ─────────────────────────────────────────────────────────────────────────────────────

BIG = "(printf('%.*c', 20000000, 'x'))"
GENERATED = {
    "goose": [
        "create table sessions (id text, working_dir text, created_at text)",
        f"create table messages (id integer primary key, session_id text, role text, content_json text as {BIG})",
        "insert into sessions values ('s', '/there', '2026-01-01')",
        "insert into messages (session_id, role) values ('s', 'user')",
    ],
    "opencode": [
        "create table session (id text, time_created int, time_updated int)",
        f"create table message (id text, session_id text, time_created int, data text as {BIG})",
        "create table part (id text, message_id text, data text)",
        "insert into session values ('ses_1', 1, 1)",
        "insert into message (id, session_id, time_created) values ('m', 'ses_1', 2)",
    ],
}
VIEWED = {
    "goose": [
        "create table sessions (id text, working_dir text, created_at text)",
        "insert into sessions values ('s', '/there', '2026-01-01')",
        f"create view messages as select 1 id, 's' session_id, 'user' role, {BIG} content_json",
    ],
    "opencode": [
        "create table session (id text, time_created int, time_updated int)",
        "create table part (id text, message_id text, data text)",
        "insert into session values ('ses_1', 1, 1)",
        f"create view message as select 'm' id, 'ses_1' session_id, 2 time_created, {BIG} data",
    ],
}
NAMES = {"goose": "sessions.db", "opencode": "opencode.db"}


def database(path: Path, statements: list[str]) -> Path:
    with closing(sqlite3.connect(path)) as base:
        for statement in statements:
            base.execute(statement)
        base.commit()
    return path


SHOWN = """
import resource, sys
from turnlog.cli.program import run
most = {most} << 20
resource.setrlimit(resource.RLIMIT_AS, (most, most))
sys.exit(run(["show", sys.argv[1]]))
"""


@pytest.mark.parametrize("agent", NAMES)
@pytest.mark.parametrize("kind", [GENERATED, VIEWED])
def test_what_a_database_computes_is_not_read(tmp_path: Path, agent: str, kind: dict[str, list[str]]):
    path = database(tmp_path / NAMES[agent], kind[agent])
    assert path.stat().st_size <= 32 << 10
    assert list(find(str(path), agents=[agent])) == []
    steps = list(format_of(agent).read(Source(agent, str(path), "s")).steps)
    assert len(str(steps)) < 1000


def test_it_is_a_typed_error_in_little_memory(tmp_path: Path):
    path = database(tmp_path / "sessions.db", GENERATED["goose"])
    call = [sys.executable, "-c", SHOWN.format(most=600), str(path)]
    done = subprocess.run(call, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 3, done.stderr
    assert done.stderr.startswith("error: no session of another agent at ")


def test_a_value_that_is_too_long_ends_the_reading_and_is_told(tmp_path: Path):
    path = goose_database(tmp_path / "sessions.db", 3)
    with closing(sqlite3.connect(path)) as base:
        base.execute("update messages set content_json = zeroblob(70000000) where id = 1")
        base.commit()
    reading = format_of("goose").read(Source("goose", str(path), "20250615_3"))
    assert len(list(reading.steps)) <= 1
    assert "cannot be read any further" in reading.problems[-1].what


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A tenth of the work that a file may take, so that tests need less."""
    monkeypatch.setattr(_sqlite, "_STEPS", 5_000_000)
    monkeypatch.setattr(_sqlite, "_budgets", {})
    yield


def test_a_database_without_an_index_takes_no_longer_than_it_may(tmp_path: Path, little: None):
    """Each message looks through all the parts: so many times so many."""
    path = opencode_database(tmp_path / "opencode.db", 4000)
    with closing(sqlite3.connect(path)) as base:
        base.executescript("drop index p; drop index m; vacuum")
    reading = format_of("opencode").read(Source("opencode", str(path), "ses_1"))
    found = list(reading.steps)
    assert 0 < len(found) < 4000
    assert "takes longer to read than a file of its size may" in reading.problems[-1].what


def test_its_sessions_share_what_it_may_take(tmp_path: Path, little: None):
    path = opencode_database(tmp_path / "opencode.db", 1500)
    with closing(sqlite3.connect(path)) as base:
        base.executescript("drop index p; drop index m; vacuum")
    first = format_of("opencode").read(Source("opencode", str(path), "ses_1"))
    assert len(list(first.steps)) == 1500
    told: list[Any] = []
    for _ in range(8):
        try:
            again = format_of("opencode").read(Source("opencode", str(path), "ses_1"))
            list(again.steps)
            told += again.problems
        except OSError as error:
            told.append(error)
    assert any("than a file of its size may" in str(problem) for problem in told)


def test_parts_of_many_messages_of_one_name_are_counted(tmp_path: Path, little: None, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(_sqlite, "_ROWS", 1000)
    path = opencode_database(tmp_path / "opencode.db", 600)
    with closing(sqlite3.connect(path)) as base:
        base.execute("update message set id = 'm'")
        base.execute("update part set message_id = 'm'")
        base.commit()
    reading = format_of("opencode").read(Source("opencode", str(path), "ses_1"))
    assert sum(1 for _ in reading.steps) < 600
    assert "more than a file of its size can hold" in reading.problems[-1].what


def test_an_honest_database_is_read_whole(tmp_path: Path):
    for agent, path in (
        ("goose", goose_database(tmp_path / "sessions.db", 3000)),
        ("opencode", opencode_database(tmp_path / "opencode.db", 3000)),
    ):
        (source,) = find(str(path), agents=[agent])
        reading = format_of(agent).read(source)
        assert sum(1 for _ in reading.steps) == 3000
        assert reading.problems == []


# ── compressed ────────────────────────────────────────────────────────────────────────────────────


def bomb(data: bytes, times: int, **options: Any) -> bytes:
    """So many times that data, in few bytes."""
    maker = zstandard.ZstdCompressor(level=19, **options).compressobj()
    return b"".join(maker.compress(data) for _ in range(times)) + maker.flush()


@pytest.mark.parametrize("content", [b"\n", b"x"])
def test_few_compressed_bytes_are_not_read_for_ever(tmp_path: Path, content: bytes):
    path = tmp_path / "rollout-2026-01-01T00-00-00-x.jsonl.zst"
    path.write_bytes(bomb(content * (MEGABYTE // len(content)), 64))
    size = path.stat().st_size
    assert size < 10_000
    found = list(lines(str(path)))
    most = UNPACKED + RATIO * size
    assert sum(line.length + line.is_ended for line in found) <= most
    assert found[-1].problem is not None
    assert f"more than {most} bytes come out of it" in found[-1].problem.what


def test_it_is_told_and_the_rest_is_there(tmp_path: Path):
    id = "01996135-afde-7911-97f0-d863511eca56"
    path = tmp_path / f"rollout-2026-01-01T00-00-00-{id}.jsonl.zst"
    meta = {"id": id, "timestamp": "2026-01-01T00:00:00Z", "cwd": "/there", "cli_version": "0.1"}
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
    records = [{"type": "session_meta", "payload": meta}, {"type": "response_item", "payload": said}]
    head = "".join(json.dumps({"timestamp": "2026-01-01T00:00:00Z", **record}) + "\n" for record in records)
    path.write_bytes(zstandard.ZstdCompressor().compress(head.encode()) + bomb(b"\n" * MEGABYTE, 16))
    (source,) = find(str(path), agents=["codex"])
    reading = format_of("codex").read(source)
    assert len(list(reading.steps)) >= 1
    assert any("the rest was not read" in problem.what for problem in reading.problems)
    path.write_bytes(zstandard.ZstdCompressor().compress(head.encode()) + b"(\xb5/\xfd damaged")
    reading = format_of("codex").read(source)
    list(reading.steps)
    assert any("cannot be unpacked any further" in problem.what for problem in reading.problems)


def test_what_a_frame_says_of_its_size_is_not_believed():
    data = bytes(8 * MEGABYTE)
    for known in (True, False):
        frame = zstandard.ZstdCompressor(write_content_size=known).compress(data)
        assert unpacked(frame, len(data)) == data
        assert unpacked(frame, len(data) - 1) is None
        assert unpacked(frame[:-3], len(data)) != data or not known
    forged = bytes.fromhex("28b52ffde0") + (1 << 60).to_bytes(8, "little") + bytes(10)
    assert unpacked(forged, 1 << 62) is None
    assert unpacked(b"", 10) is None


def test_a_blob_of_a_tenant_cannot_be_a_bomb():
    blobs = pytest.importorskip("turnlog.store.postgres.blobs")
    packed = b"\1" + zstandard.ZstdCompressor().compress(bytes(64 * MEGABYTE))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(Corrupt):
        blobs._unpacked(packed, "sha256:00")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 << 10


# ── long ──────────────────────────────────────────────────────────────────────────────────────────


class Counted(list[Any]):
    """A list that counts how many of its items were looked at or copied."""

    touched = 0

    def __iter__(self) -> Iterator[Any]:
        for item in super().__iter__():
            Counted.touched += 1
            yield item

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        Counted.touched += len(found) if isinstance(key, slice) else 1
        return found


def test_an_append_in_memory_looks_at_nothing_but_the_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    counts: list[int] = []
    made = MemoryLog.__init__

    def counted(log: MemoryLog, *args: Any, **more: Any) -> None:
        made(log, *args, **more)
        log.entries = Counted()

    monkeypatch.setattr(MemoryLog, "__init__", counted)
    for count in (400, 1600):
        source = long_session("claude-code", tmp_path / str(count), count)
        Counted.touched = 0
        import_all(source)
        counts.append(Counted.touched)
    assert counts[1] < 4 * 1.5 * counts[0], counts


@pytest.mark.parametrize("agent", AGENTS)
def test_reading_takes_time_in_proportion(agent: str, tmp_path: Path):
    """Eight times the lines take eight times as long, and not sixty-four; the best of two, for others work here."""
    short, long = (long_session(agent, tmp_path / str(count), count) for count in (150, 1200))
    assert read_all(long) > 7.5 * read_all(short)
    times = [min(cost(lambda source=source: read_all(source)) for _ in range(2)) for source in (short, long)]
    assert times[1] < 8 * 3.5 * times[0] + 0.05, times


def test_a_database_whose_sessions_cannot_be_listed_is_told_and_stops_nobody(tmp_path: Path):
    recorded = Path(__file__).parent / "agents" / "opencode" / "recorded" / "opencode.db"
    data, chance = recorded.read_bytes(), random.Random(1)
    at, end = sorted((chance.randrange(len(data)), chance.randrange(len(data))))
    path = tmp_path / "opencode.db"
    path.write_bytes(data[:end] + data[at:] if chance.random() >= 0.5 else data[:at] + data[end:])
    found = list(format_of("opencode").find(str(path)))
    assert found == [Source("opencode", str(path))]
    with turnlog.open("memory:") as home:
        [item] = bring_all(interior(home).creator, found)
    assert (item.id, item.added) == ("", 0)
    assert "cannot be opened" in item.problems[0].what
    assert str(path) in item.problems[0].what

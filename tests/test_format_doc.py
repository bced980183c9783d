"""The reader in docs/format.md, which anybody could have written, reads what we wrote."""

import re
from pathlib import Path

import msgspec
import pytest

import turnlog
from tests.store.damaged import Victim
from turnlog import Custom, Message, Note, Text, ToolCall, Usage
from turnlog.log.codec import decode
from turnlog.session.interior import interior

FORMAT = Path(__file__).resolve().parents[1] / "docs" / "format.md"


@pytest.fixture(scope="module")
def read():
    """`read(path)` of the document: (seq, entry as a dict) of every entry that counts."""
    blocks = re.findall(r"```python\n(.*?)```", FORMAT.read_text(encoding="utf-8"), re.DOTALL)
    [code] = [block for block in blocks if "def read(path)" in block]
    assert len(code.strip().splitlines()) <= 32, "a reader of 30 lines"
    names: dict = {}
    exec(compile(code, "docs/format.md", "exec"), names)
    return names["read"]


def same(read, log: Victim) -> bool:
    """Whether the document's reader sees what the library sees, entry by entry and field by field."""
    theirs = list(read(log.path))
    ours = [entry for entry in log.read() if not entry.unverified]
    assert [seq for seq, _ in theirs] == [entry.seq for entry in ours]
    for (seq, fields), entry in zip(theirs, ours, strict=True):
        assert (fields["seq"], fields["type"], fields["id"]) == (seq, entry.type, entry.id)
        body = msgspec.json.encode(fields)
        assert msgspec.structs.replace(decode(resealed(body)), unverified=False) == entry
    return True


def resealed(body: bytes) -> bytes:
    import zlib

    return body[:-1] + b',"c":"%08x"}' % zlib.crc32(body[:-1])


@pytest.fixture
def log(tmp_path):
    log = Victim(tmp_path)
    with log.home() as home:
        session = home.resume(log.id)
        with session.turn():
            one = session.user("ünï ☃ \u2028 code", agent="a")
            session.assistant([ToolCall(id="x", name="y", input={"a": [1, 2.5, None]})], usage=Usage(input_tokens=3))
        session.append(Custom(kind="x.y", data={"deep": {"er": []}}), Note(text="n", meta={"m": 1}))
        session.tool_result("x", "z" * 100_000)
        session.compact("sum", keep=1)
        session.rewind(to=one)
        session.undo()
        session.spend(Usage(output_tokens=1), why="title")
        session.spawn(agent="sub")
        for index in range(300):
            session.append(Message(role="user", blocks=[Text(text=str(index))]))
    log.learn()
    return log


def test_it_reads_a_whole_log(read, log):
    assert same(read, log)
    kinds = {fields["type"] for _, fields in read(log.path)}
    assert {
        "session",
        "writer",
        "message",
        "set",
        "custom",
        "compaction",
        "head",
        "turn",
        "usage",
        "child",
        "fold",
    } <= kinds


@pytest.mark.parametrize("cut", [1, 5, 60, 200, 700])
def test_it_reads_a_log_that_was_cut_short(read, log, cut):
    log.put(log.bytes[:-cut])
    assert same(read, log)
    log.check_append(log.read())
    assert same(read, log)


def test_it_hides_an_unfinished_batch_also_after_more_was_written(read, tmp_path):
    log = Victim(tmp_path)
    log.put(log.bytes[: log.line(-1)[0] + 9])
    assert same(read, log)
    log.check_append(log.read())
    assert same(read, log)
    assert not {entry.seq for entry in log.entries[-3:-1]} & {seq for seq, _ in read(log.path)}


def test_it_steps_over_damage(read, log):
    for index in (0, 3, 7, 8, 20, 60):
        offset, line = log.line(index)
        log.put(log.bytes[: offset + 10] + b"\0" * 20 + log.bytes[offset + 30 :])
        assert same(read, log)
        log.replace(index, line[:-1])
        assert same(read, log)
        log.replace(index, line + line)
        assert same(read, log)


def test_it_reads_a_fork_and_an_empty_session(read, tmp_path):
    with turnlog.open(tmp_path) as home:
        session = home.create(id="one")
        session.user("x")
        session.fork(id="two").user("y")
        home.create(id="three")
    for name in ("one", "two", "three"):
        with turnlog.open(tmp_path) as home:
            own = [entry.seq for entry in interior(home).store.open(name).read()]
        assert [seq for seq, _ in read(tmp_path / "sessions" / f"{name}.jsonl")] == own

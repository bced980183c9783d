"""Cursor CLI: the messages that a root leads to, and transcripts where there is nothing else."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

import turnlog
from tests.formats.agents.composed import CHAT, CURSOR_SAID, LINES, SUB, cursor
from tests.formats.long import cursor_chat
from tests.formats.test_small_agents import bring, seen, started, words
from turnlog import Home, Image, Message, ToolCall
from turnlog.formats import Reading, Source, format_of
from turnlog.interop.protobuf import length_fields
from turnlog.log.part import Spawned

FORMAT = format_of("cursor-cli")


@pytest.fixture
def home() -> Iterator[Home]:
    with turnlog.open("memory:") as home:
        yield home


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """Where Cursor keeps what it keeps."""
    cursor(tmp_path / ".cursor")
    return tmp_path / ".cursor"


def read(path: Path) -> Reading:
    reading = FORMAT.read(Source("cursor-cli", str(path)))
    reading.steps = iter(list(reading.steps))
    return reading


def test_a_chat_is_what_its_root_names_and_its_subagent_lies_in_lines(home: Home, base: Path):
    [store] = base.rglob("store.db")
    before = store.read_bytes()
    done = {item.source.path.rpartition("/")[2]: item for item in bring(home, base)}
    assert set(done) == {"store.db", f"{SUB}.jsonl"}  # the transcript of the chat says less than its database
    assert store.read_bytes() == before
    assert "secret" not in str([list(home.read(item.id).entries()) for item in done.values()])
    with home.resume(done["store.db"].id) as session:
        assert seen(session) == [
            ("user", "Summary."), ("user", "<user_query>\nand this?\n</user_query>"), ("assistant", "A dot."),
            ("call", "Read"), ("result", "PNG"),
        ]  # fmt: skip
        assert (session.title, session.workspace, session.get("model")) == ("Files", "/home/ada/orchard", "composer-2")
        said = [entry for entry in session.entries() if isinstance(entry, Message)]
        assert [one.display for one in said if one.role == "user"] == [False, "list files", "and this?"]
        assert said[2].at == datetime(2026, 9, 21, 14, 20, tzinfo=UTC)
        assert any(isinstance(block, Image) and block.media_type == "image/png" for one in said for block in one.blocks)
        assert "never said" not in str(said)
        assert session.usage().own == turnlog.Usage()
    with home.resume(done[f"{SUB}.jsonl"].id) as child:
        assert started(child).spawned == Spawned(done["store.db"].id)
        assert child.workspace == "/home/ada/orchard"
        assert [type(block) for block in child.messages()[-1].blocks][1:] == [ToolCall]


def test_a_chat_that_grows_is_as_if_read_once(home: Home, tmp_path: Path):
    folder = tmp_path / "chats" / "0" / CHAT
    for end in range(1, len(CURSOR_SAID) + 1):
        cursor_chat(folder, CURSOR_SAID[:end])
        grown = bring(home, tmp_path)[0]
    with turnlog.open("memory:") as other:
        once = bring(other, tmp_path)[0]
        with other.resume(once.id) as a, home.resume(grown.id) as b:
            assert seen(a) == seen(b)
            assert [words(one) for one in a.messages()] == [words(one) for one in b.messages()]


def test_the_same_words_twice_are_two_messages(home: Home, tmp_path: Path):
    cursor_chat(tmp_path / "chats" / "0" / CHAT, [{"role": "user", "content": "yes"}] * 3)
    [done] = bring(home, tmp_path)
    with home.resume(done.id) as session:
        assert [words(one) for one in session.messages()] == ["yes"] * 3


def test_of_a_chat_in_two_folders_the_one_counts_that_is_its_own(base: Path):
    other = base / "chats" / "0123" / CHAT
    cursor_chat(other, CURSOR_SAID * 20)
    (other / "meta.json").write_text(json.dumps({"cwd": "/home/ada/orchard"}))
    [own] = [path for path in base.rglob("store.db") if path.parent != other]
    assert [source.path for source in FORMAT.find(str(base / "chats"))] == [str(own)]
    (own.parent / "meta.json").unlink()
    assert [source.path for source in FORMAT.find(str(base / "chats"))] == [str(other / "store.db")]


def test_what_is_missing_or_no_message_costs_itself(tmp_path: Path):
    path = cursor_chat(tmp_path / "c", CURSOR_SAID[:3], latestRootBlobId="00" * 32)
    assert [problem.what for problem in read(path).problems] == ["a node that is not there"]
    path = cursor_chat(tmp_path / "d", [CURSOR_SAID[0], 7, CURSOR_SAID[2]])
    reading = read(path)
    assert len(list(reading.steps)) == 2
    assert [problem.what for problem in reading.problems] == ["a message that is not JSON"]
    path = cursor_chat(tmp_path / "e", CURSOR_SAID)
    path.with_name("meta.json").write_text("{")
    assert len(list(read(path).steps)) == len(CURSOR_SAID)


def test_a_transcript_is_read_where_there_is_no_database(home: Home, tmp_path: Path):
    folder = tmp_path / "projects" / "x" / "agent-transcripts"
    folder.mkdir(parents=True)
    (folder / f"{CHAT}.jsonl").write_text(
        "".join(json.dumps(line) + "\n" for line in [*LINES, {"type": "error"}, {"type": "new"}])
    )
    [done] = bring(home, tmp_path)
    with home.resume(done.id) as session:
        assert [one.display or words(one) for one in session.messages()] == ["count", "Counting."]


def test_any_bytes_are_fields_or_none():
    chance = random.Random(3)
    for _ in range(2_000):
        assert all(number >= 0 for number, _ in length_fields(chance.randbytes(chance.randrange(80))))


def test_a_database_that_is_damaged_gives_problems_and_nothing_else(base: Path):
    [path] = base.rglob("store.db")
    data, chance = path.read_bytes(), random.Random(11)
    for _ in range(30):
        at, size = chance.randrange(len(data)), chance.randrange(1, 400)
        path.write_bytes(chance.choice([data[:at], data[:at] + chance.randbytes(size) + data[at + size :]]))
        with turnlog.open("memory:") as other:
            assert all(problem.what for item in bring(other, path) for problem in item.problems)


def test_nodes_that_lead_to_each_other_end(tmp_path: Path):
    import hashlib
    import sqlite3

    path = cursor_chat(tmp_path / "c", CURSOR_SAID[:1])
    name = "ab" * 32
    node = (
        b"\x12\x20" + bytes.fromhex(name) + b"\x0a\x20" + hashlib.sha256(json.dumps(CURSOR_SAID[0]).encode()).digest()
    )
    with sqlite3.connect(path) as base:
        base.execute("insert into blobs values (?, ?)", (name, node))
        told = json.dumps({"latestRootBlobId": name})
        base.execute("update meta set value = ?", (told,))
    base.close()
    reading = read(path)
    assert len(list(reading.steps)) == 1
    assert reading.problems == []


@pytest.mark.parametrize(("most", "problems"), [(1, ["more than 1 messages"]), (2, []), (3, [])])
def test_only_what_was_left_out_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, problems: list[str]
):
    """The root is one of those that are looked at."""
    path = cursor_chat(tmp_path / "c", CURSOR_SAID[:1])
    monkeypatch.setattr("turnlog.formats.cursor_cli._MOST", most)
    assert [problem.what for problem in read(path).problems] == problems

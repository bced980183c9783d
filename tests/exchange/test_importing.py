"""Which sessions of other agents are imported, in which order, and as which session here."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from zlib import crc32

import pytest

import turnlog
from turnlog.exchange.exporting import handover
from turnlog.exchange.exporting.handover import hand_over
from turnlog.exchange.importing.run import OpenedSource, import_all, parents_first
from turnlog.exchange.importing.sessionimport import import_source
from turnlog.exchange.keeping.keptfile import KeptFiles
from turnlog.exchange.source import source_of
from turnlog.formats import Forked, Jump, Reading, Record, SessionHeader, Source, Step
from turnlog.log.block import Text
from turnlog.log.codec import CHECKSUM
from turnlog.log.entry import Message
from turnlog.log.usage import Usage
from turnlog.session.interior import interior


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    return tmp_path / "person"


def forked(name: str, parent: str) -> OpenedSource:
    header = SessionHeader(id=name, fork=Forked(parent))
    return OpenedSource(Source("test", f"/{name}"), Reading(header=header, steps=iter(())))


def order(*opened: OpenedSource) -> str:
    return " ".join(reading.header.id for _, reading in parents_first(list(opened)))


def test_each_comes_once_and_after_its_parent():
    assert order(forked("c", "b"), forked("b", "a"), forked("d", "c"), forked("other", "gone")) == "b c d other"


def test_sessions_that_are_each_others_parents_come_all_the_same():
    assert sorted(order(forked("a", "b"), forked("b", "a"), forked("self", "self"), forked("c", "a")).split()) == [
        "a", "b", "c", "self",
    ]  # fmt: skip


def test_an_id_that_is_the_beginning_of_another_is_not_taken_for_it(person: Path):
    folder = person / ".claude/projects/-work"
    folder.mkdir(parents=True)
    for name in ("ses-12", "ses-1"):
        assert source_of("claude-code", "ses-1", "") is None
        line = {"type": "user", "uuid": "u", "sessionId": name, "message": {"role": "user", "content": "hello"}}
        (folder / f"{name}.jsonl").write_text(json.dumps(line) + "\n")
    assert source_of("claude-code", "ses-1", "") == Source("claude-code", str(folder / "ses-1.jsonl"))


def test_a_copy_that_its_agent_deleted_is_still_known_as_one(person: Path, tmp_path: Path):
    location = str(tmp_path / "home")
    with turnlog.open(location) as home, home.create(id="one", workspace=str(tmp_path)) as session:
        session.user("where is the needle?")
        session.assistant("in the haystack")
        path = hand_over(session, "codex").path
        assert path is not None
        kept = KeptFiles(location)
        kept.keep("codex", path)
        os.unlink(path)
        [item] = import_all(interior(home).creator, list(kept.gone("codex")))
        assert (item.copy_of, item.problems) == ("one", [])


def recorded(person: Path, name: str = "ses-1") -> Path:
    path = person / f".claude/projects/-work/{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    line = {"type": "user", "uuid": "u", "sessionId": name, "message": {"role": "user", "content": "hello"}}
    path.write_text(json.dumps(line) + "\n")
    return path


def test_a_session_whose_first_line_is_damaged_is_not_imported_a_second_time(person: Path, tmp_path: Path):
    source = Source("claude-code", str(recorded(person)))
    with turnlog.open(str(tmp_path / "home")) as home:
        creator = interior(home).creator
        [imported] = import_all(creator, [source])
    log = next(path for path in (tmp_path / "home").rglob("*.jsonl") if imported.id in str(path))
    data = bytearray(log.read_bytes())
    data[10:14] = b"####"
    log.write_bytes(data)
    with turnlog.open(str(tmp_path / "home")) as home:
        [again] = import_all(interior(home).creator, [source])
        assert [problem.what for problem in again.problems] == [
            f"the first line of session {imported.id} cannot be read"
        ]
        assert [info.id for info in home.sessions()] == [imported.id]


def test_a_file_of_an_agent_that_cannot_be_read_is_reported_with_its_path(
    person: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def fail(path: str, mode: str) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", path)

    with turnlog.open(str(tmp_path / "home")) as home, home.create(id="one", workspace=str(tmp_path)) as session:
        session.user("where is the needle?")
        session.assistant("in the haystack")
        path = hand_over(session, "codex").path
        monkeypatch.setattr(handover, "open", fail, raising=False)
        with pytest.raises(turnlog.Unavailable, match=f"{path} cannot be read: Permission denied"):
            hand_over(session, "codex")


@pytest.mark.parametrize("what", ["format", "critical"])
def test_a_session_that_only_a_newer_version_understands_stops_no_other(person: Path, tmp_path: Path, what: str):
    """Neither those after it, nor its subagent."""
    path = recorded(person)
    subagent = path.parent / "ses-1/subagents/agent-a1.jsonl"
    with turnlog.open(str(tmp_path / "home")) as home:
        next(import_all(interior(home).creator, [Source("claude-code", str(path))]))
    [log] = (tmp_path / "home").rglob("claude-code-ses-1.jsonl")
    if what == "critical":
        lines = [*log.read_bytes().splitlines(), b'{"type":"later","seq":9,"id":"later","critical":true']
    else:
        first, *rest = log.read_bytes().splitlines()
        lines = [first[:-CHECKSUM] + b',"format":99', *rest]
    log.write_bytes(b"".join(line + b"\n" if line.endswith(b"}") else _sealed(line) for line in lines))
    subagent.parent.mkdir(parents=True)
    line = {"type": "user", "uuid": "s", "sessionId": "ses-1", "isSidechain": True, "agentId": "a1"}
    subagent.write_text(json.dumps({**line, "message": {"role": "user", "content": "look"}}) + "\n")
    with path.open("a") as file:
        file.write(json.dumps({"type": "user", "uuid": "v", "message": {"role": "user", "content": "more"}}) + "\n")
    wanted = [Source("claude-code", str(name)) for name in (path, subagent, recorded(person, "ses-2"))]
    with turnlog.open(str(tmp_path / "home")) as home:
        first, second, third = import_all(interior(home).creator, wanted)
    assert (first.id, second.id, third.id) == ("", "claude-code-agent-a1", "claude-code-ses-2")
    newer = {"format": "this Turnlog knows format", "critical": "only a newer Turnlog understands"}[what]
    assert [newer in problem.what for problem in (*first.problems, *second.problems)] == [True, True]
    assert third.problems == []


def _sealed(line: bytes) -> bytes:
    return line + b',"c":"%08x"}\n' % crc32(line)


def test_an_answer_that_is_read_often_while_it_grows_is_paid_once_and_in_full(tmp_path: Path):
    path = tmp_path / "growing"
    path.write_text("x")
    with turnlog.open("memory:") as home:
        for size in (1, 2, 2, 3, 5):
            ask = Message(role="user", blocks=[Text(text="go")])
            usage = Usage(input_tokens=100, output_tokens=10 * size)
            answer = Message(role="assistant", model="m", blocks=[Text(text="more")] * size, usage=usage)
            reading = Reading(
                header=SessionHeader(id="s"), steps=iter([Record(key="ask", entry=ask), Record(key="a", entry=answer)])
            )
            imported = import_source(interior(home).creator, Source("test", str(path)), reading)
            assert home.read(imported.id).usage().own == usage


def test_an_answer_whose_usage_comes_after_all_of_its_text_is_paid_once():
    usage = Usage(input_tokens=100, output_tokens=10)
    with turnlog.open("memory:") as home:
        for size, spent in ((1, None), (2, None), (2, usage), (2, usage)):
            answer = Message(role="assistant", model="m", blocks=[Text(text="more")] * size, usage=spent)
            reading = Reading(header=SessionHeader(id="s"), steps=iter([Record(key="a", entry=answer)]))
            imported = import_source(interior(home).creator, Source("test", "/nowhere"), reading)
        assert (home.read(imported.id).usage().own, imported.added) == (usage, 0)


def said(role: str, *texts: str) -> Message:
    return Message(role=role, blocks=[Text(text=text) for text in texts])


MORE, YES, OTHERWISE = said("user", "more"), said("assistant", "yes"), said("user", "otherwise")


@pytest.mark.parametrize(
    ("then", "context"),
    [
        ([Record(key="m", entry=MORE)], "go · one two · more"),
        ([Record(key="m", entry=MORE), Record(key="y", entry=YES)], "go · one two · more · yes"),
        ([Jump(to="a", key="j"), Record(key="o", entry=OTHERWISE)], "go · one two · otherwise"),
    ],
    ids=["what follows is here already", "and goes on", "the conversation goes back to it"],
)
def test_an_answer_that_grew_is_whole_wherever_the_conversation_continues(then: list[Step], context: str):
    ask, early, whole = said("user", "go"), said("assistant", "one"), said("assistant", "one", "two")
    with turnlog.open("memory:") as home:
        for answer, after in ((early, then[:1]), (whole, then), (whole, then)):
            steps = [Record(key="ask", entry=ask), Record(key="a", entry=answer), *after]
            reading = Reading(header=SessionHeader(id="s"), steps=iter(steps))
            imported = import_source(interior(home).creator, Source("test", "/nowhere"), reading)
        messages = home.read(imported.id).context()
    texts = (" ".join(block.text for block in message.blocks if isinstance(block, Text)) for message in messages)
    assert (" · ".join(texts), imported.added) == (context, 0)


@pytest.mark.parametrize(
    "readings",
    [
        "abc Sbc Sbcd",
        "abc Sbc SbX",
        "abc Sbc SX",
        "abc bc bcd",
        "abc bc bX",
        "abcd Sbcd Tcd Tcde",
        "abc Sbc TSbc TSbcd",
    ],
)
def test_a_source_without_keys_that_replaced_its_beginning_continues_from_there(readings: str):
    with turnlog.open("memory:") as home:
        for words in readings.split():
            for is_again in (False, True):
                steps = iter([Record(entry=said("user", word)) for word in words])
                reading = Reading(header=SessionHeader(id="s"), steps=steps)
                imported = import_source(interior(home).creator, Source("test", "/nowhere"), reading)
                assert not (is_again and imported.added)
            texts = [block for message in home.read(imported.id).context() for block in message.blocks]
            assert "".join(block.text for block in texts if isinstance(block, Text)) == words

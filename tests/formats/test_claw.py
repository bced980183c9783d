"""claw-code: every form read, every record written back to the byte, and copies known for what they are."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import turnlog
from tests.formats.checkers import claw as first_claw
from turnlog import Custom, Image, Message, Note, Text, Thinking, ToolCall, ToolResult, Usage
from turnlog.exchange.exporting.writing import render
from turnlog.exchange.importing.sessionimport import import_source
from turnlog.formats import Places, Source
from turnlog.formats.seeds import claw
from turnlog.formats.seeds.claw.record import file_name, partition_of
from turnlog.interop.clawjson import decode
from turnlog.interop.rust import claw as rendered
from turnlog.log.entry import Compaction
from turnlog.session.interior import interior

SEEDS = Path(__file__).parent / "seeds" / "claw"
OLD = SEEDS / "seed_12c364da/workspace/.claw/sessions"
NEW = SEEDS / "head_2026-08/workspace/.claw/sessions/4ea9adc409580de5"
PLAIN = OLD / "session-1775128446000-0.jsonl"
ROTATED = OLD / "session-1775128446000-0.rot-1775128400000.jsonl"
FORK = OLD / "session-1775128999000-1.jsonl"
COMPACTED = OLD / "session-1775129500000-2.jsonl"
NEWEST = NEW / "session-1786000000000-0.jsonl"
CLEARED = NEW / "session-1786000000000-0.jsonl.before-clear-1786000009999.bak"
BROKEN = SEEDS / "broken"
LEGACY = SEEDS / "legacy"
EXPECTED = json.loads((SEEDS.parent / "expected.json").read_text())["claw"]
IDENTICAL = [PLAIN, ROTATED, FORK, COMPACTED, NEWEST, CLEARED, BROKEN / "id_differs_from_filename.jsonl"]


@pytest.fixture
def home() -> Any:
    with turnlog.open("memory:") as home:
        yield home


def bring(home: Any, path: Path) -> Any:
    (done,) = home.import_sessions(path, agent="claw")
    return done


def session_of(home: Any, path: Path) -> Any:
    return home.resume(bring(home, path).id)


def data_of(session: Any) -> bytes:
    return render(session, "claw").files[0].data


def read(path: Path) -> tuple[Any, list[Any]]:
    reading = claw.read(Source("claw", str(path)))
    return reading, [step.entry for step in reading.steps]


def said(session: Any) -> list[Message]:
    """What claw has as messages: the summary that a compaction put in is one of them."""
    found: list[Message] = []
    for entry in session.path():
        found += entry.replacement if isinstance(entry, Compaction) else [entry] if isinstance(entry, Message) else []
    return found


def integer(text: str) -> int:
    number = int(text)
    assert -(1 << 63) <= number < 1 << 63
    return number


def refused(text: str) -> None:
    raise AssertionError(f"claw refuses {text}")


def loads_in_claw(data: bytes) -> list[dict[str, Any]]:
    """Refuse whatever the newest loader would refuse; the messages."""
    messages: list[dict[str, Any]] = []
    for line in data.decode().split("\n"):
        if not line.strip():
            continue
        assert r"\ud8" not in line.replace("\\\\", "")
        record = json.loads(line, parse_float=refused, parse_int=integer, parse_constant=refused)
        kind = record["type"]
        assert kind in ("session_meta", "compaction", "prompt_history", "message")
        if kind == "session_meta":
            assert record["version"] == 1
            assert isinstance(record["session_id"], str)
            assert isinstance(record["created_at_ms"], int)
            assert isinstance(record["updated_at_ms"], int)
        if kind != "message":
            continue
        message = record["message"]
        messages.append(message)
        assert message["role"] in ("system", "user", "assistant", "tool")
        assert all(0 <= count < 1 << 32 for count in message.get("usage", {}).values())
        assert len(message.get("usage", range(4))) == 4
        assert sum(block["type"] == "tool_result" for block in message["blocks"]) <= 1
        for block in message["blocks"]:
            match block["type"]:
                case "text":
                    assert isinstance(block["text"], str)
                case "thinking":
                    assert isinstance(block["thinking"], str)
                case "tool_use":
                    assert all(isinstance(block[name], str) for name in ("id", "name", "input"))
                case "tool_result":
                    assert isinstance(block["is_error"], bool)
                    assert all(isinstance(block[name], str) for name in ("output", "tool_name", "tool_use_id"))
                case kind:
                    refused(kind)
    return messages


def write_lines(path: Path, *records: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(rendered(record) + b"\n" for record in records))
    return path


def meta(id: str = "session-1775128446000-0", **more: Any) -> dict[str, Any]:
    times = {"created_at_ms": 1775128446000, "updated_at_ms": 1775128446000}
    return {"type": "session_meta", "version": 1, "session_id": id, **times, **more}


def text(said: str, role: str = "user", **more: Any) -> dict[str, Any]:
    return {"type": "message", "message": {"role": role, "blocks": [{"type": "text", "text": said}], **more}}


# ── every fixture ─────────────────────────────────────────────────────────────────────────────────


def test_every_fixture_has_the_messages_that_claw_finds(home: Any) -> None:
    for name, told in EXPECTED.items():
        path = next(SEEDS.glob(name.replace("/.../...", "/**/*").replace("...", "**")))
        if "messages" in told:
            assert len(said(session_of(home, path))) == told["messages"], name


@pytest.mark.parametrize("path", IDENTICAL, ids=lambda path: path.name)
def test_what_was_read_is_written_to_the_byte_from_entries_alone(home: Any, path: Path, tmp_path: Path) -> None:
    moved = tmp_path / path.name
    shutil.copy(path, moved)
    session = session_of(home, moved)
    moved.unlink()
    written = render(session, "claw")
    assert written.files[0].data == path.read_bytes()
    assert written.files[0].path == path.name
    assert written.lost == []


@pytest.mark.parametrize("path", IDENTICAL, ids=lambda path: path.name)
def test_after_one_more_turn_the_other_records_are_identical_and_it_loads(home: Any, path: Path) -> None:
    session = session_of(home, path)
    session.user("и още нещо")
    session.assistant([ToolCall(id="t9", name="bash", input={"command": "ls"})], usage=Usage(7, 1, 2, 0, 3))
    session.tool_result("t9", "план.txt")
    before, after = path.read_bytes().splitlines(keepends=True), data_of(session).splitlines(keepends=True)
    assert after[1 : len(before)] == before[1:]
    first, last = json.loads(before[0]), json.loads(after[0])
    assert last.pop("updated_at_ms") > first.pop("updated_at_ms")
    assert first == last
    new = loads_in_claw(b"".join(after))[-3:]
    assert [message["role"] for message in new] == ["user", "assistant", "tool"]
    assert new[1]["usage"]["cache_creation_input_tokens"] == 2
    assert new[2]["blocks"][0]["tool_name"] == "bash"


@pytest.mark.parametrize("path", [*IDENTICAL, *LEGACY.iterdir(), *BROKEN.iterdir()], ids=lambda path: path.name)
def test_importing_twice_adds_nothing(home: Any, path: Path) -> None:
    source = Source("claw", str(path))
    first, again = (import_source(interior(home).creator, source, claw.read(source)) for _ in "12")
    assert first.id == again.id
    assert again.added == 0


def test_content_of_the_plain_session(home: Any) -> None:
    messages = session_of(home, PLAIN).messages()
    assert [message.role for message in messages] == ["user", "assistant", "tool", "assistant", "tool", "assistant"]
    assert "DEL=\x7f NEL=\x85 tab=\t" in messages[0].blocks[0].text
    call = messages[1].blocks[1]
    assert (call.id, call.name, call.input) == ("toolu_1", "bash", {"command": "cat план.txt"})
    assert messages[1].usage == Usage(1200, 0, 300, 0, 85)
    result = messages[2].blocks[0]
    assert (result.call, result.is_error, result.name) == ("toolu_1", True, "bash")
    assert not messages[4].blocks[0].is_error


def test_the_newest_version_has_model_workspace_prompts_and_thoughts(home: Any) -> None:
    session = session_of(home, NEWEST)
    assert session.get("model") == "claude-opus-5"
    assert session.workspace == "/home/anna/проект"
    notes = [entry for entry in session.entries() if isinstance(entry, Note)]
    assert [note.text[:6] for note in notes] == ["създай"]
    assert notes[0].at.timestamp() == 1786000000.1
    messages = session.messages()
    thought = messages[1].blocks[0]
    assert (thought.text, thought.provider, thought.data) == ("мисля…", "anthropic", {"signature": "sig=="})
    assert messages[2].blocks == [Thinking(text="no signature")]


def test_a_compaction_record_is_a_compaction(home: Any) -> None:
    session = session_of(home, COMPACTED)
    compaction = next(entry for entry in session.entries() if isinstance(entry, Compaction))
    assert (compaction.meta["count"], compaction.meta["removed"]) == (2, 4)
    assert compaction.meta["summary"].startswith("<summary>")
    assert compaction.replacement[0].role == "system"
    assert "4 earlier messages compacted" in session.context().system


def test_an_imported_compaction_has_its_count_what_it_removed_and_its_summary(home: Any, tmp_path: Path) -> None:
    record = json.loads(COMPACTED.read_bytes().splitlines()[1])
    session = session_of(home, COMPACTED)
    (found,) = session.compactions()
    assert (found.count, found.removed) == (record["count"], record["removed_message_count"])
    lines = COMPACTED.read_bytes().splitlines(keepends=True)
    bare = tmp_path / "session-1775129500001-2.jsonl"  # no message stands for what was removed
    bare.write_bytes(b"".join([lines[0].replace(b"500000", b"500001"), lines[1], *lines[3:]]))
    assert [one.summary for one in session_of(home, bare).compactions()] == [record["summary"]]
    session.user("more")
    session.compact("short")
    assert [one.count for one in session.compactions()] == [record["count"], record["count"] + 1]


@pytest.mark.parametrize(
    ("inner", "workspace"),
    [
        (".claw/sessions", ""), (".claude/sessions", ""), (".claw/sessions/{own}", ""),
        (".claw/sessions/0123456789abcdef", None), ("elsewhere", None),
    ],
)  # fmt: skip
def test_a_session_without_a_workspace_has_the_folder_above(
    home: Any, tmp_path: Path, inner: str, workspace: str | None
) -> None:
    folder = tmp_path / inner.format(own=partition_of(str(tmp_path)))
    folder.mkdir(parents=True)
    session = session_of(home, Path(shutil.copy(PLAIN, folder)))
    assert session.workspace == (None if workspace is None else str(tmp_path))
    assert data_of(session) == PLAIN.read_bytes()


def test_a_branch_name_is_trimmed(home: Any, tmp_path: Path) -> None:
    path = tmp_path / FORK.name
    path.write_bytes(re.sub(rb'"branch_name":"[^"]*"', b'"branch_name":" \xc2\xa0x "', FORK.read_bytes()))
    assert claw.read(Source("claw", str(path))).header.fork.name == "x"


def test_one_more_compaction_there_is_one_here(home: Any, tmp_path: Path) -> None:
    path = tmp_path / PLAIN.name
    for count in (1, 2, 3):
        record = {"type": "compaction", "count": count, "removed_message_count": 2, "summary": "s"}
        write_lines(path, meta(updated_at_ms=1775128446000 + count), record, text("last"))
        session = session_of(home, path)
        assert data_of(session) == path.read_bytes()


def test_a_fork_knows_its_parent_and_its_name(home: Any) -> None:
    done = home.import_sessions(OLD, agent="claw")
    assert sorted(item.source.path.rpartition("/")[2] for item in done) == [PLAIN.name, FORK.name, COMPACTED.name]
    fork = home.resume(f"claw-{FORK.stem}")
    entry = next(entry for entry in fork.entries(reverse=True) if entry.type == "session")
    assert (entry.fork.session, entry.fork.name) == (f"claw-{PLAIN.stem}", "разследване")
    assert data_of(fork) == FORK.read_bytes()


def test_older_object_files_become_lines(home: Any) -> None:
    session = session_of(home, LEGACY / "full_object.json")
    assert session.id == "claw-session-1775120000000-0"
    lines = [json.loads(line) for line in data_of(session).splitlines()]
    assert [line["type"] for line in lines] == ["session_meta", "compaction", "message"]
    assert lines[0]["fork"] == {"parent_session_id": "session-1-0"}
    assert (lines[1]["count"], lines[1]["removed_message_count"], lines[1]["summary"]) == (1, 4, "s")
    loads_in_claw(data_of(session))


def test_what_an_older_file_says_of_its_model_and_start_is_kept(home: Any) -> None:
    session = session_of(home, LEGACY / "with_metadata.json")
    assert session.get("model") == "claude-opus-4-6"
    assert json.loads(data_of(session).splitlines()[0])["created_at_ms"] == 1775001234000
    assert json.loads(data_of(session).splitlines()[0])["metadata"]["last_prompt"] == "здравей"


def test_a_start_with_too_many_digits_is_no_start(home: Any, tmp_path: Path) -> None:
    name = "session-of-long-ago.jsonl"
    head = {"type": "session_meta", "version": 1, "session_id": "x", "metadata": {"started_at": "1" * 5000}}
    session = session_of(home, write_lines(tmp_path / name, head))
    assert [loss.what for loss in render(session, "claw").lost] == []


def test_an_early_thought_has_its_text_under_another_name(home: Any, tmp_path: Path) -> None:
    block = {"type": "thinking", "text": "рано", "signature": "s"}
    path = write_lines(
        tmp_path / "session-1775128446000-0.jsonl",
        meta(),
        {"type": "message", "message": {"role": "assistant", "blocks": [block]}},
    )
    session = session_of(home, path)
    assert session.messages()[0].blocks[0].text == "рано"
    assert data_of(session) == path.read_bytes()


def test_unknown_records_blocks_and_keys_survive(home: Any, tmp_path: Path) -> None:
    odd = {"type": "message", "later": [1], "message": {
        "role": "assistant", "blocks": [
            {"type": "text", "text": "a", "cache": {"ttl": 5}},
            {"type": "hologram", "depth": 3},
            {"type": "text", "text": 5},
            {"type": "thinking"},
            "no block",
            {"type": "tool_use", "id": "t", "name": "n", "input": '{ "a" : 1 }'},
            {"type": "tool_use", "id": "u", "name": "n", "input": "not json"},
            {"type": "tool_use", "id": "v", "name": "n", "input": '"text"'},
        ], "stop": "end",
    }}  # fmt: skip
    path = write_lines(
        tmp_path / "session-1775128446000-0.jsonl", meta(theme="dark"), odd, {"type": "heartbeat", "n": 1}
    )
    session = session_of(home, path)
    assert [block.input for block in session.messages()[0].blocks if isinstance(block, ToolCall)] == [
        {"a": 1}, "not json", '"text"',
    ]  # fmt: skip
    assert [entry.kind for entry in session.path() if isinstance(entry, Custom)] == ["claw.heartbeat"]
    assert data_of(session) == path.read_bytes()


def test_a_record_without_a_type_survives(home: Any, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "session-1775128446000-0.jsonl", meta(), text("hello"), {"n": 1}, text("again"))
    assert data_of(session_of(home, path)) == path.read_bytes()


# ── where they are ────────────────────────────────────────────────────────────────────────────────


def test_sessions_lie_beside_the_workspace_and_in_the_configuration() -> None:
    assert claw.homes(Places("/home/anna", "/srv")) == [
        "/srv/.claw/sessions", "/srv/.claude/sessions", "/home/anna/.claw/sessions",
    ]  # fmt: skip
    assert claw.homes(Places("/home/anna", None, {"CLAW_CONFIG_HOME": "/etc/claw"})) == ["/etc/claw/sessions"]


@pytest.mark.parametrize("inner", ["", ".claw", ".claw/sessions", ".claw/sessions/4ea9adc409580de5"])
def test_partitions_are_found_from_anywhere_above(inner: str) -> None:
    found = list(claw.find(str(SEEDS / "head_2026-08/workspace" / inner)))
    assert [Path(source.path).name for source in found] == [NEWEST.name]


def test_temporary_files_and_links_are_no_sessions(tmp_path: Path) -> None:
    folder = tmp_path / ".claw" / "sessions"
    folder.mkdir(parents=True)
    shutil.copy(PLAIN, folder / f"{PLAIN.name}.tmp-1775128446001-3")
    (folder / "link.jsonl").symlink_to(PLAIN)
    (folder / "4ea9adc409580de5").symlink_to(NEW)
    assert list(claw.find(str(tmp_path))) == []


def test_no_file_of_another_agent_is_taken(tmp_path: Path) -> None:
    for path in SEEDS.parent.rglob("*"):
        if path.is_file() and SEEDS not in path.parents:
            assert list(claw.find(str(path))) == [], path
    codex = tmp_path / "rollout.jsonl"
    codex.write_text('{"timestamp":"2026","type":"session_meta","payload":{"id":"x","session_id":"y"}}\n')
    assert list(claw.find(str(codex))) == []


def test_a_session_is_placed_where_claw_looks_for_those_of_its_workspace(home: Any, tmp_path: Path) -> None:
    written = render(session_of(home, NEWEST), "claw")
    sessions = tmp_path / ".claw" / "sessions"
    sessions.mkdir(parents=True)
    path = claw.place(written, str(sessions))
    assert path == str(sessions / "4ea9adc409580de5" / NEWEST.name)
    assert Path(path).read_bytes() == NEWEST.read_bytes()
    with pytest.raises(turnlog.AlreadyExists, match="already there"):
        claw.place(written, str(sessions))
    assert claw.place(written, str(sessions), force=True) == path
    assert claw.place(written, str(tmp_path)) == str(tmp_path / NEWEST.name)


def test_a_session_from_a_flat_folder_goes_back_into_a_flat_one(home: Any, tmp_path: Path) -> None:
    source = tmp_path / "one" / "sessions"
    source.mkdir(parents=True)
    shutil.copy(NEWEST, source)
    target = tmp_path / "two" / "sessions"
    path = claw.place(render(session_of(home, source), "claw"), str(target))
    assert path == str(target / NEWEST.name)


@pytest.mark.parametrize("id", ["../../esc", "/", "\\", "..", "x" * 5000, "a\0b", "a/b", "session-1-0.rot-5"])
def test_an_id_is_never_a_path(home: Any, tmp_path: Path, id: str) -> None:
    path = write_lines(tmp_path / "in" / "session-1775128446000-0.jsonl", meta(id), text("hi"))
    reading, _ = read(path)
    assert reading.header.id == id
    session = session_of(home, path)
    written = render(session, "claw")
    named = replace(written, files=[replace(written.files[0], path=file_name(id))])
    target = Path(claw.place(named, str(tmp_path / "out")))
    assert target.parent == tmp_path / "out"
    assert json.loads(target.read_bytes().splitlines()[0])["session_id"] == id


# ── claw's JSON ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("source", "value"),
    [
        (b'{"a":1,}', {"a": 1}),
        (b"[1,2,]", [1, 2]),
        (b"[]", []),
        (b'{"a":{},"b":[[],{}]}', {"a": {}, "b": [[], {}]}),
        (b'{"a":"x\ty\x01"}', {"a": "x\ty\x01"}),
        (b'{"a":007,"b":-0}', {"a": 7, "b": 0}),
        (b'{"a":1,"a":2,}', {"a": 2}),
        (b'{"a":"\\u0085\xc2\x85",}\r', {"a": "\x85\x85"}),
        (b' [ true , false , null , "x" , ] ', [True, False, None, "x"]),
    ],
)
def test_what_claw_takes_is_taken_without_a_word(source: bytes, value: Any) -> None:
    assert decode(source) == (value, [])


@pytest.mark.parametrize(
    ("source", "value", "told"),
    [
        (b'{"a":1.5,}', {"a": 1.5}, "a number that is no 64-bit integer"),
        (b'{"a":1.5}', {"a": 1.5}, "a number that is no 64-bit integer"),
        (b'{"a":9223372036854775808}', {"a": 1 << 63}, "a number that is no 64-bit integer"),
        (b"[1e999]", ["1e999"], "a number that is no 64-bit integer"),
        (b'["\\ud83d\\ude80"]', ["🚀"], "a surrogate escape"),
        (b'["\\ud83d"]', ["\ufffd"], "a surrogate escape"),
        (b"\xef\xbb\xbf[1]", [1], "a byte order mark"),
        (b'["\xff"]', ["\ufffd"], "bytes that are not UTF-8"),
    ],
)
def test_what_claw_refuses_is_read_and_told(source: bytes, value: Any, told: str) -> None:
    assert decode(source) == (value, [told])


@pytest.mark.parametrize(
    "source",
    [b"", b"{", b"[1", b'{"a"}', b'{"a":}', b"[,]", b"[1 2]", b"{1:2}", b"[1]x", b'["\\x"]', b"nul", b"[" * 500,
     b"\0" * 9, b"1" * 5000, b'{"a":1,,}', b"}", b'"a', b"[1.]", b"+1"],
)  # fmt: skip
def test_what_is_no_json_is_refused(source: bytes) -> None:
    with pytest.raises(ValueError):
        decode(source)


def test_escaped_backslashes_are_no_surrogates() -> None:
    assert decode(rb'["\\ud83d"]') == ([r"\ud83d"], [])


# ── for sessions from elsewhere ───────────────────────────────────────────────────────────────────


def render_first(session: Any, version: int | None = None) -> tuple[str, bytes]:
    written = render(session, "claw", format_version=version)
    assert written.opens == ""
    return written.files[0].path, written.files[0].data


@pytest.mark.parametrize("is_fork", [False, True])
def test_a_newer_session_is_written_for_the_first_claw_if_asked(home: Any, is_fork: bool) -> None:
    session = session_of(home, NEWEST)
    said = session.assistant([Thinking(text="hm"), Text("so")])
    if is_fork:
        session = session.fork(said, name="  x ")
    path, data = render_first(session, 1)
    assert first_claw.faults(path, data) == []
    told = {loss.what for loss in render(session, "claw", format_version=1).lost}
    assert told >= {"reasoning", "model", "workspace"}
    newer = render(session, "claw", format_version=2)
    assert newer.opens == "claw-code of 2026-08 or newer, and in no older one"
    assert first_claw.faults(newer.files[0].path, newer.files[0].data) != []


def test_a_session_of_the_first_claw_stays_one(home: Any) -> None:
    session = session_of(home, PLAIN)
    session.assistant([Thinking(text="hm"), Text("so")], model="m")
    session.assistant([Thinking(text="only a thought")])
    path, data = render_first(session)
    assert first_claw.faults(path, data) == []
    assert data.startswith(PLAIN.read_bytes()[:20])
    lost = {loss.what: loss.count for loss in render(session, "claw").lost}
    assert lost["reasoning"] == 2


def test_a_session_made_here_loads_in_claw_and_tells_its_losses(home: Any) -> None:
    session = home.create(workspace="/srv/проект", title="t")
    session.set("system", "be brief")
    session.set("model", "claude-opus-5")
    session.set("effort", "high")
    session.system("rules")
    session.user([Text("look"), Image(media_type="image/png", data=b"\x89PNG")])
    session.assistant(
        [
            Thinking(text="hm", provider="openai", data={"sealed": "x"}),
            ToolCall(id="a", name="read", input={"path": "б", "n": 1.5}),
            ToolCall(id="b", name="read", input={"path": "c"}),
            ToolCall(id="p", name="web_search", input={}, by="provider"),
        ],
        model="gpt-5",
        usage=Usage(1 << 40, 2, 3, 4, 5),
    )
    session.append(
        Message(role="tool", blocks=[
            ToolResult(call="a", content=[Text("one"), Image(media_type="image/png", data=b"x")]),
            ToolResult(call="b", content=b"\xff".decode("utf-8", "surrogateescape"), is_error=True),
            Text("by the way"),
        ])
    )  # fmt: skip
    session.assistant([ToolCall(id="never", name="bash", input="raw")])
    session.note("for people")
    assert first_claw.faults(*render_first(session)) == []
    written = render(session, "claw", format_version=2)
    messages = loads_in_claw(written.files[0].data)
    assert [message["role"] for message in messages] == [
        "system", "user", "assistant", "tool", "tool", "user", "assistant", "tool",
    ]  # fmt: skip
    assert messages[2]["blocks"][1]["input"] == '{"path":"б","n":1.5}'
    assert messages[2]["usage"] == {
        "cache_creation_input_tokens": 7, "cache_read_input_tokens": 2, "input_tokens": (1 << 32) - 1,
        "output_tokens": 5,
    }  # fmt: skip
    assert messages[6]["blocks"][0]["input"] == "raw"
    assert messages[7]["blocks"][0]["is_error"] is True
    header = json.loads(written.files[0].data.splitlines()[0])
    assert (header["model"], header["workspace_root"]) == ("claude-opus-5", "/srv/проект")
    assert written.id.startswith("session-")
    lost = {loss.what: loss.count for loss in written.lost}
    assert written.opens
    for what in ("image", "sealed reasoning", "provider's tool call", "media in a tool result", "note", "title", "fact",
                 "bytes that are not Unicode", "tokens beyond 32 bits", "system prompt", "time of a message",
                 "model of a message"):  # fmt: skip
        assert lost.pop(what) == 1 or what == "time of a message", what
    assert lost == {"cache write by duration": 1}


def test_only_what_the_model_sees_is_written_after_a_compaction(home: Any) -> None:
    session = session_of(home, COMPACTED)
    session.user("more")
    session.compact("short", keep=1)
    written = render(session, "claw")
    record = json.loads(written.files[0].data.splitlines()[1])
    assert (record["type"], record["count"], record["summary"]) == ("compaction", 3, "short")
    assert record["removed_message_count"] == 3
    messages = loads_in_claw(written.files[0].data)
    assert [message["blocks"][0]["text"] for message in messages] == ["short", "more"]
    assert {loss.what for loss in written.lost} >= {"message before the last compaction"}


def test_a_fork_made_here_names_its_parent_as_claw_does(home: Any) -> None:
    parent = session_of(home, PLAIN)
    fork = parent.fork(name="branch")
    fork.user("elsewhere")
    header = json.loads(data_of(fork).splitlines()[0])
    assert header["fork"] == {"parent_session_id": PLAIN.stem, "branch_name": "branch"}
    assert header["session_id"] != PLAIN.stem
    assert data_of(fork).splitlines()[1:7] == PLAIN.read_bytes().splitlines()[1:]


def test_two_sessions_of_one_millisecond_get_two_ids() -> None:
    with turnlog.open("memory:", clock=lambda: 1_790_000_000_000) as home:
        one, two = home.create(), home.create()
        assert render(one, "claw").id != render(two, "claw").id
        assert render(one, "claw").id == render(one, "claw").id

"""sofos: every version read, every untouched message written back to the byte, and its faults not repeated."""

from __future__ import annotations

import base64
import fcntl
import json
import random
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import turnlog
from tests.formats.checkers import sofos as first_sofos
from turnlog import AlreadyExists, Image, Invalid, Message, Text, Thinking, ToolCall, ToolResult, UnknownBlock, Usage
from turnlog.exchange.exporting.writing import render
from turnlog.formats import OutputFile, Places, Rendered, Source
from turnlog.formats.seeds import sofos
from turnlog.formats.seeds.sofos.writing import preview_of
from turnlog.interop.rust import pretty
from turnlog.log.block import File
from turnlog.testing import FormatContract

SEEDS = Path(__file__).parent / "seeds" / "sofos"
OLD = SEEDS / "v0.2.8/workspace/.sofos/sessions"
FIRST = OLD / "session_1778061000123.json"
EVERY_BLOCK = OLD / "session_1778064600456.json"
NEWEST = SEEDS / "v0.4.3/workspace/.sofos/sessions/session_1785150000456_0a1b2c3d.json"
SAFE_MODE = SEEDS / "legacy/safe_mode_alias.json"
TORN = SEEDS / "broken/truncated_session.json"
ORPHAN = SEEDS / "broken/tail_orphan_tool_use.json"
EXPECTED = json.loads((SEEDS.parent / "expected.json").read_text())["sofos"]
IDENTICAL = [FIRST, EVERY_BLOCK, NEWEST, SAFE_MODE, ORPHAN]


@pytest.fixture
def home() -> Any:
    with turnlog.open("memory:") as home:
        yield home


def bring(home: Any, path: Path) -> Any:
    done = home.import_sessions(path, agent="sofos")
    assert len(done) == 1
    return done[0]


def session_of(home: Any, path: Path) -> Any:
    return home.resume(bring(home, path).id)


def data_of(session: Any) -> bytes:
    return render(session, "sofos").files[0].data


def json_of(session: Any) -> dict[str, Any]:
    return json.loads(data_of(session))


def saved(folder: Path, **fields: Any) -> Path:
    """A session as sofos 0.2.8 would save it."""
    messages = fields.pop("api_messages", [{"role": "user", "content": "hi"}])
    document = {
        "id": "session_1778000000001", "api_messages": messages, "system_prompt": [], "created_at": 1778000000,
        "updated_at": 1778000001, "total_input_tokens": 0, "total_output_tokens": 0, "total_cache_read_tokens": 0,
        "total_cache_creation_tokens": 0, "peak_single_turn_input_tokens": 0, **fields,
    }  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{document['id']}.json".replace("/", "_")
    path.write_bytes(pretty(document))
    return path


def loads_in_sofos(data: bytes) -> dict[str, Any]:
    """Refuse whatever the loader of sofos would refuse."""
    session = json.loads(data)
    assert isinstance(session["id"], str)
    for message in session["api_messages"]:
        assert message["role"] in ("user", "assistant")
        content = message["content"]
        for block in [] if isinstance(content, str) else content:
            texts, others = BLOCKS[block["type"]]
            assert all(isinstance(block[name], str) for name in texts), block
            assert all(name in block for name in others), block
            assert isinstance(block.get("content", ""), str) or block["type"] == "web_search_tool_result"
    assert all(part["type"] == "text" and isinstance(part["text"], str) for part in session["system_prompt"])
    for item in session.get("display_messages", []):
        ((name, fields),) = item.items()
        assert set(fields) == DISPLAYS[name]
    for name in ("created_at", "updated_at"):
        assert isinstance(session[name], int) and session[name] >= 0
    for name in COUNTERS:
        assert isinstance(session.get(name, 0), int) and 0 <= session.get(name, 0) < 1 << 32
    return session


BLOCKS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "text": (("text",), ()),
    "image": ((), ("source",)),
    "thinking": (("thinking", "signature"), ()),
    "summary": (("summary",), ()),
    "compaction": (("content",), ()),
    "reasoning": (("id",), ("summary",)),
    "tool_use": (("id", "name"), ("input",)),
    "tool_result": (("tool_use_id", "content"), ()),
    "server_tool_use": (("id", "name"), ("input",)),
    "web_search_tool_result": (("tool_use_id",), ("content",)),
}
DISPLAYS = {
    "UserMessage": {"content"},
    "AssistantMessage": {"content"},
    "ToolExecution": {"tool_name", "tool_input", "tool_output"},
}
COUNTERS = (
    "total_input_tokens", "total_output_tokens", "total_cache_read_tokens", "total_cache_creation_tokens",
    "peak_single_turn_input_tokens",
)  # fmt: skip


class TestContract(FormatContract):
    name = "sofos"
    samples = [SEEDS / "v0.2.8/workspace", NEWEST, ORPHAN, TORN, *sorted((SEEDS / "legacy").glob("*.json"))]


# ── reading ───────────────────────────────────────────────────────────────────────────────────────


def test_a_session_reads_with_what_the_real_program_found(home: Any) -> None:
    known = [name for name, said in EXPECTED.items() if "api_messages" in said]
    assert len(known) == 3
    for name in known:
        written = json_of(session_of(home, SEEDS / name))
        assert len(written["api_messages"]) == EXPECTED[name]["api_messages"]
        assert len(written.get("display_messages", [])) == EXPECTED[name].get("display_messages", 5)


def test_messages_become_entries(home: Any) -> None:
    session = session_of(home, FIRST)
    user, answer, results, more, last = session.messages()
    assert user.blocks == [Text(text="създай файл „план-3.txt“ с три точки 🚀 (and keep «naïve» as is)")]
    thought, text, write, bash = answer.blocks
    assert thought == Thinking(
        text="Трябва ми write_file.", provider="anthropic", data={"signature": "EqQBCkYIBxgCKkD0"}
    )
    assert text == Text(text="Създавам файла.")
    assert write.input == {"content": "• едно\n• две\n• три\n", "path": "план-3.txt"}
    assert (bash.id, bash.name) == ("toolu_01B", "execute_bash")
    assert [m.role for m in (user, answer, results, more, last)] == ["user", "assistant", "tool", "user", "assistant"]
    assert [(block.call, block.is_error) for block in results.blocks] == [("toolu_01A", False), ("toolu_01B", True)]
    assert more.blocks == [Text(text="без rm, моля")]
    assert session.context().system.startswith("You are Sofos")
    assert session.pending() == []


def test_what_the_session_as_a_whole_says_are_facts(home: Any) -> None:
    session = session_of(home, NEWEST)
    assert session.get("model") == "claude-sonnet-5"
    assert session.get("readonly") is False
    assert session.get("permission_preset") == "sandboxed-ask"
    assert session.workspace == str(SEEDS / "v0.4.3/workspace")
    assert session.usage().own == Usage(
        input_tokens=18234, cache_read_tokens=15000, cache_write_tokens=2100, output_tokens=912, cost_micros=79887
    )
    assert session_of(home, SAFE_MODE).get("readonly") is True


def test_the_largest_prompt_is_known_and_no_total_is_taken_for_it(home: Any) -> None:
    session = session_of(home, FIRST)
    assert session.usage().peak_input_tokens == 9120
    session.assistant("more", usage=Usage(input_tokens=10_000))
    assert session.usage().peak_input_tokens == 10_000


def test_instructions_of_the_project_and_of_the_person_are_a_fact(home: Any) -> None:
    assert session_of(home, FIRST).get("instructions") == EXPECTED["v0.2.8/workspace (instructions)"]["result"]
    assert session_of(home, NEWEST).get("instructions") is None


def test_a_summary_at_the_beginning_is_a_compaction(home: Any) -> None:
    session = session_of(home, EVERY_BLOCK)
    first = session.path()[0]
    assert isinstance(first, turnlog.Compaction)
    assert session.context()[0].blocks[0].text.startswith("[Conversation Summary]\n")
    assert len(session.context()) == 3


def test_every_kind_of_block_becomes_one_of_ours(home: Any) -> None:
    _, pictures, answer = session_of(home, EVERY_BLOCK).path()
    here, there, _ = pictures.blocks
    assert (here.media_type, here.blob is not None, there.url) == ("image/png", True, "https://example.org/схема.png")
    kinds = [type(block) for block in answer.blocks]
    assert kinds == [UnknownBlock, Thinking, Thinking, Thinking, ToolCall, ToolResult, Text]
    assert answer.blocks[1].text == "first\n\nвтора"
    assert answer.blocks[1].data["item"]["encrypted_content"] == "gAAAAAB="
    assert answer.blocks[4].by == "provider"
    assert answer.blocks[5].content == "Пример\nhttps://example.org"


@pytest.mark.parametrize("name", ["system_prompt_string", "messages_key", "no_counters"])
def test_a_legacy_file_is_read_and_written_as_todays_sofos_loads_it(home: Any, name: str) -> None:
    """Its own loader refuses the two oldest shapes."""
    done = bring(home, SEEDS / f"legacy/{name}.json")
    assert done.problems == []
    session = home.resume(done.id)
    assert len(session.messages()) == 1
    written = loads_in_sofos(data_of(session))
    assert "messages" not in written and isinstance(written["system_prompt"], list)
    if name != "no_counters":
        assert session.get("system") == "You are Sofos." == written["system_prompt"][0]["text"]


def test_input_that_a_cache_answered_is_counted_once(home: Any, tmp_path: Path) -> None:
    """sofos keeps what the provider sent: OpenAI counts cached input into the input, Anthropic does not."""
    totals = {"total_input_tokens": 100, "total_cache_read_tokens": 30, "total_output_tokens": 5}
    path = saved(tmp_path, **totals, model="gpt-5.5")
    session = session_of(home, path)
    assert session.usage().own == Usage(input_tokens=70, cache_read_tokens=30, output_tokens=5)
    assert data_of(session) == path.read_bytes()


# ── what others lose ──────────────────────────────────────────────────────────────────────────────


def test_a_torn_file_is_read_as_far_as_it_goes(home: Any) -> None:
    """sofos refuses the whole session: EOF while parsing an object."""
    done = bring(home, TORN)
    session = home.resume(done.id)
    assert [message.role for message in session.messages()] == ["user", "assistant"]
    assert done.problems[0].what == "the JSON breaks off" and done.problems[0].offset == TORN.stat().st_size
    assert [call.id for call in session.pending()] == ["toolu_01A", "toolu_01B"]
    loads_in_sofos(data_of(session))


def test_a_file_that_a_power_cut_left_empty_is_told_and_the_others_are_read(home: Any, tmp_path: Path) -> None:
    """sofos renames without a sync: after a power cut the file may be there and empty."""
    folder = tmp_path / ".sofos" / "sessions"
    shutil.copytree(OLD, folder)
    (folder / "session_1778064600456.json").write_bytes(b"")
    done = home.import_sessions(tmp_path)
    assert [(one.id, [problem.what for problem in one.problems]) for one in done] == [
        ("sofos-session_1778061000123", []),
        ("sofos-session_1778064600456", ["the JSON breaks off"]),
    ]


def test_an_unknown_block_costs_nothing_and_goes_back(home: Any, tmp_path: Path) -> None:
    """One block of a kind sofos does not know makes it refuse the whole session."""
    new = {"type": "hologram", "z": 1, "a": [1.5, {"y": None, "b": 2}]}
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [{"type": "text", "text": "a"}, new]},
    ]
    path = saved(tmp_path, api_messages=messages, added_later={"deep": [True]})
    done = bring(home, path)
    session = home.resume(done.id)
    assert done.problems == []
    assert session.messages()[1].blocks[1].kind == "hologram"
    assert data_of(session) == path.read_bytes()


def test_a_block_or_message_that_is_broken_costs_only_itself(home: Any, tmp_path: Path) -> None:
    messages: list[Any] = [
        {"role": "user", "content": "hi"},
        "no message",
        {"role": "assistant"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t"}, 7, {"type": "text", "text": "there"}]},
    ]
    done = bring(home, saved(tmp_path, api_messages=messages))
    session = home.resume(done.id)
    assert [problem.what for problem in done.problems] == [
        "a message without a role or content", "a message without a role or content",
        "a tool_use block without its name", "a block that is no object",
    ]  # fmt: skip
    written = render(session, "sofos")
    document = loads_in_sofos(written.files[0].data)
    assert [message["content"] for message in document["api_messages"]] == ["hi", [{"type": "text", "text": "there"}]]
    assert [loss.what for loss in written.lost] == ["tool_use block", "? block"]


def test_a_list_that_is_none_is_told(home: Any, tmp_path: Path) -> None:
    done = bring(home, saved(tmp_path, api_messages="hi", display_messages={"0": "hi"}))
    told = [problem.what for problem in done.problems]
    assert told == ["api_messages is not a list", "display_messages is not a list"]


@pytest.mark.parametrize(
    ("name", "value"),
    [("total_input_tokens", -1), ("total_input_tokens", 10**30), ("total_cost", "a lot"), ("model", ["hi"]),
     ("readonly", "yes"), ("permission_preset", 7), ("created_at", True)],
)  # fmt: skip
def test_a_value_of_another_type_is_told_and_comes_back(home: Any, tmp_path: Path, name: str, value: Any) -> None:
    path = saved(tmp_path, **{name: value})
    done = bring(home, path)
    assert [problem.what for problem in done.problems] == [f"{name} is {value!r}"]
    assert json_of(home.resume(done.id)) == json.loads(path.read_bytes())


@pytest.mark.parametrize("value", [{"text": "be brief"}, 7, None])
def test_a_system_prompt_that_is_none_is_told(home: Any, tmp_path: Path, value: Any) -> None:
    done = bring(home, saved(tmp_path, system_prompt=value))
    assert [problem.what for problem in done.problems] == ["system_prompt is not a list"]


@pytest.mark.parametrize(
    ("document", "told"),
    [({}, "not a session: no object with fields"), ({"created_at": 1, "updated_at": 2}, "no api_messages")],
)
def test_a_session_without_its_messages_is_told(tmp_path: Path, document: dict[str, Any], told: str) -> None:
    path = tmp_path / "session_1778000000001.json"
    path.write_bytes(pretty(document))
    assert sofos.read(Source("sofos", str(path))).problems[0].what == told


def test_what_an_older_sofos_dropped_is_gone(home: Any, tmp_path: Path) -> None:
    """A session of 0.4.3 that 0.2.8 saved again has no model any more, and the system prompt of 0.2.8."""
    seldom = [{"type": "text", "text": "be brief", "cache_control": {"type": "ephemeral", "ttl": "5m"}}]
    bring(home, saved(tmp_path, system_prompt=seldom, model="gpt-5", readonly=True, permission_preset="read-only"))
    usual = [{**seldom[0], "cache_control": {"type": "ephemeral", "ttl": "1h"}}]
    path = saved(tmp_path, system_prompt=usual)
    assert data_of(session_of(home, path)) == path.read_bytes()


def test_an_id_that_leads_elsewhere_is_not_followed(home: Any, tmp_path: Path) -> None:
    """Saving the id ../../esc writes outside the folder in 0.2.8."""
    path = saved(tmp_path, id="../../esc")
    done = bring(home, path)
    assert done.id.startswith("sofos-_") and "/" not in done.id
    assert any("../../esc" in problem.what for problem in done.problems)
    folder = tmp_path / "a" / "b" / "c"
    sofos.place(render(home.resume(done.id), "sofos"), str(folder))
    assert sorted(p.name for p in tmp_path.iterdir()) == [path.name, "a"]


@pytest.mark.parametrize("name", ["../../esc", "/", "\\", "", ".", "..", "x" * 300, "a\0b", "/etc/passwd", "a/../b"])
def test_no_name_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    written = Rendered(id=name, files=[OutputFile(name, b"{}")], about={"id": name, "updated_at": 1})
    with pytest.raises(Invalid):
        sofos.place(written, str(tmp_path / "sessions"))
    assert not [path for path in tmp_path.rglob("*") if path.suffix]


def test_counters_beyond_32_bits_are_kept_and_filled_up_on_writing(home: Any, tmp_path: Path) -> None:
    """u32 counters wrap or panic in 0.2.8."""
    path = saved(tmp_path, total_input_tokens=(1 << 32) - 10, total_output_tokens=1 << 40)
    session = session_of(home, path)
    assert session.usage().own.output_tokens == 1 << 40
    session.assistant("more", usage=Usage(input_tokens=100))
    written = loads_in_sofos(data_of(session))
    assert (written["total_input_tokens"], written["total_output_tokens"]) == ((1 << 32) - 1, (1 << 32) - 1)


# ── writing what was read ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", IDENTICAL, ids=lambda path: path.stem)
def test_a_session_that_nobody_changed_is_written_to_the_byte(home: Any, path: Path) -> None:
    written = render(session_of(home, path), "sofos")
    assert written.files[0].data == path.read_bytes()
    assert written.lost == []


@pytest.mark.parametrize("path", IDENTICAL, ids=lambda path: path.stem)
def test_after_one_more_turn_every_old_message_is_still_the_same(home: Any, path: Path) -> None:
    session, before = session_of(home, path), json.loads(path.read_bytes())
    session.user("и още")
    session.assistant("готово", usage=Usage(input_tokens=10, cache_read_tokens=20_000, output_tokens=3))
    data = data_of(session)
    written = loads_in_sofos(data)
    added = 2 + (path == ORPHAN)
    for name in ("api_messages", "display_messages"):
        old, new = before.get(name, []), written[name]
        assert pretty(new[: len(old)]) == pretty(old)
        assert len(new) == len(old) + (added if name == "api_messages" else 2)
    assert written["api_messages"][-2:] == [
        {"role": "user", "content": "и още"},
        {"role": "assistant", "content": [{"type": "text", "text": "готово"}]},
    ]
    assert data.startswith(path.read_bytes().split(b"\n  ]", 1)[0])
    cached = 20_000 if path == EVERY_BLOCK else 0  # only a model of OpenAI leaves such reasoning
    assert written["total_input_tokens"] == before["total_input_tokens"] + 10 + cached
    assert written["total_cache_read_tokens"] == before["total_cache_read_tokens"] + 20_000
    assert written["peak_single_turn_input_tokens"] == max(before["peak_single_turn_input_tokens"], 20_010)
    assert written["created_at"] == before["created_at"] and written["updated_at"] >= before["updated_at"]
    assert list(before) == [key for key in written if key in before]


def test_a_call_that_was_never_answered_gets_an_answer_before_the_session_goes_on(home: Any) -> None:
    session = session_of(home, ORPHAN)
    session.user("go on")
    messages = json_of(session)["api_messages"]
    assert [block["tool_use_id"] for block in messages[2]["content"]] == ["toolu_01A", "toolu_01B"]
    assert messages[3] == {"role": "user", "content": "go on"}


def test_odd_shapes_come_back_to_the_byte(home: Any, tmp_path: Path) -> None:
    short = {"type": "ephemeral", "ttl": "5m"}
    messages: list[Any] = [
        {"role": "user", "content": [{"type": "text", "text": "as a list"}]},
        {"role": "assistant", "content": "as a text"},
        {"role": "user", "content": []},
        {"role": "assistant", "content": [{"type": "text", "text": "", "cache_control": short}]},
        {"role": "user", "content": [
            {"type": "text", "text": "before"},
            {"type": "tool_result", "tool_use_id": "x", "content": "r", "cache_control": short},
            {"type": "text", "text": "after", "citations": []},
            {"type": "tool_result", "tool_use_id": "y", "content": ""},
        ], "id": "m_1"},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "z", "content": "apart"}]},
        {"role": "user", "content": ""},
        {"content": "keys the other way", "role": "user"},
        {"role": "assistant", "content": [
            {"type": "tool_use", "id": "n", "name": "", "input": {"z": 1, "a": 1.0, "m": [1e-7, 1e300, -0.0, 1 << 60]}},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "not base64"}},
            {"type": "thinking", "thinking": "", "signature": ""}, {"type": "reasoning", "id": "r"},
            {"type": "reasoning", "id": "r", "summary": ["s"], "encrypted_content": None},
            {"text": "x", "type": "text"},
        ]},
    ]  # fmt: skip
    system = [{"type": "text", "text": "a"}, {"type": "text", "text": "b", "cache_control": {"type": "ephemeral"}}]
    display: list[Any] = [{"UserMessage": {"content": "never said"}}, {"AssistantMessage": {"content": "as a text"}}]
    path = saved(
        tmp_path,
        api_messages=messages,
        system_prompt=system,
        display_messages=display,
        total_cost=0.1 + 0.2,
        model=None,
    )
    session = session_of(home, path)
    assert data_of(session) == path.read_bytes()
    assert session.get("system") == "a\n\nb"


def test_payloads_too_big_for_a_line_come_back_to_the_byte(tmp_path: Path) -> None:
    big, picture = "й" * 100_000, base64.b64encode(random.Random(1).randbytes(200_000)).decode()
    source = {"type": "base64", "media_type": "image/png", "data": picture}
    messages: list[Any] = [
        {"role": "user", "content": [{"type": "image", "source": source}]},
        {"role": "assistant", "content": [
            {"type": "tool_use", "id": "a", "name": "b", "input": {"x": big}}, {"type": "hologram", "x": big},
            {"type": "text", "text": big, "citations": [big]},
        ]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": big}]},
    ]  # fmt: skip
    path = saved(
        tmp_path / "s", api_messages=messages, display_messages=[{"UserMessage": {"content": big}}], more={"k": big}
    )
    with turnlog.open(tmp_path / "home") as home:
        bring(home, path)
    with turnlog.open(tmp_path / "home") as home:
        assert data_of(session_of(home, path)) == path.read_bytes()


def test_a_fork_made_here_is_a_session_of_its_own(home: Any) -> None:
    fork = session_of(home, FIRST).fork()
    fork.user("another way")
    written = loads_in_sofos(data_of(fork))
    before = json.loads(FIRST.read_bytes())
    assert written["id"] != before["id"]
    assert pretty(written["api_messages"][:-1]) == pretty(before["api_messages"])
    assert written["total_input_tokens"] == before["total_input_tokens"]


def test_the_exponents_of_newer_rust_come_back(home: Any, tmp_path: Path) -> None:
    content = [{"type": "tool_use", "id": "n", "name": "f", "input": {"big": 1e20, "small": 1e-9}}]
    path = saved(tmp_path, api_messages=[{"role": "assistant", "content": content}])
    path.write_bytes(pretty(json.loads(path.read_bytes()), plus=True))
    assert b"1e+20" in path.read_bytes()
    assert data_of(session_of(home, path)) == path.read_bytes()


def test_the_display_transcript_goes_its_own_way(home: Any, tmp_path: Path) -> None:
    display: list[Any] = [
        {"UserMessage": {"content": "typed"}},
        {"ToolExecution": {"tool_name": "bash", "tool_input": {"command": "ls"}, "tool_output": "long gone"}},
        {"AssistantMessage": {"content": "shown"}},
        {"LaterKind": {"x": 1}},
    ]
    messages = [
        {"role": "user", "content": "sent"},
        {"role": "assistant", "content": [{"type": "text", "text": "shown"}]},
    ]
    path = saved(tmp_path, api_messages=messages, display_messages=display)
    session = session_of(home, path)
    assert [text.text for message in session.context() for text in message.blocks] == ["sent", "shown"]
    document = json.loads(path.read_bytes())
    assert json_of(session)["display_messages"] == display
    session.user("sent again", display="typed again")
    session.user("only for the model", display=False)
    assert json_of(session)["display_messages"] == [*display, {"UserMessage": {"content": "typed again"}}]
    assert json_of(session)["api_messages"][:2] == document["api_messages"]


def test_a_message_that_was_edited_here_is_written_as_it_reads_now(home: Any) -> None:
    session = session_of(home, FIRST)
    session.edit(session.messages()[0], "something else")
    before, after = json.loads(FIRST.read_bytes()), json_of(session)
    assert after["api_messages"][0] == {"role": "user", "content": "something else"}
    assert after["api_messages"][1:] == before["api_messages"][1:]


# ── a source that changed ─────────────────────────────────────────────────────────────────────────


def grown(path: Path, folder: Path, **changes: Any) -> Path:
    document = json.loads(path.read_bytes())
    for key, value in changes.items():
        document[key] = document.get(key, []) + value if isinstance(value, list) else value
    target = folder / path.name
    target.write_bytes(pretty(document))
    return target


def test_only_what_is_new_is_appended(home: Any, tmp_path: Path) -> None:
    """sofos writes the whole conversation again at every turn, and parses all of the old file first."""
    path = tmp_path / FIRST.name
    shutil.copy(FIRST, path)
    bring(home, path)
    assert bring(home, path).added == 0
    new = [{"role": "user", "content": "още"}, {"role": "assistant", "content": [{"type": "text", "text": "да"}]}]
    grown(path, tmp_path, api_messages=new, updated_at=1778061200, total_output_tokens=1000)
    done = bring(home, path)
    session = home.resume(done.id)
    assert len(session.messages()) == 7
    assert session.usage().own.output_tokens == 1000
    assert data_of(session) == path.read_bytes()
    assert bring(home, path).added == 0


def test_what_a_compaction_threw_away_is_still_here(home: Any, tmp_path: Path) -> None:
    """Compaction destroys history for good in sofos."""
    path = tmp_path / FIRST.name
    shutil.copy(FIRST, path)
    bring(home, path)
    document = json.loads(path.read_bytes())
    summary = {
        "role": "user",
        "content": "[Conversation Summary]\n\nThe following is a summary of our earlier conversation:\n\nx",
    }
    document["api_messages"] = [summary, document["api_messages"][-1]]
    path.write_bytes(pretty(document))
    session = home.resume(bring(home, path).id)
    assert len(session.messages()) == 5
    assert len(session.context()) == 2
    assert data_of(session) == path.read_bytes()


def test_going_on_here_and_there_keeps_the_counters_right(home: Any, tmp_path: Path) -> None:
    path = tmp_path / NEWEST.name
    shutil.copy(NEWEST, path)
    session = session_of(home, path)
    session.assistant("here", usage=Usage(input_tokens=6, output_tokens=4, cost_micros=1_000_000))
    written = json_of(session)
    assert (written["total_input_tokens"], written["total_output_tokens"]) == (18240, 916)
    assert written["total_cost"] == pytest.approx(1.079887)
    session.assistant("here", usage=Usage(input_tokens=6))
    lost = {loss.what: loss.count for loss in render(session, "sofos").lost}
    assert lost["cost of a response"] == 1


def test_a_total_is_counted_once_though_the_model_changed(home: Any, tmp_path: Path) -> None:
    path = saved(tmp_path, total_output_tokens=100, model="claude-opus-4-6")
    bring(home, path)
    saved(tmp_path, total_output_tokens=150, model="claude-sonnet-5")
    report = session_of(home, path).usage()
    assert report.own.output_tokens == 150
    assert {name: usage.output_tokens for name, usage in report.models.items()} == {
        "claude-opus-4-6": 100, "claude-sonnet-5": 50,
    }  # fmt: skip


# ── sessions of others ────────────────────────────────────────────────────────────────────────────


def test_a_session_that_sofos_never_saw_is_written_so_that_it_loads(home: Any) -> None:
    session = home.create(title="A title", workspace="/home/anna/x")
    session.system("Be brief.")
    session.user(
        [Text(text="look"), Image(media_type="image/png", data=b"\x89PNG"), Image(url="https://example.org/a.png")]
    )
    session.assistant(
        [
            Thinking(text="hm", provider="gemini", data={"x": 1}),
            Thinking(text="signed", provider="anthropic", data={"signature": "s"}),
            ToolCall(id="c1", name="read", input={"b": 1, "a": [2.0]}),
            ToolCall(id="c2", name="read", input="text"),
        ],
        model="claude-sonnet-5",
        usage=Usage(
            input_tokens=10, cache_read_tokens=5, cache_write_tokens=2, cache_write_1h_tokens=1, output_tokens=7
        ),
    )
    session.tool_result("c1", [Text(text="one"), Image(media_type="image/png", data=b"x")])
    session.tool_result("c2", "failed", is_error=True)
    session.user([File(name="a.pdf", data=b"%PDF"), UnknownBlock(kind="odd", json='{"type":"odd"}')])
    session.note("for people")
    session.assistant([ToolCall(id="c3", name="read", input={})])
    first = render(session, "sofos")
    assert first_sofos.faults(first.files[0].path, first.files[0].data) == []
    assert ({loss.what for loss in first.lost} >= {"model"}, first.opens) == (True, "")
    written = render(session, "sofos", format_version=2)
    assert written.opens.startswith("sofos 0.4.3 or newer")
    document = loads_in_sofos(written.files[0].data)
    assert written.id == document["id"] and written.files[0].path == f"{written.id}.json"
    assert [message["role"] for message in document["api_messages"]] == [
        "user",
        "assistant",
        "user",
        "user",
        "assistant",
        "user",
    ]
    asked, answer, results, file, _, interrupted = [message["content"] for message in document["api_messages"]]
    assert [block["type"] for block in asked] == ["text", "image", "image"]
    assert [block["type"] for block in answer] == ["summary", "thinking", "tool_use", "tool_use"]
    assert list(answer[2]["input"]) == ["a", "b"]
    assert [block["tool_use_id"] for block in results] == ["c1", "c2"]
    assert file == [{"type": "text", "text": "[file: a.pdf]"}] or "a.pdf" in file[0]["text"]
    assert interrupted[0]["tool_use_id"] == "c3"
    assert document["system_prompt"][0]["text"] == "Be brief."
    assert (document["total_input_tokens"], document["total_cache_creation_tokens"]) == (10, 3)
    assert (document["peak_single_turn_input_tokens"], document["model"]) == (18, "claude-sonnet-5")
    assert {loss.what: loss.count for loss in written.lost} == {
        "title": 1, "note": 1, "reasoning without its seal": 1, "media in a tool result": 1,
        "error flag of a tool result": 2, "file": 1, "odd block": 1, "usage of single messages": 1,
        "cache write by duration": 1, "workspace": 1, "model of a message": 1, "time of a message": 7,
    }  # fmt: skip


def test_a_session_read_back_has_what_both_can_say(home: Any, tmp_path: Path) -> None:
    session = home.create()
    session.user("do it")
    session.assistant([Text(text="yes"), ToolCall(id="c", name="f", input={"a": 1})], usage=Usage(input_tokens=3))
    session.tool_result("c", "done")
    session.assistant("so it is", usage=Usage(input_tokens=9, output_tokens=1))
    path = Path(sofos.place(render(session, "sofos"), str(tmp_path)))
    again = session_of(home, path)
    assert [(m.role, m.blocks) for m in again.messages()] == [(m.role, m.blocks) for m in session.messages()]
    assert again.usage().own == session.usage().own
    assert data_of(again) == path.read_bytes()


def test_cached_input_is_counted_as_the_model_does(home: Any, tmp_path: Path) -> None:
    session = home.create()
    session.user("hi")
    session.assistant("ho", model="gpt-5.5", usage=Usage(input_tokens=10, cache_read_tokens=90))
    for version, count in ((1, 10), (2, 100)):
        written = render(session, "sofos", format_version=version)
        path = Path(sofos.place(written, str(tmp_path / str(version))))
        assert json.loads(path.read_bytes())["total_input_tokens"] == count
        with turnlog.open("memory:") as other:
            assert session_of(other, path).usage().own == session.usage().own


def test_a_model_that_sofos_cannot_ask_is_left_to_its_choice(home: Any) -> None:
    session = home.create()
    session.user("hi")
    session.assistant("ho", model="gemini-3-pro")
    written = render(session, "sofos")
    assert "model" not in json.loads(written.files[0].data)
    assert "model" in [loss.what for loss in written.lost]


def test_a_compacted_session_is_written_as_the_model_sees_it_and_shown_whole(home: Any) -> None:
    session = home.create()
    session.user("first")
    session.assistant("second")
    session.user("third")
    session.compact("what was said before", keep=1)
    document = loads_in_sofos(data_of(session))
    assert [message["content"] for message in document["api_messages"]] == ["what was said before", "third"]
    assert [item.popitem()[1]["content"] for item in document["display_messages"]] == ["first", "second", "third"]


# ── where it lies ─────────────────────────────────────────────────────────────────────────────────


def test_sessions_are_found_in_a_file_its_folder_a_workspace_and_above(tmp_path: Path) -> None:
    work = tmp_path / "code" / "project"
    shutil.copytree(SEEDS / "v0.2.8/workspace", work)
    folder = work / ".sofos/sessions"
    (folder / "session_1778064600456.json.tmp").write_bytes(b"{}")
    (folder / "notes.txt").write_bytes(b"")
    both = [Source("sofos", str(folder / FIRST.name)), Source("sofos", str(folder / EVERY_BLOCK.name))]
    for place in (folder, work / ".sofos", work, work.parent, tmp_path):
        assert list(sofos.find(str(place))) == both, place
    assert list(sofos.find(both[0].path)) == both[:1]
    assert list(sofos.find(str(folder / "index.json"))) == []
    assert list(sofos.find(str(tmp_path / "nothing"))) == []
    assert sofos.FORMAT.homes(Places(home="/h", workspace="/w")) == ["/w/.sofos/sessions"]
    assert sofos.FORMAT.homes(Places(home="/h")) == []


def test_links_are_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / ".sofos" / "sessions"
    folder.mkdir(parents=True)
    (folder / FIRST.name).symlink_to(FIRST)
    (tmp_path / "linked").symlink_to(SEEDS / "v0.2.8/workspace")
    assert list(sofos.find(str(tmp_path))) == []


def test_files_of_other_agents_are_not_taken() -> None:
    others = [path for path in SEEDS.parent.rglob("*") if path.is_file() and SEEDS not in path.parents]
    assert others
    assert [path for path in others if list(sofos.find(str(path)))] == []


def test_an_index_row_has_a_preview_and_the_newest_comes_first(home: Any, tmp_path: Path) -> None:
    for path in (FIRST, EVERY_BLOCK):
        sofos.place(render(session_of(home, path), "sofos"), str(tmp_path))
    assert (tmp_path / "index.json").read_bytes() == (OLD / "index.json").read_bytes()
    assert (tmp_path / FIRST.name).read_bytes() == FIRST.read_bytes()
    assert (tmp_path / ".save.lock").read_bytes() == b""


def test_a_preview_is_cut_at_120_characters() -> None:
    long = "я🚀" * 60
    assert preview_of([{"role": "user", "content": long}]) == long
    assert preview_of([{"role": "user", "content": long + "x"}]) == long + "..."
    assert preview_of([{"role": "assistant", "content": "no"}, {"role": "user", "content": " \n"}]) == "Empty session"
    blocks = [{"type": "image"}, {"type": "text", "text": "a\nb"}, {"type": "text", "text": "c"}]
    assert (
        preview_of([{"role": "user", "content": [{"type": "tool_result"}]}, {"role": "user", "content": blocks}])
        == "a\nb"
    )


def test_a_damaged_index_is_made_anew_from_the_sessions_that_are_there(home: Any, tmp_path: Path) -> None:
    """A corrupt index makes saving fail, and the later cure forgets every session but the one being saved."""
    folder = tmp_path / "sessions"
    shutil.copytree(OLD, folder)
    shutil.copy(SEEDS / "broken/index_corrupt.json", folder / "index.json")
    (folder / "session_1.json").write_bytes(b"{torn")
    sofos.place(render(session_of(home, NEWEST), "sofos"), str(folder))
    rows = json.loads((folder / "index.json").read_bytes())["sessions"]
    assert [row["id"] for row in rows] == [NEWEST.stem, EVERY_BLOCK.stem, FIRST.stem]
    assert rows[1:] == json.loads((OLD / "index.json").read_bytes())["sessions"]


def test_a_session_is_never_overwritten_without_being_told_to(home: Any, tmp_path: Path) -> None:
    written = render(session_of(home, FIRST), "sofos")
    path = Path(sofos.place(written, str(tmp_path)))
    path.write_bytes(b"mine")
    with pytest.raises(AlreadyExists, match=path.name):
        sofos.place(written, str(tmp_path))
    assert path.read_bytes() == b"mine"
    sofos.place(written, str(tmp_path), force=True)
    assert path.read_bytes() == FIRST.read_bytes()
    assert len(json.loads((tmp_path / "index.json").read_bytes())["sessions"]) == 1


def test_eight_at_once_in_a_fresh_folder_lose_nothing(home: Any, tmp_path: Path) -> None:
    """Eight processes that start at once lose rows of the index, or fail: its first write takes no lock."""
    all_written: list[Rendered] = []
    for number in range(8):
        session = home.create()
        session.user(f"number {number}")
        all_written.append(render(session, "sofos"))
    folder = tmp_path / "new" / "sessions"
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda written: sofos.place(written, str(folder)), all_written))
    rows = json.loads((folder / "index.json").read_bytes())["sessions"]
    assert {row["id"] for row in rows} == {written.id for written in all_written}
    assert sorted(path.name for path in folder.iterdir() if path.name.startswith("session_")) == sorted(
        f"{written.id}.json" for written in all_written
    )


def test_nothing_is_written_while_sofos_holds_its_lock(
    home: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = render(session_of(home, FIRST), "sofos")
    waiting, sleep = threading.Event(), time.sleep
    monkeypatch.setattr(time, "sleep", lambda seconds: (waiting.set(), sleep(seconds)))
    with (tmp_path / ".save.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        saving = threading.Thread(target=sofos.place, args=(written, str(tmp_path)))
        saving.start()
        assert waiting.wait(30)
        assert [path.name for path in tmp_path.iterdir()] == [".save.lock"]
    saving.join()
    assert (tmp_path / FIRST.name).exists() and (tmp_path / "index.json").exists()


# ── damage of every kind ──────────────────────────────────────────────────────────────────────────


def test_what_was_read_from_a_damaged_file_can_be_kept_and_written(tmp_path: Path) -> None:
    whole, dice = EVERY_BLOCK.read_bytes(), random.Random(3)
    target = tmp_path / "session_1.json"
    for _ in range(40):
        with turnlog.open("memory:") as home:
            target.write_bytes(damaged(whole, dice))
            done = (
                next(iter(home.import_sessions(target, agent="sofos")), None) if list(sofos.find(str(target))) else None
            )
            if done is not None:
                json.loads(data_of(home.resume(done.id)))


def damaged(data: bytes, dice: random.Random) -> bytes:
    made = bytearray(data)
    for _ in range(dice.randrange(1, 5)):
        at = dice.randrange(len(made) + 1)
        kind = dice.randrange(6)
        if kind == 0 and at < len(made):
            made[at] ^= 1 << dice.randrange(8)
        elif kind == 1:
            del made[at : at + dice.randrange(1, 200)]
        elif kind == 2:
            made[at:at] = bytes(dice.randrange(1, 64))
        elif kind == 3:
            made[at:at] = dice.choice(
                (b"1e999", b'"\\ud800"', b"\xff\xfe", b"null", b"[[[[", b'{"type":', b"-1", b"true")
            )
        elif kind == 4:
            start = dice.randrange(len(made) + 1)
            made[at:at] = made[start : start + dice.randrange(300)]
        else:
            del made[at:]
            made += b" "
    return bytes(made)


def test_nesting_and_floods_are_bounded(tmp_path: Path) -> None:
    target = tmp_path / "session_1.json"
    deep = (
        b'{"id":"session_1","api_messages":[{"role":"user","content":[{"type":"tool_use","id":"a","name":"b","input":'
    )
    for body in (b"[" * 200_000, b"{" * 1000, b'{"a":' * 5000 + b"1", bytes(1_000_000)):
        target.write_bytes(deep + body)
        reading = sofos.read(Source("sofos", str(target)))
        assert list(reading.steps) is not None and reading.problems
    target.write_bytes(b'{"id":"session_1","api_messages":[' + b"7," * 20_000 + b"7]}")
    reading = sofos.read(Source("sofos", str(target)))
    assert len(list(reading.steps)) == 20_001 and len(reading.problems) <= 1003


def test_a_message_is_an_entry_that_a_log_takes(home: Any) -> None:
    for path in IDENTICAL:
        for step in sofos.read(Source("sofos", str(path))).steps:
            assert isinstance(step.entry, (Message, turnlog.Compaction))
            assert step.entry.origin["agent"] == "sofos" and step.entry.at is not None


def test_sessions_of_every_other_agent_are_written_so_that_they_load(home: Any) -> None:
    for done in home.import_sessions(SEEDS.parent):
        with home.resume(done.id) as session:
            if session.agent != "sofos":
                written = render(session, "sofos")
                document = loads_in_sofos(written.files[0].data)
                calls = [block["id"] for block in blocks_of(document, "tool_use")]
                answered = [block["tool_use_id"] for block in blocks_of(document, "tool_result")]
                assert sorted(calls) == sorted(answered), done.id  # in whichever order the tools were done


def blocks_of(document: dict[str, Any], kind: str) -> list[Any]:
    contents = [message["content"] for message in document["api_messages"]]
    return [block for content in contents if isinstance(content, list) for block in content if block["type"] == kind]

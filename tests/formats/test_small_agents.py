"""qwen-code, Copilot CLI, Kimi, goose, Cline, Droid: what their files say, counted apart, and read while they grow."""

from __future__ import annotations

import json
import random
import re
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

import turnlog
from tests.formats.agents.count_small import COUNTERS, FIELDS, fresh
from tests.public import public
from turnlog import Home, Message, Session, Text, Thinking, ToolCall, ToolResult
from turnlog.exchange.importing.run import import_all
from turnlog.exchange.importing.sessionimport import Imported
from turnlog.formats import Places, Record, Source, find, format_of
from turnlog.log.block import File, Image
from turnlog.log.entry import Compaction, Note, Spent, Start
from turnlog.log.part import Spawned
from turnlog.session.interior import interior

HERE = Path(__file__).parent / "agents"
AGENTS = sorted(COUNTERS)
PUBLIC = [path for name in (*AGENTS, "kimi-cli", "kimi-code") for path in public(name)]


@pytest.fixture
def home() -> Iterator[Home]:
    with turnlog.open("memory:") as home:
        yield home


def bring(home: Home, path: Path) -> list[Imported]:
    return list(import_all(interior(home).creator, list(find(str(path)))))


def only(home: Home, path: Path) -> Session:
    (done,) = bring(home, path)
    return home.resume(done.id)


def started(session: Session) -> Start:
    first = next(iter(session.entries()))
    assert isinstance(first, Start)
    return first


def words(message: Message) -> str:
    return " ".join(block.text for block in message.blocks if isinstance(block, Text))


def told(result: ToolResult) -> str:
    return (
        result.content if isinstance(result.content, str) else " ".join(getattr(b, "text", "") for b in result.content)
    )


def seen(session: Session) -> list[tuple[str, str]]:
    """What a model sees: who, and the words; calls and results in theirs."""
    found: list[tuple[str, str]] = []
    for message in session.context().messages:
        for block in message.blocks:
            if isinstance(block, ToolCall):
                found.append(("call", block.name))
            elif isinstance(block, ToolResult):
                found.append(("result", told(block)))
            elif isinstance(block, Text):
                found.append((message.role, block.text))
    return found


def counted(session: Session) -> dict[str, int]:
    tally = fresh()
    for entry in session.entries():
        if isinstance(entry, Message):
            tally["messages"] += entry.role in ("user", "assistant")
            tally["tool_calls"] += sum(isinstance(block, ToolCall) for block in entry.blocks)
            tally["tool_results"] += sum(isinstance(block, ToolResult) for block in entry.blocks)
    report = session.usage()
    spent = report.own + report.inherited
    return {**tally, **{name: getattr(spent, name) or 0 for name in FIELDS}}


def story(session: Session) -> Any:
    """Everything that must not depend on how often a source was read while it grew."""
    total = counted(session)
    return seen(session), [(m.role, words(m)) for m in session.messages()], {name: total[name] for name in FIELDS}


# ── counts ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "folder", [*(HERE / name for name in AGENTS), *PUBLIC], ids=lambda p: f"{p.parent.name}-{p.name}"
)
def test_everything_is_counted_as_it_stands_in_the_files(home: Home, folder: Path):
    done = bring(home, folder)
    assert done
    for item in done:
        with home.resume(item.id) as session:
            assert counted(session) == COUNTERS[item.source.agent](item.source.path, item.source.key), item.id


def test_every_fixture_belongs_to_the_agent_it_lies_under():
    for name in AGENTS:
        assert {source.agent for source in find(str(HERE / name))} == {name}


def test_no_other_agents_files_are_taken():
    for folder in HERE.iterdir():
        if folder.is_dir() and folder.name not in AGENTS:
            assert [source for name in AGENTS for source in format_of(name).find(str(folder))] == []


@pytest.mark.parametrize("name", AGENTS)
def test_sessions_are_looked_for_at_home_or_where_the_environment_says(name: str):
    homes = format_of(name).homes(Places(home="/home/anna"))
    assert homes
    assert all(path.startswith("/home/anna/") for path in homes)
    words = ("QWEN_HOME", "COPILOT_HOME", "KIMI_SHARE_DIR", "KIMI_CODE_HOME", "GOOSE_PATH_ROOT", "CLINE_DATA_DIR")
    words = (*words, "FACTORY_HOME_OVERRIDE", "XDG_DATA_HOME", "CURSOR_CONFIG_DIR")
    elsewhere = format_of(name).homes(Places(home="/home/anna", environ=dict.fromkeys(words, "/data")))
    assert any(path.startswith("/data/") for path in elsewhere)


# ── growing files ─────────────────────────────────────────────────────────────────────────────────

GROWING = [
    "qwen-code/orchard.jsonl",
    "copilot-cli/session-state/5b1c9a4e-0000-4000-8000-00000000cafe/events.jsonl",
    "kimi/dot-kimi-code/sessions/wd_orchard_0123456789ab/session_one/agents/main/wire.jsonl",
    "kimi/only-wire/wire.jsonl",
    "goose/20250615_3.jsonl",
    "droid/-home-ada-orchard/3f6c0a1e-1111-4222-8333-000000000001.jsonl",
]


@pytest.mark.parametrize("name", GROWING)
def test_a_file_that_grows_record_by_record_is_in_the_end_as_if_read_once(home: Home, tmp_path: Path, name: str):
    lines = (HERE / name).read_bytes().splitlines(keepends=True)
    place = tmp_path / Path(name).relative_to(Path(name).parts[0])
    place.parent.mkdir(parents=True, exist_ok=True)
    for end in range(1, len(lines) + 1):
        place.write_bytes(b"".join(lines[:end]))
        bring(home, tmp_path)
    (whole,) = [item for item in bring(home, tmp_path) if not item.source.key]
    assert whole.added == 0
    with turnlog.open("memory:") as other:
        once = {item.id: item for item in bring(other, tmp_path)}
        for id in once:
            with home.resume(id) as grown, other.resume(id) as fresh_one:
                assert story(grown) == story(fresh_one)


@pytest.mark.parametrize("name", GROWING[:2])
def test_where_every_record_is_whole_nothing_at_all_differs(home: Home, tmp_path: Path, name: str):
    lines = (HERE / name).read_bytes().splitlines(keepends=True)
    place = tmp_path / Path(name).name
    for end in range(1, len(lines) + 1):
        if b'"uuid":"a4"' in lines[end - 1] and b'"thought":true' in lines[end - 1]:
            continue  # the first of two pieces
        place.write_bytes(b"".join(lines[:end]))
        bring(home, tmp_path)
    with turnlog.open("memory:") as other:
        for item in bring(other, tmp_path):
            with home.resume(item.id) as grown, other.resume(item.id) as once:
                assert counted(grown) == counted(once)
                assert story(grown) == story(once)


@pytest.mark.parametrize("name", AGENTS)
def test_reading_everything_again_adds_nothing(home: Home, name: str):
    bring(home, HERE / name)
    before = {row.id: row.seq for row in home.sessions()}
    assert {item.added for item in bring(home, HERE / name)} == {0}
    assert {row.id: row.seq for row in home.sessions()} == before


_VALUE = re.compile(rb'(?<=:)\s*("[^"\\\\]{0,40}"|\d+|true|false|null)')
_ODD = (b"null", b"7", b"[]", b"{}", b'"x"', b"1e300", b"-1", b"true", b'["a"]', b'{"type":"text"}', b'""')
_DEEP = b"[" * 900 + b"]" * 900


@pytest.mark.parametrize("name", AGENTS)
def test_values_of_another_kind_cost_what_they_are_in(name: str, tmp_path: Path):
    """JSON that is sound, and says something else than the program ever would."""
    chance = random.Random(5)
    files = sorted(path for path in (HERE / name).rglob("*.json*") if path.is_file())
    for number in range(80):
        path = files[number % len(files)]
        copy = tmp_path / str(number) / name
        shutil.copytree(HERE / name, copy)
        data = path.read_bytes()
        for _ in range(chance.randrange(1, 5)):
            spot = chance.choice(list(_VALUE.finditer(data)))
            data = data[: spot.start()] + chance.choice(_ODD) + data[spot.end() :]
        if number % 8 == 0:
            spot = chance.choice(list(_VALUE.finditer(data)))
            data = data[: spot.start()] + _DEEP + data[spot.end() :]
        (copy / path.relative_to(HERE / name)).write_bytes(data)
        with turnlog.open("memory:") as home:
            sources = list(format_of(name).find(str(copy)))
            for item in import_all(interior(home).creator, sources):
                with home.resume(item.id) as session:
                    session.context()
                    assert session.damage == []
            if _DEEP not in data:  # what is too deep to be kept is tried every time
                assert {item.added for item in import_all(interior(home).creator, sources)} <= {0}
        shutil.rmtree(copy.parent)


# ── qwen-code ─────────────────────────────────────────────────────────────────────────────────────


def test_qwen_code_goes_on_where_it_was_rewound_and_sees_only_the_summary(home: Home):
    with only(home, HERE / "qwen-code/orchard.jsonl") as session:
        assert session.title == "The orchard"
        assert seen(session) == [
            ("user", "Summary: 58 trees, a map was drawn."),
            ("assistant", "Got it."),
            ("user", "Thanks. And the south field?"),
            ("assistant", "Empty."),
        ]
        said = [words(message) for message in session.messages()]
        assert "Cut down the pears." not in said
        assert "(spoken) good bye" in said
        everything = [words(entry) for entry in session.entries() if isinstance(entry, Message)]
        assert "Cut down the pears." in everything


def test_qwen_code_joins_the_pieces_of_an_answer_and_keeps_what_tools_drew(home: Home):
    with only(home, HERE / "qwen-code/orchard.jsonl") as session:
        messages = session.messages()
        answer = next(m for m in messages if any(isinstance(b, ToolCall) and b.id == "c2" for b in m.blocks))
        assert [type(block) for block in answer.blocks] == [Thinking, ToolCall, ToolCall]
        assert answer.usage is not None and answer.usage.input_tokens == 1100
        results = {b.call: b for m in messages for b in m.blocks if isinstance(b, ToolResult)}
        assert isinstance(results["c2"].content, list)
        assert isinstance(results["c2"].content[1], Image)
        assert results["c3"].is_error
        asked = next(m for m in messages if words(m).startswith("Draw a map."))
        assert asked.display == "Draw a map."


def test_qwen_code_read_between_two_pieces_keeps_the_first_as_a_branch(home: Home, tmp_path: Path):
    lines = (HERE / "qwen-code/orchard.jsonl").read_bytes().splitlines(keepends=True)
    place = tmp_path / "chat.jsonl"
    place.write_bytes(b"".join(lines[:11]))
    bring(home, place)
    place.write_bytes(b"".join(lines[:12]))
    with only(home, place) as session:
        last = session.messages()[-1]
        assert [type(block) for block in last.blocks] == [Thinking, ToolCall, ToolCall]


def test_qwen_code_finds_the_title_behind_the_last_message(home: Home, tmp_path: Path):
    about = {"sessionId": "s", "timestamp": "2026-03-01T09:00:00Z", "cwd": "/home/ada"}
    said = [("user", "user", "prune"), ("assistant", "model", "first"), ("assistant", "model", "other")]
    rows: list[dict[str, Any]] = [
        {
            "uuid": f"r{n}",
            "parentUuid": "r0" if n else None,
            "type": kind,
            "message": {"role": role, "parts": [{"text": text}]},
        }
        for n, (kind, role, text) in enumerate(said)
    ]
    rows += [
        {
            "uuid": f"t{n}",
            "parentUuid": f"r{n}",
            "type": "system",
            "subtype": "custom_title",
            "systemPayload": {"customTitle": title},
        }
        for n, title in ((1, "abandoned"), (2, "of the branch that is there"))
    ]
    path = tmp_path / "chat.jsonl"
    path.write_text("".join(json.dumps({**about, **row}) + "\n" for row in rows))
    with only(home, path) as session:
        assert session.title == "of the branch that is there"
        assert [words(message) for message in session.messages()] == ["prune", "other"]


# ── Copilot CLI ───────────────────────────────────────────────────────────────────────────────────

EVENTS = HERE / "copilot-cli" / "session-state"


def test_copilot_cli_drops_the_event_it_was_rewound_to(home: Home):
    main, sub = bring(home, EVENTS)
    with home.resume(main.id) as session:
        assert session.title == "Roses"
        assert [words(m) for m in session.messages() if m.role == "user"][-1].endswith("Borrow some")
        assert "I cannot." not in [words(message) for message in session.messages()]
        assert seen(session) == [("user", "Roses: seven. Shears: none."), ("assistant", "Asked the neighbour.")]
        first = next(m for m in session.messages() if m.role == "user")
        assert first.display == "Prune the roses"
        assert first.meta["attachments"][0]["displayName"] == "roses.md"
        assert session.get("model") == "claude-sonnet-4.6"
    with home.resume(sub.id) as child:
        assert seen(child) == [
            ("user", "Find the shears."), ("call", "glob"), ("result", "nothing found"), ("assistant", "No shears."),
        ]  # fmt: skip


def test_copilot_cli_books_running_totals_once(home: Home):
    main, sub = bring(home, EVENTS)
    with home.resume(main.id) as session:
        spent = [entry for entry in session.entries() if isinstance(entry, Spent)]
        assert [(entry.model, entry.why) for entry in spent] == [
            ("claude-sonnet-4.6", None), ("claude-sonnet-4.6", "session"), ("claude-sonnet-4.6", "session"),
        ]  # fmt: skip
        total = session.usage().own
        assert (total.input_tokens, total.cache_read_tokens, total.cache_write_tokens) == (800, 8000, 200)
        assert (total.output_tokens, total.reasoning_tokens) == (140, 12)
    with home.resume(sub.id) as child:
        assert child.usage().own.input_tokens == 350


# ── Kimi ──────────────────────────────────────────────────────────────────────────────────────────

OAK = next((HERE / "kimi" / "dot-kimi" / "sessions").glob("*/*"))
LAWN = HERE / "kimi" / "dot-kimi-code" / "sessions" / "wd_orchard_0123456789ab"


def test_kimi_cli_keeps_what_was_reverted_and_what_was_compacted(home: Home):
    done = {item.source.path: item for item in bring(home, HERE / "kimi" / "dot-kimi")}
    with home.resume(done[str(OAK / "context.jsonl")].id) as session:
        assert (session.title, session.workspace) == ("Oak and lime", "/home/anna/orchard")
        assert [said for who, said in seen(session) if who in ("user", "assistant")] == [
            "<system>Previous context has been compacted. Here is the compaction output:</system>",
            "An oak was planted.", "Look", "An oak.", "And a lime", "A lime, too.",
        ]  # fmt: skip
        said = [words(message) for message in session.messages()]
        assert "Plant an oak" in said
        assert "Use hands" not in said
        assert "Use hands" in [words(entry) for entry in session.entries() if isinstance(entry, Message)]
        results = [b for m in session.messages() for b in m.blocks if isinstance(b, ToolResult)]
        assert [result.is_error for result in results] == [True, False, False]
        assert session.get("system") == "You are Kimi."
        assert session.get("tasks") == [{"title": "water", "status": "pending"}]
    with home.resume(done[str(OAK / "subagents" / "a1b2" / "context.jsonl")].id) as child:
        assert child.usage().own.output_tokens == 700


def test_kimi_cli_read_through_a_revert_and_a_compaction_is_as_if_read_once(home: Home, tmp_path: Path):
    place = tmp_path / OAK.name
    place.mkdir()
    shutil.copy(OAK / "wire.jsonl", place)

    def read_as_it_grows(name: str, begin: int = 0) -> None:
        lines = (OAK / name).read_bytes().splitlines(keepends=True)
        for end in range(begin, len(lines) + 1):
            (place / "context.jsonl").write_bytes(b"".join(lines[:end]))
            bring(home, place)

    read_as_it_grows("context_1.jsonl", 1)
    (place / "context.jsonl").rename(place / "context_1.jsonl")
    read_as_it_grows("context_2.jsonl", 10)
    (place / "context.jsonl").rename(place / "context_2.jsonl")
    read_as_it_grows("context.jsonl", 5)
    (last,) = bring(home, place)
    assert last.added == 0
    with turnlog.open("memory:") as other, only(other, place) as once, home.resume(last.id) as grown:
        assert story(grown) == story(once)
        assert counted(grown) == counted(once)


def test_kimi_cli_that_was_cleared_keeps_what_was_said(home: Home, tmp_path: Path):
    place = tmp_path / "session"
    place.mkdir()
    shutil.copy(OAK / "context_1.jsonl", place / "context_1.jsonl")
    shutil.copy(OAK / "wire.jsonl", place)
    (place / "context.jsonl").touch()
    with only(home, place) as session:
        assert seen(session) == []
        assert "Use hands" in [words(entry) for entry in session.entries() if isinstance(entry, Message)]
    (place / "context.jsonl").write_text('{"role":"user","content":"Again"}\n')
    with only(home, place / "wire.jsonl") as session:
        assert seen(session) == [("user", "Again")]


def test_kimi_code_undoes_compacts_and_waits_for_results(home: Home):
    main, sub, fork = bring(home, LAWN)
    with home.resume(main.id) as session:
        assert (session.title, session.workspace) == ("The lawn", "/home/anna/orchard")
        said = [words(message) for message in session.messages()]
        assert "Try the rain" not in said
        assert said.index("and hurry") > said.index("Pumping")
        assert seen(session) == [
            ("user", "Water the lawn"), ("user", "Try the well"), ("user", "and hurry"),
            ("user", "The lawn was watered from the well."), ("user", "Now the roses"), ("assistant", "folded"),
            ("call", "Read"), ("result", "thorns"), ("user", "Bye"), ("assistant", "cut off in the mid"),
        ]  # fmt: skip
        results = {b.call: b for m in session.messages() for b in m.blocks if isinstance(b, ToolResult)}
        assert results["Bash_0"].is_error
        assert told(results["Read_1"]) == "dry <system>1 line</system>"
        assert [entry.why for entry in session.entries() if isinstance(entry, Spent)] == ["compaction"]
        assert session.get("permission_mode") == "manual"
        assert session.get("system") == "You are Kimi Code."
    with home.resume(sub.id) as child:
        assert child.usage().own.input_tokens == 900
    with home.resume(fork.id) as other:
        assert other.usage().own.input_tokens == 25
        assert other.usage().inherited.input_tokens == 120


def test_kimi_code_undo_of_more_than_was_said_and_a_clear(home: Home):
    with only(home, HERE / "kimi" / "damaged.jsonl") as session:
        assert seen(session) == [("user", "third"), ("user", "first")]


@pytest.mark.parametrize("count", ["1", 1.0, True, None, -1, 1])
def test_kimi_code_undo_before_anything_was_said_changes_nothing(home: Home, tmp_path: Path, count: Any):
    head = {"type": "metadata", "protocol_version": "1", "created_at": 1}
    message = {"role": "user", "content": "hi", "id": "u"}
    records = [head, {"type": "context.undo", "count": count}, {"type": "context.append_message", "message": message}]
    path = tmp_path / "wire.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    reading = format_of("kimi").read(Source("kimi", str(path)))
    assert [type(getattr(step, "entry", step)).__name__ for step in reading.steps] == ["Message"]
    assert "an undo of more than was said" in reading.problems[0].what


def test_kimi_code_keeps_the_tail_behind_a_summary_of_an_earlier_version(home: Home, tmp_path: Path):
    said = [{"role": "user", "content": [{"type": "text", "text": word}]} for word in ("one", "two", "three")]
    rows: list[dict[str, Any]] = [{"type": "metadata", "protocol_version": "1.1", "created_at": 1780000000000}]
    rows += [{"type": "context.append_message", "message": message} for message in said]
    rows += [{"type": "context.apply_compaction", "summary": "one and two", "compactedCount": 2}]
    rows += [{"type": "context.splice", "start": 0, "deleteCount": 1, "messages": []}]
    rows += [{"type": "context.undo", "count": 1}, {"type": "context.append_message", "message": said[0]}]
    (tmp_path / "wire.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[:5]))
    with only(home, tmp_path) as session:
        assert seen(session) == [("user", "one and two"), ("user", "three")]
    (tmp_path / "wire.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with only(home, tmp_path) as session:
        assert ("user", "three") not in seen(session)
        assert seen(session)[-1] == ("user", "one")


@pytest.mark.parametrize("is_spliced", [False, True])
def test_kimi_code_keeps_prompts_behind_a_summary_however_they_came_in(tmp_path: Path, is_spliced: bool):
    said = [{"role": "user", "content": [{"type": "text", "text": word}]} for word in ("one", "two", "three")]
    rows: list[dict[str, Any]] = [{"type": "metadata", "protocol_version": "1.1", "created_at": 1780000000000}]
    if is_spliced:
        rows += [{"type": "context.splice", "start": 0, "deleteCount": 0, "messages": [3, *said]}]
    else:
        rows += [{"type": "context.append_message", "message": message} for message in said]
    rows += [{"type": "context.apply_compaction", "summary": "so far", "keptUserMessageCount": 2}]
    path = tmp_path / "wire.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    reading = format_of("kimi").read(Source("kimi", str(path)))
    entries = [step.entry for step in reading.steps if isinstance(step, Record)]
    replacement = [words(entry) for entry in cast("Compaction", entries[-1]).replacement]
    assert replacement == ["two", "three", "so far"]
    assert len(reading.problems) == is_spliced, "what is no message is reported"


def test_kimi_code_names_a_prompt_that_it_cannot_read_again(tmp_path: Path):
    said = {"type": "context.append_message", "message": {"role": "user", "content": "one"}}
    compacted = {"type": "context.apply_compaction", "summary": "so far", "keptUserMessageCount": 1}
    path = tmp_path / "wire.jsonl"
    first = json.dumps({"type": "metadata", "protocol_version": "1.1", "created_at": 1780000000000})
    path.write_text(f'{first}\n{json.dumps(said)}{{"torn": \n{json.dumps(compacted)}\n')
    reading = format_of("kimi").read(Source("kimi", str(path)))
    list(reading.steps)
    assert "a prompt that a compaction keeps cannot be read again" in [problem.what for problem in reading.problems]


def test_kimi_code_tells_what_a_request_took_before_the_answer_that_carries_it(home: Home, tmp_path: Path):
    """As 2.1.0 writes it, which also repeats every message and turn as an event."""

    def usage(tokens: int) -> dict[str, int]:
        return {"inputOther": tokens, "output": 7, "inputCacheRead": 0, "inputCacheCreation": 0}

    def step(number: int, **end: Any) -> list[dict[str, Any]]:
        events: list[dict[str, Any]] = [
            {"type": "step.begin", "uuid": f"s{number}", "turnId": "0", "step": number},
            {"type": "content.part", "stepUuid": f"s{number}", "part": {"type": "text", "text": f"Answer {number}"}},
            {"type": "step.end", "uuid": f"s{number}", "finishReason": "end_turn", "messageId": f"m{number}", **end},
        ]
        rows = [{"type": "context.append_loop_event", "agentId": "main", "event": event} for event in events]
        return [rows[0], {"type": "usage.record", "model": "m", "usage": usage(11), "usageScope": "turn"}, *rows[1:]]

    said = {
        "role": "user",
        "content": [{"type": "text", "text": "remember"}],
        "id": "msg_1",
        "origin": {"kind": "user"},
    }
    rows: list[dict[str, Any]] = [
        {"type": "metadata", "protocol_version": "1.5", "created_at": 1794835629767},
        {"type": "runtime.set_binding", "agentId": "main"},
        {"type": "turn.prompt", "agentId": "main", "input": said["content"], "promptId": "msg_1", "turnId": 0},
        {"type": "context.append_message", "agentId": "main", "message": said},
        {"type": "agent.message.appended", "kind": "event", "message": {"message": said}},
        {"type": "agent.turn.started", "kind": "event", "turnId": 0},
        *step(1, usage=usage(11)),
        *step(2, usage=usage(11)),
        *step(3),  # interrupted: nothing carries it
        {"type": "prompt.completed", "agentId": "main", "promptId": "msg_1", "reason": "completed"},
        *step(4, usage=usage(11))[:2],  # it still arrives, and will carry it
    ]
    (tmp_path / "wire.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (done,) = bring(home, tmp_path)
    assert done.problems == []
    with home.resume(done.id) as session:
        assert session.usage().own.input_tokens == 33
        assert [entry.why for entry in session.entries() if isinstance(entry, Spent)] == ["turn"]


# ── goose ─────────────────────────────────────────────────────────────────────────────────────────

_SCHEMA = """
create table schema_version (version integer primary key);
insert into schema_version values (15);
create table sessions (
    id text primary key, name text not null default '', description text not null default '',
    session_type text not null default 'user', working_dir text not null, created_at timestamp, updated_at timestamp,
    extension_data text default '{}', accumulated_total_tokens integer, accumulated_input_tokens integer,
    accumulated_output_tokens integer, accumulated_cache_read_tokens integer, accumulated_cache_write_tokens integer,
    accumulated_cost real, provider_name text, model_config_json text, goose_mode text, archived_at timestamp,
    parent_session_id text, recipe_json text
);
create table messages (
    id integer primary key autoincrement, message_id text, session_id text not null, role text not null,
    content_json text not null, created_timestamp integer not null, timestamp timestamp default current_timestamp,
    tokens integer, metadata_json text
);
create table usage_ledger (
    id integer primary key autoincrement, session_id text not null, created_timestamp integer not null, model text,
    input_tokens integer, output_tokens integer, total_tokens integer, cache_read_tokens integer,
    cache_write_tokens integer, cost real, cost_source text, is_compaction integer default 0
);
"""


def make_goose(path: Path, *, rows: list[dict[str, Any]] | None = None) -> None:
    """A database with the conversation of the export, a subagent, and requests noted one by one."""
    export = json.loads((HERE / "goose" / "export.json").read_text())
    base = sqlite3.connect(path)
    base.executescript(_SCHEMA)
    columns = "id, name, working_dir, created_at, session_type, parent_session_id, accumulated_input_tokens, "
    columns += "accumulated_output_tokens, accumulated_cache_read_tokens, accumulated_cache_write_tokens, "
    columns += "accumulated_cost, model_config_json, provider_name, goose_mode"
    marks = ", ".join("?" * 14)
    model = json.dumps({"model_name": "gpt-5"})
    main = ("20251009_1", "Mowing", "/home/anna/orchard", "2025-10-09 08:53:20", "user", None, 2200, 100, 2000, 50)
    sub = ("20251009_2", "Raking", "/home/anna/orchard", "2025-10-09 08:53:25", "sub_agent", "20251009_1", 9, 1, 0, 0)
    for row in (main, sub):
        base.execute(f"insert into sessions ({columns}) values ({marks})", (*row, 0.0123, model, "openai", "auto"))
    put_rows(base, export["conversation"] if rows is None else rows)
    said = json.dumps([{"type": "text", "text": "rake"}])
    base.execute("insert into messages (session_id, role, content_json, created_timestamp) values (?, ?, ?, ?)",
                 ("20251009_2", "user", said, 1760000006))  # fmt: skip
    base.execute("insert into usage_ledger (session_id, created_timestamp, model, input_tokens, output_tokens, "
                 "cache_read_tokens, cache_write_tokens, cost, is_compaction) values "
                 "('20251009_1', 1760000004, 'gpt-5', 1500, 60, 1400, 50, 0.01, 1)")  # fmt: skip
    base.commit()
    base.close()


def put_rows(base: sqlite3.Connection, rows: list[dict[str, Any]]) -> None:
    base.execute("delete from messages where session_id = '20251009_1'")
    for row in rows:
        base.execute(
            "insert into messages (message_id, session_id, role, content_json, created_timestamp, metadata_json) "
            "values (?, '20251009_1', ?, ?, ?, ?)",
            (row["id"], row["role"], json.dumps(row["content"]), row["created"], json.dumps(row.get("metadata"))),
        )


def test_goose_database_is_read_without_touching_it(home: Home, tmp_path: Path):
    make_goose(tmp_path / "sessions.db")
    before = (tmp_path / "sessions.db").read_bytes()
    main, sub = bring(home, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["sessions.db"]
    assert (tmp_path / "sessions.db").read_bytes() == before
    for item in (main, sub):
        with home.resume(item.id) as session:
            assert counted(session) == COUNTERS["goose"](item.source.path, item.source.key)
    with home.resume(main.id) as session:
        assert (session.title, session.get("model"), session.get("provider")) == ("Mowing", "gpt-5", "openai")
        spent = [(entry.why, entry.usage.output_tokens) for entry in session.entries() if isinstance(entry, Spent)]
        assert spent == [("compaction", 60), ("import", 40)]
    with home.resume(sub.id) as child:
        assert started(child).spawned == Spawned(main.id)


def test_goose_shows_the_model_what_its_marks_say(home: Home):
    with only(home, HERE / "goose" / "export.json") as session:
        assert seen(session) == [
            ("user", "Summary: mown."), ("assistant", "I go on from there."), ("user", "Rake"), ("call", "rake"),
            ("result", "broken"), ("assistant", "The rake broke."),
        ]  # fmt: skip
        assert "for your eyes only" in [words(message) for message in session.messages()]
        notes = [entry.text for entry in session.entries() if isinstance(entry, Note)]
        assert notes == ["Compacting", "toolConfirmationRequest"]


def test_goose_export_and_database_are_one_session(home: Home, tmp_path: Path):
    make_goose(tmp_path / "sessions.db")
    main = bring(home, tmp_path)[0]
    again = bring(home, HERE / "goose" / "export.json")[0]
    assert again.id == main.id


def test_goose_compacted_while_it_is_watched_is_as_if_read_once(home: Home, tmp_path: Path):
    """A compaction writes all rows anew, with other row ids."""
    rows = json.loads((HERE / "goose" / "export.json").read_text())["conversation"]
    early = [{**row, "metadata": None} for row in rows[:3]]
    path = tmp_path / "sessions.db"
    for end in (1, 2, 3):
        path.unlink(missing_ok=True)
        make_goose(path, rows=early[:end])
        bring(home, path)
    for end in range(6, len(rows) + 1):
        path.unlink()
        make_goose(path, rows=rows[:end])
        bring(home, path)
    with turnlog.open("memory:") as other:
        once, grown = bring(other, path)[0], bring(home, path)[0]
        assert grown.added == 0
        with other.resume(once.id) as a, home.resume(grown.id) as b:
            assert story(b) == story(a)
            assert counted(b) == counted(a)


def test_goose_row_that_is_not_json_costs_only_itself(home: Home, tmp_path: Path):
    make_goose(tmp_path / "sessions.db")
    base = sqlite3.connect(tmp_path / "sessions.db")
    base.execute("update messages set content_json = '[{' where message_id = 'g-9'")
    base.execute("update messages set content_json = cast(x'5bff' as text) where message_id = 'g-10'")
    base.commit()
    base.close()
    main = bring(home, tmp_path)[0]
    assert [problem.what for problem in main.problems] == ["a message that is not JSON"] * 2
    with home.resume(main.id) as session:
        assert seen(session)[-1] == ("assistant", "The rake broke.")


def test_goose_damaged_database_gives_problems_and_nothing_else(tmp_path: Path):
    make_goose(tmp_path / "whole.db")
    data, chance = (tmp_path / "whole.db").read_bytes(), random.Random(11)
    path = tmp_path / "sessions.db"
    for _ in range(60):
        at, size = chance.randrange(len(data)), chance.randrange(1, 400)
        junk = bytes(chance.randrange(256) for _ in range(size))
        path.write_bytes(chance.choice([data[:at], data[:at] + junk + data[at + size :]]))
        with turnlog.open("memory:") as home:
            for item in import_all(interior(home).creator, list(format_of("goose").find(str(path)))):
                assert all(problem.what for problem in item.problems)


# ── Cline ─────────────────────────────────────────────────────────────────────────────────────────

FENCE = HERE / "cline" / "data" / "sessions" / "1790000000000_abcde"


def test_cline_sees_the_state_of_its_compaction_and_what_came_since(home: Home):
    main, sub, fork = bring(home, HERE / "cline" / "data")
    with home.resume(main.id) as session:
        assert (session.title, session.workspace) == ("A fence", "/home/anna/orchard")
        assert seen(session) == [
            ("user", "Context summary:\n\nno saw"), ("assistant", "No saw."), ("user", "Buy one"),
            ("assistant", "Bought."), ("user", "Thanks"),
        ]  # fmt: skip
        first = session.messages()[0]
        file = next(block for block in first.blocks if isinstance(block, File))
        assert file.name == "/home/anna/fence.md"
        compaction = next(entry for entry in session.entries() if isinstance(entry, Compaction))
        assert compaction.tokens_before == 900
        assert session.get("system") == "You are Cline."
    with home.resume(sub.id) as child:
        assert started(child).spawned == Spawned(main.id, role="scout")
    with home.resume(fork.id) as other:
        assert other.usage().own.output_tokens == 9
        assert other.usage().inherited.output_tokens == 60


def test_cline_gives_messages_new_ids_and_they_are_still_the_same(home: Home, tmp_path: Path):
    folder = tmp_path / FENCE.name
    shutil.copytree(FENCE, folder)
    (folder / "agent_7.messages.json").unlink()
    path, state = folder / f"{FENCE.name}.messages.json", folder / f"{FENCE.name}.compaction.json"
    whole, compacted = json.loads(path.read_text()), json.loads(state.read_text())
    state.unlink()
    for end in range(1, len(whole["messages"]) + 1):
        fresh_ids = [{**message, "id": f"{end}-{n}"} for n, message in enumerate(whole["messages"][:end])]
        path.write_text(json.dumps({**whole, "messages": fresh_ids}))
        if end == 4:
            state.write_text(json.dumps(compacted))
        bring(home, folder)
    with turnlog.open("memory:") as other, only(other, folder) as once, only(home, folder) as grown:
        assert story(grown) == story(once)
        assert counted(grown) == counted(once)
    again = {**compacted, "source_message_count": 7, "messages": [{"role": "user", "content": "all of it"}]}
    state.write_text(json.dumps(again))
    with only(home, folder) as session:
        assert seen(session) == [("user", "all of it")]
        assert counted(session) == COUNTERS["cline"](str(path), "")


def test_cline_compaction_of_what_is_gone_does_not_apply(home: Home, tmp_path: Path):
    folder = tmp_path / FENCE.name
    shutil.copytree(FENCE, folder)
    (folder / "agent_7.messages.json").unlink()
    state = folder / f"{FENCE.name}.compaction.json"
    state.write_text(json.dumps({**json.loads(state.read_text()), "source_message_count": 40}))
    (done,) = bring(home, folder)
    assert [problem.where for problem in done.problems] == ["compaction"]
    with home.resume(done.id) as session:
        assert seen(session)[0] == ("user", "Build a fence")


def test_cline_task_of_the_extension_leaves_out_what_it_truncated(home: Home, tmp_path: Path):
    shutil.copytree(HERE / "cline" / "globalStorage", tmp_path / "globalStorage")
    with only(home, tmp_path) as session:
        assert (session.title, session.workspace) == ("Paint the door", "/home/anna/orchard")
        assert seen(session)[:2] == [("user", "<task>\nPaint the door\n</task>"), ("assistant", "I read first.")]
        assert seen(session)[-2:] == [("user", "Make it red"), ("assistant", "Red now.")]
        assert ("assistant", "It is green.") not in seen(session)
        models = session.usage().models
        assert {model: usage.output_tokens for model, usage in models.items()} == {
            "claude-sonnet-4": 42,
            "claude-opus-4": 22,
        }
    path = next(tmp_path.rglob("api_conversation_history.json"))
    listed = [*json.loads(path.read_text()), {"role": "user", "content": "And the gate"}]
    path.write_text(json.dumps(listed))
    with only(home, tmp_path) as session:
        assert seen(session)[-1] == ("user", "And the gate")
        assert ("assistant", "It is green.") not in seen(session)


def test_cline_task_of_the_extension_may_have_any_digits_for_a_name(home: Home, tmp_path: Path):
    shutil.copytree(HERE / "cline" / "globalStorage", tmp_path / "globalStorage")
    path = next(tmp_path.rglob("api_conversation_history.json"))
    next(tmp_path.rglob("ui_messages.json")).unlink()
    path.parent.rename(path.parent.parent / "²")
    with only(home, tmp_path) as session:
        assert seen(session)


def test_cline_file_that_breaks_off_is_read_as_far_as_it_goes(home: Home, tmp_path: Path):
    folder = tmp_path / FENCE.name
    folder.mkdir()
    data = (FENCE / f"{FENCE.name}.messages.json").read_bytes()
    path = folder / f"{FENCE.name}.messages.json"
    path.write_bytes(data[: data.index(b"Buy one")])
    (done,) = bring(home, folder)
    assert done.problems
    with home.resume(done.id) as session:
        assert ("assistant", "No saw.") in seen(session)


def test_sources_of_all_agents_have_a_steady_order(tmp_path: Path):
    shutil.copytree(HERE, tmp_path / "all", ignore=shutil.ignore_patterns("recorded*", "*.py"))
    first: list[Source] = list(find(str(tmp_path / "all")))
    assert first == list(find(str(tmp_path / "all")))
    assert len(first) == len(set(first))


# ── Droid ─────────────────────────────────────────────────────────────────────────────────────────

DROID = HERE / "droid" / "-home-ada-orchard"
FIRST, FORK, CHILD = (f"3f6c0a1e-1111-4222-8333-00000000000{number}" for number in (1, 2, 3))


def test_droid_shows_the_model_a_summary_and_what_came_behind_it(home: Home):
    with only(home, DROID / f"{FIRST}.jsonl") as session:
        assert seen(session) == [
            ("user", "There are three apples."), ("user", "Show me one."), ("call", "Read"),
            ("result", "Image file: apple.png "), ("assistant", "A red one."),
        ]  # fmt: skip
        hidden = [entry for entry in session.entries() if isinstance(entry, Message) and entry.display is False]
        assert [words(entry)[:17] for entry in hidden] == ["<system-reminder>"]
        notes = [entry.text for entry in session.entries() if isinstance(entry, Note)]
        assert notes == ["todo state", "The network was away."]
        assert (session.workspace, session.title) == ("/home/ada/orchard", "Count the apples")


def test_a_fork_and_a_subagent_of_droid_know_where_they_come_from(home: Home):
    done = {item.source.path.rpartition("/")[2][:36]: item.id for item in bring(home, DROID)}
    assert [fork.id for fork in home.forks(done[FIRST])] == [done[FORK]]
    with home.resume(done[FORK]) as fork:
        assert [words(entry) for entry in fork.messages()][-2:] == ["And pears?", "None."]
    with home.resume(done[CHILD]) as child:
        spawned = started(child).spawned
        assert spawned is not None
        assert (spawned.session, spawned.call) == (done[FIRST], "toolu_2")


def test_droid_with_a_new_title_adds_no_record_again(home: Home, tmp_path: Path):
    def message(text: str, **fields: Any) -> dict[str, Any]:
        return {"type": "message", "message": {"role": "assistant", "content": text}, **fields}

    records = [message("one", id="m1"), message("two"), message("two"), {"type": "of_next_year", "id": "m1", "x": 1}]
    path = tmp_path / f"{FIRST}.jsonl"
    for title in ("short", "a much longer title"):
        start = {"type": "session_start", "id": FIRST, "title": title, "owner": "ada", "cwd": "/w"}
        path.write_text("".join(json.dumps(record) + "\n" for record in [start, *records, message("three", id="m3")]))
        with only(home, tmp_path) as session:
            assert [words(entry) for entry in session.messages()] == ["one", "two", "two", "three"]
            assert sum(isinstance(entry, Note) for entry in session.entries()) == 1


def test_a_time_that_no_log_takes_costs_only_itself(home: Home, tmp_path: Path):
    rows = [{"type": "session_start", "id": FIRST, "title": "t", "owner": "ada", "cwd": "/w"}]
    for id, at in (("m1", "0001-01-01T00:00:00Z"), ("m2", "2026-01-01T00:00:00Z"), ("m3", "9999-12-31T23:59:59-14:00")):
        rows += [{"type": "message", "id": id, "timestamp": at, "message": {"role": "user", "content": id}}]
    (tmp_path / f"{FIRST}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    [done] = bring(home, tmp_path)
    assert done.problems == []
    with home.resume(done.id) as session:
        assert [words(entry) for entry in session.messages()] == ["m1", "m2", "m3"]


def test_droid_sessions_without_their_settings_are_read_and_cost_nothing_known(home: Home, tmp_path: Path):
    shutil.copy(DROID / f"{CHILD}.jsonl", tmp_path)
    with only(home, tmp_path) as session:
        assert len(session.messages()) == 2
        assert session.usage().own == turnlog.Usage()

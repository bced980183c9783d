"""What was appended to a file is read from a mark on, and is what reading all of it gives from there."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from tests.public import public
from turnlog.formats import Jump, Reading, ResumePoint, Source, format_of
from turnlog.formats._shared import growth

HERE = Path(__file__).parent
AGENTS = ("claude-code", "codex", "gemini-cli", "pi", "qwen-code", "copilot-cli")
_CUTS = 12


@pytest.fixture(autouse=True)
def everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Marks as close together as they can be: most files here are smaller than what lies between two."""
    monkeypatch.setattr(growth, "APART", 0)


def sessions(agent: str) -> list[Path]:
    return sorted([*(HERE / "agents" / agent).rglob("*.jsonl"), *public(f"{agent}/**/*.jsonl")])


FILES = [pytest.param(agent, path, id=f"{agent}-{path.stem[-24:]}") for agent in AGENTS for path in sessions(agent)]


def plain(step: Any) -> Any:
    """Without what is made anew at each reading."""
    if isinstance(step, Jump):
        return step
    entry: Any = replace(step.entry, id="-")
    if hasattr(entry, "replacement"):
        entry = replace(entry, replacement=[replace(message, id="-") for message in entry.replacement])
    return step.key, step.names, entry


def used_up(reading: Reading) -> list[Any]:
    return [plain(step) for step in reading.steps]


def stored(mark: ResumePoint) -> ResumePoint:
    """As it comes back from wherever it was kept."""
    return msgspec.json.decode(msgspec.json.encode(mark), type=ResumePoint)


def facts(reading: Reading) -> dict[str, Any]:
    """All but the long one, which no mark carries."""
    return {key: value for key, value in reading.facts.items() if key != "system"}


def cuts(data: bytes, seed: str) -> list[int]:
    ends = [index + 1 for index, byte in enumerate(data) if byte == ord("\n")]
    return sorted(random.Random(seed).sample(ends, min(len(ends), _CUTS)))


@pytest.mark.parametrize(("agent", "path"), FILES)
def test_going_on_gives_what_reading_all_of_it_gives(agent: str, path: Path, tmp_path: Path) -> None:
    form: Any = format_of(agent)
    data, copy = path.read_bytes(), tmp_path / path.name
    source = Source(agent, str(copy))
    ends = cuts(data, path.name)
    for number, end in enumerate(ends):
        copy.write_bytes(data[:end])
        before = form.read(source)
        told = used_up(before)
        if before.mark is None:
            continue
        assert before.mark.offset < end and before.mark.steps <= len(told)
        for later in {len(data), ends[min(number + 1, len(ends) - 1)]}:
            copy.write_bytes(data[:later])
            whole, more = form.read(source), form.growth(source, stored(before.mark))
            expected = used_up(whole)
            if more is not None:
                assert told[: before.mark.steps] + used_up(more) == expected, (end, later)
                assert (more.header, more.mark, facts(more)) == (whole.header, whole.mark, facts(whole)), (end, later)


@pytest.mark.parametrize("agent", AGENTS)
def test_a_session_that_goes_on_turn_by_turn_is_hardly_ever_read_again(agent: str, tmp_path: Path) -> None:
    path = tmp_path / "rollout-one.jsonl"
    lines = [json.dumps(record) for record in conversation(agent, turns=20)]
    form: Any = format_of(agent)
    source = Source(agent, str(path))
    until = len(lines) // 2
    path.write_text("\n".join(lines[:until]) + "\n")
    reading: Any = form.read(source)
    told = used_up(reading)
    while until < len(lines):
        until += 1
        path.write_text("\n".join(lines[:until]) + "\n")
        mark = stored(reading.mark)
        assert len(told) - mark.steps <= 8, "it goes back a turn at most"
        assert path.stat().st_size - mark.offset < 8 * max(map(len, lines))
        reading = form.growth(source, mark)
        told = told[: mark.steps] + used_up(reading)
    assert told == used_up(form.read(source))
    keys = [step[0] for step in told if not isinstance(step, Jump)]
    assert len(keys) == len(set(keys))


def conversation(agent: str, turns: int) -> list[dict[str, Any]]:
    """The same words in every turn, so that only their number tells records without ids apart."""
    at, made = "2026-01-01T00:00:00.000Z", list[dict[str, Any]]()
    for turn in range(turns):
        before = str(made[-1].get("uuid") or made[-1].get("id")) if made else None
        if agent == "claude-code":
            about = {"sessionId": "s", "cwd": "/p", "timestamp": at, "isSidechain": False}
            made.append({**about, "type": "user", "uuid": f"u{turn}", "parentUuid": before,
                         "message": {"role": "user", "content": "go on"}})  # fmt: skip
            answer = {"id": f"m{turn}", "role": "assistant", "model": "m", "content": [{"type": "text", "text": "ok"}],
                      "stop_reason": "end_turn", "usage": {"input_tokens": 5, "output_tokens": 2}}  # fmt: skip
            made.append({**about, "type": "assistant", "uuid": f"a{turn}", "parentUuid": f"u{turn}", "message": answer})
        elif agent == "codex":
            text = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go on"}]}
            answer = {**text, "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]}
            total = {"input_tokens": 5 * turn + 5, "output_tokens": 2 * turn + 2}
            made += [
                {"timestamp": at, "type": kind, "payload": payload}
                for kind, payload in (
                    *([("session_meta", {"id": "s", "cwd": "/p"})] if not turn else []),
                    ("event_msg", {"type": "task_started", "turn_id": f"t{turn}"}),
                    ("response_item", text),
                    ("response_item", answer),
                    ("event_msg", {"type": "token_count", "info": {"total_token_usage": total}}),
                    ("event_msg", {"type": "task_complete", "turn_id": f"t{turn}"}),
                )
            ]
        elif agent == "gemini-cli":
            made += [] if turn else [{"sessionId": "s", "projectHash": "p", "startTime": at, "lastUpdated": at}]
            said = {"id": f"m{turn}", "timestamp": at, "type": "gemini", "content": "", "tokens": {"input": 5}}
            made.append({"id": f"u{turn}", "timestamp": at, "type": "user", "content": [{"text": "go on"}]})
            made += [said, {**said, "content": "ok"}, {"$set": {"lastUpdated": at}}]
        elif agent == "qwen-code":
            about = {"sessionId": "s", "cwd": "/p", "timestamp": at}
            said = {"role": "model", "parts": [{"text": "ok"}]}
            made.append({**about, "type": "user", "uuid": f"u{turn}", "parentUuid": before,
                         "message": {"role": "user", "parts": [{"text": "go on"}]}})  # fmt: skip
            made.append({**about, "type": "assistant", "uuid": f"a{turn}", "parentUuid": f"u{turn}", "message": said})
        elif agent == "copilot-cli":
            context = {"sessionId": "s", "selectedModel": "m", "context": {"cwd": "/p"}}
            spent = {"model": "m", "inputTokens": 5, "outputTokens": 2}
            for id, kind, data in (
                *([("start", "session.start", context)] if not turn else []),
                (f"u{turn}", "user.message", {"content": "go on"}),
                (f"c{turn}", "assistant.message", {"toolRequests": [{"toolCallId": f"t{turn}", "name": "view"}]}),
                (f"r{turn}", "tool.execution_complete", {"toolCallId": f"t{turn}", "result": {"content": "7"}}),
                (f"a{turn}", "assistant.message", {"content": "ok"}),
                (f"s{turn}", "assistant.usage", spent),
            ):
                made.append({"type": kind, "data": data, "id": id, "timestamp": at, "parentId": before})
                before = id
        else:
            made += [] if turn else [{"type": "session", "version": 3, "id": "s", "timestamp": at, "cwd": "/p"}]
            about = {"type": "message", "timestamp": at}
            text = [{"type": "text", "text": "go on"}]
            made.append({**about, "id": f"u{turn}", "parentId": before, "message": {"role": "user", "content": text}})
            answer = {"role": "assistant", "content": [{"type": "text", "text": "ok"}], "stopReason": "stop"}
            made.append({**about, "id": f"a{turn}", "parentId": f"u{turn}", "message": answer})
    return made


@pytest.mark.parametrize("agent", AGENTS)
def test_what_reaches_back_before_the_mark_is_read_as_a_whole(agent: str, tmp_path: Path) -> None:
    path = tmp_path / "rollout-one.jsonl"
    records = conversation(agent, turns=6)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    form: Any = format_of(agent)
    source = Source(agent, str(path))
    reading = form.read(source)
    used_up(reading)
    assert reading.mark is not None
    old = next(
        record for record in records if record.get("uuid") == "u1" or record.get("id") == "u1" or agent == "codex"
    )
    back = {
        "claude-code": {**old, "uuid": "new", "parentUuid": "a0"},
        "codex": {"timestamp": old.get("timestamp"), "type": "event_msg",
                  "payload": {"type": "thread_rolled_back", "num_turns": 4}},
        "gemini-cli": {"$rewindTo": "u1"},
        "pi": {**old, "id": "new", "parentId": "a0"},
        "qwen-code": {**old, "uuid": "new", "parentUuid": "a0"},
        "copilot-cli": {"type": "session.snapshot_rewind", "data": {"upToEventId": "u1"}, "id": "new",
                        "parentId": "s5"},
    }[agent]  # fmt: skip
    with path.open("a") as file:
        file.write(json.dumps(back) + "\n")
    assert form.growth(source, stored(reading.mark)) is None
    assert any(isinstance(step, Jump) for step in form.read(source).steps)


@pytest.mark.parametrize("agent", AGENTS)
def test_a_mark_that_cannot_be_is_none(agent: str, tmp_path: Path) -> None:
    path = tmp_path / "rollout-one.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in conversation(agent, turns=3)))
    form: Any = format_of(agent)
    source = Source(agent, str(path))
    reading = form.read(source)
    used_up(reading)
    assert form.growth(source, ResumePoint(reading.mark.offset, reading.mark.steps, {"of": "another version"})) is None
    assert form.growth(source, replace(reading.mark, offset=path.stat().st_size + 1)) is None
    assert form.growth(source, reading.mark) is not None


@pytest.mark.parametrize("words", ["go on", "something else"])
def test_a_record_of_qwen_code_that_comes_again_is_told_from_another_of_its_id(words: str, tmp_path: Path) -> None:
    path, source, reading, told = three_turns("qwen-code", tmp_path)
    records = conversation("qwen-code", turns=3)
    assert reading.mark.state["before"] == "u2"
    append(path, records[-1])
    assert told[: reading.mark.steps] + gone_on(source, reading) == told
    append(path, {**records[-2], "message": {"role": "user", "parts": [{"text": words}]}})
    assert gone_on(source, reading) is None, "what stands before the mark is not read again"


def three_turns(agent: str, folder: Path) -> tuple[Path, Source, Any, list[Any]]:
    path = folder / "events.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in conversation(agent, turns=3)))
    source = Source(agent, str(path))
    reading = format_of(agent).read(source)
    told = used_up(reading)
    assert reading.mark is not None
    return path, source, reading, told


def append(path: Path, *records: dict[str, Any]) -> None:
    with path.open("a") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)


def gone_on(source: Source, reading: Any) -> Any:
    """What reading goes on with, which is the end of all of it; None where it reaches back."""
    form: Any = format_of(source.agent)
    more = form.growth(source, stored(reading.mark))
    if more is None:
        return None
    found, whole = used_up(more), form.read(source)
    assert used_up(whole)[reading.mark.steps :] == found
    assert (more.header, more.mark, facts(more)) == (whole.header, whole.mark, facts(whole))
    return found


def copilot(id: str, parent: str, kind: str, **data: Any) -> dict[str, Any]:
    return {"type": kind, "data": data, "id": id, "timestamp": "2026-01-01T00:00:00.000Z", "parentId": parent}


def test_what_copilot_spent_in_all_is_counted_against_what_it_told_before_the_mark(tmp_path: Path) -> None:
    path, source, reading, _ = three_turns("copilot-cli", tmp_path)
    usage = {"usage": {"inputTokens": 20, "outputTokens": 6}}
    append(path, copilot("end", "s2", "session.shutdown", modelMetrics={"m": usage}))
    spent = gone_on(source, reading)[-1][2]
    assert (spent.usage.input_tokens, spent.usage.output_tokens) == (5, 0)


def test_titles_and_models_of_copilot_are_known_behind_the_mark(tmp_path: Path) -> None:
    path, source, reading, _ = three_turns("copilot-cli", tmp_path)
    append(path, copilot("t", "s2", "session.title_changed", title="Roses"), copilot("u3", "t", "user.message"))
    (tmp_path / "workspace.yaml").write_text("name: Weeds\n")
    form: Any = format_of("copilot-cli")
    assert gone_on(source, reading)
    again = form.read(source)
    used_up(again)
    append(path, copilot("a3", "u3", "assistant.message", content="ok"))
    assert gone_on(source, again)[-1][2].model == "m"
    more = form.growth(source, again.mark)
    assert (more.header.title, more.facts) == ("Roses", {"model": "m"})


@pytest.mark.parametrize("case", ["the event before again", "an old event again", "a late result", "a stranger"])
def test_what_only_the_events_before_the_mark_explain_is_read_with_them(case: str, tmp_path: Path) -> None:
    path, source, reading, _ = three_turns("copilot-cli", tmp_path)
    events = {event["id"]: event for event in conversation("copilot-cli", turns=3)}
    append(path, {
        "the event before again": events[reading.mark.state["before"]],
        "an old event again": events["u1"],
        "a late result": copilot("late", "s2", "tool.execution_complete", toolCallId="t0"),
        "a stranger": copilot("new", "nobody", "user.message", content="hello"),
    }[case])  # fmt: skip
    assert gone_on(source, reading) is None


def test_a_rewind_of_copilot_to_behind_the_mark_goes_on_from_there(tmp_path: Path) -> None:
    path, source, reading, _ = three_turns("copilot-cli", tmp_path)
    append(
        path, copilot("u3", "s2", "user.message"), copilot("back", "u3", "session.snapshot_rewind", upToEventId="u3")
    )
    assert gone_on(source, reading)[-1].to == "a2"


def repeated_call(agent: str, turn: int) -> list[dict[str, Any]]:
    """A turn in which the first call of the turn is `call_0`, as servers of local models count them."""
    at, id, told = "2026-01-01T00:00:00.000Z", "call_0", "7"
    if agent == "pi":
        before = f"a{turn - 1}" if turn else None
        messages = (
            ("u", {"role": "user", "content": [{"type": "text", "text": "go on"}]}),
            ("c", {"role": "assistant", "content": [{"type": "toolCall", "id": id, "name": "ls", "arguments": {}}]}),
            ("r", {"role": "toolResult", "toolCallId": id, "content": [{"type": "text", "text": told}]}),
            ("a", {"role": "assistant", "content": [{"type": "text", "text": "ok"}], "stopReason": "stop"}),
        )
        made = [] if turn else [{"type": "session", "version": 3, "id": "s", "timestamp": at, "cwd": "/p"}]
        for letter, message in messages:
            made.append({"type": "message", "timestamp": at, "id": f"{letter}{turn}", "parentId": before,
                         "message": message})  # fmt: skip
            before = f"{letter}{turn}"
        return made
    text = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go on"}]}
    items = (
        text,
        {"type": "function_call", "call_id": id, "name": "ls", "arguments": "{}"},
        {"type": "function_call_output", "call_id": id, "output": told},
        {**text, "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]},
    )
    return [
        *([] if turn else [{"timestamp": at, "type": "session_meta", "payload": {"id": "s", "cwd": "/p"}}]),
        *({"timestamp": at, "type": "response_item", "payload": item} for item in items),
    ]


@pytest.mark.parametrize("agent", ["pi", "codex"])
def test_a_call_whose_id_comes_again_has_the_same_number_behind_the_mark(agent: str, tmp_path: Path) -> None:
    path = tmp_path / "rollout-one.jsonl"
    source, form = Source(agent, str(path)), format_of(agent)
    append(path, *repeated_call(agent, 0), *repeated_call(agent, 1))
    for turn in range(2, 5):
        reading: Any = form.read(source)
        used_up(reading)
        append(path, *repeated_call(agent, turn))
        found = gone_on(source, reading)
        assert found is not None
        keys = [key for key, _, entry in found if any(getattr(block, "call", "") for block in entry.blocks)]
        assert keys[-1].endswith(f".{turn + 1}"), keys

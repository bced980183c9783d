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
AGENTS = ("claude-code", "codex", "gemini-cli", "pi", "qwen-code")
_CUTS = 12


@pytest.fixture(autouse=True)
def everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Marks as close together as they can be: most files here are smaller than what lies between two."""
    monkeypatch.setattr(growth, "APART", 0)


def sessions(agent: str) -> list[Path]:
    here = HERE / "agents" / agent
    return sorted([*here.glob("recorded*/**/*.jsonl"), *here.glob("*.jsonl"), *public(f"{agent}/**/*.jsonl")])


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
    path, form = tmp_path / "one.jsonl", format_of("qwen-code")
    source, records = Source("qwen-code", str(path)), conversation("qwen-code", turns=3)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    reading = form.read(source)
    told = used_up(reading)
    assert reading.mark is not None and reading.mark.state["before"] == "u2" and form.growth is not None
    again = {**records[-2], "message": {"role": "user", "parts": [{"text": words}]}}
    for extra, is_same in ((records[-1], True), (again, False)):
        with path.open("a") as file:
            file.write(json.dumps(extra) + "\n")
        more = form.growth(source, stored(reading.mark))
        assert (more is not None) == is_same, "what stands before the mark is not read again"
        if more is not None:
            assert told[: reading.mark.steps] + used_up(more) == used_up(form.read(source)) == told

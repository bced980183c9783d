"""Kimi: damaged, odd and half-written files cost what is damaged, and that is reported."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import turnlog
from tests.formats.composing import bring, lines, steps, talk, what
from turnlog import Message, Note, Spent, ToolResult, UnknownBlock

SESSION = Path(__file__).parent / "agents/kimi/dot-kimi/sessions/7a10f7da38ec58ccdbe488d4e78004b2"
META = {"type": "metadata", "protocol_version": "1.1", "created_at": 1780000000000}


def cli(folder: Path, contexts: dict[str, list[Any]]) -> Path:
    for name, records in contexts.items():
        lines(folder / name, records)
    return folder


def code(path: Path, *records: dict[str, Any]) -> Path:
    return lines(path, [META, *records])


def said(role: str, words: Any, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": words, **more}


def appended(words: Any, **more: Any) -> dict[str, Any]:
    return {"type": "context.append_message", "message": said("user", words, **more)}


def event(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": "context.append_loop_event", "event": {"type": kind, **more}}


def wire(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": 1780000000, "message": {"type": kind, "payload": payload}}


def test_damage_of_an_earlier_context_is_reported_with_its_name(tmp_path: Path) -> None:
    first, second = [said("user", "one"), b'{"role":"assist\n', said("user", "two")], [said("user", "one")]
    cli(tmp_path, {"context_1.jsonl": first, "context.jsonl": second})
    [(item, session)] = bring("kimi", tmp_path)
    assert [(problem.what, problem.where) for problem in item.problems] == [("a damaged line", "context_1.jsonl")]
    assert "user: two" in talk(session.entries())


def test_a_damaged_state_is_reported_and_read_as_far_as_it_goes(tmp_path: Path) -> None:
    shutil.copytree(SESSION, tmp_path / SESSION.name)
    [folder] = (tmp_path / SESSION.name).iterdir()
    (folder / "state.json").write_text('{"custom_title": "Roses", "todos": [')
    [item, _] = [item for item, _ in bring("kimi", tmp_path)]
    assert [problem.where for problem in item.problems] == ["state.json"]
    placed = tmp_path / "sessions" / "wd" / "one"
    code(placed / "agents" / "main" / "wire.jsonl", appended("hi"))
    (placed / "state.json").write_text('{"title": "Roses", "x": [')
    [(item, session)] = bring("kimi", placed)
    assert ([problem.where for problem in item.problems], session.title) == (["state.json"], "Roses")


def test_a_record_of_an_unknown_role_is_kept_and_a_revert_goes_over_it(tmp_path: Path) -> None:
    begin = [said("user", "one"), said("_hologram", "shine"), said("assistant", "yes")]
    cli(tmp_path, {"context_1.jsonl": [*begin, said("user", "two")], "context.jsonl": [*begin, said("user", "three")]})
    [(item, session)] = bring("kimi", tmp_path)
    assert "_hologram" in what(item.problems)
    notes = [entry.data for entry in session.entries() if isinstance(entry, Note)]
    assert [note["content"] for note in notes if isinstance(note, dict)] == ["shine"]
    assert talk(session.context()) == ["user: one", "assistant: yes", "user: three"]


def test_a_result_in_a_step_that_says_nothing_is_read_from_the_wire(tmp_path: Path) -> None:
    call = {"id": "c", "function": {"name": "ls", "arguments": "{}"}}
    records = [
        {"type": "metadata", "protocol_version": "1.3"}, wire("TurnBegin", user_input="hi"), wire("StepBegin", n=1),
        wire("ToolCall", **call), wire("StepBegin", n=2),
        wire("ToolResult", tool_call_id="c", return_value={"output": "a.txt"}), wire("TurnEnd"),
        wire("ToolResult", tool_call_id="d", return_value={"output": "late"}),
    ]  # fmt: skip
    _, found = steps("kimi", lines(tmp_path / "wire.jsonl", records))
    blocks = [block for step in found for block in step.entry.blocks]
    assert [block.content for block in blocks if isinstance(block, ToolResult)] == ["a.txt", "late"]


def test_a_subagent_is_only_one_with_a_context_if_its_name_is_that_of_a_folder(tmp_path: Path) -> None:
    usage = {"type": "StatusUpdate", "payload": {"token_usage": {"input_other": 7, "output": 1}}}
    (tmp_path / "subagents").mkdir()
    spent = [wire("SubagentEvent", agent_id=name, event=usage) for name in ("..", "a/", "scout")]
    cli(tmp_path, {"context.jsonl": [said("user", "hi")], "wire.jsonl": spent})
    _, found = steps("kimi", tmp_path / "context.jsonl")
    assert len([step for step in found if isinstance(step.entry, Spent)]) == 3


def test_content_that_is_no_list_is_kept(tmp_path: Path) -> None:
    path = code(tmp_path / "wire.jsonl", appended({"type": "text", "text": "alone"}), appended(7))
    [(_, session)] = bring("kimi", path)
    assert talk(session.context())[0] == "user: alone"
    [block] = session.context()[-1].blocks
    assert isinstance(block, UnknownBlock) and "7" in block.json


def test_ids_that_come_again_name_as_many_records(tmp_path: Path) -> None:
    path = code(tmp_path / "wire.jsonl", *(appended(id, id=id) for id in ("x", "x", "x 2", "x", "x 3")))
    _, found = steps("kimi", path)
    assert len({step.key for step in found}) == 5


def test_an_empty_answer_still_has_its_usage(tmp_path: Path) -> None:
    usage = {"inputOther": 7, "output": 1}
    spent = {"type": "usage.record", "usage": usage, "model": "m"}
    step = [event("step.begin", uuid="s"), event("step.end", uuid="s", usage=usage)]
    for number, records in enumerate(([*step], [*step, spent], [step[0], spent, step[1]])):
        [(_, session)] = bring("kimi", code(tmp_path / f"{number}" / "wire.jsonl", appended("hi"), *records))
        assert session.usage().own.input_tokens == 7


def test_a_half_written_line_leaves_nothing_behind(tmp_path: Path) -> None:
    path = code(tmp_path / "wire.jsonl", appended([{"type": "text", "text": "one"}]))
    head = path.read_bytes()
    last = json.dumps(appended([{"type": "text", "text": "two"}, {"type": "text", "text": "three"}])).encode() + b"\n"
    with turnlog.open("memory:") as home:
        for end in range(0, len(last) + 1, 5):
            path.write_bytes(head + last[:end])
            bring("kimi", path, home)
        path.write_bytes(head + last)
        [(_, session)] = bring("kimi", path, home)
        assert [len(entry.blocks) for entry in session.entries() if isinstance(entry, Message)] == [1, 2]
        assert not [entry for entry in session.entries() if isinstance(entry, Note) and "type" in entry.text]


def test_a_fork_is_looked_for_among_the_sessions_beside_it(tmp_path: Path) -> None:
    outside = code(tmp_path / "outside" / "agents" / "main" / "wire.jsonl", appended("hi"))
    placed = tmp_path / "sessions" / "wd" / "one"
    path = code(placed / "agents" / "main" / "wire.jsonl", appended("hi"))
    (placed / "state.json").write_text(json.dumps({"forkedFrom": str(outside.parents[2])}))
    reading, _ = steps("kimi", path)
    assert reading.header.fork is not None and reading.header.fork.source is None

"""Claude Code: what its files say, read as the program itself would read them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import turnlog
from tests.formats.composing import bring, grows_alike, lines, steps, talk, what
from turnlog import Compaction, Note, ToolResult, Usage
from turnlog.formats import format_of
from turnlog.formats.claude_code.blocks import CLEARED
from turnlog.formats.claude_code.chain import Chain

S = "0a1b2c3d-0000-4000-8000-000000000001"


def u(number: int) -> str:
    return str(UUID(int=number))


def rec(number: int, parent: int | None, kind: str, message: Any = None, **more: Any) -> dict[str, Any]:
    made = {
        "parentUuid": None if parent is None else u(parent), "isSidechain": False, "userType": "external", "cwd": "/p",
        "sessionId": S, "version": "2.1.0", "gitBranch": "main", "type": kind, "uuid": u(number),
        "timestamp": f"2026-01-01T00:00:{number % 60:02d}.000Z",
    }  # fmt: skip
    return {**made, **({"message": message} if message is not None else {}), **more}


def user(number: int, parent: int | None, text: Any, **more: Any) -> dict[str, Any]:
    return rec(number, parent, "user", {"role": "user", "content": text}, **more)


def answer(number: int, parent: int, block: Any, id: str = "", out: int = 1, **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 100, "output_tokens": out}
    content = [{"type": "text", "text": block}] if isinstance(block, str) else [block]
    message = {
        "id": id or f"msg_{number}", "type": "message", "role": "assistant", "model": "claude-x", "content": content,
        "stop_reason": None, "stop_sequence": None, "usage": usage,
    }  # fmt: skip
    return rec(number, parent, "assistant", message, requestId="req", **more)


def use(id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": f"tool-{id}", "input": {}}


def done(number: int, parent: int, id: str, text: str, **more: Any) -> dict[str, Any]:
    return user(number, parent, [{"type": "tool_result", "tool_use_id": id, "content": text}], **more)


PARALLEL = [
    user(1, None, "go"),
    answer(2, 1, use("a"), "msg_p"),
    answer(3, 2, use("b"), "msg_p"),
    done(4, 2, "a", "A", sourceToolAssistantUUID=u(2)),
    done(5, 3, "b", "B", sourceToolAssistantUUID=u(3)),
    answer(6, 5, "both done"),
    user(7, 6, "thanks"),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "projects" / "-p" / f"{S}.jsonl"


def test_results_of_parallel_calls_are_grafted_back(path: Path) -> None:
    [(item, session)] = bring("claude-code", lines(path, PARALLEL))
    assert item.problems == []
    assert talk(session.context()) == [
        "user: go", "call: tool-a", "call: tool-b", "result: A", "result: B", "assistant: both done", "user: thanks",
    ]  # fmt: skip


def test_results_of_parallel_calls_are_grafted_back_in_a_fork_too(path: Path, tmp_path: Path) -> None:
    """A fork gives every record a new uuid, and says of each where it comes from."""
    other = "0a1b2c3d-0000-4000-8000-000000000002"
    moved = {u(n): u(n + 100) for n in range(1, 10)}
    copies: list[dict[str, Any]] = []
    for record in PARALLEL:
        copy = json.loads(json.dumps(record)) | {
            "sessionId": other,
            "forkedFrom": {"sessionId": S, "messageUuid": record["uuid"]},
        }
        copy |= {"uuid": moved[record["uuid"]], "parentUuid": moved.get(record["parentUuid"])}
        copies.append(copy)
    fork = [*copies, user(201, 107, "more", sessionId=other), answer(202, 201, "and more", sessionId=other, out=7)]
    lines(path, PARALLEL)
    lines(path.with_name(f"{other}.jsonl"), fork)
    (_, first), (_, second) = bring("claude-code", path.parent)
    assert talk(second.context())[:7] == talk(first.context())
    assert talk(second.context())[7:] == ["user: more", "assistant: and more"]
    assert first.usage().own == Usage(input_tokens=20, cache_read_tokens=200, output_tokens=2)
    assert second.usage().own == Usage(input_tokens=10, cache_read_tokens=100, output_tokens=7)


def test_a_dangling_tail_does_not_hide_the_conversation(path: Path) -> None:
    [(item, session)] = bring(
        "claude-code", lines(path, [*PARALLEL, user(30, 29, "after a gap"), answer(31, 30, "yes")])
    )
    assert talk(session.context())[-3:] == ["user: thanks", "user: after a gap", "assistant: yes"]
    assert "missing" in what(item.problems)


EARLY = [
    {"type": "mode", "mode": "normal", "sessionId": S},
    answer(3, 2, {"type": "thinking", "thinking": "well"}, "msg_e"),
    answer(4, 3, use("a"), "msg_e"),
    done(5, 4, "a", "A"),
    user(1, None, "go"),
    rec(2, 1, "attachment", attachment={"type": "skill_listing"}),
    answer(6, 5, "done"),
    user(7, 6, "thanks"),
]
"""As it is on a terminal, where the answer comes quickly."""


def test_an_answer_that_is_written_before_what_was_asked_comes_behind_it(path: Path) -> None:
    [(item, session)] = bring("claude-code", lines(path, EARLY))
    assert item.problems == []
    assert talk(session.context())[-4:] == ["call: tool-a", "result: A", "assistant: done", "user: thanks"]
    assert talk(session.context())[0] == "user: go"
    assert not [entry for entry in session.entries(kind="head")]


def test_as_long_as_nothing_was_asked_an_answer_is_waited_with(path: Path) -> None:
    grows_alike("claude-code", path, EARLY)
    [(item, session)] = bring("claude-code", lines(path, EARLY[:4]))
    assert "not there yet" in what(item.problems)
    assert session.messages() == []


@pytest.mark.parametrize("number", [0, 1, 2])
def test_one_whose_prompt_is_damaged_has_all_that_is_left(path: Path, number: int) -> None:
    records: list[Any] = [answer(2, 1, use("a")), done(3, 2, "a", "A"), answer(4, 3, "done")]
    lines(path, records)
    whole = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*whole[:number], '{"type":"user","uuid":"torn\n', *whole[number:]]))
    [(item, session)] = bring("claude-code", path)
    assert talk(session.context()) == ["call: tool-a", "result: A", "assistant: done"]
    assert what(item.problems) == "a damaged line"


def test_a_line_that_is_being_written_may_be_what_was_asked(path: Path) -> None:
    lines(path, EARLY[:4])
    with path.open("a") as file:
        file.write(json.dumps(EARLY[4])[:80])
    [(_, session)] = bring("claude-code", path)
    assert session.messages() == []


def test_who_has_lost_the_beginning_has_all_that_is_left(path: Path) -> None:
    [(_, session)] = bring("claude-code", lines(path, EARLY[2:4] + EARLY[6:]))
    assert talk(session.context()) == ["call: tool-a", "result: A", "assistant: done", "user: thanks"]


def test_records_of_one_answer_are_one_message_with_the_last_usage(path: Path) -> None:
    text = {"type": "text", "text": "I look"}
    records = [
        user(1, None, "x"),
        answer(2, 1, text, "msg_g", 1),
        answer(3, 2, use("t"), "msg_g", 40),
        done(4, 3, "t", "T"),
    ]
    _, found = steps("claude-code", lines(path, records))
    [message] = [step.entry for step in found if step.entry.role == "assistant"]
    assert [type(block).__name__ for block in message.blocks] == ["Text", "ToolCall"]
    assert message.usage == Usage(input_tokens=10, cache_read_tokens=100, output_tokens=40)


def test_the_live_end_is_the_last_where_people_spoke(path: Path) -> None:
    records = [
        user(1, None, "one"), answer(2, 1, "first"), user(3, 2, "left"), answer(4, 3, "dead"),
        user(5, 2, "right"), answer(6, 5, "alive"), user(7, 4, "only for the model", isMeta=True),
    ]  # fmt: skip
    [(_, session)] = bring("claude-code", lines(path, records))
    assert talk(session.context()) == ["user: one", "assistant: first", "user: right", "assistant: alive"]
    assert {"user: left", "assistant: dead"} <= set(talk(session.entries()))


def test_a_compaction_hides_what_was_before_it(path: Path) -> None:
    boundary = rec(
        8, None, "system", subtype="compact_boundary", logicalParentUuid=u(7), content="Conversation compacted",
        compactMetadata={"trigger": "auto", "preTokens": 999},
    )  # fmt: skip
    summary = user(9, 8, "This session is being continued…", isCompactSummary=True, isVisibleInTranscriptOnly=True)
    [(_, session)] = bring(
        "claude-code", lines(path, [*PARALLEL, boundary, summary, user(10, 9, "on"), answer(11, 10, "ok")])
    )
    assert talk(session.context()) == ["user: This session is being continued…", "user: on", "assistant: ok"]
    assert talk(session.path())[:7] == talk(bring("claude-code", lines(path, PARALLEL))[0][1].context())
    [found] = [entry for entry in session.path() if isinstance(entry, Compaction)]
    assert (found.trigger, found.tokens_before) == ("auto", 999)


def test_cleared_results_are_cleared_for_the_model_only(path: Path) -> None:
    about = {"trigger": "auto", "preTokens": 9, "compactedToolIds": ["a"], "clearedAttachmentUUIDs": []}
    cleared = rec(8, 7, "system", subtype="microcompact_boundary", content="", microcompactMetadata=about)
    [(_, session)] = bring("claude-code", lines(path, [*PARALLEL, cleared, user(9, 8, "on")]))
    assert "result: A" in talk(session.path())
    assert "result: A" not in talk(session.context())
    assert "result: B" in talk(session.context())
    assert talk(session.context())[-1] == "user: on"


@pytest.mark.parametrize("rounds", [["a"], ["b", "a"], ["a b"]])
def test_to_clear_one_result_leaves_the_others_of_its_message(path: Path, rounds: list[str]) -> None:
    both = [{"type": "tool_result", "tool_use_id": id, "content": id.upper()} for id in "ab"]
    records = [user(1, None, "go"), answer(2, 1, use("a"), "m"), answer(3, 2, use("b"), "m"), user(4, 3, both),
               answer(5, 4, "done")]  # fmt: skip
    for number, calls in enumerate(rounds, 6):
        about = {"compactedToolIds": calls.split()}
        records.append(rec(number, number - 1, "system", subtype="microcompact_boundary", microcompactMetadata=about))
    grows_alike("claude-code", path, records)
    [(_, session)] = bring("claude-code", lines(path, records))
    results = [block for message in session.context() if message.role == "tool" for block in message.blocks]
    wanted = {id: CLEARED if id in "".join(rounds) else id.upper() for id in "ab"}
    assert {block.call: block.content for block in results} == wanted


def test_a_side_chain_inside_the_file_is_a_session_of_its_own(path: Path) -> None:
    side = [user(20, None, "find it", isSidechain=True), answer(21, 20, "found", isSidechain=True, out=5)]
    (_, main), (_, sub) = bring("claude-code", lines(path, [*PARALLEL[:3], *side, *PARALLEL[3:]]))
    assert "user: find it" not in talk(main.entries())
    assert talk(sub.context()) == ["user: find it", "assistant: found"]
    assert main.usage().own.output_tokens == 2
    assert main.usage().subagents.output_tokens == 5
    assert [child.id for child in main.children()] == [sub.id]


def test_subagents_have_folders_and_sidecars(path: Path) -> None:
    lines(path, PARALLEL)
    agent = path.with_suffix("") / "subagents" / "agent-abc.jsonl"
    lines(agent, [user(40, None, "dig", isSidechain=True, agentId="abc"), answer(41, 40, "dug", isSidechain=True)])
    agent.with_name("agent-abc.meta.json").write_text('{"agentType":"Explore","toolUseId":"a"}')
    with turnlog.open("memory:") as home:
        found = {item.id: session for item, session in bring("claude-code", path.parent, home)}
        main, sub = found[f"claude-code-{S}"], found["claude-code-agent-abc"]
        assert talk(sub.context()) == ["user: dig", "assistant: dug"]
        [child] = [entry for entry in main.entries() if entry.type == "child"]
        assert (child.session, child.call, child.agent) == (sub.id, "a", "Explore")


@pytest.mark.parametrize(
    ("titles", "wanted"),
    [
        ([{"type": "ai-title", "aiTitle": "made up"}], "made up"),
        ([{"type": "custom-title", "customTitle": "mine"}, {"type": "ai-title", "aiTitle": "made up"}], "mine"),
        ([{"type": "custom-title", "customTitle": "old"}, {"type": "custom-title", "customTitle": "new"}], "new"),
        ([{"type": "summary", "summary": "in short", "leafUuid": u(7)}], "in short"),
    ],
)
def test_of_titles_the_last_that_people_gave_wins(path: Path, titles: list[Any], wanted: str) -> None:
    [(_, session)] = bring("claude-code", lines(path, [*PARALLEL, *titles]))
    assert session.title == wanted


def test_damage_costs_only_the_damaged_record(path: Path) -> None:
    """Two records on one line, a line spliced into another, a run of NUL bytes, a torn tail."""
    raw = [json.dumps(record, separators=(",", ":")).encode() for record in PARALLEL]
    torn = json.dumps(user(8, 7, "never whole")).encode()[:60]
    whole = b"\n".join([raw[0], raw[1] + raw[2], b"\0" * 500, raw[3], raw[4][:70] + raw[4], raw[5], raw[6], torn])
    path.parent.mkdir(parents=True)
    path.write_bytes(whole)
    [(item, session)] = bring("claude-code", path)
    assert talk(session.context()) == talk(bring("claude-code", lines(path, PARALLEL))[0][1].context())
    assert len(item.problems) == 4
    assert "NUL" in what(item.problems)
    assert all(problem.offset is not None for problem in item.problems)


def test_what_nobody_knows_is_kept(path: Path) -> None:
    records = [
        *PARALLEL,
        {"type": "hologram", "sessionId": S, "x": 1},
        rec(8, 7, "attachment", attachment={"type": "file", "n": 1}),
    ]
    [(item, session)] = bring("claude-code", lines(path, records))
    assert "hologram" in what(item.problems)
    assert [
        entry.data["x"] for entry in session.entries() if isinstance(entry, Note) and isinstance(entry.data, dict)
    ] == [1]
    assert [entry.kind for entry in session.path() if entry.type == "custom"] == ["claude-code.file"]


def test_a_session_with_an_open_call_can_be_continued(path: Path) -> None:
    [(_, session)] = bring("claude-code", lines(path, PARALLEL[:2]))
    last = list(session.context())[-1].blocks[0]
    assert isinstance(last, ToolResult)
    assert last.is_error


def test_record_by_record_it_becomes_the_same_session(path: Path) -> None:
    grows_alike("claude-code", path, [*PARALLEL, {"type": "custom-title", "customTitle": "t", "sessionId": S}])


def test_cycles_and_self_references_end(path: Path) -> None:
    [(_, session)] = bring(
        "claude-code", lines(path, [user(1, 1, "me"), user(2, 3, "two"), user(3, 2, "three"), answer(4, 3, "ok")])
    )
    assert talk(session.context())[-1] == "assistant: ok"


def test_a_chain_as_long_as_that_of_a_gigabyte_can_be_built_and_freed() -> None:
    chain = Chain()
    for number in range(400_000):
        chain.hang(str(number), str(number - 1), "k", said=number == 0, live=True)
    chain.hang("tip", "399999", "end")
    assert chain.live() == ("end", True)
    del chain


def test_the_usual_blocks_of_an_answer_are_read_as_the_wire_reads_them() -> None:
    from turnlog.formats.claude_code.blocks import answer
    from turnlog.wire.anthropic.answer import answered_block

    for raw in (
        {"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "x"}, {"type": "text", "text": "x", "citations": [1]}, {"type": "text", "text": None},
        {"type": "tool_use", "id": "t", "name": "n", "input": {"a": 1}}, {"type": "new", "x": 1},
        {"type": "tool_use", "id": "t", "name": "n", "input": {"~input": "a"}},
    ):  # fmt: skip
        assert answer(raw) == answered_block(raw, {}, None)


def test_usage_is_counted_as_the_wire_counts_it() -> None:
    from turnlog.formats.claude_code.blocks import usage_of
    from turnlog.wire.anthropic import answer as wire

    spent = {"input_tokens": 5, "output_tokens": 3, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 2}
    compacted = {"type": "compaction", "input_tokens": 100, "output_tokens": 20}
    for raw in (
        spent,
        {**spent, "cache_creation": {"ephemeral_1h_input_tokens": 4, "ephemeral_5m_input_tokens": 1}},
        {**spent, "output_tokens_details": {"thinking_tokens": 2}},
        {**spent, "iterations": []},
        {**spent, "iterations": None},
        {**spent, "iterations": [{**spent, "type": "message"}]},
        {**spent, "iterations": [compacted, {**spent, "type": "message"}]},
        {**spent, "iterations": "x", "cache_creation": 5, "output_tokens_details": "x"},
    ):
        assert usage_of(raw) == wire.usage_of(raw)
    assert usage_of({**spent, "iterations": [compacted]}).input_tokens == 105


def test_a_fork_beside_a_session_without_a_time_is_read(path: Path) -> None:
    """It was begun after what it begins with: its parent is looked for among its neighbours."""
    begun = {"type": "queue-operation", "operation": "enqueue", "timestamp": "2026-02-01T00:00:00.000Z", "sessionId": S}
    lines(path, [begun, user(1, None, "go"), answer(2, 1, "yes")])
    parent = path.with_name("0a1b2c3d-0000-4000-8000-000000000002.jsonl")
    lines(parent, [user(1, None, "go"), answer(2, 1, "yes")])
    path.with_name("x.jsonl").mkdir()
    assert steps("claude-code", path)[0].header.fork.session == parent.stem
    timeless = [{**record, "timestamp": None} for record in (user(1, None, "go"), answer(2, 1, "yes"))]
    lines(parent, timeless)
    assert steps("claude-code", path)[0].header.fork is None


@pytest.mark.parametrize(
    ("setting", "days"), [(0, None), (1, 1), (90, 90), (False, 30), (True, 30), (-1, 30), ("7", 30), (None, 30)]
)
def test_claude_code_takes_whole_days(setting: Any, days: int | None) -> None:
    retention = format_of("claude-code").retention
    assert retention is not None
    assert retention.days(setting) == days


@pytest.mark.parametrize(
    "block",
    [
        {"type": "text", "text": 5},
        {"type": "text", "text": {"a": 1}},
        {"type": "thinking", "thinking": 1.5, "signature": "s"},
        {"type": "compaction", "content": 7},
    ],
)
def test_a_block_with_a_mistyped_text_is_kept_as_it_is(path: Path, block: dict[str, Any]) -> None:
    odd = answer(2, 1, block)
    odd["message"]["model"] = 7
    _, found = steps("claude-code", lines(path, [user(1, None, "x"), odd, user(3, 2, "go on")]))
    [message] = [step.entry for step in found if step.entry.role == "assistant"]
    assert message.model is None
    assert [(one.kind, json.loads(one.json)) for one in message.blocks] == [(block["type"], block)]

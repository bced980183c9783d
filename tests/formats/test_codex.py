"""Codex: rollouts of every age, read as the program replays them; usage is counted once, whoever repeats it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import zstandard

import turnlog
from tests.formats.composing import bring, grows_alike, lines, steps, talk, what
from turnlog import Message, Note, ToolCall, Usage
from turnlog.exchange.exporting.writing import render
from turnlog.wire import openai

ONE, TWO = "01990000-0000-7000-8000-000000000001", "01990000-0000-7000-8000-000000000002"


def rec(kind: str, payload: dict[str, Any], second: int = 0) -> dict[str, Any]:
    return {"timestamp": f"2026-01-01T00:00:{second:02d}.000Z", "type": kind, "payload": payload}


def meta(id: str = ONE, **more: Any) -> dict[str, Any]:
    about = {"id": id, "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/p", "originator": "codex", "cli_version": "1"}
    return rec("session_meta", {**about, "source": "cli", **more})


def item(**payload: Any) -> dict[str, Any]:
    return rec("response_item", payload)


def event(kind: str, **more: Any) -> dict[str, Any]:
    return rec("event_msg", {"type": kind, **more})


def said(role: str, text: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return item(type="message", role=role, content=[{"type": kind, "text": text}])


def tokens(given: int, out: int, last: tuple[int, int] = (0, 0), cached: int = 0) -> dict[str, Any]:
    total = {"input_tokens": given, "cached_input_tokens": cached, "output_tokens": out, "reasoning_output_tokens": 0}
    newest = {"input_tokens": last[0], "cached_input_tokens": 0, "output_tokens": last[1], "reasoning_output_tokens": 0}
    return event("token_count", info={"total_token_usage": total, "last_token_usage": newest}, rate_limits=None)


def turn(number: int, given: int, out: int) -> list[dict[str, Any]]:
    return [
        event("task_started", turn_id=f"t{number}"),
        event("user_message", message=f"ask {number}"),
        said("user", f"ask {number}"),
        item(type="function_call", name="shell", arguments='{"command":["ls"]}', call_id=f"c{number}"),
        item(type="function_call_output", call_id=f"c{number}", output="a.txt"),
        event("agent_message", message=f"answer {number}"),
        said("assistant", f"answer {number}"),
        tokens(given, out),
        event("task_complete", turn_id=f"t{number}", last_agent_message=f"answer {number}"),
    ]


def spoken(number: int) -> list[str]:
    return [f"user: ask {number}", "call: shell", "result: a.txt", f"assistant: answer {number}"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "codex" / "sessions" / "2026" / "01" / "01"


def name(id: str, suffix: str = "") -> str:
    return f"rollout-2026-01-01T00-00-00-{id}.jsonl{suffix}"


def test_a_rollout_is_read(folder: Path) -> None:
    [(item, session)] = bring("codex", lines(folder / name(ONE), [meta(), *turn(1, 100, 10), *turn(2, 150, 15)]))
    assert item.problems == []
    assert talk(session.context()) == spoken(1) + spoken(2)
    assert session.usage().own == Usage(input_tokens=150, output_tokens=15)
    assert session.workspace == "/p"


@pytest.mark.parametrize("arguments", ["[" * 2000, '{"a": ', " ", "", None])
def test_arguments_that_are_no_input_cost_no_session(folder: Path, arguments: str | None) -> None:
    call = item(type="function_call", name="shell", call_id="c", arguments=arguments)
    [(found, session)] = bring("codex", lines(folder / name(ONE), [meta(), said("user", "hi"), call]))
    assert found.problems == []
    [block] = [block for message in session.messages() for block in message.blocks if isinstance(block, ToolCall)]
    assert block.input == ({} if arguments is not None and not arguments.strip() else arguments)


def test_bare_files_of_2025_are_read(folder: Path) -> None:
    records = [
        {"id": ONE, "timestamp": "2025-08-01T00:00:00.000Z", "instructions": None, "git": {"branch": "main"}},
        {"record_type": "state"},
        {"type": "message", "id": None, "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        {
            "type": "reasoning",
            "id": "rs",
            "summary": [{"type": "summary_text", "text": "hm"}],
            "encrypted_content": "e",
        },
        {"type": "function_call", "id": "f", "name": "shell", "arguments": "{}", "call_id": "c"},
        {"type": "function_call_output", "call_id": "c", "output": '{"output":"no","metadata":{"exit_code":1}}'},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "bye"}]},
    ]
    [(item, session)] = bring("codex", lines(folder / name(ONE), records))
    assert item.problems == []
    assert talk(session.context())[::3] == ["user: hi", "assistant: bye"]
    assert talk(session.context())[2].startswith("error: ")


def test_a_fork_that_copied_its_parent_counts_only_its_own(folder: Path) -> None:
    """The copies have new times, and the totals of the parent are told again."""
    old = turn(1, 100, 10)
    copies = [{**record, "timestamp": "2026-02-02T00:00:00.000Z"} for record in old]
    lines(folder / name(ONE), [meta(), *old])
    lines(folder / name(TWO), [meta(TWO, forked_from_id=ONE), meta(), *copies, *turn(2, 160, 19)])
    (_, first), (_, second) = bring("codex", folder)
    assert talk(second.context()) == spoken(1) + spoken(2)
    assert first.usage().own == Usage(input_tokens=100, output_tokens=10)
    assert second.usage().own == Usage(input_tokens=60, output_tokens=9)
    assert second.usage().inherited == Usage(input_tokens=100, output_tokens=10)


def test_a_fork_by_pointer_goes_on_behind_the_part_it_names(folder: Path) -> None:
    path = lines(folder / name(ONE), [meta(), *turn(1, 100, 10)])
    end = path.stat().st_size
    lines(path, [meta(), *turn(1, 100, 10), *turn(9, 900, 90)])
    base = {"thread_id": ONE, "end_ordinal_exclusive": 10, "end_byte_offset": end}
    lines(folder / name(TWO), [meta(TWO, history_mode="paginated", history_base=base), *turn(2, 160, 19)])
    (_, first), (_, second) = bring("codex", folder)
    assert talk(second.context()) == spoken(1) + spoken(2)
    assert first.usage().own.output_tokens == 90
    assert second.usage().own == Usage(input_tokens=60, output_tokens=9)


def test_a_fork_by_pointer_grows_in_its_own_file(folder: Path) -> None:
    path = lines(folder / name(ONE), [meta(), *turn(1, 100, 10)])
    base = {"thread_id": ONE, "end_ordinal_exclusive": 10, "end_byte_offset": path.stat().st_size}
    head = meta(TWO, history_mode="paginated", history_base=base)
    home = turnlog.open("memory:")
    for records in ([head], [head, *turn(2, 160, 19)], [head, *turn(2, 160, 19), *turn(3, 200, 29)]):
        lines(folder / name(TWO), records)
        _, (item, session) = bring("codex", folder, home)
        assert item.problems == []
    assert talk(session.context()) == spoken(1) + spoken(2) + spoken(3)


def test_a_fork_without_its_parent_still_reads(folder: Path) -> None:
    base = {"thread_id": ONE, "end_ordinal_exclusive": 10, "end_byte_offset": 99}
    [(item, session)] = bring("codex", lines(folder / name(TWO), [meta(TWO, history_base=base), *turn(2, 160, 19)]))
    assert talk(session.context()) == spoken(2)
    assert "beginning is missing" in what(item.problems)


def test_compressed_and_archived_ones_are_read(tmp_path: Path) -> None:
    raw = lines(tmp_path / "x.jsonl", [meta(), *turn(1, 100, 10)])
    place = tmp_path / "codex" / "archived_sessions" / name(ONE, ".zst")
    place.parent.mkdir(parents=True)
    place.write_bytes(zstandard.compress(raw.read_bytes()))
    [(item, session)] = bring("codex", tmp_path / "codex")
    assert item.problems == []
    assert talk(session.context()) == spoken(1)


def test_a_rollback_drops_the_newest_turns_and_keeps_them_aside(folder: Path) -> None:
    records = [
        meta(),
        *turn(1, 10, 1),
        *turn(2, 20, 2),
        *turn(3, 30, 3),
        event("thread_rolled_back", num_turns=2),
        *turn(4, 40, 4),
    ]
    [(_, session)] = bring("codex", lines(folder / name(ONE), records))
    assert talk(session.context()) == spoken(1) + spoken(4)
    assert "user: ask 3" in talk(session.entries())
    assert session.usage().own == Usage(input_tokens=40, output_tokens=4)


def test_a_rollback_of_everything(folder: Path) -> None:
    records = [meta(), *turn(1, 10, 1), event("thread_rolled_back", num_turns=5), *turn(2, 20, 2)]
    [(_, session)] = bring("codex", lines(folder / name(ONE), records))
    assert talk(session.context()) == spoken(2)


def test_a_compaction_with_a_history_of_its_own(folder: Path) -> None:
    history = [said("user", "ask 1")["payload"], said("user", "the summary")["payload"]]
    compacted = rec("compacted", {"message": "the summary", "replacement_history": history})
    [(_, session)] = bring("codex", lines(folder / name(ONE), [meta(), *turn(1, 10, 1), compacted, *turn(2, 20, 2)]))
    assert talk(session.context()) == ["user: ask 1", "user: the summary", *spoken(2)]
    assert talk(session.path())[:4] == spoken(1)


def test_what_openai_compacted_goes_back_to_it_and_others_read_what_was_said(folder: Path) -> None:
    sealed = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAA"}
    window = [said("user", "ask 1")["payload"], sealed]
    history = [*window, {"type": "ghost_snapshot", "ghost_commit": {"id": "abc"}}]
    compacted = rec("compacted", {"message": "", "replacement_history": history})
    path = lines(folder / name(ONE), [meta(), *turn(1, 10, 1), compacted, *turn(2, 20, 2)])
    [(_, session)] = bring("codex", path)
    assert talk(session.context()) == spoken(1) + spoken(2)
    assert openai.request(session.context(), model="m")["input"][:2] == window
    assert "encrypted" not in str(openai.request(session.context(), model="m", api="chat"))
    assert "answer 1" in str(openai.request(session.context(), model="m", api="chat"))
    written = [json.loads(line) for line in render(session, "codex").files[0].data.splitlines()]
    [again] = [record["payload"] for record in written if record["type"] == "compacted"]
    assert again == {"message": "", "replacement_history": window}


def test_an_early_compaction_keeps_what_people_said(folder: Path) -> None:
    compacted = rec("compacted", {"message": "in short"})
    [(_, session)] = bring("codex", lines(folder / name(ONE), [meta(), *turn(1, 10, 1), compacted, *turn(2, 20, 2)]))
    assert talk(session.context()) == ["user: ask 1", "user: in short", *spoken(2)]


def test_counts_that_are_told_again_are_counted_once(folder: Path) -> None:
    records = [
        meta(),
        *turn(1, 100, 10),
        tokens(100, 10),
        tokens(100, 10),
        event("token_count", info=None),
        *turn(2, 130, 12),
    ]
    [(_, session)] = bring("codex", lines(folder / name(ONE), records))
    assert session.usage().own == Usage(input_tokens=130, output_tokens=12)


def test_totals_that_begin_anew_go_on_from_what_was_last(folder: Path) -> None:
    records = [
        meta(),
        *turn(1, 100, 10),
        said("assistant", "again"),
        tokens(30, 3, last=(30, 3)),
        said("assistant", "b"),
        tokens(45, 5),
    ]
    [(_, session)] = bring("codex", lines(folder / name(ONE), records))
    assert session.usage().own == Usage(input_tokens=145, output_tokens=15)


def test_what_was_cached_is_no_input_twice(folder: Path) -> None:
    [(_, session)] = bring(
        "codex", lines(folder / name(ONE), [meta(), said("assistant", "x"), tokens(100, 10, cached=80)])
    )
    assert session.usage().own == Usage(input_tokens=20, cache_read_tokens=80, output_tokens=10)


def test_names_come_from_the_index_and_the_last_wins(folder: Path) -> None:
    lines(folder / name(ONE), [meta(), *turn(1, 1, 1)])
    index = folder.parents[3] / "session_index.jsonl"
    lines(
        index, [{"id": ONE, "thread_name": "old"}, b"broken " + ONE.encode() + b"\n", {"id": ONE, "thread_name": "new"}]
    )
    [(_, session)] = bring("codex", folder.parents[2])
    assert session.title == "new"


def test_damage_and_unknown_records(folder: Path) -> None:
    raw = [json.dumps(record).encode() + b"\n" for record in turn(1, 100, 10)]
    records = [meta(), *raw[:4], b"\0\0\0\0\n", raw[4][:50], *raw[4:], rec("hologram", {"x": 1}), raw[0][:40]]
    [(item, session)] = bring("codex", lines(folder / name(ONE), records))
    assert talk(session.context()) == spoken(1)
    assert "NUL" in what(item.problems)
    assert "hologram" in what(item.problems)
    assert any(isinstance(entry, Note) and "hologram" in entry.text for entry in session.entries())


def test_a_subagent_belongs_to_its_parent(folder: Path) -> None:
    source = {"subagent": {"thread_spawn": {"parent_thread_id": ONE, "depth": 1, "agent_role": "scout"}}}
    lines(folder / name(ONE), [meta(), *turn(1, 100, 10)])
    lines(folder / name(TWO), [meta(TWO, source=source), *turn(2, 7, 1)])
    with turnlog.open("memory:") as home:
        (_, first), (_, second) = bring("codex", folder, home)
        assert [child.id for child in first.children()] == [second.id]
        assert first.usage().subagents == Usage(input_tokens=7, output_tokens=1)


def test_record_by_record_it_becomes_the_same_session(folder: Path) -> None:
    records = [meta(), *turn(1, 10, 1), *turn(2, 20, 2), event("thread_rolled_back", num_turns=1), *turn(3, 30, 3)]
    grows_alike("codex", folder / name(ONE), records)


def test_the_usual_items_are_read_as_the_wire_reads_them(folder: Path) -> None:
    from turnlog.wire import openai

    output = [
        {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "e"},
        {"type": "function_call", "name": "n", "arguments": '{"a":1}', "call_id": "c"},
    ]
    [step] = steps("codex", lines(folder / name(ONE), [meta(), *(item(**one) for one in output)]))[1]
    theirs = openai.draft({"output": output})
    assert isinstance(step.entry, Message)
    assert (step.entry.blocks, step.entry.stop) == (theirs.blocks, theirs.stop)


def test_keys_do_not_depend_on_times(folder: Path) -> None:
    first = steps("codex", lines(folder / name(ONE), [meta(), *turn(1, 10, 1)]))[1]
    later = [{**record, "timestamp": "2027-01-01T00:00:00.000Z"} for record in turn(1, 10, 1)]
    second = steps("codex", lines(folder / name(TWO), [meta(TWO), *later]))[1]
    assert [step.key for step in first] == [step.key for step in second]

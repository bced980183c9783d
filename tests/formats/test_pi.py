"""pi: a tree of entries in one file, of three versions; the last line is where it stands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.formats.composing import bring, grows_alike, lines, talk, what
from turnlog import Custom, Note, Usage
from turnlog.formats import Source, format_of
from turnlog.thread.reader import history_of

AT = "2026-01-01T00:00:00.000Z"
HEAD = {"type": "session", "version": 3, "id": "0199aaaa", "timestamp": AT, "cwd": "/p"}
COST = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0.5}


def entry(id: str, parent: str | None, type: str, **more: Any) -> dict[str, Any]:
    return {"type": type, "id": id, "parentId": parent, "timestamp": AT, **more}


def user(id: str, parent: str | None, text: str) -> dict[str, Any]:
    return entry(id, parent, "message", message={"role": "user", "content": text, "timestamp": 1_767_225_600_000})


def answer(id: str, parent: str, *content: Any, **more: Any) -> dict[str, Any]:
    usage = {"input": 10, "output": 5, "cacheRead": 3, "cacheWrite": 1, "totalTokens": 19, "cost": COST}
    parts = [{"type": "text", "text": part} if isinstance(part, str) else part for part in content]
    message = {
        "role": "assistant", "content": parts, "api": "anthropic-messages", "provider": "anthropic", "model": "c-x",
        "usage": usage, "stopReason": "stop", "timestamp": 1_767_225_600_000, **more,
    }  # fmt: skip
    return entry(id, parent, "message", message=message)


def call(id: str) -> dict[str, Any]:
    return {"type": "toolCall", "id": id, "name": "ls", "arguments": {}}


def result(id: str, parent: str, of: str, text: str, failed: bool = False) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    message = {
        "role": "toolResult",
        "toolCallId": of,
        "toolName": "ls",
        "content": content,
        "isError": failed,
        "timestamp": 1,
    }
    return entry(id, parent, "message", message=message)


TALK = [
    user("a1", None, "hi"), answer("a2", "a1", "I look", call("c1"), call("c2")), result("a3", "a2", "c1", "a.txt"),
    result("a4", "a3", "c2", "no", failed=True), answer("a5", "a4", "done"),
]  # fmt: skip
SAID = ["user: hi", "assistant: I look", "call: ls", "call: ls", "result: a.txt", "error: no", "assistant: done"]
SPENT = Usage(input_tokens=20, cache_read_tokens=6, cache_write_tokens=2, output_tokens=10, cost_micros=1_000_000)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions" / "--p--" / "2026-01-01T00-00-00-000Z_0199aaaa.jsonl"


def only(path: Path, records: list[Any], head: Any = HEAD) -> tuple[Any, Any]:
    [found] = bring("pi", lines(path, [head, *records]))
    return found


def test_all_versions_tell_the_same(path: Path) -> None:
    plain = [{key: value for key, value in one.items() if key not in ("id", "parentId")} for one in TALK]
    first = {
        "type": "session",
        "id": "0199aaaa",
        "timestamp": AT,
        "cwd": "/p",
        "provider": "anthropic",
        "modelId": "claude-x",
    }
    for head, records in ((first, plain), ({**HEAD, "version": 2}, TALK), (HEAD, TALK)):
        item, session = only(path, records, head)
        assert item.problems == []
        assert talk(session.context()) == SAID
        assert session.usage().own == SPENT


def test_a_file_that_the_program_migrated_is_still_the_same(path: Path) -> None:
    import turnlog

    plain = [{key: value for key, value in one.items() if key not in ("id", "parentId")} for one in TALK]
    with turnlog.open("memory:") as home:
        bring("pi", lines(path, [{**HEAD, "version": 1}, *plain]), home)
        [(item, session)] = bring("pi", lines(path, [HEAD, *TALK]), home)
        assert item.added == 0
        assert session.usage().own == SPENT


def test_the_last_line_is_where_it_stands(path: Path) -> None:
    _, session = only(path, [*TALK, user("b1", "a2", "other way"), answer("b2", "b1", "there")])
    assert talk(session.context())[-2:] == ["user: other way", "assistant: there"]
    assert "assistant: done" in talk(session.entries())
    _, session = only(
        path, [*TALK, user("b1", "a2", "other way"), entry("b3", "a5", "label", targetId="a1", label="x")]
    )
    assert talk(session.context()) == SAID
    assert [note.text for note in session.entries() if isinstance(note, Note)] == ["label: x"]


def test_a_compaction_keeps_what_it_names(path: Path) -> None:
    compaction = entry("c1", "a5", "compaction", summary="in short", firstKeptEntryId="a5", tokensBefore=99)
    _, session = only(path, [*TALK, compaction, user("c2", "c1", "on")])
    assert talk(session.context()) == ["user: in short", "assistant: done", "user: on"]
    assert talk(session.path())[:7] == SAID


def test_the_first_version_counts_lines(path: Path) -> None:
    plain = [{key: value for key, value in one.items() if key not in ("id", "parentId")} for one in TALK]
    compaction = {
        "type": "compaction",
        "timestamp": AT,
        "summary": "in short",
        "firstKeptEntryIndex": 5,
        "tokensBefore": 9,
    }
    _, session = only(path, [*plain, compaction], {**HEAD, "version": 1})
    assert talk(session.context()) == ["user: in short", "assistant: done"]


def test_a_compaction_that_keeps_nothing_names_itself(path: Path) -> None:
    compaction = entry("c1", "a5", "compaction", summary="in short", firstKeptEntryId="c1", tokensBefore=99)
    item, session = only(path, [*TALK, compaction])
    assert item.problems == []
    assert talk(session.context()) == ["user: in short"]


def test_context_edits_change_what_the_model_sees(path: Path) -> None:
    edits = [
        entry("e1", "a5", "context_edit", targetId="a3", replacement={"content": [{"type": "text", "text": "[gone]"}]}),
        entry("e2", "e1", "context_edit", targetId="a1", replacement=None),
        user("e3", "e2", "on"),
    ]
    _, session = only(path, [*TALK, *edits])
    assert "user: hi" not in talk(session.context())
    assert "result: a.txt" not in talk(session.context())
    assert "[gone]" in json.dumps(talk(session.context()))
    assert "result: a.txt" in talk(session.path())


def test_other_entries_have_their_meaning(path: Path) -> None:
    more = [
        entry("m1", "a5", "model_change", provider="openai", modelId="gpt-x"),
        entry("m2", "m1", "thinking_level_change", thinkingLevel="high"),
        entry("m3", "m2", "custom", customType="todo", data={"n": 1}),
        entry("m4", "m3", "custom_message", customType="hint", content="for the model", display=True),
        entry("m5", "m4", "branch_summary", fromId="a2", summary="tried that"),
        entry("m6", "m5", "session_info", name="A name"),
        entry(
            "m7",
            "m6",
            "usage",
            kind="title",
            provider="p",
            model="m",
            usage={"input": 7, "output": 1, "cost": {"total": 0}},
        ),
        entry("m8", "m7", "message", message={"role": "bashExecution", "command": "ls", "output": "x", "exitCode": 0}),
    ]
    item, session = only(path, [*TALK, *more])
    assert item.problems == []
    assert (session.title, session.get("model"), session.get("thinking_level")) == ("A name", "gpt-x", "high")
    assert talk(session.context())[7:] == ["user: for the model", "user: tried that", "user: Ran `ls`\nx"]
    kinds = [one.kind for one in session.path() if isinstance(one, Custom)]
    assert kinds == ["pi.todo", "pi.hint", "pi.branch_summary", "pi.bash"]
    assert session.usage().own.input_tokens == 27


def test_a_fork_counts_only_its_own(path: Path) -> None:
    lines(path, [HEAD, *TALK])
    fork = path.with_name("2026-01-02T00-00-00-000Z_0199bbbb.jsonl")
    lines(
        fork,
        [
            {**HEAD, "id": "0199bbbb", "parentSession": str(path)},
            *TALK,
            user("f1", "a5", "more"),
            answer("f2", "f1", "ok"),
        ],
    )
    (_, first), (_, second) = bring("pi", path.parent)
    assert talk(second.context()) == [*SAID, "user: more", "assistant: ok"]
    assert first.usage().own == SPENT
    assert second.usage().own.output_tokens == 5
    assert second.usage().inherited == SPENT


def generations(path: Path, parents: list[int]) -> list[Path]:
    """Sessions of which each one names another as its parent."""
    files = [path.with_name(f"2026-01-01T00-00-00-000Z_0199{number:04}.jsonl") for number in range(len(parents))]
    for number, parent in enumerate(parents):
        head = {**HEAD, "id": f"0199{number:04}", "parentSession": str(files[parent]) if parent >= 0 else None}
        lines(files[number], [head, *TALK])
    return files


@pytest.mark.parametrize("parents", [[0], [1, 0], [1, 2, 0], [1, 2, 1], [1, 1]])
def test_sessions_that_name_each_other_as_their_parent_are_all_brought(path: Path, parents: list[int]) -> None:
    for file in generations(path, parents):
        items = bring("pi", file)
        assert sorted(item.id for item, _ in items) == sorted({item.id for item, _ in items})
        for item, session in items:
            assert item.problems == []
            assert talk(session.context()) == SAID


def test_a_parent_and_its_parents_come_along_however_many(path: Path) -> None:
    files = generations(path, [*range(1, 60), -1])
    items = bring("pi", files[0])
    assert [item.source.path for item, _ in items] == [str(file) for file in reversed(files)]


def test_damage_costs_only_the_damaged_record(path: Path) -> None:
    raw = [json.dumps(one).encode() for one in TALK]
    records = [
        raw[0] + raw[1] + b"\n",
        b"\0" * 30 + b"\n",
        raw[2] + b"\n",
        raw[3][:50] + raw[3] + b"\n",
        raw[4] + b"\n",
        raw[4][:30],
    ]
    item, session = only(path, [*records[:5], entry("x1", "a5", "hologram"), records[5]])
    assert talk(session.context()) == SAID
    assert "NUL" in what(item.problems)
    assert "hologram" in what(item.problems)


def test_record_by_record_it_becomes_the_same_session(path: Path) -> None:
    compaction = entry("c1", "a5", "compaction", summary="in short", firstKeptEntryId="a5", tokensBefore=99)
    grows_alike(
        "pi",
        path,
        [HEAD, *TALK, user("b1", "a2", "other"), user("b2", "a5", "back"), compaction, user("c2", "c1", "on")],
    )


def test_a_prompt_that_the_program_declares_is_no_message(tmp_path: Path):
    """Since 0.80 it stands in the file: by sections, with the tools, and again where some of it changes."""
    declared = {"role": "system", "content": "", "sections": {"preamble": "Be good."}, "toolsAdded": [{"name": "ls"}]}
    changed = {"role": "system", "content": "", "sections": {"preamble": None}, "toolsRemoved": [{"name": "ls"}]}
    said = {"role": "system", "content": "Answer in French."}
    records = [
        HEAD, entry("s1", None, "message", message=declared), user("a1", "s1", "hi"), answer("a2", "a1", "yes"),
        entry("s2", "a2", "message", message=changed), user("a3", "s2", "and?"),
        entry("s3", "a3", "message", message=said), answer("a4", "s3", "oui"),
    ]  # fmt: skip
    path = lines(tmp_path / "s.jsonl", records)
    [(item, session)] = bring("pi", path)
    assert item.problems == []
    assert [(message.role, message.blocks[0].text) for message in session.messages()] == [
        ("user", "hi"), ("assistant", "yes"), ("user", "and?"), ("system", "Answer in French."), ("assistant", "oui"),
    ]  # fmt: skip
    assert [entry for entry in session.entries() if isinstance(entry, (Note, Custom))] == []


def test_what_tools_and_summaries_of_branches_spent_counts(tmp_path: Path):
    """Since 0.81 it stands in the file."""
    usage = {"input": 7, "output": 3, "cacheRead": 2, "cacheWrite": 1, "cost": {"total": 0.25}}
    told = result("a3", "a2", "c1", "a.txt")
    told["message"]["usage"] = usage
    records = [
        HEAD, user("a1", None, "hi"), answer("a2", "a1", "I look", call("c1")), told,
        entry("b1", "a1", "branch_summary", fromId="a3", summary="It looked.", usage=usage),
        user("a4", "b1", "and?"), answer("a5", "a4", "done"),
    ]  # fmt: skip
    path = lines(tmp_path / "s.jsonl", records)
    [(item, session)] = bring("pi", path)
    assert item.problems == []
    assert session.usage().own == Usage(
        input_tokens=34, cache_read_tokens=10, cache_write_tokens=4, output_tokens=16, cost_micros=1_500_000
    )
    assert "result: a.txt" in [line for message in history_of(session).forward(0) for line in talk([message])]


def test_a_file_that_is_replaced_while_it_is_read_ends_the_reading(tmp_path: Path) -> None:
    """The program gives old files new ids in place; then a key cannot be made from its line again."""
    at = "2026-01-01T00:00:00.000Z"
    call = {"type": "toolCall", "id": "call_0", "name": "ls", "arguments": {}}
    words = {"role": "user", "content": [{"type": "text", "text": "on"}]}
    made = [("c", None, {"role": "assistant", "content": [call]}), ("u", "c", words), ("v", "c", words)]
    path = tmp_path / "one.jsonl"
    records: list[Any] = [{"type": "session", "version": 3, "id": "s", "timestamp": at, "cwd": "/p"}]
    records += [
        {"type": "message", "id": id, "parentId": up, "timestamp": at, "message": said} for id, up, said in made
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in records))
    for other in ("not a line of pi\n", path.read_text().replace('"id": "c"', '"id": "d"')):
        whole = path.read_text()
        steps = format_of("pi").read(Source("pi", str(path))).steps
        assert next(steps) is not None
        path.write_text(other)
        with pytest.raises(OSError, match="replaced while it was read"):
            list(steps)
        path.write_text(whole)

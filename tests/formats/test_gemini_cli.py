"""Gemini CLI: a log of patches, read as its loader applies them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import turnlog
from tests.formats.composing import bring, grows_alike, lines, talk, what
from turnlog import Compaction, Edit, Note, UnknownBlock, Usage
from turnlog.exchange.exporting.transcript import transcript_of
from turnlog.formats import Source, format_of
from turnlog.formats._shared import growth
from turnlog.formats.gemini_cli.writing import place, write

HEAD = {
    "sessionId": "11111111-1111-4111-8111-111111111111", "projectHash": "ab" * 32,
    "startTime": "2026-01-01T00:00:00.000Z", "lastUpdated": "2026-01-01T00:00:00.000Z", "kind": "main",
}  # fmt: skip


def user(id: str, text: str) -> dict[str, Any]:
    return {"id": id, "timestamp": "2026-01-01T00:00:01.000Z", "type": "user", "content": [{"text": text}]}


def model(id: str, text: str, out: int = 0, calls: Any = None, **more: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "id": id,
        "timestamp": "2026-01-01T00:00:02.000Z",
        "type": "gemini",
        "content": text,
        "model": "g",
    }
    if out:
        made["tokens"] = {"input": 10, "output": out, "cached": 4, "thoughts": 1, "tool": 0, "total": 11 + out}
    return {**made, **({"toolCalls": calls} if calls else {}), **more}


def call(id: str, output: str | None, status: str = "success", more: Any = ()) -> dict[str, Any]:
    made: dict[str, Any] = {"id": id, "name": "ls", "args": {"p": id}, "status": status}
    if output is not None:
        key = "output" if status == "success" else "error"
        made["result"] = [{"functionResponse": {"id": id, "name": "ls", "response": {key: output}}}, *more]
    return made


def response(id: str, *calls: tuple[str, str]) -> dict[str, Any]:
    parts = [{"functionResponse": {"id": c, "name": "ls", "response": {"output": o}}} for c, o in calls]
    return {"id": id, "timestamp": "2026-01-01T00:00:03.000Z", "type": "user", "content": parts}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tmp" / "proj" / "chats" / "session-2026-01-01T00-00-11111111.jsonl"


def only(path: Path, records: list[Any]) -> tuple[Any, Any]:
    [found] = bring("gemini-cli", lines(path, [HEAD, *records]))
    return found


def test_a_message_under_the_same_id_replaces_the_other(path: Path) -> None:
    item, session = only(path, [user("u", "hi"), model("m", "I lo"), model("m", "I look", 5, [call("c", "a.txt")])])
    assert item.problems == []
    assert talk(session.context()) == ["user: hi", "assistant: I look", "call: ls", "result: a.txt"]
    assert session.usage().own == Usage(input_tokens=6, cache_read_tokens=4, output_tokens=6, reasoning_tokens=1)


def test_set_changes_what_is_known_of_the_session(path: Path) -> None:
    _, session = only(path, [user("u", "hi"), {"$set": {"summary": "a talk", "lastUpdated": "x"}}])
    assert session.title == "a talk"


def test_a_result_that_is_told_twice_is_one_result(path: Path) -> None:
    """The program writes it into the model's message, and again as a message in the user's place."""
    _, session = only(
        path,
        [
            user("u", "hi"),
            model("m", "", 5, [call("c", "a.txt")]),
            response("r", ("c", "a.txt")),
            model("n", "done", 2),
        ],
    )
    assert talk(session.entries()) == ["user: hi", "call: ls", "result: a.txt", "assistant: done"]


def test_a_list_that_says_the_same_again_changes_nothing(path: Path) -> None:
    """On resuming, the program writes the whole conversation again, in parts, with responses under ids of their own."""
    both = [call("c", "A"), call("d", "B")]
    shared = both[0]["result"] + both[1]["result"]
    first = [user("u", "hi"), model("m", "look", 5, both), response("r", ("c", "A"), ("d", "B")), model("n", "done", 2)]
    parts = [{"text": "hm", "thought": True}, {"text": "look"}]
    parts += [{"functionCall": {"id": i, "name": "ls", "args": {"p": i}}} for i in "cd"]
    again = model("m", "", 5, [{**one, "result": shared} for one in both], content=parts)
    rest = [
        again,
        response("m_response", ("c", "A"), ("d", "B")),
        first[2],
        {**first[3], "content": [{"text": "done"}]},
    ]
    _, session = only(path, [*first, {"$set": {"messages": [first[0], *rest]}}, user("v", "on")])
    assert talk(session.entries()) == [
        "user: hi", "assistant: look", "call: ls", "call: ls", "result: A", "result: B", "assistant: done", "user: on",
    ]  # fmt: skip
    assert not [entry for entry in session.path() if isinstance(entry, (Compaction, Edit))]


def test_a_list_that_begins_otherwise_is_a_compaction(path: Path) -> None:
    first = [user("u", "hi"), model("m", "hello", 3), user("v", "kept"), model("n", "yes", 2)]
    _, session = only(path, [*first, {"$set": {"messages": [user("s", "in short"), *first[2:]]}}, user("w", "on")])
    assert talk(session.context()) == ["user: in short", "user: kept", "assistant: yes", "user: on"]
    assert talk(session.path())[:2] == ["user: hi", "assistant: hello"]
    assert session.usage().own.output_tokens == 7


def test_a_list_with_other_content_is_an_edit(path: Path) -> None:
    first = [user("u", "hi"), model("m", "secret", 3), user("v", "on")]
    _, session = only(path, [*first, {"$set": {"messages": [first[0], model("m", "[masked]", 3), first[2]]}}])
    assert talk(session.context()) == ["user: hi", "assistant: [masked]", "user: on"]
    assert "assistant: secret" in talk(session.path())


def test_a_rewind_drops_a_message_and_all_behind_it(path: Path) -> None:
    records = [
        user("u", "hi"),
        model("m", "hello", 3),
        user("v", "wrong"),
        model("n", "no", 2),
        {"$rewindTo": "v"},
        user("w", "right"),
    ]
    _, session = only(path, records)
    assert talk(session.context()) == ["user: hi", "assistant: hello", "user: right"]
    assert "user: wrong" in talk(session.entries())


def test_a_rewind_to_a_repeated_response_is_found(path: Path) -> None:
    records = [
        user("u", "hi"),
        model("m", "", 5, [call("c", "A")]),
        response("r", ("c", "A")),
        model("n", "no", 2),
        {"$rewindTo": "r"},
    ]
    _, session = only(path, records)
    assert talk(session.context()) == ["user: hi", "call: ls", "result: A"]


def test_a_rewind_to_what_is_not_there_drops_everything(path: Path) -> None:
    _, session = only(path, [user("u", "hi"), model("m", "hello", 3), {"$rewindTo": "nothing"}, user("w", "anew")])
    assert talk(session.context()) == ["user: anew"]


def test_one_document_of_an_earlier_version(tmp_path: Path) -> None:
    path = tmp_path / "chats" / "session-2025-01-01T00-00-11111111.json"
    path.parent.mkdir()
    path.write_text(
        json.dumps({**HEAD, "messages": [user("u", "hi"), model("m", "x", 5, [call("c", "no", "error")])]}, indent=2)
    )
    [(item, session)] = bring("gemini-cli", path)
    assert item.problems == []
    assert talk(session.context()) == ["user: hi", "assistant: x", "call: ls", "error: no"]


def test_pictures_beside_a_response_are_part_of_the_result(path: Path) -> None:
    picture = {"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}}
    _, session = only(path, [user("u", "hi"), model("m", "", 5, [call("c", "see", more=[picture])])])
    [result] = session.context()[-1].blocks
    assert [type(block).__name__ for block in result.content] == ["Text", "Image"]


def test_what_the_program_says_itself_is_no_conversation(path: Path) -> None:
    records = [
        user("s", "<session_context>\nToday is"),
        user("u", "hi"),
        {"id": "i", "type": "info", "content": "saved"},
        {"id": "e", "type": "error", "content": "oops"},
    ]
    _, session = only(path, records)
    assert [message.display for message in session.context()] == [False, None]
    assert [entry.text for entry in session.entries() if isinstance(entry, Note)] == ["saved", "oops"]


def test_damage_costs_only_the_damaged_record(path: Path) -> None:
    raw = json.dumps(user("v", "two")).encode()
    item, session = only(
        path, [user("u", "one"), b"\0" * 9 + b"\n", raw[:30] + raw + b"\n", {"id": "x", "type": "hologram"}, raw[:20]]
    )
    assert talk(session.context()) == ["user: one", "user: two"]
    assert "NUL" in what(item.problems)
    assert "hologram" in what(item.problems)


def test_record_by_record_it_becomes_the_same_session(path: Path) -> None:
    first = [user("u", "hi"), model("m", "", 5, [call("c", "A")]), response("r", ("c", "A")), model("n", "done", 2)]
    later = [
        {"$set": {"messages": [user("s", "in short"), first[3]]}},
        user("v", "wrong"),
        {"$rewindTo": "v"},
        user("w", "right"),
    ]
    grows_alike("gemini-cli", path, [HEAD, *first, *later])


def test_a_message_that_is_written_again_after_it_was_dropped_is_in_the_conversation_again(path: Path) -> None:
    begin = [user("u", "hi"), model("m", "yes", 3)]
    again = [user("v", "right"), model("n", "good", 2)]
    _, session = only(path, [*begin, user("v", "wrong"), model("n", "no", 2), {"$rewindTo": "v"}, *again])
    assert talk(session.context()) == ["user: hi", "assistant: yes", "user: right", "assistant: good"]
    assert session.usage().own.output_tokens == 7, "what was written twice counts once"
    _, session = only(path, [*begin, {"$set": {"messages": []}}, *begin, user("w", "on")])
    assert talk(session.context()) == ["user: hi", "assistant: yes", "user: on"]
    assert session.usage().own.output_tokens == 4
    grows_alike("gemini-cli", path, [HEAD, *begin, user("v", "wrong"), {"$rewindTo": "v"}, *again])


def test_messages_of_one_id_in_a_document_are_as_many_messages(tmp_path: Path) -> None:
    path = tmp_path / "chats" / "session-2025-01-01T00-00-11111111.json"
    path.parent.mkdir()
    said = [user("u", "one"), model("m", "two", 3), user("u", "three"), model("m", "four", 3)]
    path.write_text(json.dumps({**HEAD, "messages": [5, *said]}))
    [(item, session)] = bring("gemini-cli", path)
    assert talk(session.context()) == ["user: one", "assistant: two", "user: three", "assistant: four"]
    assert "messages that are no list of objects" in what(item.problems)


def test_of_one_id_in_a_new_list_the_last_message_counts(path: Path) -> None:
    listed = [user("z", "old"), model("m", "yes", 2), user("z", "new")]
    _, session = only(path, [user("u", "hi"), {"$set": {"messages": listed}}, user("w", "on")])
    assert talk(session.context()) == ["user: new", "assistant: yes", "user: on"]


@pytest.mark.parametrize("odd", [{"$set": 5}, {"$set": {"messages": 5}}, {"$set": {"messages": [5, user("u", "hi")]}}])
def test_a_change_of_the_wrong_type_is_reported(path: Path, odd: Any) -> None:
    item, session = only(path, [user("u", "hi"), odd, user("w", "on")])
    assert talk(session.context()) == ["user: hi", "user: on"]
    [problem] = item.problems
    assert (
        problem.offset
        == len(json.dumps(HEAD, separators=(",", ":")))
        + 1
        + len(json.dumps(user("u", "hi"), separators=(",", ":")))
        + 1
    )


def test_a_tool_call_and_a_part_that_are_no_objects_are_told_or_kept(path: Path) -> None:
    answer = {**model("m", "look", 5), "toolCalls": [5, call("c", "A")]}
    item, session = only(path, [{**user("u", ""), "content": [7, {"text": "hi"}]}, answer])
    assert "tool calls that are no list of objects" in what(item.problems)
    assert talk(session.context()) == ["user: hi", "assistant: look", "call: ls", "result: A"]
    assert isinstance(session.context()[0].blocks[0], UnknownBlock)


def test_a_copy_is_still_one_when_it_has_grown(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "APART", 0)
    spent = [[0, 5, "a-model", 1, 2, 3, 4, 5, 6, 7]] * 40
    head = {**HEAD, "turnlog": {"of": [["ses", "gemini-cli", "x"]], "messages": 2, "until": 5, "spent": spent}}
    title = {"$set": {"summary": "a long talk " * 100}}
    lines(path, [head, user("u", "hi"), model("m", "yes", 2), title, user("v", "on"), model("n", "ok", 2)])
    form: Any = format_of("gemini-cli")
    source = Source("gemini-cli", str(path))
    reading = form.read(source)
    list(reading.steps)
    more = form.growth(source, reading.mark)
    assert more.header == reading.header
    assert more.header.copied is not None and more.header.title is not None


def placed(tmp_path: Path, workspace: str = "/c") -> tuple[Path, Path]:
    """The file of a session of that workspace, and the list of projects."""
    folder = tmp_path / ".gemini" / "tmp"
    with turnlog.open("memory:") as home, home.create() as session:
        session.user("hi")
        written = write(replace(transcript_of(session), workspace=workspace))
    return Path(place(written, str(folder))), folder.parent / "projects.json"


@pytest.mark.parametrize(
    "damaged",
    ['{"projects": {"/a": "a", "/b": "b",}}', '["/a"]', '{"projects": ["/a"]}', "", '{"projects": {"/a": "\\ud800"}}'],
)
def test_a_list_of_projects_that_cannot_be_read_stays_as_it_is(tmp_path: Path, damaged: str) -> None:
    """The program finds the project by the note in its folder."""
    (tmp_path / ".gemini").mkdir()
    (tmp_path / ".gemini" / "projects.json").write_text(damaged)
    path, registry = placed(tmp_path)
    assert registry.read_text() == damaged
    assert (path.parent.parent / ".project_root").read_text() == "/c"


def test_a_list_of_projects_that_is_too_long_to_read_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / ".gemini").mkdir()
    whole = json.dumps({"projects": {f"/{number}": "x" * 1000 for number in range(17_000)}})
    (tmp_path / ".gemini" / "projects.json").write_text(whole)
    assert placed(tmp_path)[1].read_text() == whole


def test_a_list_of_projects_keeps_whatever_else_it_has(tmp_path: Path) -> None:
    (tmp_path / ".gemini").mkdir()
    (tmp_path / ".gemini" / "projects.json").write_text('{"version": 2, "projects": {"/a": "a"}}')
    path, registry = placed(tmp_path)
    assert json.loads(registry.read_text()) == {"version": 2, "projects": {"/a": "a", "/c": path.parent.parent.name}}
    assert not (registry.parent / "projects.json.lock").exists()


def test_a_list_of_projects_that_the_program_has_locked_is_left_to_it(tmp_path: Path) -> None:
    (tmp_path / ".gemini" / "projects.json.lock").mkdir(parents=True)
    path, registry = placed(tmp_path)
    assert not registry.exists() and (registry.parent / "projects.json.lock").exists()
    assert (path.parent.parent / ".project_root").read_text() == "/c"


def test_a_folder_whose_name_is_no_unicode_is_registered_as_the_program_sees_it(tmp_path: Path) -> None:
    folder = tmp_path / ".gemini" / "tmp"
    with turnlog.open("memory:") as home, home.create() as session:
        session.user("hi")
        written = write(replace(transcript_of(session), workspace=os.fsdecode(b"/p/caf\xe9")))
    path = Path(place(written, str(folder)))
    projects = json.loads((folder.parent / "projects.json").read_text())["projects"]
    assert projects == {"/p/caf\ufffd": path.parent.parent.name}
    assert (path.parent.parent / ".project_root").read_text() == "/p/caf\ufffd"
    assert Path(place(written, str(folder), force=True)) == path


DEEP = "[" * 250 + "]" * 250


@pytest.mark.parametrize("value", ["1e999", DEEP])
def test_a_value_that_cannot_be_held_costs_itself_and_is_reported(path: Path, value: str) -> None:
    calls = [{**call("c", "A"), "args": {"p": 1}}, {**call("d", "B"), "args": {"x": "BAD", "y": 2}}]
    lines(path, [HEAD, user("u", "hi"), model("m", "look", 5, calls), user("v", "more")])
    path.write_text(path.read_text().replace('"BAD"', value))
    [(item, session)] = bring("gemini-cli", path)
    assert len(item.problems) == 1 and item.problems[0].offset is not None
    assert talk(session.context()) == [
        "user: hi", "assistant: look", "call: ls", "call: ls", "result: A", "result: B", "user: more",
    ]  # fmt: skip
    assert not [entry for entry in session.entries() if isinstance(entry, Note) and "unknown" in str(entry.origin)]
    assert session.usage().own == Usage(input_tokens=6, cache_read_tokens=4, output_tokens=6, reasoning_tokens=1)


def test_a_set_of_which_a_part_is_nested_too_deep_keeps_the_rest(path: Path) -> None:
    lines(path, [HEAD, user("u", "hi"), {"$set": {"summary": "a talk", "x": "BAD"}}])
    path.write_text(path.read_text().replace('"BAD"', DEEP))
    [(item, session)] = bring("gemini-cli", path)
    assert session.title == "a talk"
    assert "nested more than" in what(item.problems)


@pytest.mark.parametrize("value", ["1e999", DEEP])
def test_a_list_with_a_value_that_cannot_be_held_still_is_the_list(path: Path, value: str) -> None:
    both = [user("u", "hi"), model("m", "hello", 3, [{**call("c", "A"), "args": {"x": "BAD"}}])]
    lines(path, [HEAD, *both, {"$set": {"messages": both}}, user("v", "on")])
    path.write_text(path.read_text().replace('"BAD"', value))
    [(item, session)] = bring("gemini-cli", path)
    assert talk(session.context())[0] == "user: hi"
    assert talk(session.context())[-1] == "user: on"
    assert item.problems

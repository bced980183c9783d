"""opencode: its database, its folders, exports and captured events all tell the same session."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import turnlog
from tests.formats.composing import bring, lines, talk, what
from turnlog import File, Image, Message, Note, Text, ToolCall, Usage
from turnlog.exchange.exporting.transcript import transcript_of
from turnlog.formats import Places
from turnlog.formats.opencode import configured
from turnlog.formats.opencode.writing import write

SES = "ses_0000000000001aaaaaaaaaaaaa"
NOW = 1_767_225_600_000


def user(id: str, text: str, at: int, **more: Any) -> dict[str, Any]:
    info = {"id": id, "sessionID": SES, "role": "user", "time": {"created": NOW + at}, "agent": "build"}
    return {
        "info": info,
        "parts": [{"id": f"prt_{id}", "sessionID": SES, "messageID": id, "type": "text", "text": text, **more}],
    }


def answer(id: str, parent: str, at: int, *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    tokens = {"input": 10, "output": 5, "reasoning": 2, "cache": {"read": 3, "write": 1}}
    info = {
        "id": id, "sessionID": SES, "role": "assistant", "parentID": parent, "modelID": "m", "providerID": "p",
        "mode": "build", "agent": "build", "path": {"cwd": "/p", "root": "/p"}, "cost": 0.25, "tokens": tokens,
        "time": {"created": NOW + at, "completed": NOW + at + 1}, "finish": "stop", **more,
    }  # fmt: skip
    ids = {"sessionID": SES, "messageID": id}
    return {"info": info, "parts": [{"id": f"prt_{id}{n}", **ids, **part} for n, part in enumerate(parts)]}


def tool(call: str, output: str, status: str = "completed", **times: int) -> dict[str, Any]:
    told = {"output": output, "title": "", "metadata": {}} if status == "completed" else {"error": output}
    state = {"status": status, "input": {"c": call}, "time": {"start": NOW, "end": NOW + 50, **times}, **told}
    return {"type": "tool", "callID": call, "tool": "ls", "state": state}


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


TALK = [
    user("msg_1", "hi", 1),
    answer("msg_2", "msg_1", 2, {"type": "step-start"}, text("I look"), tool("c1", "a.txt"), tool("c2", "no", "error")),
    answer("msg_3", "msg_1", 3, text("done")),
    user("msg_4", "thanks", 4),
]
SAID = [
    "user: hi",
    "assistant: I look",
    "call: ls",
    "call: ls",
    "result: a.txt",
    "error: no",
    "assistant: done",
    "user: thanks",
]
SPENT = Usage(
    input_tokens=20,
    cache_read_tokens=6,
    cache_write_tokens=2,
    output_tokens=14,
    reasoning_tokens=4,
    cost_micros=500_000,
)


def info(**more: Any) -> dict[str, Any]:
    times = {"created": NOW, "updated": NOW + 9}
    return {
        "id": SES,
        "slug": "x",
        "projectID": "global",
        "directory": "/p",
        "title": "T",
        "version": "1.18.0",
        "time": times,
        **more,
    }


def database(path: Path, messages: list[dict[str, Any]], **about: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as base:
        base.execute("pragma journal_mode = wal")
        base.execute(
            "create table session (id text, project_id text, parent_id text, slug text, directory text, title text,"
            " version text, revert text, time_created integer, time_updated integer)"
        )
        base.execute(
            "create table message (id text, session_id text, time_created integer, time_updated integer, data text)"
        )
        base.execute("create table part (id text, message_id text, session_id text, time_created integer, data text)")
        row = (
            SES,
            "global",
            about.get("parent"),
            "x",
            "/p",
            "T",
            "1.18.0",
            json.dumps(about.get("revert")),
            NOW,
            NOW + 9,
        )
        base.execute("insert into session values (?,?,?,?,?,?,?,?,?,?)", row)
        for message in messages:
            about = {key: value for key, value in message["info"].items() if key not in ("id", "sessionID")}
            at = message["info"]["time"]["created"]
            base.execute(
                "insert into message values (?,?,?,?,?)", (message["info"]["id"], SES, at, at, json.dumps(about))
            )
            for part in message["parts"]:
                data = {key: value for key, value in part.items() if key not in ("id", "sessionID", "messageID")}
                base.execute(
                    "insert into part values (?,?,?,?,?)", (part["id"], part["messageID"], SES, at, json.dumps(data))
                )
        base.commit()
    return path


def export(path: Path, messages: list[dict[str, Any]], **more: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"info": info(**more), "messages": messages}))
    return path


def storage(root: Path, messages: list[dict[str, Any]]) -> Path:
    def put(place: Path, value: Any) -> None:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(value))

    put(root / "session" / "global" / f"{SES}.json", info())
    for message in messages:
        put(root / "message" / SES / f"{message['info']['id']}.json", message["info"])
        for part in message["parts"]:
            put(root / "part" / message["info"]["id"] / f"{part['id']}.json", part)
    return root


def events(path: Path, messages: list[dict[str, Any]]) -> Path:
    found: list[Any] = []
    for message in messages:
        early = {**message["info"], "time": {"created": message["info"]["time"]["created"]}}
        found.append({"type": "message.updated", "properties": {"info": early}})
        found += [{"type": "message.part.updated", "properties": {"part": part}} for part in message["parts"]]
        found.append({"type": "message.updated", "properties": {"info": message["info"]}})
    return lines(path, found)


def test_every_form_tells_the_same_session(tmp_path: Path) -> None:
    places = [
        database(tmp_path / "1" / "opencode.db", TALK), storage(tmp_path / "2" / "storage", TALK),
        export(tmp_path / "3" / "x.json", TALK), events(tmp_path / "4" / "events.jsonl", TALK),
    ]  # fmt: skip
    for place in places:
        [(item, session)] = bring("opencode", place)
        assert item.problems == [], place
        assert talk(session.context()) == SAID, place
        assert session.usage().own == SPENT, place


def test_the_database_is_not_touched(tmp_path: Path) -> None:
    path = database(tmp_path / "opencode.db", TALK)
    before = path.read_bytes()
    bring("opencode", tmp_path)
    assert path.read_bytes() == before


def test_a_compaction_keeps_the_tail_that_it_names(tmp_path: Path) -> None:
    asked = user("msg_5", "", 5)
    asked["parts"] = [
        {
            "id": "prt_5",
            "sessionID": SES,
            "messageID": "msg_5",
            "type": "compaction",
            "auto": True,
            "tail_start_id": "msg_4",
        }
    ]
    summary = answer("msg_6", "msg_5", 6, text("in short"), summary=True)
    path = export(tmp_path / "x.json", [*TALK, asked, summary, user("msg_7", "on", 7)])
    [(_, session)] = bring("opencode", path)
    assert talk(session.context()) == ["user: in short", "user: thanks", "user: on"]
    assert talk(session.path())[: len(SAID)] == SAID
    assert session.usage().own.output_tokens == 21


def test_a_revert_hides_what_comes_after_it(tmp_path: Path) -> None:
    path = database(tmp_path / "opencode.db", TALK, revert={"messageID": "msg_3"})
    [(_, session)] = bring("opencode", path)
    assert talk(session.context()) == SAID[:-2]
    assert "user: thanks" in talk(session.entries())


def test_pruned_outputs_are_cleared_for_the_model_only(tmp_path: Path) -> None:
    talked = [TALK[0], answer("msg_2", "msg_1", 2, tool("c1", "long", compacted=NOW + 9)), TALK[3]]
    [(_, session)] = bring("opencode", export(tmp_path / "x.json", talked))
    assert "result: long" in talk(session.path())
    assert "result: long" not in talk(session.context())


def test_what_is_synthetic_or_ignored(tmp_path: Path) -> None:
    messages = [
        user("msg_1", "from the program", 1, synthetic=True),
        user("msg_2", "not sent", 2, ignored=True),
        *TALK[3:],
    ]
    [(_, session)] = bring("opencode", export(tmp_path / "x.json", messages))
    assert talk(session.context()) == ["user: from the program", "user: thanks"]
    assert [message.display for message in session.context()] == [False, None]


def test_an_answer_that_is_still_being_written_is_replaced_when_it_is_done(tmp_path: Path) -> None:
    import turnlog

    with turnlog.open("memory:") as home:
        early = answer("msg_2", "msg_1", 2, text("I l"))
        early["info"]["time"] = {"created": NOW + 2}
        del early["info"]["finish"], early["info"]["tokens"], early["info"]["cost"]
        path = tmp_path / "x.json"
        bring("opencode", export(path, [TALK[0], early]), home)
        [(_, session)] = bring("opencode", export(path, TALK), home)
        assert talk(session.context()) == SAID
        assert session.usage().own == SPENT
        assert bring("opencode", path, home)[0][0].added == 0


def test_a_prompt_that_waited_behind_an_answer_follows_all_of_it(tmp_path: Path) -> None:
    whole = answer("msg_2", "msg_1", 2, text("I look"), tool("c1", "out"), text("found"))
    early = {**answer("msg_2", "msg_1", 2, text("I look")), "info": {**whole["info"], "time": {"created": NOW + 2}}}
    del early["info"]["finish"]
    waiting, last = user("msg_3", "and there?", 3), answer("msg_4", "msg_3", 4, text("nothing"))
    with turnlog.open("memory:") as home:
        for number, messages in enumerate(([early, waiting], [whole, waiting], [whole, waiting, last])):
            path = database(tmp_path / f"{number}" / "opencode.db", [TALK[0], *messages])
            [(_, session)] = bring("opencode", path, home)
            if number == 0:
                assert talk(session.context())[-1] == "user: and there?"
        said = talk(session.context())
        assert bring("opencode", path, home)[0][0].added == 0
    with turnlog.open("memory:") as home:
        [(_, session)] = bring("opencode", path, home)
        assert said == talk(session.context())


def test_a_prompt_that_was_read_before_its_parts_is_replaced_when_they_are_there(tmp_path: Path) -> None:
    with turnlog.open("memory:") as home:
        first = user("msg_1", "hi", 1)
        parts = [*first["parts"], {**first["parts"][0], "id": "prt_z", "text": "the file", "synthetic": True}]
        for number, said in enumerate(([], parts[:1], parts, parts)):
            whole = [{**first, "parts": said}, *(TALK[1:] if number == 3 else [])]
            [(_, session)] = bring("opencode", database(tmp_path / f"{number}" / "opencode.db", whole), home)
        assert talk(session.context()) == ["user: hi", "user: the file", *SAID[1:]]
        assert bring("opencode", tmp_path / "3", home)[0][0].added == 0


@pytest.mark.parametrize(("form", "name"), [(database, "opencode.db"), (export, "x.json"), (storage, "storage")])
def test_a_last_prompt_without_parts_comes_when_they_are_there(tmp_path: Path, form: Any, name: str) -> None:
    prompt = user("msg_9", "more", 9)
    with turnlog.open("memory:") as home:
        [(done, session)] = bring("opencode", form(tmp_path / "1" / name, [*TALK, {**prompt, "parts": []}]), home)
        assert (talk(session.context()), done.problems) == (SAID, [])
        [(done, session)] = bring("opencode", form(tmp_path / "2" / name, [*TALK, prompt]), home)
        assert (talk(session.context()), done.added) == ([*SAID, "user: more"], 1)


def test_a_capture_of_events_that_grows_becomes_the_same_session(tmp_path: Path) -> None:
    path = events(tmp_path / "events.jsonl", TALK)
    records = [json.loads(line) for line in path.read_text().splitlines()]
    with turnlog.open("memory:") as home:
        for record in records:
            if "completed" not in record["properties"].get("info", {"time": ["completed"]})["time"]:
                record["properties"]["info"].pop("finish", None)
        for end in range(2, len(records) + 1):
            [(_, session)] = bring("opencode", lines(path, records[:end]), home)
        assert talk(session.context()) == SAID


def test_times_of_the_wrong_type_cost_nothing_else(tmp_path: Path) -> None:
    for number, value in enumerate(("null", "'soon'", "x'ff'", "1.5")):
        path = database(tmp_path / f"{number}" / "opencode.db", TALK)
        with closing(sqlite3.connect(path)) as base:
            base.execute(f"update message set time_created = {value} where id = 'msg_1'")
            base.commit()
        [(item, session)] = bring("opencode", path)
        assert item.problems == []
        assert sorted(talk(session.context())) == sorted(SAID)


def test_the_parts_of_a_message_that_cannot_be_read_are_kept(tmp_path: Path) -> None:
    for number, data in enumerate(('{"role": "hologram"}', "x")):
        path = database(tmp_path / f"{number}" / "opencode.db", TALK)
        with closing(sqlite3.connect(path)) as base:
            base.execute("update message set data = ? where id = 'msg_4'", (data,))
            base.commit()
        [(item, session)] = bring("opencode", path)
        assert "kept as a note" in what(item.problems)
        [note] = [entry for entry in session.entries() if isinstance(entry, Note) and "role" in entry.text]
        assert note.data["parts"][0]["text"] == "thanks"


def test_an_item_of_an_export_that_is_no_message_costs_only_itself(tmp_path: Path) -> None:
    for odd in (5, None, "text"):
        [(item, session)] = bring("opencode", export(tmp_path / "x.json", [odd, *TALK]))
        assert talk(session.context()) == SAID
        assert "messages that are no list of objects" in what(item.problems)
    [(item, session)] = bring("opencode", export(tmp_path / "x.json", [{"x": 1}, *TALK]))
    assert talk(session.context()) == SAID
    assert "unknown role" in what(item.problems)


def test_an_event_of_a_message_without_a_session_is_reported(tmp_path: Path) -> None:
    path = events(tmp_path / "events.jsonl", TALK)
    records = [json.loads(line) for line in path.read_text().splitlines()]
    alone = [record for record in records if record["properties"].get("info", {}).get("id") != "msg_3"]
    [(item, session)] = bring("opencode", lines(path, alone))
    assert "assistant: done" not in talk(session.context())
    assert [problem.where for problem in item.problems] == ["msg_3"]


def test_a_subagent_belongs_to_its_parent(tmp_path: Path) -> None:
    path = database(tmp_path / "opencode.db", TALK, parent="ses_parent")
    [(_, session)] = bring("opencode", path)
    assert session.entries()
    start = next(iter(session.entries()))
    assert start.spawned.session == "opencode-ses_parent"


def test_damage_costs_only_the_damaged_part(tmp_path: Path) -> None:
    path = database(tmp_path / "opencode.db", TALK)
    with closing(sqlite3.connect(path)) as base:
        base.execute("update part set data = '{\"type\":' where id = 'prt_msg_21'")
        base.execute("update message set data = 'x' where id = 'msg_4'")
        base.commit()
    [(item, session)] = bring("opencode", path)
    assert talk(session.context()) == [said for said in SAID if said not in ("assistant: I look", "user: thanks")]
    assert what(item.problems).count("not JSON") == 2


def test_the_model_that_it_is_set_to(tmp_path: Path) -> None:
    home, project = tmp_path / "person", tmp_path / "project"
    places = Places(str(home), str(project / "inner"), {})
    assert configured(places) is None

    def put(path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    put(home / ".local/state/opencode/model.json", '{"recent": [{}, {"providerID": "a", "modelID": "used/last"}]}')
    assert configured(places) == "a/used/last"
    put(home / ".config/opencode/opencode.json", '// mine\n{"model": "b/set", /* not "c/d" */ "url": "http://x",}')
    assert configured(places) == "b/set"
    put(project / ".git/HEAD", "")
    put(tmp_path / "opencode.json", '{"model": "of/another"}')
    assert configured(places) == "b/set"
    put(project / "opencode.jsonc", '{"model": "d/here", "agent": {"build": {"model": "e/built"}}}')
    assert configured(places) == "e/built"
    put(project / "opencode.jsonc", '{"model": 17, "agent": []')
    assert configured(places) == "b/set"


def test_a_session_of_another_provider_is_written_for_the_model_that_it_is_set_to() -> None:
    with turnlog.open("memory:") as home, home.create(workspace="/w") as session:
        session.user("Count the\nzebras")
        session.assistant("Two", model="claude-sonnet-4-5")
        transcript = transcript_of(session)
        plain, other = write(transcript), write(replace(transcript, model="fake/m/1"))
    whole = json.loads(other.files[0].data)
    asked, answered = (message["info"] for message in whole["messages"])
    assert (asked["model"], whole["info"]["model"]) == (
        {"providerID": "fake", "modelID": "m/1"},
        {"providerID": "fake", "id": "m/1"},
    )
    assert (answered["providerID"], answered["modelID"]) == ("anthropic", "claude-sonnet-4-5")
    assert (whole["info"]["title"], other.note.split(",")[0]) == ("Count the zebras", "it goes on with fake/m/1")
    assert "anthropic/claude-sonnet-4-5, and fails where" in plain.note


def test_a_picture_that_a_failed_tool_gave_is_lost_once() -> None:
    with turnlog.open("memory:") as home, home.create(workspace="/w") as session:
        session.user("look")
        session.append(Message(role="assistant", blocks=[ToolCall(id="c", name="shot", input={})]))
        session.tool_result("c", [Text(text="no screen"), Image(url="https://x/y.png"), File()], is_error=True)
        lost = {loss.what: loss.count for loss in write(transcript_of(session)).lost}
    assert {what: count for what, count in lost.items() if "in a tool result" in what} == {
        "image in a tool result": 1,
        "file in a tool result": 1,
    }

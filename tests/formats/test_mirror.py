"""Lines of Claude Code that were handed over one by one: entries that say what they say, and the very lines again."""

import json
from datetime import datetime

import pytest

import turnlog
from turnlog import Invalid, Spent, Usage
from turnlog.exchange.exporting.transcript import transcript_of
from turnlog.exchange.exporting.writing import written_for
from turnlog.formats.claude_code.blocks import CLEARED
from turnlog.formats.claude_code.heading import cleared_calls
from turnlog.formats.claude_code.mirror import cleared, drafted, kept_line

RESULT = {"type": "tool_result", "tool_use_id": "c", "content": "out"}
LINES = [
    {"type": "user", "uuid": "u1", "parentUuid": None, "sessionId": "s", "message": {"role": "user", "content": "hi"}},
    {
        "type": "assistant",
        "uuid": "u2",
        "parentUuid": "u1",
        "message": {"id": "m", "content": [{"type": "tool_use", "id": "c", "name": "Bash", "input": {"n": 1}}]},
    },
    {
        "type": "user",
        "uuid": "u3",
        "parentUuid": "u2",
        "message": {"content": [RESULT, {"type": "text", "text": "so"}]},
    },
    {"type": "custom-title", "customTitle": "a title"},
]


def test_lines_come_back_and_are_exported_as_they_were(tmp_path):
    with turnlog.open("memory:") as home:
        session = home.create()
        for line in LINES:
            session.append(*drafted(line, is_side=False))
        assert [line for line in map(kept_line, session.entries()) if line is not None] == LINES
        assert [one.role for one in session.messages()] == ["user", "assistant", "tool", "user"]
        session.export("claude-code", tmp_path / "out.jsonl")
        assert [json.loads(line) for line in (tmp_path / "out.jsonl").read_bytes().splitlines()] == LINES
        session.user("from elsewhere")
        session.export("claude-code", tmp_path / "more.jsonl")
        more = [json.loads(line) for line in (tmp_path / "more.jsonl").read_bytes().splitlines()]
        assert [line["uuid"] for line in more[:3]] == ["u1", "u2", "u3"]
        assert more[3]["message"]["content"] == "from elsewhere"
        assert more[3]["parentUuid"] == "u3"


@pytest.mark.parametrize("more", ["", "from elsewhere"])
@pytest.mark.parametrize("spent", [None, {"input_tokens": 100, "output_tokens": 50}])
def test_a_copy_costs_nothing_and_says_that_it_is_one(spent, more):
    answer = {**LINES[1], "message": {**LINES[1]["message"], **({"usage": spent} if spent else {})}}
    with turnlog.open("memory:") as home:
        session = home.create()
        for line in [{"type": "custom-title", "customTitle": "a title"}, LINES[0], answer, *LINES[2:]]:
            session.append(*drafted(line, is_side=False))
        if spent:
            session.append(Spent(usage=Usage(input_tokens=100, output_tokens=50), model="m", request="m"))
        if more:
            session.user(more)
        written = written_for(transcript_of(session), "claude-code", is_free=True)[0]
        records = [json.loads(line) for line in written.files[0].data.splitlines()]
        usages = [record["message"]["usage"] for record in records if "usage" in record.get("message", {})]
        assert not any(count for usage in usages for count in usage.values())
        [first] = [record for record in records if "turnlog" in record]
        assert (first["uuid"], first["turnlog"]["of"][0][0]) == ("u1", session.id)


def test_an_entry_has_the_time_of_its_line():
    at = "2026-03-01T09:00:01.250Z"
    with turnlog.open("memory:") as home:
        session = home.create()
        session.append(*[one for line in LINES for one in drafted({**line, "timestamp": at}, is_side=False)])
        assert {one.clock or one.at for one in session.path()} == {datetime.fromisoformat(at)}


def test_results_that_are_cleared_are_edited():
    line = {"type": "system", "subtype": "microcompact_boundary", "uuid": "u9"}
    line["microcompactMetadata"] = {"compactedToolIds": ["c", 3]}
    with turnlog.open("memory:") as home:
        session = home.create()
        for one in LINES:
            session.append(*drafted(one, is_side=False))
        calls = cleared_calls(line)
        edits = [made for one in session.messages() if (made := cleared(one, calls, line)) is not None]
        session.append(*edits)
        assert [one.blocks[0].content for one in session.context() if one.role == "tool"] == [CLEARED]
        assert cleared_calls(LINES[0]) == []
        assert not any(map(kept_line, edits))


def test_an_answer_without_an_id_is_kept():
    line = {"type": "assistant", "message": {"id": "m", "model": 5, "content": [{"type": "text", "text": "so"}]}}
    [entry] = drafted(line, is_side=False)
    assert (entry.request, entry.model, entry.blocks[0].text) == ("m", None, "so")
    assert kept_line(entry) == line


def test_what_is_no_json_is_refused():
    with pytest.raises(Invalid):
        drafted({"type": "user", "message": {"content": [object()]}}, is_side=False)

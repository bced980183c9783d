"""Lines of Claude Code that were handed over one by one: entries that say what they say, and the very lines again."""

import json

import pytest

import turnlog
from turnlog import Invalid
from turnlog.formats.claude_code.mirror import drafted, kept_line

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


def test_what_is_no_json_is_refused():
    with pytest.raises(Invalid):
        drafted({"type": "user", "message": {"content": [object()]}}, is_side=False)

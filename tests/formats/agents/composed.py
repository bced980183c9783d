"""The chats of Crush and Cursor CLI in this folder, composed: neither was run.

`python -m tests.formats.agents.composed` writes them.
"""

import json
import sqlite3
from contextlib import closing
from hashlib import md5
from pathlib import Path
from typing import Any

from tests.formats.long import CRUSH, cursor_chat

HERE = Path(__file__).parent
ROOM, CHILD, CHAT, SUB = (f"3f6c0a1e-0000-4000-8000-00000000000{number}" for number in (1, 2, 3, 4))
PNG = "iVBORw0KGgo="


def _part(kind: str, **data: Any) -> dict[str, Any]:
    return {"type": kind, "data": data}


def _call(id: str, name: str, **given: Any) -> dict[str, Any]:
    return _part("tool_call", id=id, name=name, input=json.dumps(given), provider_executed=False, finished=True)


def _result(id: str, name: str, content: str, **more: Any) -> dict[str, Any]:
    told = {"data": "", "mime_type": "", "metadata": "", "is_error": False, **more}
    return _part("tool_result", tool_call_id=id, name=name, content=content, **told)


def _end(reason: str, **more: Any) -> dict[str, Any]:
    return _part("finish", reason=reason, time=1790000003, **more)


STOP = _end("stop")
PICTURE = _part("binary", Path="a.png", MIMEType="image/png", Data=PNG)
THOUGHT = _part("reasoning", thinking="Look first.", signature="c2ln", thought_signature="", responses_data=None)
LISTED = _call("toolu_1", "bash", command="ls")
SHELL = _part("shell_command", command="git status", output="clean\n", exit_code=0)
BROKEN = _end("error", message="overloaded", details="529")
INNER = "a3$$toolu_2"
CRUSH_ROWS: list[tuple[str, str, str, int, list[dict[str, Any]]]] = [
    (ROOM, "u1", "user", 1, [_part("text", text="list files"), PICTURE, STOP]),
    (ROOM, "a1", "assistant", 1, [THOUGHT, _part("text", text="Looking."), LISTED, _end("tool_use")]),
    (ROOM, "t1", "tool", 1, [_result("toolu_1", "bash", "a.txt", metadata='{"description":"list"}'), STOP]),
    (ROOM, "a2", "assistant", 2, [_part("text", text="One file."), _end("end_turn")]),
    (ROOM, "s1", "assistant", 3, [_part("text", text="There is one file."), _end("end_turn")]),
    (ROOM, "u2", "user", 4, [SHELL, STOP]),
    (ROOM, "a3", "assistant", 5, [_call("toolu_2", "agent", prompt="count"), _end("tool_use")]),
    (ROOM, "t2", "tool", 6, [_result("toolu_2", "agent", "42", data=PNG, mime_type="image/png"), STOP]),
    (ROOM, "a4", "assistant", 7, [_part("text", text="It broke."), BROKEN]),
    (INNER, "c1", "user", 5, [_part("text", text="count"), STOP]),
    (INNER, "c2", "assistant", 6, [_part("text", text="42"), _end("end_turn")]),
]


def crush(path: Path) -> None:
    """A session with a summary and a subagent."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as base:
        base.executescript(CRUSH)
        sessions = "insert into sessions (id, parent_session_id, title, prompt_tokens, cost, created_at, updated_at, "
        sessions += "summary_message_id) values (?, ?, ?, ?, ?, ?, ?, ?)"
        base.execute(sessions, (ROOM, None, "Files of the orchard", 9000, 0.0123, 1790000000, 1790000007, "s1"))
        base.execute(sessions, (INNER, ROOM, "New Agent Session", 10, 0.0023, 1790000005, 1790000006, None))
        for session, id, role, second, parts in CRUSH_ROWS:
            answer = ("claude-sonnet-4-5", "anthropic") if role == "assistant" else ("", None)
            base.execute(
                "insert into messages (id, session_id, role, parts, model, provider, created_at, is_summary_message) "
                "values (?, ?, ?, ?, ?, ?, ?, ?)",
                (id, session, role, json.dumps(parts), *answer, 1790000000 + second, int(id == "s1")),
            )
        base.commit()


def _tool(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "toolCallId": "call_1\nfc_1", "toolName": "Shell", **more}


def _text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def _asked(query: str, before: str = "") -> dict[str, Any]:
    return _text(f"{before}<user_query>\n{query}\n</user_query>")


TIME = "<timestamp>Monday, Sep 21, 2026, 4:20 PM (UTC+2)</timestamp>\n"
READ = {"id": "call_2", "function": {"name": "Read", "arguments": '{"path": "dot.png"}'}}
SHOWN = {"type": "image", "image": {"__type": "Uint8Array", "hex": "89504e470d0a1a0a"}}
LOOKED = [{"type": "reasoning", "text": "", "signature": "x"}, _text("Looking."), _tool("tool-call", args={"a": "ls"})]
CURSOR_SAID: list[dict[str, Any]] = [
    {"role": "system", "content": "You are in a terminal."},
    {"role": "user", "content": [_text("<user_info>\nOS: linux\n</user_info>")]},
    {"role": "user", "content": [_asked("list files", TIME)]},
    {"role": "assistant", "id": "1", "content": LOOKED},
    {"role": "tool", "id": "1", "content": [_tool("tool-result", result="a.txt\n")]},
    {"role": "assistant", "id": "1", "content": [_text("One file.")]},
    {"role": "user", "content": [_text("Summary.")], "providerOptions": {"cursor": {"isSummary": True}}},
    {"role": "user", "content": [_asked("and this?"), SHOWN]},
    {"role": "assistant", "content": "A dot.", "tool_calls": [READ]},
    {"role": "tool", "tool_call_id": "call_2", "content": "PNG"},
]
COUNTED = [_text("Counting."), {"type": "tool_use", "name": "Shell", "input": {"command": "wc"}}]
LINES = [
    {"role": "user", "message": {"content": [_asked("count")]}},
    {"role": "assistant", "message": {"content": COUNTED}},
    {"type": "turn_ended", "status": "success"},
]


def cursor(base: Path) -> None:
    """A chat, and a subagent of it, of which there are only lines."""
    workspace = "/home/ada/orchard"
    folder = base / "chats" / md5(workspace.encode()).hexdigest() / CHAT
    left = json.dumps({"role": "assistant", "content": "never said"}).encode()
    cursor_chat(
        folder, CURSOR_SAID, more=[left], lastUsedModel="composer-2", mode="default", blobEncryptionKey="secret"
    )
    about = {
        "schemaVersion": 1,
        "createdAtMs": 1790000000000,
        "hasConversation": True,
        "cwd": workspace,
        "title": "Files",
    }
    (folder / "meta.json").write_text(json.dumps(about))
    below = base / "projects" / "home-ada-orchard" / "agent-transcripts" / CHAT
    (below / "subagents").mkdir(parents=True, exist_ok=True)
    (below / f"{CHAT}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LINES))
    (below / "subagents" / f"{SUB}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LINES))


if __name__ == "__main__":
    crush(HERE / "crush" / ".crush" / "crush.db")
    there = {
        "path": "/home/ada/orchard",
        "data_dir": "/home/ada/orchard/.crush",
        "last_accessed": "2026-09-21T10:00:00Z",
    }
    (HERE / "crush" / "projects.json").write_text(json.dumps({"projects": [there]}))
    cursor(HERE / "cursor-cli")

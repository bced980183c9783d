"""`turnlog statusline`: one line on another program's screen, and never anything else there."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.machine import claude_session
from tests.cli.scene import Cli

FAR = 4_000_000_000
TOLD = {
    "model": {"id": "claude-opus-4-1", "display_name": "Opus 4.1"},
    "workspace": {"current_dir": "/home/ada/api"},
    "cost": {"total_cost_usd": 1.234},
    "context_window": {"used_percentage": 31.2},
    "rate_limits": {
        "five_hour": {"used_percentage": 43.2, "resets_at": FAR},
        "seven_day": {"used_percentage": 12, "resets_at": 1_000},
    },
}


def shown(told: bytes) -> tuple[int, bytes, bytes]:
    done = subprocess.run([sys.executable, "-m", "turnlog", "statusline"], input=told, capture_output=True)
    return done.returncode, done.stdout, done.stderr


def test_what_the_agent_says_and_what_was_spent_today(folder: Path, tmp_path: Path, process: Cli, monkeypatch):
    monkeypatch.setenv("TURNLOG_BACKGROUND", "off")
    now = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
    claude_session(tmp_path / "person", str(Path.cwd()), "aaaaaaaa-1111-4222-8333-444444444444", "one", at=now)
    spent = process("usage", "since:today", "--json").json["total"]["cost_micros"]
    said = f"Opus 4.1 · api · context 31% · $1.23 session · ${spent / 1e6:.2f} today · 5h 57% left\n"
    assert shown(json.dumps(TOLD).encode()) == (0, said.encode(), b"")
    last = process("usage", "blocks").out.splitlines()[-1]
    assert last.startswith("claude-code said now: 57% of 5 hours left, resets 2096-10-02")
    [limit] = process("usage", "blocks", "--json").json["limits"]
    assert (limit["used_percent"], limit["window_minutes"]) == (43.2, 300)


@pytest.mark.parametrize(
    ("told", "line"),
    [
        (b"", b""), (b"{", b""), (b"[]", b""), (b"\xff\xfe", b""),
        (b'{"model": 5, "cost": {"total_cost_usd": "much"}, "rate_limits": []}', b""),
        (json.dumps({"model": {"id": "x\x1b[31m"}}).encode(), b"x\\x1b[31m\n"),
    ],
)  # fmt: skip
def test_whatever_it_is_told_no_error_is_on_the_screen(folder: Path, monkeypatch, told: bytes, line: bytes):
    monkeypatch.setenv("TURNLOG_BACKGROUND", "off")
    assert shown(told) == (0, line, b"")


def test_a_broken_index_and_no_place_for_anything_are_no_errors(
    folder: Path, tmp_path: Path, process: Cli, monkeypatch
):
    monkeypatch.setenv("TURNLOG_BACKGROUND", "off")
    process("ls")
    [index] = Path(os.environ["HOME"]).rglob(".cache/turnlog/*.sqlite")
    index.write_bytes(b"no database" * 1000)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    code, out, err = shown(json.dumps(TOLD).encode())
    assert (code, err) == (0, b"")
    assert b"today" not in out
    assert b"5h 57% left" in out


def test_codex_says_in_its_files_what_is_left(folder: Path, tmp_path: Path, process: Cli):
    day = tmp_path / "person/.codex/sessions/2026/11/15"
    day.mkdir(parents=True)
    at = "2026-11-15T10:00:00.000Z"
    windows = {"primary": {"used_percent": 61.0, "window_minutes": 300, "resets_at": FAR}, "secondary": None}
    usage = {"input_tokens": 100, "cached_input_tokens": 0, "output_tokens": 10, "total_tokens": 110}
    info = {"total_token_usage": usage, "last_token_usage": usage}
    lines = [
        {"type": "session_meta", "payload": {"id": "0199a213-81a0-7800-8000-000000000001", "timestamp": at,
                                             "cwd": "/home/ada/api", "originator": "x", "cli_version": "0.50.0"}},
        {"type": "turn_context", "payload": {"cwd": "/home/ada/api", "model": "gpt-5-codex"}},
        {"type": "event_msg", "payload": {"type": "user_message", "message": "hello"}},
        {"type": "event_msg", "payload": {"type": "token_count", "info": info, "rate_limits": windows}},
    ]  # fmt: skip
    text = "".join(json.dumps({"timestamp": at, **line}) + "\n" for line in lines)
    (day / "rollout-2026-11-15T10-00-00-0199a213-81a0-7800-8000-000000000001.jsonl").write_text(text)
    [limit] = process("usage", "blocks", "--json").json["limits"]
    assert (limit["agent"], limit["used_percent"], limit["said_at"]) == ("codex", 61.0, "2026-11-15T10:00:00Z")


def test_nobody_who_takes_the_line_is_no_error(folder: Path):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "turnlog", "statusline"], input=b'{"model": {"id": "m"}}', stdout=write,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


def test_one_limit_that_makes_no_sense_does_not_hide_the_other(folder: Path, monkeypatch):
    monkeypatch.setenv("TURNLOG_BACKGROUND", "off")
    limits = {"five_hour": {"used_percentage": None}, "seven_day": {"used_percentage": 12, "resets_at": FAR}}
    assert shown(json.dumps({"rate_limits": limits}).encode()) == (0, b"7d 88% left\n", b"")

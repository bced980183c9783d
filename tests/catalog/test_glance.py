"""The first look at a machine: what a glance tells is what reading tells, and it needs no format for that."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import turnlog
from tests.cli.machine import RECORDED
from turnlog.catalog.glance import heading
from turnlog.catalog.glance.index import GlanceIndex
from turnlog.catalog.glance.places import places
from turnlog.catalog.glance.survey import QUICK, FileSurvey, found_file, row_at
from turnlog.catalog.index.columns import ms_of
from turnlog.formats import Format, Jump, Places, SessionHeader, every, format_of
from turnlog.log.entry import Message
from turnlog.log.prompt.promptmessage import preview

SOMEWHERE = {
    "CLAUDE_CONFIG_DIR": "/a", "CODEX_HOME": "/b", "GEMINI_CLI_HOME": "/c", "XDG_DATA_HOME": "/d", "CLINE_DIR": "/e",
    "COPILOT_HOME": "/f", "KIMI_SHARE_DIR": "/g", "KIMI_CODE_HOME": "/h", "QWEN_HOME": "/i", "RHO_HOME": "/j",
    "PI_CODING_AGENT_DIR": "/k", "CLAW_CONFIG_HOME": "/l", "APPDATA": "/m",
}  # fmt: skip
ELSEWHERE = {
    "GOOSE_PATH_ROOT": "/n", "CLINE_DATA_DIR": "/o", "CLINE_SESSION_DATA_DIR": "/p", "QWEN_RUNTIME_DIR": "/q",
    "APPDATA": "/m",
}  # fmt: skip


@pytest.mark.parametrize("environ", [{}, SOMEWHERE, ELSEWHERE])
def test_the_places_of_the_agents_are_those_that_their_formats_name(environ: dict[str, str]):
    told: set[tuple[str, str]] = set()
    for name, form in every():
        for place in (
            Places(home="/home/ada", environ=environ),
            Places(home="/home/ada", workspace="/w", environ=environ),
        ):
            told |= {(name, path) for path in form.homes(place)}
    told = {(agent, path) for agent, path in told if agent != "rho" or path.endswith("/sessions")}
    assert set(places("/home/ada", environ, "/w")) == told


def read(form: Format, path: Path) -> tuple[SessionHeader, str, int | None] | None:
    source = next(form.find(str(path)), None)
    if source is None:
        return None
    reading = form.read(source)
    entries = [step.entry for step in reading.steps if not isinstance(step, Jump)]
    said = preview(entry for entry in entries if isinstance(entry, Message))
    return reading.header, said, max(filter(None, (ms_of(entry.clock or entry.at) for entry in entries)), default=None)


@pytest.mark.parametrize("agent", sorted(QUICK))
def test_a_glance_tells_what_reading_tells(agent: str):
    looked = 0
    for path in sorted(path for path in (RECORDED / agent).rglob("*") if path.is_file()):
        if not QUICK[agent].is_session_name(path.name) or path.name == "expected.json":
            continue
        found, told = QUICK[agent].glance(str(path), path.stat().st_size), read(format_of(agent), path)
        if told is None:
            assert found is None, path
            continue
        header, said, last = told
        if found is None:
            assert not said, path  # nobody said anything
            continue
        looked += 1
        assert (found.native, found.workspace, found.title) == (header.id, header.workspace, header.title), path
        assert found.preview == said or found.fork, path  # it begins in another file
        assert found.created_ms == ms_of(header.created), path
        assert found.is_hidden == header.hidden
        assert found.parent == (header.spawned.session if header.spawned else None), path
        assert found.updated_ms is not None and (last is None or abs(found.updated_ms - last) < 10_000), path
    assert looked > 3


def test_a_document_of_gemini_cli_is_not_parsed_for_a_glance(tmp_path: Path):
    path = tmp_path / "tmp" / "0f00" / "chats" / "session-2026-01-01T10-00-aaaa.json"
    path.parent.mkdir(parents=True)
    said = [{"id": "1", "timestamp": "2026-01-01T10:00:00.000Z", "type": "user", "content": 'mend the "tests"'}]
    said += [{"id": "2", "timestamp": "2026-01-01T10:00:09.000Z", "type": "gemini", "content": "x" * 200_000}]
    about = {"sessionId": "0f0f", "projectHash": "0f00", "startTime": "2026-01-01T10:00:00.000Z"}
    path.write_text(json.dumps({**about, "lastUpdated": "2026-01-01T10:00:09.000Z", "messages": said}, indent=2))
    found = QUICK["gemini-cli"].glance(str(path), path.stat().st_size)
    assert found is not None
    assert (found.native, found.preview, found.created_ms) == ("0f0f", 'mend the "tests"', 1767261600000)


def test_what_cannot_be_opened_or_understood_is_left_out(tmp_path: Path):
    folder = tmp_path / ".claude" / "projects" / "-work"
    folder.mkdir(parents=True)
    (folder / "gone.jsonl").symlink_to(tmp_path / "nowhere")
    (folder / "damaged.jsonl").write_bytes(b'{"type":\n\0\0\0{"a":' + b"[" * 5000)
    (folder / "empty.jsonl").touch()
    survey = FileSurvey(places(str(tmp_path), {}, str(tmp_path)))
    assert [seen for seen in survey.files if row_at(found_file(seen)) is not None] == []
    assert len(survey.files) == 2


def test_a_glance_loads_no_format():
    code = "import sys, turnlog.catalog.glance.index; print('msgspec' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_file_with_all_sessions_of_an_agent_is_glanced_at(tmp_path: Path):
    history = tmp_path / ".aider.chat.history.md"
    history.write_text("# aider chat started at 2026-01-01 00:00:00\n\n#### mend the tests\n\ndone\n")
    survey = FileSurvey(places(str(tmp_path / "user"), {}, str(tmp_path)))
    assert survey.others == {("aider", str(history))}
    assert survey.size_bytes == history.stat().st_size
    assert [row.agent for row in heading.rows(survey, lambda: False)] == ["aider"]
    known = FileSurvey(places(str(tmp_path / "user"), {}, str(tmp_path)), is_known=lambda path: True)
    assert (known.others, known.size_bytes) == (set(), 0)


def test_half_a_surrogate_pair_in_a_file_keeps_no_session_from_the_list(tmp_path: Path):
    folder = tmp_path / ".claude" / "projects" / "-work"
    folder.mkdir(parents=True)
    for name, fields in {
        "a": {"cwd": "/\ud800"},
        "b": {"cwd": "\ud800"},
        "c": {"forkedFrom": {"sessionId": "\ud800"}},
    }.items():
        record = {"type": "user", "sessionId": name, "uuid": "1", "parentUuid": None, "message": {"content": "hi"}}
        (folder / f"{name}.jsonl").write_text(json.dumps({**record, **fields}) + "\n")
    survey = FileSurvey(places(str(tmp_path), {}, str(tmp_path)))
    with turnlog.open("memory:") as home:
        index = GlanceIndex(survey, str(tmp_path), lambda: home, has_main_index=False).index
        assert {card.id: card.workspace for card in index.cards()} == {"a": None, "b": None, "c": None}


def test_a_pipe_is_not_waited_for(tmp_path: Path):
    folder = tmp_path / ".claude" / "projects" / "-work"
    folder.mkdir(parents=True)
    os.mkfifo(folder / "a.jsonl")
    assert FileSurvey(places(str(tmp_path), {}, str(tmp_path))).files == []

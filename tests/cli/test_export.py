"""`turnlog export`: a session written for another agent."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.scene import Cli
from turnlog.formats import format_of, names

WRITTEN = [name for name in names() if format_of(name).write]
ONLY_READ = [name for name in names() if name not in WRITTEN]


@pytest.mark.parametrize("agent", WRITTEN)
def test_what_is_written_is_read_again(process: Cli, session: str, agent: str):
    done = process("export", session, "--to", agent, "-o", "out/", "--json")
    assert done.code == 0, done.err
    assert done.err == ""
    told = done.json
    assert (told["agent"], bool(told["id"])) == (agent, True)
    assert Path(told["path"]).is_relative_to(Path("out").absolute())
    carried = told["report"]["carried"]
    assert carried["messages"] >= 3  # some say in two messages what was one
    assert carried["tool_calls"] == carried["tool_results"] == 1
    again = process("show", told["path"], "--json").json
    assert carried == {name: again["totals"][name] for name in carried}
    assert again["problems"] == []


def test_a_file_in_this_folder(process: Cli, session: str):
    done = process("export", session, "--to", "pi")
    assert done.code == 0
    path = Path(done.out.strip())
    assert path.parent == Path.cwd()
    assert path.is_file()
    assert done.err.startswith("carried: 3 messages, 1 tool call, 1 result\n")


def test_nothing_is_overwritten_without_force(process: Cli, session: str):
    Path("mine.jsonl").write_text("mine")
    done = process("export", session, "--to", "pi", "-o", "mine.jsonl")
    assert done.code == 4
    assert "mine.jsonl is already there" in done.err
    assert "--force" in done.err
    assert Path("mine.jsonl").read_text() == "mine"
    assert process("export", session, "--to", "pi", "-o", "mine.jsonl", "--force").code == 0
    assert json.loads(Path("mine.jsonl").read_text().splitlines()[0])["type"] == "session"


def test_to_stdout_only_the_session_goes(folder: Path, process: Cli, session: str):
    words = [sys.executable, "-m", "turnlog", "export", session, "--to", "pi", "-o", "-"]
    piped = subprocess.run(words, capture_output=True)
    assert piped.returncode == 0
    assert all(json.loads(line) for line in piped.stdout.splitlines())
    assert b"carried: " in piped.stderr
    assert process("export", session, "--to", "pi", "-o", "-", "--json").code == 2


def test_what_is_lost_and_changed_is_told(process: Cli, session: str):
    done = process("export", session, "--to", "claw", "-o", "out/")
    assert "changed: model of a message; instead: the session's\n" in done.err
    assert "lost: title\n" in done.err
    report = process("export", session, "--to", "claw", "-o", "more/", "--json").json["report"]
    assert {"what": "title"} in report["lost"]
    assert all(loss["instead"] for loss in report["changed"])


@pytest.mark.parametrize("agent", ONLY_READ)
def test_an_agent_that_is_only_read(process: Cli, session: str, agent: str):
    done = process("export", session, "--to", agent)
    assert done.code == 7
    assert done.err == (
        f"error: sessions of {agent} can be read, not written\nhint: `turnlog formats` says which can\n"
    )


def test_an_agent_that_nobody_knows(process: Cli, session: str):
    done = process("export", session, "--to", "nobody")
    assert done.code == 3
    assert "error: no form 'nobody'\nhint: one of markdown, html, json, jsonl, otel, or an agent: a3s, " in done.err
    assert list(Path.cwd().iterdir()) == []


def test_a_newer_vocabulary_is_written_on_request_and_the_report_says_who_opens_it(cli: Cli, session: str):
    plain = cli("export", session, "--to", "rho", "-o", "one/", "--json").json
    newer = cli("export", session, "--to", "rho", "-o", "two/", "--format-version", "4", "--json").json
    assert plain["report"]["notes"] == []
    assert newer["report"]["notes"] == ["opens in rho of 2026-07-21 or newer, and in no older one"]
    told = cli("export", session, "--to", "rho", "-o", "three/", "--format-version", "4").err
    assert "opens in rho of 2026-07-21 or newer" in told
    first = json.loads(Path(newer["path"]).read_text().splitlines()[0])
    assert first["version"] == 4


def test_a_vocabulary_that_there_is_not_is_refused(cli: Cli, session: str):
    done = cli("export", session, "--to", "claw", "--format-version", "3")
    assert done.code != 0
    assert "no format version 3 of claw is written" in done.err
    assert "2 (claw-code of 2026-08 or newer)" in done.err
    assert "is for agents" in cli("export", session, "--to", "html", "--format-version", "1").err
    assert not list(Path.cwd().glob("*.html"))


def test_markdown_by_its_ending_and_a_form_that_there_is_not(cli: Cli, session: str):
    assert (
        cli("export", session, "--to", "md", "-o", "-").out == cli("export", session, "--to", "markdown", "-o", "-").out
    )
    done = cli("export", session, "--to", "txt")
    assert (done.code, done.err.splitlines()[0]) == (3, "error: no form 'txt'")
    assert "one of markdown, html, json, jsonl, otel, or an agent: a3s, " in done.err

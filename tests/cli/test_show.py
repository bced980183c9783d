"""`turnlog show`."""

import json
from pathlib import Path

import turnlog
from tests.cli.scene import Cli, write_session
from turnlog import ToolCall


def test_the_conversation_is_readable(cli: Cli, session: str):
    done = cli("show")
    assert done.code == 0
    assert done.out.startswith("The race in conftest\n")
    for text in ("The test is flaky, fix it", "→ bash  pytest -x\n    ✗ 1 failed", "claude-sonnet-4-5"):
        assert text in done.out
    assert done.out.index("fix it") < done.out.index("Looking.") < done.out.index("And now?")


def test_only_the_last_messages(cli: Cli, session: str):
    done = cli("show", "--last", "1")
    assert "And now?" in done.out
    assert "Looking." not in done.out


def test_an_open_tool_call_is_pointed_out(cli: Cli, folder: Path):
    with turnlog.open() as home:
        home.create().assistant([ToolCall(id="c9", name="bash", input={})])
    done = cli("show")
    assert "no result yet: bash (c9)" in done.err
    context = cli("show", "--context")
    assert "[no result: the tool call was interrupted]" in context.out
    assert "made for the model" in context.out


def test_the_context_is_what_a_model_sees(cli: Cli, session: str):
    with turnlog.open() as home:
        resumed = home.resume(session)
        resumed.set("system", "You are careful.")
        resumed.compact("It was a race.", keep=1)
    done = cli("show", "--context")
    assert "You are careful." in done.out
    assert "It was a race." in done.out
    assert "Looking." not in done.out
    assert "Looking." in cli("show").out


def test_json_has_the_messages_as_they_are(cli: Cli, session: str):
    data = cli("show", "--json").json
    assert data["version"] == 1
    assert data["session"] == session
    assert [message["role"] for message in data["messages"]] == ["user", "assistant", "tool", "user"]
    assert data["messages"][1]["usage"]["input_tokens"] == 300
    assert data["pending"] == []
    assert cli("show", "--context", "--json").json["system"] == ""


def test_long_output_is_cut_unless_all_of_it_is_wanted(cli: Cli, folder: Path):
    with turnlog.open() as home:
        one = home.create()
        one.assistant([ToolCall(id="c1", name="bash", input={})])
        one.tool_result("c1", "\n".join(f"line {n}" for n in range(100)))
    short = cli("show").out
    assert "line 7\n      … 88 more lines (--full)\n      line 96\n" in short
    assert "line 99" in short
    assert "line 8\n" not in short
    assert "line 50\n" in cli("show", "--full").out


def test_without_a_name_it_is_the_session_of_this_folder(cli: Cli, tmp_path: Path, folder: Path, monkeypatch):
    with turnlog.open() as home:
        here = write_session(home)
        there = write_session(home, workspace=tmp_path / "elsewhere")
    assert cli("show", "--json").json["session"] == here
    (tmp_path / "webshop" / "src").mkdir()
    monkeypatch.chdir(tmp_path / "webshop" / "src")
    assert cli("show", "--json").json["session"] == here
    monkeypatch.chdir("/")
    assert cli("show", "--json").json["session"] == there


def test_any_beginning_that_is_unique_finds_it(cli: Cli, session: str):
    for name in (session, session[:17], session[-8:], session[-8:-3], "latest"):
        assert cli("show", name, "--json").json["session"] == session


def test_a_deleted_session_can_be_looked_at(cli: Cli, session: str):
    with turnlog.open() as home:
        home.delete(session)
    assert cli("show", session, "--json").json["session"] == session


def test_damage_is_pointed_out_on_stderr(cli: Cli, log: Path):
    lines = log.read_bytes().split(b"\n")
    lines[4] = lines[4][:50]
    log.write_bytes(b"\n".join(lines))
    done = cli("show")
    assert done.code == 0
    assert "warning: 1 damaged region in this log; `turnlog doctor" in done.err


def test_reading_changes_nothing(cli: Cli, log: Path):
    log.write_bytes(log.read_bytes()[:-1])  # a writer would add the line end
    before = log.read_bytes()
    for command in ("show", "log", "ls", "path", "doctor"):
        cli(command)
    assert log.read_bytes() == before


def test_the_last_entries_as_they_are_in_the_log(cli: Cli, session: str, log: Path):
    lines = log.read_text().splitlines()
    assert cli("show", "--raw").out.splitlines() == lines
    assert cli("show", "--raw", "--last", "1").out.splitlines() == lines[-1:]
    part = cli("show", "--raw", "--at", "4", "--last", "1").out.splitlines()
    assert 0 < len(part) < len(lines)
    assert any('"seq":4,' in line for line in part)
    assert cli("show", "--raw", "--branch", "12").code == 2


def test_what_it_cost_is_told_for_a_part_as_well(cli: Cli, session: str):
    assert cli("show", "--last", "1").out.splitlines()[1] == cli("show").out.splitlines()[1]
    assert "$" in cli("show", "--last", "1").out


def test_a_part_of_a_fork_has_raw_what_it_inherited(cli: Cli, session: str, log: Path):
    with turnlog.open() as home, home.resume(session) as parent:
        fork = parent.fork()
        fork.user("Another idea")
    for words in (["--last", "3"], ["--at", "4", "--last", "1"]):
        conversation = cli("show", fork.id, *words, "--json").json["messages"]
        raw = [json.loads(line) for line in cli("show", fork.id, "--raw", *words).out.splitlines()]
        assert [row["id"] for row in raw if row["type"] == "message"] == [message["id"] for message in conversation]
    own = (log.parent / f"{fork.id}.jsonl").read_text().splitlines()
    assert cli("show", fork.id, "--raw").out.splitlines() == own
    assert cli("show", fork.id, "--raw", "--last", "2").out.splitlines()[-1] == own[-1]

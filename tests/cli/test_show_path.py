"""`turnlog show PATH`: a session of another agent where it lies, and totals."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import turnlog
from tests.cli.scene import Cli
from tests.cli.test_import import RHO, SEEDS, claude_file
from tests.formats.agents import count
from turnlog import Message, Text, ToolCall, Usage
from turnlog.formats import find
from turnlog.log.codec import body_text

FIELDS = {
    "input_tokens", "cache_read_tokens", "cache_write_tokens", "cache_write_1h_tokens", "output_tokens",
    "reasoning_tokens", "cost_micros",
}  # fmt: skip
SOFOS = SEEDS / "sofos" / "v0.2.8" / "workspace" / ".sofos" / "sessions" / "session_1778061000123.json"
SAMPLES = [
    source.path
    for folder, agent in [*((SEEDS / name, name) for name in ("sofos", "claw", "owlen", "a3s")), (RHO, "rho")]
    for source in find(str(folder), agents=[agent])
]


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: os.path.relpath(path, SEEDS))
def test_every_sample_is_shown_and_nothing_is_kept(process: Cli, folder: Path, path: str):
    before = sorted(Path(path).parent.iterdir())
    done = process("show", path, "--json")
    assert done.code == 0, done.err
    shown = done.json
    assert shown["source"]["path"] == path
    assert set(shown["totals"]) == {"messages", "tool_calls", "tool_results", "usage"}
    assert set(shown["totals"]["usage"]) == FIELDS
    assert sorted(Path(path).parent.iterdir()) == before
    assert not folder.exists()


def test_it_says_what_importing_would(process: Cli):
    there = process("show", str(SOFOS), "--json").json
    [row] = process("import", str(SOFOS), "--json").json["sessions"]
    here = process("show", row["id"], "--json").json
    assert there.pop("source") == {"agent": "sofos", "path": str(SOFOS), "key": ""}
    assert there.pop("problems") == []
    assert there["session"] == row["id"]
    assert [message["blocks"] for message in there["messages"]] == [message["blocks"] for message in here["messages"]]
    assert there["totals"] == here["totals"]
    assert here["totals"]["messages"] == 4
    assert here["totals"]["tool_calls"] == here["totals"]["tool_results"] == 2
    assert here["totals"]["usage"]["input_tokens"] == 18234


def test_everything_that_show_can_do(process: Cli):
    whole = process("show", str(SOFOS)).out
    assert "sofos" in whole
    assert len(process("show", str(SOFOS), "--last", "1").out) < len(whole)
    assert process("show", str(SOFOS), "--context", "--json").json["system"]
    assert process("show", str(SOFOS), "--full").code == 0


def test_problems_are_told(process: Cli, tmp_path: Path):
    path = claude_file(tmp_path / "a", 1, "/home/ada/a", junk=8)
    done = process("show", str(path))
    assert done.code == 0
    assert "answer 2" in done.out
    assert done.err.count("problem: ") == 5
    assert "3 more problems; --json has all\n" in done.err
    assert len(process("show", str(path), "--json").json["problems"]) == 8


def test_several_sessions_are_listed_and_one_can_be_chosen(process: Cli, tmp_path: Path, folder: Path):
    first = claude_file(tmp_path / "a", 1, "/home/ada/a", turns=1)
    claude_file(tmp_path / "a", 2, "/home/ada/a", turns=2)
    where = str(tmp_path / "a")
    done = process("show", where)
    assert (done.code, done.out) == (3, "")
    head, one, two, error, hint = done.err.splitlines()
    assert head.split()[:3] == ["KEY", "SESSION", "AGENT"]
    assert one.split()[:3] == ["1", first.stem, "claude-code"]
    assert two.split()[0] == "2"
    assert error == f"error: there are 2 sessions at {where}"
    assert "--key" in hint
    assert json.loads(process("show", where, "--json").err)["error"]["code"] == "ambiguous"
    for key, expected in (("1", 2), ("2", 4), (first.stem, 2)):
        assert process("show", where, "--key", key, "--json").json["totals"]["messages"] == expected
    for key in ("3", "0000", "nobody"):
        assert process("show", where, "--key", key).code == 3
    assert not folder.exists()
    process("import", str(first))
    assert process("show", "latest", "--key", "1").code == 2


def test_a_folder_with_one_session_and_its_subagents_is_that_session(process: Cli, tmp_path: Path):
    path = claude_file(tmp_path / "a", 1, "/home/ada/a", turns=2)
    inner = claude_file(path.with_suffix("") / "subagents", 9, "/home/ada/a", turns=5)
    text = inner.read_text().replace('"isSidechain": false', '"isSidechain": true, "agentId": "abc"')
    inner.with_name("agent-abc.jsonl").write_text(text.replace(inner.stem, path.stem))
    inner.unlink()
    shown = process("show", str(tmp_path / "a"), "--json").json
    assert shown["source"]["path"] == str(path)
    assert shown["totals"]["messages"] == 4
    assert shown["totals"]["usage"]["input_tokens"] == 20
    sub = process("show", str(inner.with_name("agent-abc.jsonl")), "--json").json
    assert sub["totals"]["messages"] == 10


def test_a_session_wins_over_a_file_without_a_slash(process: Cli, folder: Path):
    shutil.copy(SOFOS, "abc")
    assert process("show", "abc", "--json").json["agent"] == "sofos"
    with turnlog.open() as home:
        home.create(id="abcdef", agent="mine").user("hi")
    assert process("show", "abc", "--json").json["agent"] == "mine"
    assert process("show", "./abc", "--json").json["agent"] == "sofos"
    with turnlog.open() as home:
        home.create(id="abcxyz").user("hi")
    assert process("show", "abc").code == 3
    with turnlog.open() as home:
        home.create(id="odd/id", agent="mine").user("hi")
    assert process("show", "odd/id", "--json").json["agent"] == "mine", "a slash is no file where there is none"


def test_what_is_no_session_is_told(process: Cli, folder: Path):
    Path("notes.txt").write_text("nothing of the kind")
    done = process("show", "./notes.txt")
    assert done.code == 3
    assert done.err.startswith("error: no session of another agent at ")
    assert process("show", "./nowhere").err == (
        "error: no session './nowhere'\nhint: `turnlog ls` shows the sessions there are\n"
    )
    assert not folder.exists()


def test_a_large_file_goes_through_a_folder_that_is_gone_afterwards(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    look = (
        "import sys, turnlog.reader.opening.temporary as e, turnlog.session as s; e._SMALL_BYTES = 0\n"
        "was = e.open_home\n"
        "e.open_home = lambda place, **more: print('at', place, file=sys.stderr) or was(place, **more)\n"
        f"sys.argv[1:] = ['show', {str(SOFOS)!r}, '--json']\n"
        "import turnlog.cli as c; c.main()"
    )
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert f"at {scratch}/turnlog-" in done.stderr
    assert json.loads(done.stdout)["totals"]["messages"] == 4
    assert list(scratch.iterdir()) == []
    assert not folder.exists()


@pytest.mark.parametrize("recorded", sorted((SEEDS.parent / "agents").glob("*/recorded*")), ids=lambda path: path.name)
def test_totals_are_what_another_program_counted(cli: Cli, recorded: Path):
    """`tests.formats.agents.count` reads what the real agents wrote, and knows nothing of Turnlog."""
    agent = recorded.parent.name
    counted = count.sessions(agent, recorded)
    assert len(counted) > 4
    for name, expected in counted.items():
        path, key = (recorded / "opencode.db", ["--key", name]) if agent == "opencode" else (recorded / name, [])
        totals = cli("show", str(path), *key, "--json").json["totals"]
        usage = expected["own_usage"]
        assert {field: totals["usage"][field] for field in usage} == usage, name
        if expected["usage"] == usage:  # no fork: what that inherited counts where it came from
            assert totals["tool_calls"] == expected["tool_calls"], name
            assert totals["tool_results"] == expected["tool_results"], name


# ── totals of our own ─────────────────────────────────────────────────────────────────────────────


def test_totals_are_over_all_branches_and_of_this_session_only(process: Cli, folder: Path):
    spent = Usage(input_tokens=10, output_tokens=1)
    with turnlog.open(checkpoints=False) as home:
        session = home.create(id="parent")
        session.append(Message(role="system", blocks=[Text(text="be kind")]))
        one = session.user("one")
        session.assistant([ToolCall(id="c1", name="ls", input={})], usage=spent)
        session.tool_result("c1", "a")
        session.rewind(to=one)
        session.assistant("another branch", usage=spent)
        with session.spawn(id="sub", agent="helper") as child:
            child.user("look")
            child.assistant("seen", usage=Usage(input_tokens=1000))
        fork = session.fork(id="fork")
        fork.user("on its own")
        said = [body_text(message) for message in fork.messages()]
    shown = process("show", "fork", "--json")
    assert [json.dumps(message) for message in shown.json["messages"]] == [json.dumps(json.loads(m)) for m in said]
    assert len(said) == 4
    parent, forked, sub = (process("show", name, "--json").json["totals"] for name in ("parent", "fork", "sub"))
    assert (parent["messages"], parent["tool_calls"], parent["tool_results"]) == (3, 1, 1)
    assert parent["usage"]["input_tokens"] == 20
    assert parent["usage"]["output_tokens"] == 2
    assert parent["usage"]["cost_micros"] is None
    assert (forked["messages"], forked["tool_calls"], forked["usage"]["input_tokens"]) == (1, 0, 0)
    assert (sub["messages"], sub["usage"]["input_tokens"]) == (2, 1000)

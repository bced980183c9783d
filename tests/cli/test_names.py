"""Which session a word means, for every command that takes one."""

import json
import os
from pathlib import Path

import pytest

import turnlog
from tests.cli.scene import Cli, write_session
from tests.cli.test_import import claude_file
from tests.clock import tick

FIRST, SECOND = (f"00000000-0000-4000-8000-{number:012d}" for number in (1, 2000))


@pytest.fixture
def projects(folder: Path) -> Path:
    """Where Claude Code keeps its sessions about this folder."""
    place = Path(os.environ["HOME"]) / ".claude" / "projects" / "webshop"
    place.mkdir(parents=True)
    return place


def test_what_is_not_found_while_the_index_is_made_may_be_later(
    projects: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
):
    claude_file(projects, 1, "/home/ada/other")
    monkeypatch.setattr("turnlog.catalog.upkeep.AT_ONCE", -1)
    monkeypatch.setattr("turnlog.catalog.background.start", lambda *_, **__: True)  # it has begun, and is not done
    done = cli("show", "nobody")
    assert done.code == 3
    assert done.err == (
        "error: no session 'nobody' so far\nhint: `turnlog index` reads what is not indexed yet; then try again\n"
    )
    assert cli("show", FIRST).code == 0
    done = cli("ls")
    assert done.err.startswith("no sessions in ")
    assert done.err.splitlines()[0].endswith(" so far")
    assert "hint: 1 session so far in other folders: `turnlog ls --all`" in done.err


@pytest.fixture
def three(folder: Path) -> list[str]:
    """Three sessions of this folder, the oldest first, and one of another that is newer."""
    with turnlog.open(checkpoints=False, clock=tick) as home:
        found = [write_session(home, id=name) for name in ("alpha-1", "beta-2", "beta-3")]
        Path("../elsewhere").mkdir()
        write_session(home, id="far-away", workspace="../elsewhere")
    return found


def meant(cli: Cli, *words: str) -> str:
    done = cli("log", *words, "--json")
    assert done.code == 0, done.err
    return done.json["session"]


# ── ours ──────────────────────────────────────────────────────────────────────────────────────────


def test_by_id_beginning_and_handle(cli: Cli, three: list[str], folder: Path):
    with turnlog.open(clock=tick) as home:
        made = home.create(id="20261115-070012-k3f9q2m7").id
    for word in (made, "k3f9q2m7", "k3f", "20261115-07"):
        assert meant(cli, word) == made
    assert meant(cli, "al") == "alpha-1"
    assert cli("log", "beta").code == 3
    assert cli("log", "gamma").code == 3


def test_the_newest_here_and_those_before(cli: Cli, three: list[str]):
    assert meant(cli) == "beta-3"
    assert meant(cli, "@") == "beta-3"
    assert meant(cli, "@-") == meant(cli, "@-1") == "beta-2"
    assert meant(cli, "@-2") == "alpha-1"
    assert meant(cli, "latest") == "far-away"
    done = cli("log", "@-3")
    assert done.code == 3
    assert done.err.startswith("error: no session '@-3' for ")


def test_below_the_folder_it_is_the_same(cli: Cli, three: list[str], monkeypatch: pytest.MonkeyPatch):
    Path("src/deep").mkdir(parents=True)
    monkeypatch.chdir("src/deep")
    assert (meant(cli, "@"), meant(cli, "@-2")) == ("beta-3", "alpha-1")


def test_where_there_is_none_here_it_is_the_latest(cli: Cli, three: list[str], tmp_path: Path, monkeypatch):
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    assert meant(cli) == "far-away"
    assert cli("log", "@").code == 3


def test_an_id_comes_before_everything(cli: Cli, folder: Path):
    for name in ("@", "latest", "here.jsonl", "claude-code:x", "@-"):
        with turnlog.open(checkpoints=False, clock=tick) as home:
            home.create(id=name).user("hi")
        Path("here.jsonl").write_text("{}")
        assert meant(cli, name) == name


def test_a_deleted_one_is_read_and_not_changed(cli: Cli, three: list[str]):
    with turnlog.open(clock=tick) as home:
        home.delete("alpha-1")
    assert meant(cli, "alpha-1") == meant(cli, "al") == "alpha-1"
    assert cli("compact", "alpha-1").code == 3


@pytest.mark.parametrize("name", ["two words", "größe/测试", "-dash", "--json", "a\nb", "%41=", ".", "~"])
def test_odd_ids(cli: Cli, folder: Path, name: str):
    with turnlog.open(checkpoints=False, clock=tick) as home:
        home.create(id=name, workspace=".").user("hi")
    for command in ("show", "log", "path", "fork", "compact", "checkpoints", "doctor"):
        done = cli(command, "--json", "--", name)
        assert done.code == 0, done.err
    assert cli("diff", "-s", name).code == 3
    assert cli("checkpoint", "-s", name, "--json").json["session"] == name


# ── other agents' ─────────────────────────────────────────────────────────────────────────────────


def test_by_agent_and_id(process: Cli, projects: Path):
    first, second = (claude_file(projects, number, str(Path.cwd())) for number in (1, 2000))
    name = f"claude-code:{FIRST}"
    assert process("path", name).out == f"{first}\n"
    assert process("path", name[:-3]).out == f"{first}\n", "a beginning"
    assert process("path", f"claude-code:{SECOND}", "--json").json == {
        "version": 1, "session": f"claude-code:{SECOND}", "path": str(second),
    }  # fmt: skip
    shown = process("show", name, "--json").json
    assert shown["source"]["path"] == str(first)
    assert len(shown["messages"]) == 6
    assert len(process("log", name, "--json").json["entries"]) > 6
    assert process("export", name, "--to", "codex", "-o", "out.jsonl").code == 0
    assert process("resume", name).out == f"cd {Path.cwd()} && claude --resume {FIRST}\n"
    assert process("ls", "--all", "--json").json


def test_several_of_another_agent_are_listed(process: Cli, projects: Path):
    for number in (1, 2000):
        claude_file(projects, number, str(Path.cwd()))
    done = process("show", "claude-code:0000")
    assert done.code == 3
    assert f"claude-code:{FIRST}" in done.err
    assert f"claude-code:{SECOND}" in done.err
    assert "2026-11-15" in done.err
    problem = json.loads(process("show", "claude-code:0000", "--json").err)["error"]
    assert {row["id"] for row in problem["candidates"]} == {FIRST, SECOND}
    assert process("show", "claude-code:1").code == 3
    assert process("show", "nobody:1").code == 3


def test_a_file_is_one_too(process: Cli, projects: Path):
    path = claude_file(projects, 1, str(Path.cwd()))
    assert process("path", str(path)).out == f"{path}\n"
    assert process("resume", str(path)).out == f"cd {Path.cwd()} && claude --resume {FIRST}\n"
    assert process("log", str(path)).code == 0


def test_what_is_only_read_is_not_changed(process: Cli, projects: Path, folder: Path):
    path = claude_file(projects, 1, str(Path.cwd()))
    before = path.read_bytes()
    name = f"claude-code:{FIRST}"
    for words in (["compact", name], ["uncompact", name], ["checkpoint", "-s", name], ["rewind", "--yes", "-s", name],
                  ["undo", "--yes", "-s", name], ["run", "-s", name, "--", "true"]):  # fmt: skip
        done = process(*words)
        assert done.code == 2
        assert done.err == (
            f"error: {name} is a session of claude-code, which is only read\n"
            f"hint: `turnlog import {name}` imports it; the original is not changed\n"
        )
    assert not list(folder.glob("sessions/*"))
    assert process("import", name).code == 0
    assert process("compact", name, "--keep", "2", "--json").json["session"] == f"claude-code-{FIRST}"
    assert path.read_bytes() == before


def test_a_fork_imports_it_first_and_says_so(process: Cli, projects: Path):
    claude_file(projects, 1, str(Path.cwd()))
    done = process("fork", f"claude-code:{FIRST}", "--json")
    assert done.err == f"imported claude-code:{FIRST} as session claude-code-{FIRST}\n"
    assert done.json["parent"] == f"claude-code-{FIRST}"
    assert done.json["messages"] == 6
    again = process("fork", f"claude-code:{FIRST}", "--json")
    assert again.err == ""


def test_handing_it_over_imports_it_first_and_says_so(process: Cli, projects: Path):
    path = claude_file(projects, 1, str(Path.cwd()))
    before = path.read_bytes()
    done = process("resume", f"claude-code:{FIRST}", "--in", "codex")
    assert done.out.startswith(f"cd {Path.cwd()} && codex resume ")
    assert f"imported claude-code:{FIRST} as session claude-code-{FIRST}\n" in done.err
    assert meant(process, f"claude-code-{FIRST}") == f"claude-code-{FIRST}"
    assert path.read_bytes() == before


def test_what_is_said_above_it_can_be_typed(process: Cli, projects: Path):
    claude_file(projects, 1, str(Path.cwd()))
    name = f"claude-code:{FIRST}"
    assert process("show", FIRST).out.splitlines()[1].split()[0] == name
    assert process("tree", FIRST).out.split()[0] == name
    assert process("show", name).code == 0

"""`turnlog resume`: a session goes on, where it came from or in another agent."""

import json
import os
import shlex
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

import turnlog
from tests.cli.machine import RECORDED, claude_session, settle
from tests.cli.scene import Cli
from tests.cli.terminal import Terminal
from tests.cli.test_import import RHO, SEEDS, claude_file
from turnlog.formats import Resuming, format_of, names

TURNLOG = ("-m", "turnlog")
AGENT_FILES = SEEDS.parent / "agents"


def resuming_of(agent: str) -> Resuming:
    found = format_of(agent).resume
    assert found is not None
    return found


AGENTS = [name for name in names() if format_of(name).resume and format_of(name).write]
COMMANDS = {
    "a3s": "a3s code resume {id}",
    "claude-code": "claude --resume {id}",
    "claw": "claw --resume {id}",
    "codex": "codex resume {id}",
    "gemini-cli": "gemini --resume {id}",
    "opencode": "sh -c 'opencode import {path} && opencode -s {id}'",
    "pi": "pi --session {path}",
    "rho": "rho --resume {id}",
    "sofos": "sofos --resume",
}
PLACES = {
    "a3s": "webshop/.a3s/sessions",
    "claude-code": "person/.claude/projects",
    "claw": "webshop/.claw/sessions",
    "codex": "person/.codex/sessions",
    "gemini-cli": "person/.gemini/tmp",
    "opencode": "person/.local/share/opencode",
    "pi": "person/.pi/agent/sessions",
    "rho": "person/.rho/sessions",
    "sofos": "webshop/.sofos/sessions",
}


def files(*folders: Path) -> dict[Path, bytes]:
    """What is there, but for the index and the ledger of Turnlog itself."""
    own = {".cache", ".local"}
    found = (path for top in folders for path in sorted(top.rglob("*")) if not own & set(path.parts))
    return {path: path.read_bytes() for path in found if path.is_file()}


@pytest.fixture
def person(folder: Path) -> Path:
    home = Path(os.environ["HOME"])
    home.mkdir()
    return home


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in front of all others on the PATH."""
    place = tmp_path / "programs"
    place.mkdir()
    monkeypatch.setenv("PATH", f"{place}:{os.environ['PATH']}")
    return place


def program(folder: Path, name: str) -> None:
    """One that says where it runs, with what, and whether it has a terminal."""
    path = folder / name
    path.write_text(
        '#!/bin/sh\necho "ran $0 in $PWD"\nfor word in "$@"; do echo "<$word>"; done\nif [ -t 0 ]; then echo tty; fi\n'
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def go_on(session: str, text: str) -> None:
    with turnlog.open(checkpoints=False) as home, home.resume(session) as found:
        found.user(text)
        found.assistant(f"about {text}")


@pytest.mark.parametrize("agent", AGENTS)
def test_it_is_placed_where_the_agent_looks(process: Cli, session: str, tmp_path: Path, agent: str):
    told = process("resume", session, "--in", agent, "--json").json
    assert told["agent"] == agent
    assert told["cwd"] == str(Path.cwd())
    assert Path(told["path"]).is_relative_to(tmp_path / PLACES[agent])
    assert shlex.split(COMMANDS[agent].format(**told)) == told["command"]
    assert told["report"]["carried"]["tool_calls"] == 1
    said = {"gemini-cli": ["may delete a session that was resumed"], "opencode": ["it goes on with "]}
    cautions = said.get(agent, [])
    assert len(told["report"]["notes"]) == len(cautions)
    assert all(words in note for words, note in zip(cautions, told["report"]["notes"], strict=True))
    there = process("show", told["path"], "--json").json
    assert there["agent"] == agent
    assert there["session"].endswith(told["id"])
    assert there["problems"] == []


@pytest.mark.parametrize("agent", AGENTS)
def test_again_it_is_there_already(cli: Cli, session: str, tmp_path: Path, agent: str):
    first = cli("resume", session, "--in", agent, "--json").json
    before = files(tmp_path / "person", Path.cwd())
    assert cli("resume", session, "--in", agent, "--json").json == first
    assert files(tmp_path / "person", Path.cwd()) == before


@pytest.mark.parametrize("agent", AGENTS)
def test_after_it_went_on_here_it_is_placed_beside(cli: Cli, session: str, tmp_path: Path, agent: str):
    first = cli("resume", session, "--in", agent, "--json").json
    before = Path(first["path"]).read_bytes()
    go_on(session, "what came later")
    second = cli("resume", session, "--in", agent, "--json").json
    assert Path(first["path"]).read_bytes() == before
    assert second["id"] != first["id"]
    assert second["path"] != first["path"]
    assert "is another state of it, and stays as it is" in second["report"]["notes"][0]
    assert "what came later" in Path(second["path"]).read_text()
    assert cli("resume", session, "--in", agent, "--json").json == second


def test_the_homes_that_the_environment_names(
    process: Cli, session: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for agent, name in (
        ("claude-code", "CLAUDE_CONFIG_DIR"), ("codex", "CODEX_HOME"), ("gemini-cli", "GEMINI_CLI_HOME"),
        ("pi", "PI_CODING_AGENT_DIR"), ("opencode", "XDG_DATA_HOME"), ("rho", "RHO_HOME"),
    ):  # fmt: skip
        monkeypatch.setenv(name, str(tmp_path / "chosen" / agent))
        path = process("resume", session, "--in", agent, "--json").json["path"]
        assert Path(path).is_relative_to(tmp_path / "chosen" / agent)
    assert not (tmp_path / "person").exists()


def test_the_command_can_be_pasted(process: Cli, session: str, folder: Path):
    done = process("resume", session, "--in", "codex")
    told = process("resume", session, "--in", "codex", "--json").json
    assert done.out == f"cd {Path.cwd()} && codex resume {told['id']}\n"
    assert done.err.startswith("carried: 3 messages, 1 tool call, 1 result\n")
    odd = Path("it's  odd")
    odd.mkdir()
    with turnlog.open() as home:
        home.create(id="odd", workspace=odd).user("hi")
    line = process("resume", "odd", "--in", "claude-code").out
    assert shlex.split(line)[:3] == ["cd", str(odd.absolute()), "&&"]
    assert "opencode import " in process("resume", session, "--in", "opencode").out


# ── a session that came from the agent ────────────────────────────────────────────────────────────


@pytest.fixture
def own(person: Path, process: Cli) -> Path:
    """A session of Claude Code about this folder, imported as `claude-code-…01`."""
    path = claude_file(person / ".claude" / "projects" / "webshop", 1, str(Path.cwd()))
    assert process("import", str(path)).code == 0
    return path


def test_what_came_from_an_agent_goes_back_to_it(process: Cli, own: Path, person: Path):
    before = files(person)
    told = process("resume", "--json").json
    assert told == {
        "version": 1, "agent": "claude-code", "id": own.stem, "path": str(own), "cwd": str(Path.cwd()),
        "command": ["claude", "--resume", own.stem],
        "report": {"carried": None, "changed": [], "lost": [], "notes": []},
    }  # fmt: skip
    assert files(person) == before


def test_where_the_agent_went_on_it_says_so(process: Cli, own: Path, person: Path):
    claude_file(own.parent, 1, str(Path.cwd()), turns=4)
    before = files(person)
    done = process("resume", f"claude-code-{own.stem}")
    assert done.out.endswith(f"claude --resume {own.stem}\n")
    assert done.err == f"note: it went on there: 2 records not here yet; `turnlog import {own}` brings them\n"
    assert files(person) == before


def test_what_went_on_here_is_placed_beside_its_own_file(process: Cli, own: Path, person: Path):
    before = own.read_bytes()
    go_on(f"claude-code-{own.stem}", "what came later")
    told = process("resume", "--json").json
    assert told["id"] != own.stem
    assert own.read_bytes() == before
    text = Path(told["path"]).read_text()
    assert "what came later" in text
    assert "answer 2" in text


def test_a_fork_made_here_goes_to_the_same_agent_under_an_id_of_its_own(process: Cli, own: Path):
    with turnlog.open(checkpoints=False) as home, home.resume(f"claude-code-{own.stem}") as found:
        found.fork(id="a-fork").user("another way")
    told = process("resume", "a-fork", "--json").json
    assert told["agent"] == "claude-code"
    assert told["id"] != own.stem
    assert "another way" in Path(told["path"]).read_text()


def test_one_that_was_placed_and_went_on_there_is_used(process: Cli, session: str):
    told = process("resume", session, "--in", "claude-code", "--json").json
    path = Path(told["path"])
    *_, last = [record for line in path.read_text().splitlines() if "uuid" in (record := json.loads(line))]
    more = {**last, "type": "user", "uuid": "00000000-0000-4000-8000-00000000abcd", "parentUuid": last["uuid"]}
    more["message"] = {"role": "user", "content": "said there"}
    path.write_text(path.read_text() + json.dumps(more) + "\n")
    again = process("resume", session, "--in", "claude-code", "--json").json
    assert (again["id"], again["path"]) == (told["id"], told["path"])
    assert again["report"]["notes"] == [f"{path} has gone on since: nothing was written"]


def test_an_imported_one_that_does_not_lie_in_the_home_is_placed_there(process: Cli, tmp_path: Path):
    path = claude_file(tmp_path / "backup", 1, str(Path.cwd()))
    process("import", str(path))
    told = process("resume", "--json").json
    assert told["id"] == path.stem
    assert Path(told["path"]).is_relative_to(tmp_path / "person" / ".claude")


def test_what_is_in_the_database_of_opencode_is_not_imported_again(process: Cli, person: Path):
    data = person / ".local" / "share" / "opencode"
    data.mkdir(parents=True)
    shutil.copy(AGENT_FILES / "opencode" / "recorded" / "opencode.db", data)
    row = process("import", "--agent", "opencode", "--json").json["sessions"][0]
    before = files(person)
    told = process("resume", row["id"], "--json").json
    assert told["command"] == ["opencode", "-s", told["id"]]
    assert row["id"] == f"opencode-{told['id']}"
    assert files(person) == before


def test_a_subagent_becomes_a_session_like_others(process: Cli, own: Path):
    inner = claude_file(own.with_suffix("") / "subagents", 9, str(Path.cwd()))
    text = inner.read_text().replace('"isSidechain": false', '"isSidechain": true, "agentId": "abc"')
    path = inner.rename(inner.with_name("agent-abc.jsonl"))
    path.write_text(text.replace(inner.stem, own.stem))
    [row] = process("import", str(path), "--json").json["sessions"]
    told = process("resume", row["id"], "--json").json
    assert told["agent"] == "claude-code"
    assert told["id"] != own.stem
    assert Path(told["path"]).stem == told["id"]
    assert '"isSidechain":false' in Path(told["path"]).read_text()


# ── agents of one's own ───────────────────────────────────────────────────────────────────────────


def own_session(**fields: Any) -> None:
    with turnlog.open(checkpoints=False) as home:
        words = ["my-agent", "--resume", "{id}", "--log={id}.log"]
        session = home.create(id="mine", agent="my-agent", workspace=".", resume=words, **fields)
        session.user("hi")
        session.fork(id="mine-too").user("more")


def test_an_agent_of_ones_own_says_how_it_is_resumed(process: Cli, person: Path):
    own_session()
    for name in ("mine", "mine-too"):
        told = process("resume", name, "--json").json
        assert told["command"] == ["my-agent", "--resume", name, f"--log={name}.log"]
        assert (told["agent"], told["id"], told["path"], told["cwd"]) == ("my-agent", name, None, str(Path.cwd()))
        assert process("resume", name, "--in", "my-agent", "--json").json == told
    assert process("resume", "mine").out == f"cd {Path.cwd()} && my-agent --resume mine --log=mine.log\n"
    assert process("resume", "mine", "--in", "codex", "--json").json["command"][0] == "codex"


@pytest.mark.parametrize("words", ["my-agent {id}", ["my-agent", 3]])
def test_that_command_is_a_list_of_words(folder: Path, words: Any):
    with turnlog.open() as home, pytest.raises(turnlog.Invalid, match="list of words"):
        home.create(resume=words)


def test_a_session_of_nobody_known_needs_a_name(process: Cli, session: str):
    done = process("resume", session)
    assert done.code == 7
    assert done.err.startswith("error: nothing says which command goes on with session ")
    assert "--in AGENT" in done.err


@pytest.mark.parametrize(("agent", "code"), [("owlen", 7), ("cline", 7), ("nobody", 3)])
def test_an_agent_that_cannot_go_on(process: Cli, session: str, agent: str, code: int):
    done = process("resume", session, "--in", agent)
    assert (done.code, done.out) == (code, "")
    assert agent in done.err
    assert list(Path.cwd().iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        ("owlen",),
        ("cline",),
        ("nobody",),
        ("rho", "--format-version", "99"),
        ("codex", "--exec"),
        ("sofos", "-w", "gone"),
    ],
    ids=" ".join,
)
def test_what_cannot_work_imports_and_writes_nothing(
    cli: Cli, person: Path, programs: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
):
    path = claude_file(person / ".claude" / "projects" / "webshop", 1, str(Path.cwd()))
    monkeypatch.setenv("PATH", str(programs))
    before = files(person, Path.cwd())
    done = cli("resume", str(path), "--in", *words)
    assert (done.code in (3, 7, 127), done.out) == (True, "")
    assert cli("ls", "--json", "--all").json["sessions"][0]["is_ours"] is False
    assert files(person, Path.cwd()) == before


def test_a_session_in_which_nothing_was_said_is_handed_to_nobody(cli: Cli, person: Path):
    with turnlog.open(checkpoints=False) as home:
        home.create(id="empty", workspace=".").set("mood", "calm")
    before = files(person)
    done = cli("resume", "empty", "--in", "codex")
    assert (done.code, done.out) == (7, "")
    assert "nothing was said in session empty" in done.err
    assert files(person) == before


# ── running it ────────────────────────────────────────────────────────────────────────────────────


def test_exec_becomes_the_agent_in_the_right_folder(process: Cli, person: Path, programs: Path, tmp_path: Path):
    own_session()
    program(programs, "my-agent")
    here = Path.cwd()
    os.chdir(tmp_path)
    done = process("resume", "mine", "--exec")
    assert done.code == 0
    assert done.out == f"ran {programs}/my-agent in {here}\n<--resume>\n<mine>\n<--log=mine.log>\n"
    assert done.err == f"running: cd {here} && my-agent --resume mine --log=mine.log\n"


def test_exec_runs_a_program_that_lies_in_the_folder_of_the_session(process: Cli, person: Path, tmp_path: Path):
    program(Path.cwd(), "go")
    with turnlog.open() as home:
        name = home.create(workspace=".", agent="my-agent", resume=["./go", "on"]).id
        with home.resume(name) as session:
            session.user("hello")
    os.chdir(tmp_path)
    done = process("resume", name, "--exec")
    assert done.code == 0, done.err
    assert done.out.endswith("<on>\n")


def test_exec_has_the_terminal(process: Cli, session: str, person: Path, programs: Path):
    program(programs, "codex")
    with Terminal(*TURNLOG, "resume", session, "--in", "codex", "--exec") as terminal:
        assert terminal.end() == 0
    assert f"in {Path.cwd()}\n<resume>\n<" in terminal.text
    assert terminal.text.endswith("tty\n")


def test_exec_of_opencode_imports_first(process: Cli, session: str, person: Path, programs: Path):
    program(programs, "opencode")
    done = process("resume", session, "--in", "opencode", "--exec")
    words = [line for line in done.out.splitlines() if line.startswith("<")]
    assert [words[0], words[2]] == ["<import>", "<-s>"]
    assert Path(words[1].strip("<>")).is_file()


def test_a_program_that_is_not_installed(process: Cli, person: Path, programs: Path):
    own_session()
    done = process("resume", "mine", "--exec")
    assert done.code == 127
    assert done.err == "error: no command 'my-agent'\nhint: install it, and run this again\n"
    (programs / "my-agent").write_text("no program")
    assert process("resume", "mine", "--exec").code == 126


def test_a_folder_that_is_gone(process: Cli, person: Path, programs: Path, tmp_path: Path):
    program(programs, "codex")
    gone = tmp_path / "gone"
    with turnlog.open(checkpoints=False) as home:
        home.create(id="moved", workspace=gone).user("hi")
    done = process("resume", "moved", "--in", "codex")
    assert done.code == 0
    assert f"note: the folder {gone} is not there\n" in done.err
    assert process("resume", "moved", "--in", "codex", "--exec").code == 3
    done = process("resume", "moved", "--in", "sofos")
    assert done.code == 3
    assert "-w names another folder" in done.err
    assert not gone.exists()
    told = process("resume", "moved", "--in", "sofos", "-w", ".", "--json").json
    assert told["cwd"] == str(Path.cwd())
    assert Path(told["path"]).is_relative_to(Path.cwd())


@pytest.mark.parametrize("agent", AGENTS)
def test_sessions_of_the_other_five_go_anywhere(cli: Cli, person: Path, agent: str):
    found: list[Any] = []
    for place in (SEEDS / "sofos" / "v0.4.3", SEEDS / "claw" / "head_2026-08" / "workspace", RHO):
        found += cli("import", str(place), "--json").json["sessions"]
    assert len({row["agent"] for row in found}) == 3
    for row in found:
        done = cli("resume", row["id"], "--in", agent, "-w", ".", "--json")
        assert done.code == 0, done.err
        assert Path(done.json["path"]).is_file()


# ── what somebody else made ───────────────────────────────────────────────────────────────────────


@pytest.fixture
def foreign(process: Cli, person: Path, programs: Path, tmp_path: Path) -> str:
    """A session that somebody else made, and pushed here: its log has a command of their choice."""
    program(programs, "evil")
    theirs = tmp_path / "theirs"
    with turnlog.open(theirs, checkpoints=False) as home:
        words = ["evil", "--now", "{id}"]
        home.create(id="theirs", agent="my-agent", workspace=".", resume=words).user("hi")
    done = process("--home", str(theirs), "push", "--all", os.environ["TURNLOG_HOME"])
    assert done.code == 0, done.err
    return "theirs"


def test_what_somebody_else_made_is_never_run_unasked(process: Cli, foreign: str):
    line = f"cd {Path.cwd()} && evil --now theirs"
    assert process("resume", foreign).out == line + "\n"
    for more in ([], ["--json"]):
        done = process("resume", foreign, "--exec", *more)
        assert done.code == 2
        assert done.out == ""
        assert line in done.err
        assert "was not made here" in done.err


def test_it_is_shown_and_asked_for(process: Cli, foreign: str):
    line = f"cd {Path.cwd()} && evil --now theirs"
    for answer, code, is_run in (("n\r", 1, False), ("\r", 1, False), ("\x03", 130, False), ("y\r", 0, True)):
        with Terminal(*TURNLOG, "resume", foreign, "--exec", columns=400) as terminal:
            assert line in terminal.until("run it?")
            assert "ran " not in terminal.text
            terminal.type(answer)
            assert terminal.end() == code
        assert ("ran " in terminal.text) is is_run
        assert terminal.text.endswith("nothing was run\n") is not is_run


def test_a_fork_of_it_is_no_more_trusted(process: Cli, foreign: str):
    fork = process("fork", foreign, "--json").json["session"]
    assert process("resume", fork, "--exec").code == 2
    with turnlog.open(checkpoints=False) as home, home.resume(foreign) as found:
        found.fork(id="with-mine", resume=["evil", "--mine"]).user("more")
    assert process("resume", "with-mine", "--exec").out.endswith("<--mine>\n")


def test_the_list_does_not_travel(process: Cli, person: Path, programs: Path, tmp_path: Path):
    own_session()
    program(programs, "my-agent")
    home = Path(os.environ["TURNLOG_HOME"])
    copies = [tmp_path / name for name in ("copied", "pulled", "pushed")]
    shutil.copytree(home, copies[0])
    assert process("--home", str(copies[1]), "pull", "--all", str(home)).code == 0
    assert process("push", "--all", str(copies[2])).code == 0
    for copy in copies:
        assert process("--home", str(copy), "resume", "mine", "--exec").code == 2
    assert process("resume", "mine", "--exec").code == 0
    assert stat.S_IMODE((home / "made").stat().st_mode) == 0o600
    assert b"mine" not in (home / "made").read_bytes()


def test_where_the_list_is_gone_it_is_asked_for(process: Cli, person: Path, programs: Path, folder: Path):
    own_session()
    program(programs, "my-agent")
    (folder / "made").unlink()
    assert process("resume", "mine", "--exec").code == 2
    assert process("resume", "mine").code == 0


def test_a_command_that_was_put_in_the_place_of_ours_is_not_known(process: Cli, person: Path, programs: Path):
    own_session()
    program(programs, "evil")
    with turnlog.open(checkpoints=False) as home:
        home.purge("mine-too")
        home.purge("mine")
    with turnlog.open("memory:", checkpoints=False) as other, turnlog.open(checkpoints=False) as home:
        other.create(id="mine", agent="my-agent", workspace=".", resume=["evil", "{id}"]).user("hi")
        other.push(home)
    assert process("resume", "mine", "--exec").code == 2


@pytest.mark.parametrize(
    ("agent", "id"),
    [
        ("codex", "--dangerously-bypass-approvals-and-sandbox"), ("codex", "-c"), ("codex", "not-a-uuid"),
        ("claude-code", "--dangerously-skip-permissions"), ("gemini-cli", "--yolo"), ("opencode", "--continue"),
        ("opencode", "ses_x;rm"), ("claw", "-x"), ("a3s", "-x"), ("a3s", "s\x1b[2J"), ("rho", "--yolo"),
    ],
)  # fmt: skip
def test_an_id_that_the_agent_does_not_make_is_refused(agent: str, id: str):
    from turnlog.exchange.exporting.resumable import command_for

    with pytest.raises(turnlog.Invalid, match=f"is no id that {agent}"):
        command_for(resuming_of(agent), agent, id, "/there", "/here")


@pytest.mark.parametrize("agent", AGENTS)
def test_every_agent_that_is_told_an_id_says_what_ids_look_like(agent: str):
    takes_id = "{id}" in COMMANDS[agent]
    assert (resuming_of(agent).ids is not None) == takes_id


def test_an_id_in_the_file_of_an_agent_never_becomes_an_option(process: Cli, person: Path, programs: Path):
    program(programs, "codex")
    id = "--dangerously-bypass-approvals-and-sandbox"
    path = person / ".codex" / "sessions" / "2026" / "rollout-2026-01-01T00-00-00-x.jsonl"
    path.parent.mkdir(parents=True)
    meta = {"id": id, "timestamp": "2026-01-01T00:00:00Z", "cwd": str(Path.cwd()), "cli_version": "0.1"}
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
    lines = [{"type": "session_meta", "payload": meta}, {"type": "response_item", "payload": said}]
    path.write_text("".join(json.dumps({"timestamp": "2026-01-01T00:00:00Z", **line}) + "\n" for line in lines))
    for words in ([], ["--exec"]):
        done = process("resume", str(path), *words)
        assert (done.code, done.out) == (2, "")
        assert "is no id that codex gives to a session" in done.err


@pytest.mark.parametrize(
    ("id", "words"), [("--evil", ["my-agent", "{id}"]), ("a", ["my-agent", "a\0b"]), ("a\0b", ["my-agent", "{id}"]),
                      ("a", [""])],
)  # fmt: skip
def test_words_that_no_system_takes_are_a_typed_error(process: Cli, person: Path, id: str, words: list[str]):
    with turnlog.open(checkpoints=False) as home:
        home.create(id=id, workspace=".", resume=words).user("hi")
    for more in ([], ["--exec"]):
        done = process("resume", *more)
        assert done.code == 2, done.err
        assert done.err.startswith("error: ")


def test_what_is_printed_can_be_pasted_whatever_is_in_it(process: Cli, person: Path, programs: Path):
    program(programs, "my-agent")
    words = ["a b", "it's", "x\ny", "\x1b[31m\u202e", "\ufeff", "$(id)", "\\", "caf\u00e9"]
    with turnlog.open(checkpoints=False) as home:
        home.create(id="odd", workspace=".", resume=["my-agent", *words]).user("hi")
    done = process("resume", "odd")
    assert done.out.count("\n") == 1
    assert not any(bad in done.out for bad in "\x1b\u202e\ufeff")
    ran = subprocess.run(["bash", "-c", done.out], capture_output=True, encoding="utf-8", check=True)
    assert ran.stdout.split("\n", 1)[1] == "".join(f"<{word}>\n" for word in words)


def test_a_newer_vocabulary_is_placed_on_request(cli: Cli, session: str, tmp_path: Path):
    done = cli("resume", session, "--in", "claw", "--json").json
    assert Path(done["path"]).parent == Path.cwd() / ".claw" / "sessions"  # where every claw looks
    assert done["report"]["notes"] == []
    newer = cli("resume", session, "--in", "rho", "--format-version", "4", "--json").json
    assert newer["report"]["notes"][0].startswith("opens in rho of 2026-07-21 or newer")


@pytest.mark.parametrize(
    ("agent", "place", "id", "command"),
    [
        ("qwen-code", ".qwen/projects/-w/chats", "7d3f0c1e-1111-4222-8333-944455566677", "qwen --resume {id}"),
        ("copilot-cli", ".copilot", "5b1c9a4e-0000-4000-8000-00000000cafe", "copilot --resume={id}"),
        ("cline", ".cline", "1790000009000_fghij", "cline --id {id}"),
    ],
)
def test_an_agent_that_is_only_read_goes_on_with_its_own(
    process: Cli, person: Path, agent: str, place: str, id: str, command: str
):
    shutil.copytree(RECORDED / agent, person / place, dirs_exist_ok=True)
    done = process("resume", f"{agent}:{id}")
    assert done.code == 0, done.err
    assert done.out.endswith(f" && {command.format(id=id)}\n")


def test_the_newest_that_can_be_resumed_is_taken_and_the_other_named(process: Cli, person: Path):
    here = str(Path.cwd())
    claude_session(person, here, "aaaaaaaa-1111-4222-8333-444444444444", "the flaky test")
    with turnlog.open() as home, home.create(agent="mine", workspace=here) as session:
        session.user("newer, and nobody knows how to go on")
    done = process("resume")
    assert done.out.endswith("claude --resume aaaaaaaa-1111-4222-8333-444444444444\n"), done.err
    assert "is newer, but no command resumes it" in done.err


def test_on_a_terminal_it_says_which_session_the_newest_is(process: Cli):
    claude_session(Path(os.environ["HOME"]), str(Path.cwd()), "0d4a6d4c-3a51-4c0c-8d0e-7f2b1c3d4e5f", "say something")
    settle(process)
    with Terminal("-m", "turnlog", "resume") as terminal:
        assert terminal.end() == 0
    first, command, *_ = terminal.plain.splitlines()
    assert first.endswith(": say something")
    assert command.endswith("&& claude --resume 0d4a6d4c-3a51-4c0c-8d0e-7f2b1c3d4e5f")
    assert process("resume").err == "", "a program that reads it knows that from --json"

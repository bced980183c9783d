"""`turnlog import`, `turnlog formats`: sessions of other agents brought in."""

import json
import os
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import turnlog
from tests.cli.scene import Cli
from tests.cli.terminal import Terminal
from turnlog.formats import format_of, names

SEEDS = Path(__file__).resolve().parents[1] / "formats" / "seeds"
RHO = SEEDS / "rho" / "v1_1af5a5fb" / "home" / ".rho"
TURNLOG = ("-m", "turnlog")


def claude_file(folder: Path, number: int, workspace: str, *, turns: int = 3, junk: int = 0) -> Path:
    """A session as Claude Code keeps it."""
    session = f"00000000-0000-4000-8000-{number:012d}"
    lines: list[str] = []
    parent = None
    for turn in range(turns):
        for role in ("user", "assistant"):
            uuid = f"00000000-0000-4000-8000-{number:04d}{turn:04d}{len(role):04d}"
            message: dict[str, Any] = {"role": role, "content": f"{role} {turn}"}
            if role == "assistant":
                message |= {
                    "id": f"msg_{number}_{turn}",
                    "type": "message",
                    "model": "claude-sonnet-4-5",
                    "content": [{"type": "text", "text": f"answer {turn}"}],
                    "usage": {"input_tokens": 10, "output_tokens": 2},
                }
            record = {
                "parentUuid": parent, "isSidechain": False, "type": role, "message": message, "uuid": uuid,
                "timestamp": f"2026-11-15T10:{turn:02d}:00.000Z", "sessionId": session, "cwd": workspace,
                "version": "2.1.0", "userType": "external",
            }  # fmt: skip
            lines.append(json.dumps(record))
            parent = uuid
    lines += ["{not a record"] * junk
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{session}.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def projects(folder: Path) -> Path:
    """Where Claude Code keeps its sessions, for the person of this test."""
    return Path(os.environ["HOME"]) / ".claude" / "projects"


def conversations() -> dict[str, Any]:
    """Everything that is here, whole."""
    with turnlog.open() as home:
        return {row.id: list(home.resume(row.id).entries(kind="message")) for row in home.sessions()}


def test_a_folder_is_brought_in_and_told(process: Cli):
    done = process("import", str(RHO))
    assert done.code == 0
    head, *rows = done.out.splitlines()
    assert head.split() == ["SESSION", "ADDED", "PROBLEMS", "SOURCE"]
    assert len(rows) == 2
    assert all(row.startswith("rho-6f1d2c3b-") for row in rows)
    assert done.err.endswith("2 sessions with something new\n")
    assert "rho-6f1d2c3b-4a59" in process("ls", "--all", "--json").out


def test_its_json_says_what_came_from_where(process: Cli):
    done = process("import", str(RHO), "--json")
    assert done.err == ""
    rows = done.json["sessions"]
    assert len(rows) == 2
    for row in rows:
        assert set(row) == {"id", "agent", "source", "key", "added", "problems", "copy_of"}
        assert row["agent"] == "rho"
        assert Path(row["source"]).is_relative_to(RHO)
        assert row["added"] > 0


def test_importing_twice_adds_nothing(process: Cli):
    places = [str(SEEDS), str(RHO)]
    first = process("import", *places, "--json").json["sessions"]
    before = conversations()
    again = process("import", *places, "--json").json["sessions"]
    assert sorted(row["source"] for row in again) == sorted(row["source"] for row in first)
    assert [row for row in again if row["added"]] == []
    assert conversations() == before
    told = process("import", str(RHO))
    assert told.out == ""
    assert told.err == "0 sessions with something new, 2 sessions as before\n"


def test_a_session_that_went_on_gets_only_what_is_new(process: Cli, projects: Path):
    claude_file(projects / "a", 1, "/home/ada/a", turns=2)
    assert process("import", "--agent", "claude-code", "--json").json["sessions"][0]["added"] >= 4
    claude_file(projects / "a", 1, "/home/ada/a", turns=3)
    done = process("import", "--agent", "claude-code")
    assert done.err == "1 session with something new\n"
    assert done.out.splitlines()[1].split()[1] == "2"


def test_a_workspace_limits_what_an_agent_has(process: Cli, projects: Path, tmp_path: Path):
    here = tmp_path / "webshop"
    claude_file(projects / "a", 1, str(here))
    claude_file(projects / "b", 2, "/home/ada/elsewhere")
    rows = process("import", "--agent", "claude-code", "-w", ".", "--json").json["sessions"]
    assert [row["id"][-1] for row in rows] == ["1"]
    assert len(process("import", "--agent", "claude-code", "--json").json["sessions"]) == 2


def test_rho_has_its_sessions_apart_by_workspace_and_all_are_found(process: Cli):
    shutil.copytree(RHO, Path(os.environ["HOME"]) / ".rho")
    assert len(process("import", "--agent", "rho", "--json").json["sessions"]) == 2
    assert process("import", "--agent", "rho", "-w", ".", "--json").json["sessions"] == []


def test_all_agents_at_once(process: Cli, projects: Path):
    claude_file(projects / "a", 1, "/home/ada/a")
    shutil.copytree(RHO, Path(os.environ["HOME"]) / ".rho")
    shutil.copytree(SEEDS / "sofos" / "v0.2.8" / "workspace" / ".sofos", ".sofos")
    rows = process("import", "--all", "--json").json["sessions"]
    assert sorted({row["agent"] for row in rows}) == ["claude-code", "rho", "sofos"]


@pytest.mark.parametrize("words", [[], ["--all", "somewhere"], ["--all", "--agent", "rho"]])
def test_what_to_import_has_to_be_said(process: Cli, words: list[str]):
    done = process("import", *words)
    assert done.code == 2
    assert "--agent or --all" in done.err


def test_where_there_is_nothing_it_says_so(process: Cli):
    done = process("import", "--all")
    assert (done.code, done.out) == (0, "")
    assert done.err.startswith("no sessions found; ")
    Path("empty").mkdir()
    for words in (["nowhere"], ["empty"], ["--agent", "nobody"]):
        done = process("import", *words)
        assert done.code == 3
        assert done.err.startswith("error: no ") or "there is nothing at" in done.err


def test_problems_are_told_and_bounded(process: Cli, projects: Path):
    path = claude_file(projects / "a", 1, "/home/ada/a", junk=30)
    done = process("import", str(path))
    assert done.code == 0
    told = [line for line in done.err.splitlines() if line.startswith("problem: ")]
    assert len(told) == 5
    assert f"{path}, byte " in told[0]
    assert "25 more problems; --json has all\n" in done.err
    for number in range(2, 9):
        claude_file(projects / "a", number, "/home/ada/a", junk=6)
    many = process("import", "--agent", "claude-code").err.splitlines()
    assert len([line for line in many if line.startswith("problem: ")]) == 25
    rows = process("import", "--agent", "claude-code", "--json").json["sessions"]
    assert sum(len(row["problems"]) for row in rows) == 30 + 7 * 6


def test_one_that_cannot_be_kept_does_not_cost_the_others(process: Cli, projects: Path):
    import turnlog

    native = claude_file(projects / "a", 1, "/home/ada/a").stem
    claude_file(projects / "a", 2, "/home/ada/a")
    with turnlog.open() as home:  # both ids that it could have are taken by sessions of another kind
        home.create(id=f"claude-code-{native}").user("mine")
        home.create(id=f"claude-code-{native}-{sha256(native.encode()).hexdigest()[:8]}").user("mine")
    done = process("import", "--agent", "claude-code", "--json")
    assert done.code == 8
    assert [(row["id"][-1:], row["added"] > 0) for row in done.json["sessions"]] == [("", False), ("2", True)]
    problem = json.loads(done.err)["error"]
    assert "belong to other sessions" in problem["message"]
    assert native in problem["message"]


def test_a_disk_that_is_full_costs_only_what_comes_then(process: Cli, projects: Path):
    for number, turns in ((1, 3), (2, 200), (3, 3)):
        claude_file(projects / "a", number, "/home/ada/a", turns=turns)
    call = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))\n"
        "sys.argv[1:] = ['import', '--agent', 'claude-code', '--json']; import turnlog.cli as c; c.main()"
    )
    done = subprocess.run([sys.executable, "-c", call], capture_output=True, encoding="utf-8")
    assert done.returncode == 8
    assert [row["id"][-1] for row in json.loads(done.stdout)["sessions"]] == ["1"]
    assert json.loads(done.stderr)["error"]["message"].endswith("; 2 sessions not imported")
    assert process("import", "--agent", "claude-code").code == 0
    assert sorted(len(messages) for messages in conversations().values()) == [6, 6, 400]


def test_a_disk_that_is_full_from_the_beginning_is_all_that_is_said(projects: Path):
    claude_file(projects / "a", 1, "/home/ada/a", turns=200)
    call = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))\n"
        "sys.argv[1:] = ['import', '--agent', 'claude-code']; import turnlog.cli as c; c.main()"
    )
    done = subprocess.run([sys.executable, "-c", call], capture_output=True, encoding="utf-8")
    assert (done.returncode, done.stdout) == (8, "")
    assert done.stderr.splitlines()[0].endswith("; 1 session not imported")
    assert "no sessions found" not in done.stderr


def test_it_fits_the_terminal(process: Cli, projects: Path):
    deep = projects / ("a-folder-with-a-long-name" * 6)
    claude_file(deep, 1, "/home/ada/a")
    with Terminal(*TURNLOG, "import", str(deep), columns=90) as terminal:
        assert terminal.end() == 0
    lines = [line.rpartition("\x1b[K")[2] for line in terminal.plain.splitlines()]  # behind progress, on a slow machine
    rows = [line for line in lines if line.startswith(("SESSION", "claude-code-"))]
    assert len(rows) == 2
    assert max(map(len, rows)) <= 90
    assert "claude-code-00000000-0000-4000-8000-000000000001 " in rows[1]


@pytest.mark.parametrize(("columns", "is_wide"), [(80, False), (140, True)])
def test_one_place_of_each_agent_fits_the_terminal(columns: int, is_wide: bool):
    with Terminal(*TURNLOG, "formats", columns=columns) as terminal:
        assert terminal.end() == 0
    lines = terminal.plain.splitlines()
    assert max(map(len, lines)) <= columns
    assert ("WHICH" in lines[0]) is is_wide
    assert any("~/.codex/sessions (+1)" in line for line in lines)


# ── Ctrl-C ────────────────────────────────────────────────────────────────────────────────────────

INTERRUPTED = """
import os, signal, sys, turnlog.cli.frame.progress as progress
def count(what, number, total):
    for _ in range({presses} if number == {at} else 0):
        os.kill(os.getpid(), signal.SIGINT)
progress.show_count = count
sys.argv[1:] = ["import", "--agent", "claude-code", *{more}]
import turnlog.cli as cli
cli.main()
"""


def test_ctrl_c_leaves_whole_sessions(process: Cli, projects: Path):
    for number in range(5):
        claude_file(projects / "a", number, "/home/ada/a", turns=40)
    call = [sys.executable, "-c", INTERRUPTED.format(presses=1, at=1, more=[])]
    done = subprocess.run(call, capture_output=True, encoding="utf-8")
    assert done.returncode == 130
    assert "stopping: this session is finished first; Ctrl-C again stops at once\n" in done.stderr
    assert done.stderr.endswith("interrupted: 3 sessions left\n")
    assert len(done.stdout.splitlines()) == 1 + 2
    here = conversations()
    assert [len(messages) for messages in here.values()] == [80, 80]
    assert len(process("import", "--agent", "claude-code", "--json").json["sessions"]) == 5
    assert [len(messages) for messages in conversations().values()] == [80] * 5


def test_a_parent_that_nobody_asked_for_is_none_of_those_that_were(folder: Path, tmp_path: Path):
    paths = {name: tmp_path / f"2026-11-15T10-00-00-000Z_{name}.jsonl" for name in ("child", "other", "parent")}
    for name, path in paths.items():
        head = {"type": "session", "version": 3, "id": name, "timestamp": "2026-11-15T10:00:00.000Z", "cwd": "/work"}
        if name == "child":
            head["parentSession"] = str(paths["parent"])
        said = {"role": "user", "content": [{"type": "text", "text": f"I am {name}"}]}
        message = {"type": "message", "id": f"m-{name}", "parentId": None, "timestamp": head["timestamp"]}
        path.write_text(f"{json.dumps(head)}\n{json.dumps({**message, 'message': said})}\n")
    script = INTERRUPTED.format(presses=1, at=2, more=[]).replace(
        '"--agent", "claude-code"', f'"{paths["child"]}", "{paths["other"]}"'
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, encoding="utf-8")
    assert "pi-other" in done.stdout and "pi-parent" in done.stdout and "pi-child" not in done.stdout, done.stdout
    assert (done.returncode, done.stderr.endswith("interrupted: 1 session left\n")) == (130, True)


def test_its_json_is_whole_even_then(projects: Path):
    for number in range(3):
        claude_file(projects / "a", number, "/home/ada/a")
    call = [sys.executable, "-c", INTERRUPTED.format(presses=1, at=1, more=["--json"])]
    done = subprocess.run(call, capture_output=True, encoding="utf-8")
    assert done.returncode == 130
    assert len(json.loads(done.stdout)["sessions"]) == 2


def test_a_second_ctrl_c_stops_at_once_and_importing_again_goes_on(process: Cli, projects: Path):
    for number in range(3):
        claude_file(projects / "a", number, "/home/ada/a", turns=40)
    call = [sys.executable, "-c", INTERRUPTED.format(presses=2, at=1, more=[])]
    done = subprocess.run(call, capture_output=True, encoding="utf-8")
    assert done.returncode == 130
    assert "Traceback" not in done.stderr
    assert len(conversations()) == 1
    process("import", "--agent", "claude-code")
    assert [len(messages) for messages in conversations().values()] == [80] * 3


def test_many_files_say_how_far_it_is(projects: Path):
    for number in range(20):
        claude_file(projects / "a", number, "/home/ada/a")
    impatient = "import sys, turnlog.cli.frame.progress as p; p._AFTER_S = p._EVERY_S = -1.0; "
    call = impatient + "sys.argv[1:] = ['import', '--agent', 'claude-code']; import turnlog.cli as c; c.main()"
    with Terminal("-c", call) as terminal:
        assert terminal.end() == 0
    assert "importing … 19 of 20" in terminal.text
    assert terminal.plain.rpartition("\r\x1b[K")[2].startswith("SESSION")


# ── formats ───────────────────────────────────────────────────────────────────────────────────────


def test_formats_says_what_can_be_done_with_each(process: Cli):
    rows = {row["name"]: row for row in process("formats", "--json").json["formats"]}
    assert list(rows) == names()
    for name, row in rows.items():
        form = format_of(name)
        assert row["read"] is True
        assert row["write"] is (form.write is not None)
        assert row["resume"] is (form.resume is not None)
        assert row["title"] == form.title
        assert row["homes"]
    assert (rows["owlen"]["write"], rows["owlen"]["resume"]) == (True, False)
    assert (rows["cline"]["write"], rows["cline"]["resume"]) == (False, True)
    lines = {line.split()[0]: line for line in process("formats").out.splitlines()}
    assert "read, write, resume  ~/.claude/projects " in lines["claude-code"]
    assert "read, resume         ~/" in lines["copilot-cli"]
    assert "read, write          ./.owlen/checkpoints " in lines["owlen"]


def test_a_folder_above_several_workspaces_is_looked_through(process: Cli, tmp_path: Path):
    deep = tmp_path / "work" / "clients" / "one"
    shutil.copytree(SEEDS / "sofos" / "v0.2.8", deep / "sofos")
    shutil.copytree(SEEDS / "claw" / "seed_12c364da", deep / "claw")
    shutil.copytree(SEEDS / "claw" / "seed_12c364da", tmp_path / "work" / "node_modules" / "claw")
    rows = process("import", tmp_path / "work", "--json").json["sessions"]
    assert {row["agent"] for row in rows} == {"sofos", "claw"}
    assert not [row for row in rows if "node_modules" in row["source"] or ".rot-" in row["source"]]

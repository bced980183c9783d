"""`turnlog show` for reading: on a terminal, through a pager, around a place, on another branch, to the letter."""

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import turnlog
from tests.cli.scene import Cli
from tests.cli.terminal import COLOUR, Terminal
from tests.cli.test_import import SEEDS, claude_file
from turnlog import Text, ToolCall, Usage
from turnlog.cli.draw.screen import this_screen
from turnlog.cli.draw.tree import tree_lines
from turnlog.cli.fields.tree import TreeFork, TreeSession, json_tree
from turnlog.view.visible import width

TURNLOG = ("-m", "turnlog")
AGENTS = SEEDS.parent / "agents"
SAMPLES = [
    SEEDS / "sofos/v0.2.8/workspace/.sofos/sessions/session_1778061000123.json",
    *(next((AGENTS / name / "recorded").rglob("*.jsonl")) for name in ("claude-code", "codex", "gemini-cli", "pi")),
]


@pytest.fixture
def branched(folder: Path) -> str:
    """A session that was rewound once, with a fork and a subagent."""
    with turnlog.open(checkpoints=False) as home:
        session = home.create(id="tree", agent="mine", title="How to prune")
        session.user("Where do I cut?")
        second = session.assistant([Text("**Here.**"), ToolCall(id="c1", name="saw", input={"path": "tree.py"})])
        session.tool_result("c1", "\n".join(f"branch {n}" for n in range(30)))
        session.user("No, elsewhere")
        session.rewind(to=second)
        session.tool_result("c1", "cut")
        with session.spawn(id="sub", agent="gardener") as child:
            child.user("hold the ladder")
        session.assistant("Done.", model="claude-sonnet-4-5", usage=Usage(input_tokens=1000, output_tokens=100))
        with session.fork(id="fork", name="another way") as fork:
            fork.user("and the hedge?")
    return "tree"


# ── on a terminal ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("path", "columns"), [*((path, 60) for path in SAMPLES), (SAMPLES[0], 80), (SAMPLES[1], 120)])
def test_every_line_fits(folder: Path, path: Path, columns: int):
    with Terminal(*TURNLOG, "show", str(path), columns=columns, PAGER="cat") as terminal:
        assert terminal.end() == 0
    assert max(map(width, terminal.plain.split("\n"))) <= columns
    assert "\x1b" not in terminal.plain
    assert COLOUR.search(terminal.text)


def test_markdown_is_drawn_on_a_terminal_and_left_alone_in_a_pipe(branched: str, process: Cli):
    with Terminal(*TURNLOG, "show", branched, PAGER="cat") as terminal:
        assert terminal.end() == 0
    assert "\x1b[1mHere.\x1b[0m" in terminal.text
    assert "**Here.**" in process("show", branched).out
    with Terminal(*TURNLOG, "show", branched, PAGER="cat", NO_COLOR="1") as plain:
        plain.end()
    assert "\x1b" not in plain.text
    assert "**Here.**" in plain.text


def test_the_pager_gets_everything_and_only_on_a_terminal(branched: str, process: Cli, tmp_path: Path):
    pager = tmp_path / "pager"
    pager.write_text(f'#!/bin/sh\necho "paged by $1"; cat > "{tmp_path}/paged"; echo "LESS is $LESS"\n')
    pager.chmod(0o755)
    with Terminal(*TURNLOG, "show", branched, PAGER=f"{pager} me", LESS="") as terminal:
        assert terminal.end() == 0
    assert terminal.plain == "paged by me\nLESS is \n"
    assert "How to prune" in (tmp_path / "paged").read_text()
    for words, more in ((["--no-pager"], {}), ([], {"TERM": "dumb"}), ([], {"PAGER": ""})):
        with Terminal(*TURNLOG, "show", branched, *words, **{"PAGER": str(pager), **more}) as other:
            assert other.end() == 0
        assert "paged by" not in other.text
        assert "How to prune" in other.plain
    os.environ["PAGER"] = str(pager)
    try:
        assert "paged by" not in process("show", branched).out
    finally:
        del os.environ["PAGER"]


def test_a_pager_that_is_quit_is_no_error(folder: Path, tmp_path: Path):
    with turnlog.open(checkpoints=False) as home:
        session = home.create(id="long")
        for number in range(2000):
            session.assistant(f"answer {number} " * 40)
    with Terminal(*TURNLOG, "show", "long", PAGER="head -n 1") as terminal:
        assert terminal.end() == 0
    assert "Traceback" not in terminal.text
    assert "rror" not in terminal.text


@pytest.mark.parametrize("messages", [1, 3000])
def test_a_pager_that_reads_nothing_is_no_error_and_what_was_not_read_is_not_told_of(folder: Path, messages: int):
    with turnlog.open(durability="flush") as home:
        s = home.create(id="long", workspace=".")
        s.user("go")
        s.assistant([ToolCall(id="c1", name="bash", input={"command": "make"})])
        for _ in range(messages):
            s.tool_result("c1", "done\n" * 50)
            s.assistant([ToolCall(id="c1", name="bash", input={"command": "make"})])
        s.tool_result("c1", "done")
    with Terminal(*TURNLOG, "show", "long", PAGER="true") as terminal:
        assert terminal.end() == 0
    assert terminal.plain == ""


def test_a_pager_that_is_not_there_is_told(branched: str):
    with Terminal(*TURNLOG, "show", branched, PAGER="no-such-pager -x") as terminal:
        assert terminal.end() == 0
    assert "warning: PAGER is no-such-pager -x, and there is no such program" in terminal.plain
    assert "How to prune" in terminal.plain


def test_a_pipe_that_is_closed_is_quiet(folder: Path):
    with turnlog.open(checkpoints=False) as home:
        session = home.create(id="long")
        for number in range(500):
            session.assistant(f"answer {number} " * 100)
    command = f'"{sys.executable}" -m turnlog show long | head -n 1'
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 1


def test_what_a_log_says_drives_no_terminal(folder: Path, process: Cli):
    evil = "\x1b]0;pwned\x07\x1b[2J\u202eabc"
    with turnlog.open(checkpoints=False) as home:
        session = home.create(id="evil", title=evil, agent=evil)
        session.user(evil)
        session.assistant([Text(evil), ToolCall(id="c", name=evil, input={"command": evil})], model=evil)
        session.tool_result("c", evil)
        session.append(turnlog.Note(text=evil))
    for words in (
        ["show"],
        ["show", "--full"],
        ["show", "--raw"],
        ["show", "--context"],
        ["tree"],
        ["watch", "--for", "0"],
    ):
        with Terminal(*TURNLOG, *words, PAGER="cat") as terminal:
            assert terminal.end() == 0, words
        for sign in ("\x1b]", "\x1b[2J", "\x07", "\u202e"):
            assert sign not in terminal.text, words
    with Terminal(*TURNLOG, "show", PAGER="cat") as terminal:
        terminal.end()
    assert "\\x1b]0;pwned\\x07\\x1b[2J\\u202eabc" in terminal.plain


# ── parts of it ───────────────────────────────────────────────────────────────────────────────────


def test_around_an_entry(branched: str, process: Cli):
    entries = process("log", branched, "--json").json["entries"]
    second = next(entry for entry in entries if entry.get("role") == "assistant")
    for name in (str(second["seq"]), second["id"]):
        done = process("show", branched, "--at", name, "-n", "1")
        assert done.code == 0, done.err
        assert "▶ assistant" in done.out
        assert "Where do I cut?" in done.out
        assert "Done." not in done.out
        assert "left out" in done.out
    done = process("show", branched, "--at", "nobody")
    assert done.code == 3
    assert "no entry 'nobody' in session tree" in done.err


def test_an_entry_on_a_side_branch_is_shown_on_that_branch(branched: str, process: Cli):
    entries = process("log", branched, "--json").json["entries"]
    seq = next(entry["seq"] for entry in entries if "elsewhere" in str(entry.get("blocks")))
    assert "No, elsewhere" not in process("show", branched).out
    done = process("show", branched, "--at", str(seq))
    assert "▶ user" in done.out
    assert "No, elsewhere" in done.out
    assert "Done." not in done.out
    branch = process("show", branched, "--branch", str(seq))
    assert "No, elsewhere" in branch.out
    assert "Done." not in branch.out
    data = process("show", branched, "--branch", str(seq), "--json").json
    assert data["head"] == seq
    assert [message["role"] for message in data["messages"]] == ["user", "assistant", "tool", "user"]


def test_a_branch_that_is_none_names_those_there_are(branched: str, process: Cli):
    done = process("show", branched, "--branch", "99")
    assert done.code == 3
    assert done.err.startswith("error: no branch '99' in session tree\nhint: there are ")
    assert process("show", branched, "--branch", "3", "--context").code == 2


def test_a_result_alone_still_says_which_call_it_answers(branched: str, process: Cli):
    out = process("show", branched, "-n", "2").out
    assert "← saw  tree.py\n    ✓ cut" in out
    assert "Where do I cut?" not in out


def test_what_happened_in_between_is_shown(branched: str, process: Cli):
    out = process("show", branched).out
    assert "── rewind: to entry " in out
    assert "── subagent: gardener sub" in out
    assert "1 other branch: `turnlog tree tree`" in out
    assert "$0.0045" in out


def test_raw_is_the_file_to_the_letter(branched: str, folder: Path, tmp_path: Path):
    words = [sys.executable, "-m", "turnlog", "show", "--raw"]
    shown = subprocess.run([*words, branched], capture_output=True, check=True).stdout
    assert shown == (folder / "sessions" / f"{branched}.jsonl").read_bytes()
    path = claude_file(tmp_path / "a", 1, "/home/ada/a", junk=1)
    assert subprocess.run([*words, str(path)], capture_output=True, check=True).stdout == path.read_bytes()
    database = AGENTS / "opencode" / "recorded" / "opencode.db"
    several = subprocess.run([*words, str(database), "--key", "1"], capture_output=True, check=True).stdout
    assert all(json.loads(line)["type"] for line in several.splitlines())


# ── the tree ──────────────────────────────────────────────────────────────────────────────────────


def test_the_tree(branched: str, process: Cli):
    lines = process("tree", branched).out.splitlines()
    assert lines[0] == "tree · mine  How to prune"
    assert [line[:3] for line in lines[1:4]] == ["├─ ", "│  ", "│  "]
    text = "\n".join(lines)
    assert "Where do I cut?  2 messages" in text
    assert "No, elsewhere" in text
    assert "← now" in lines[3]
    assert "● " in lines[3]
    assert "fork at " in text
    assert "“another way”  fork · mine  How to prune" in text
    assert "subagent  sub · gardener  hold the ladder" in text
    assert process("tree", "fork").out.splitlines()[0] == lines[0], "a fork is shown with what it was forked from"


def test_the_tree_for_programs(branched: str, process: Cli):
    data = process("tree", branched, "--json").json["tree"]
    assert data["id"] == "tree"
    first, left, now = data["branches"]
    assert (first["after"], left["after"], now["after"]) == (0, first["last"], first["last"])
    assert [item["is_current"] for item in data["branches"]] == [False, False, True]
    assert [item["is_path"] for item in data["branches"]] == [True, False, True]
    assert now["last"] == data["head"]
    [fork] = data["forks"]
    assert (fork["id"], fork["name"], fork["at"]) == ("fork", "another way", now["last"])
    assert [other["id"] for other in data["subagents"]] == ["sub"]


def test_a_conversation_that_split_often(folder: Path, process: Cli):
    with turnlog.open(checkpoints=False, durability="flush") as home:
        session = home.create(id="often")
        for number in range(1200):
            session.user(f"try {number}")
            if number % 2:
                session.rewind(turns=1)
    done = process("tree", "often")
    assert done.code == 0, done.err
    assert len(done.out.splitlines()) == 1201
    assert len(process("tree", "often", "--json").json["tree"]["branches"]) == 1200


@pytest.mark.parametrize("columns", [60, 100])
def test_the_tree_fits(branched: str, columns: int):
    with turnlog.open(checkpoints=False) as home:
        home.resume(branched).user("a very long question " * 20)
    with Terminal(*TURNLOG, "tree", columns=columns) as terminal:
        assert terminal.end() == 0
    assert max(map(width, terminal.plain.splitlines())) <= columns


def test_the_tree_of_another_agents_session(process: Cli, tmp_path: Path):
    path = claude_file(tmp_path / "a", 1, "/home/ada/a", turns=2)
    assert "user 0  4 messages ← now" in process("tree", str(path)).out


@pytest.mark.parametrize("form", ["json", "jsonl", "markdown", "html", "codex", "rho"])
def test_what_is_exported_to_a_terminal_does_not_drive_it(folder: Path, process: Cli, form: str):
    with turnlog.open(checkpoints=False) as home:
        home.create(workspace=".", id="evil").user("one\x9b31m two\u202e three\x1b[31m")
    with Terminal(*TURNLOG, "export", "evil", "--to", form, "-o", "-", columns=2000) as terminal:
        assert terminal.end() == 0
    assert not {"\x9b", "\u202e", "\x1b"} & set(terminal.plain), terminal.plain
    assert "two" in terminal.plain
    said = process("export", "evil", "--to", "json", "-o", "-").json["entries"][1]["blocks"][0]["text"]
    assert said == "one\x9b31m two\u202e three\x1b[31m", "to the byte where it is for a program"


@pytest.mark.parametrize("pager", ["LESS=FRX X_1=2 cat -n", "~/bin/page", "$HOME/bin/page me"])
def test_a_pager_is_what_the_shell_makes_of_it(branched: str, tmp_path: Path, pager: str):
    program = tmp_path / "person" / "bin" / "page"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\nexec cat -n\n")
    program.chmod(0o755)
    with Terminal(*TURNLOG, "show", branched, PAGER=pager) as terminal:
        assert terminal.end() == 0
    assert "no such program" not in terminal.plain
    assert "     1\t" in terminal.plain


def test_a_fork_of_a_fork_of_many(folder: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(import_module("turnlog.cli.commands.tree"), "_MOST", 30)
    with turnlog.open(checkpoints=False, durability="flush") as home:
        above = home.create(id="s0", workspace=".")
        above.user("begin")
        for number in range(1, 40):
            above = above.fork(id=f"s{number}")
            above.user("go on")
    done = cli("tree", "s0")
    assert (done.code, done.err) == (0, "only the first 30 sessions of this tree are shown\n")
    assert "s29" in done.out
    done = cli("tree", "s0", "--json")
    assert done.code == 0, done.err
    assert done.out.count('"handle"') == 31


def test_as_many_forks_of_forks_as_are_shown_can_be_drawn_and_written():
    """To make them takes half a minute."""
    most: int = import_module("turnlog.cli.commands.tree")._MOST
    top = session = TreeSession("s0", "s0", None, None, False)
    for number in range(1, most + 1):
        below = TreeSession(f"s{number}", f"s{number}", None, None, False)
        session.forks.append(TreeFork(1, None, below))
        session = below
    assert any(f"s{most}" in line for line in tree_lines(top, this_screen()))
    assert json.dumps(json_tree(top)).count('"handle"') == most + 1

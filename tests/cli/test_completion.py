"""`turnlog completion`, in real shells, on a real terminal."""

import os
import re
import shutil
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest

import turnlog
from tests.cli.scene import Cli
from tests.cli.terminal import Terminal
from tests.cli.test_import import claude_file
from turnlog.cli.frame.command import Argument, Option
from turnlog.cli.frame.commandlist import command_names, get_command, takes_session

SHELLS = ("bash", "zsh", "fish")
START = {
    "bash": ["--norc", "--noprofile", "-i"],
    "zsh": ["-f", "-i"],
    "fish": ["--no-config", "-i"],
}
ODD = re.compile(r"\x1b(?:\[[0-9;?>=]*[A-Za-z]|\][^\x07]*\x07|[()][A-Z0-9]|[=>])|[\x07\x08\x0f]|\r")
CLAUDE = "00000000-0000-4000-8000-000000000001"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder first in PATH in which there is `turnlog`."""
    place = tmp_path / "bin"
    place.mkdir()
    (place / "turnlog").write_text(f'#!/bin/sh\nexec {sys.executable} -m turnlog "$@"\n')
    (place / "turnlog").chmod(0o755)
    monkeypatch.setenv("PATH", f"{place}:{os.environ['PATH']}")
    return place


@pytest.fixture
def sessions(folder: Path, cli: Cli) -> None:
    """Three of ours and one of another agent, and a catalog that knows them."""
    with turnlog.open(checkpoints=False, clock=count(1_700_000_000_000).__next__) as home:  # each newer than the last
        home.create(id="monday-1", title="Fix the flaky test", workspace=".").user("hi")
        home.create(id="monday-2", title="Rename the $(touch owned) flag", workspace=".").user("hi")
        home.create(id="two words", title="Odd", workspace=".").user("hi")
    claude_file(Path(os.environ["HOME"]) / ".claude" / "projects" / "webshop", 1, str(Path.cwd()))
    assert cli("ls", "--all").code == 0


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest, programs: Path) -> str:
    if shutil.which(request.param) is None:
        pytest.skip(f"there is no {request.param} here")
    return request.param


def typed(shell: str, *keys: tuple[str, str]) -> str:
    """What is on the screen when these keys were pressed, each once the text before it was there."""
    surroundings = {"PS1": "ready> ", "HISTFILE": "", "fish_greeting": ""}
    with Terminal(*START[shell], program=str(shutil.which(shell)), columns=100, **surroundings) as terminal:
        if shell == "fish":
            terminal.type("function fish_prompt; echo 'ready> '; end\n")
        terminal.until("ready> ")
        load = "turnlog completion fish | source" if shell == "fish" else f'eval "$(turnlog completion {shell})"'
        for key, wanted in ((f"{load}; echo lo''aded\n", "loaded"), *keys):
            before = len(terminal.text)
            terminal.type(key)
            while wanted not in ODD.sub("", terminal.text[before:]):
                assert terminal._read(), terminal.text
        return ODD.sub("", terminal.text)


def asked(shell: str, *words: str, **more: str) -> list[str]:
    """The answer to a shell: lines."""
    surroundings = {**os.environ, "_TURNLOG_COMPLETE": shell, **more}
    done = subprocess.run([sys.executable, "-m", "turnlog", *words], capture_output=True, env=surroundings, check=True)
    assert done.stderr == b""
    return done.stdout.decode().splitlines()


# ── in the shells ─────────────────────────────────────────────────────────────────────────────────


def test_a_session_of_ours(shell: str, sessions: None, folder: Path):
    tabs = "\t\t" if shell == "bash" else "\t"  # the others list what fits at once
    text = typed(shell, (f"turnlog path monday-{tabs}", "Rename the"), ("1\n", ".jsonl"))
    assert str(folder / "sessions" / "monday-1.jsonl") in text
    assert "Fix the flaky test" in text, "the title says which is which"
    assert not Path("owned").exists()


def test_a_session_of_another_agent(shell: str, sessions: None):
    text = typed(shell, ("turnlog path claude-code:00\t", CLAUDE[-12:]), ("\n", ".jsonl"))
    assert f"{CLAUDE}.jsonl" in text


def test_an_id_that_needs_quotes(shell: str, sessions: None, folder: Path):
    text = typed(shell, ("turnlog path two\t", "words"), ("\n", ".jsonl"))
    assert str(folder / "sessions" / "two=20words.jsonl") in text


def test_the_value_of_an_option(shell: str, sessions: None):
    typed(shell, ("turnlog resume monday-1 --in cod\t", "codex"), ("\n", "codex resume "))


def test_a_command_and_an_option(shell: str, sessions: None):
    text = typed(shell, ("turnlog uncomp\t", "uncompact"), (" monday-1 --dry\t", "--dry-run"), ("\n", "hint"))
    assert "no compaction applies to session monday-1" in text


def test_a_file(shell: str, sessions: None):
    Path("notes.txt").write_text("")
    typed(shell, ("turnlog show ./not\t", "notes.txt"), ("\n", "no session of another agent at"))


# ── what they are told ────────────────────────────────────────────────────────────────────────────


def test_what_is_offered_for_a_session(sessions: None):
    lines = asked("zsh", "show", "")
    assert lines[0] == "words"
    words = dict(line.split("\t") for line in lines[1:])
    assert list(words)[:3] == ["@", "@-", "latest"]
    assert words["monday-1"] == "Fix the flaky test"
    assert f"claude-code:{CLAUDE}" in words
    assert [line.split("\t")[0] for line in asked("fish", "show", CLAUDE[:6])[1:]] == [CLAUDE], "as `ls` prints it"
    assert asked("fish", "rm", "monday-1", "mond")[1:] == [
        "monday-2\tRename the $(touch owned) flag", "monday-1\tFix the flaky test",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (["show", "./x"], "files"),
        (["show", "~/x"], "files"),
        (["import", ""], "files"),
        (["import", "-w", ""], "folders"),
        (["--home", ""], "folders"),
        (["export", "-o", ""], "files"),
        (["run", "--", "x"], "files"),
        (["blame", "n"], "files"),
        (["why", "n"], "files"),
        (["mv", "a", "b"], "folders"),
        (["no-such-command", ""], "words"),
        (["show", "--no-such-option", ""], "words"),
        (["show", "--last", ""], "words"),
    ],
)
def test_of_what_kind_a_word_is(folder: Path, words: list[str], kind: str):
    assert asked("fish", *words)[0] == kind


def test_options_and_choices(sessions: None):
    assert "--keep\tHow many of the last messages stay; more if a tool call would lose its result." in asked(
        "zsh", "compact", "--"
    )
    assert [line.split("\t")[0] for line in asked("zsh", "completion", "")[1:]] == ["bash", "zsh", "fish"]
    assert "codex\t" in asked("zsh", "import", "--agent", "c")
    assert "--in=codex\t" in asked("zsh", "resume", "--in=cod")
    assert asked("zsh", "ls", "-aw", "") == ["folders"], "two flags in one word, of which the last has a value"
    assert asked("zsh", "log", "-n5", "")[0] == "words", "it has its value already"
    assert {"markdown\t", "html\t", "sofos\t"} <= set(asked("zsh", "export", "--to", ""))
    assert [line.split("\t")[0] for line in asked("zsh", "diff", "-s", "mond")[1:]] == ["monday-2", "monday-1"]


def test_the_word_that_turns_an_option_off_is_one(sessions: None):
    assert [line.split("\t")[0] for line in asked("zsh", "export", "--no-re")] == ["words", "--no-redact"]
    off = {option.off for name in command_names() for option in get_command(name).options if option.off}
    assert off == {word for name in command_names() for word in _words_of(asked("zsh", name, "--no-")) if word in off}


def _words_of(answer: list[str]) -> list[str]:
    return [line.split("\t")[0] for line in answer[1:]]


def test_which_commands_take_a_session_first(folder: Path):
    for name in command_names():
        arguments = get_command(name).arguments
        assert takes_session(name) == (bool(arguments) and arguments[0].kinds[:1] == ("session",)), name


FREE_ARGUMENTS = {
    "checkpoint": ["label"],
    "diff": ["before", "after"],
    "erase": ["entries"],
    "ls": ["words"],
    "note": ["text"],
    "pick": ["query"],
    "prices": ["models"],
    "rewind": ["target"],
    "search": ["words"],
    "tag": ["tags"],
    "title": ["text"],
    "tui": ["query"],
    "usage": ["words"],
}
FREE_VALUES = {
    "A,B", "CURSOR", "ENTRY", "ID", "K", "KEY", "KINDS", "LIST", "N", "NAME", "PLACE", "REV", "SECONDS", "SIZE",
    "TEXT", "TIME", "URL", "WHAT",
}  # fmt: skip
KINDS = {"session", "deleted", "agent", "command", "file", "folder", "action", "form"}


def is_free(one: Argument | Option) -> bool:
    kinds = set(one.kinds if isinstance(one, Argument) else filter(None, [one.kind]))
    assert kinds <= KINDS
    return not kinds and not one.choices


@pytest.mark.parametrize("name", command_names())
def test_what_is_completed_for_each_word_is_declared(name: str):
    command = get_command(name)
    assert [one.name for one in command.arguments if is_free(one)] == FREE_ARGUMENTS.get(name, [])
    assert {one.value for one in command.options if one.value and is_free(one)} <= FREE_VALUES


def test_what_is_in_the_trash_is_offered_for_restore(sessions: None, cli: Cli):
    assert cli("rm", "monday-1").code == 0
    assert asked("zsh", "restore", "mon") == ["words", "monday-1\tin the trash"]


def test_bash_gets_only_what_is_behind_the_colon(sessions: None):
    assert asked("bash", "turnlog show claude-code:00", " :=") == ["words", CLAUDE]
    assert asked("bash", "turnlog show claude-code:00", " ") == ["words", f"claude-code:{CLAUDE}"]
    assert asked("bash", "turnlog resume --in=cod", " :=") == ["words", "codex"]
    assert asked("bash", "turnlog show 'mond") == ["words", "monday-2", "monday-1"]
    listed = asked("bash", "turnlog show mond", " :=", "63", "40")
    assert listed[2] == "monday-1  (Fix the flaky test)"
    assert max(map(len, listed)) <= 38


def test_whatever_is_wrong_it_is_quiet(folder: Path, tmp_path: Path):
    folder.mkdir()
    (folder / "catalog.sqlite").write_bytes(b"no database at all" * 100)
    assert asked("zsh", "show", "")[0] == "words"
    (folder / "home.json").write_text("{")
    assert asked("zsh", "show", "x") == ["words"]
    assert asked("bash", "turnlog --home=ftp://x show m")[0] == "words"
    assert asked("bash", 'turnlog show "')[0] == "words"
    assert asked("zsh")[0] == "words"
    assert asked("tcsh", "show", "")[0] == "words"
    assert sorted(path.name for path in folder.iterdir()) == ["catalog.sqlite", "home.json"]


def test_nothing_is_indexed_and_nothing_is_made(folder: Path):
    claude_file(Path(os.environ["HOME"]) / ".claude" / "projects" / "webshop", 1, str(Path.cwd()))
    assert not any("claude" in line for line in asked("zsh", "show", "")[1:])
    assert not folder.exists()


# ── the command ───────────────────────────────────────────────────────────────────────────────────


def test_the_script_says_how_to_keep_it(cli: Cli):
    for shell in SHELLS:
        told = cli("completion", shell, "--json").json
        assert f"# To keep it: {told['install']}" in cli("completion", shell).out == told["script"] + "\n"


def test_without_a_word_it_is_the_shell_one_has(cli: Cli, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SHELL", "/usr/bin/fish")
    assert cli("completion").out == cli("completion", "fish").out
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    assert cli("completion").code == 2
    assert cli("completion", "tcsh").code == 2

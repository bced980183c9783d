"""What a command makes of its words, and that the quick ones load only what they need."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.machine import claude_session, long_ago, settle
from tests.cli.scene import Cli
from turnlog.cli.frame.arguments import parsed
from turnlog.cli.frame.command import SESSION_ARGUMENT, Argument, Option, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.exitcode import UsageError
from turnlog.machine.space import size_of

CHANGES = shape.NOTHING
FIELDS: shape.Fields = {}


@declare(
    Argument("words", "[WORDS]...", takes_dashed_words=True),
    Option("--all -a", "All.", name="everywhere"),
    Option("--limit -n N", "Some.", least=1),
    Option("--by", "What.", choices=("day", "week")),
)
def sample(**_: Any) -> None:
    """Take words."""


@declare(
    SESSION_ARGUMENT,
    Option("--all -a", "All."),
    Option("--yes -y", "Yes."),
    Option("--kind -k K", "Kind."),
    Option("--only PATH", "Only.", repeatable=True),
    Option("--redact/--no-redact", "Redact."),
    Option("--for SECONDS", "How long.", number=float, least=0, default=1.5),
    Option("--size SIZE", "How large.", read=size_of),
)
def one(**_: Any) -> None:
    """Take one word."""


@declare(
    Argument("words", "[--] CMD [ARG]...", takes_rest=True),
    Option("--new", "New."),
    Option("--to FORM", "", required=True),
)
def rest(**_: Any) -> None:
    """Take a command."""


NOTHING: dict[str, Any] = {
    "everywhere": False, "limit": None, "by": None, "as_json": False, "fields": None, "home": None, "debug": False,
    "help": False, "words": (),
}  # fmt: skip


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("", {}),
        ("--all", {"everywhere": True}),
        ("-a word", {"everywhere": True, "words": ("word",)}),
        ("word -a more", {"everywhere": True, "words": ("word", "more")}),
        ("-n 5", {"limit": 5}),
        ("-n5", {"limit": 5}),
        ("--limit=5", {"limit": 5}),
        ("--by week --json", {"by": "week", "as_json": True}),
        ("--home /x --debug", {"home": "/x", "debug": True}),
        ("-draft word", {"words": ("-draft", "word")}),
        ("-- --all -n", {"words": ("--all", "-n")}),
        ("since:7d cost:>1", {"words": ("since:7d", "cost:>1")}),
    ],
)
def test_words_and_options(typed: str, found: dict[str, Any]):
    assert parsed(sample, typed.split()) == {**NOTHING, **found}


@pytest.mark.parametrize(
    "typed", ["--al", "-n", "-n x", "-n 0", "--limit=-3", "--by year", "--all=1", "--json=1", "--home"]
)
def test_what_it_does_not_take(typed: str):
    with pytest.raises(UsageError):
        parsed(sample, typed.split())


@pytest.mark.parametrize("name", ["ls", "resume", "search", "show", "usage"])
def test_a_wrong_word_is_the_usual_error(name: str, process: Cli):
    done = process(name, "--xyzzy")
    assert done.code == 2
    assert done.err == f"error: no such option '--xyzzy'\nhint: see `turnlog {name} --help`\n"
    assert done.out == ""
    assert process(name, "--xyzzy", "--json").err.startswith('{"version": 1, "error": {"code": "usage"')


def test_a_word_that_is_nearly_right_is_named():
    with pytest.raises(UsageError, match=r"no such option .--limt.\. Did you mean .--limit."):
        parsed(sample, ["--limt"])


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("k3f9 -a", {"session": "k3f9", "all": True}),
        ("-- -k3f9", {"session": "-k3f9"}),
        ("-ay", {"all": True, "yes": True}),
        ("-akmessage", {"all": True, "kind": "message"}),
        ("-k=message", {"kind": "message"}),
        ("--only a --only b", {"only": ("a", "b")}),
        ("--redact", {"redact": True}),
        ("--redact --no-redact", {"redact": False}),
        ("--for 0", {"for": 0.0}),
        ("--size 2K", {"size": 2000}),
        ("-", {"session": "-"}),
    ],
)
def test_one_word_and_options_of_every_kind(typed: str, found: dict[str, Any]):
    defaults = {option.name: option.default for option in one.options}
    assert parsed(one, typed.split()) == {**defaults, "session": None, **found}
    assert (defaults["redact"], defaults["for"], defaults["only"]) == (None, 1.5, ())


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("a b", "got unexpected extra argument (b)"),
        ("a b c", "got unexpected extra arguments (b c)"),
        ("-x", "no such option '-x'"),
        ("-ax", "no such option '-x'"),
        ("--for nan", "invalid value for '--for': nan is not at least 0"),
        ("--for -1", "invalid value for '--for': -1.0 is not at least 0"),
        ("--size x", "invalid value for '--size': "),
        ("--kind", "option '--kind' requires an argument"),
        ("-k", "option '-k' requires an argument"),
    ],
)
def test_what_one_word_and_its_options_may_not_be(typed: str, message: str):
    with pytest.raises(UsageError) as raised:
        parsed(one, typed.split())
    assert raised.value.message.startswith(message)


def test_the_rest_is_left_to_another_program():
    assert parsed(rest, ["--to", "x", "--new", "make", "--new", "-h"])["words"] == ("make", "--new", "-h")
    assert parsed(rest, ["--to", "x", "--", "--new"])["words"] == ("--new",)
    assert parsed(rest, ["--help"])["help"]  # whatever else is missing
    with pytest.raises(UsageError, match="missing option '--to'"):
        parsed(rest, ["make"])
    with pytest.raises(UsageError, match=r"missing argument '\[--\] CMD"):
        parsed(rest, ["--to", "x"])


@pytest.mark.parametrize("name", ["ls", "resume", "search", "show", "usage"])
def test_help_comes_wherever_it_is_asked_for(name: str, process: Cli):
    for words in (["--help"], ["word", "-h"]):
        assert process(name, *words).out.startswith(f"Usage: turnlog {name}")


def test_options_of_the_program_may_stand_on_either_side(process: Cli, session: str):
    before, behind = process("--debug", "ls", "--all", "--json"), process("ls", "--all", "--json", "--debug")
    assert before.code == behind.code == 0
    assert before.out == behind.out


@pytest.mark.parametrize("words", [["ls", "--all"], ["search", "flaky"], ["usage"], []])
def test_no_msgspec_when_nothing_is_new(words: list[str], process: Cli, session: str, folder: Path):
    long_ago(folder)
    assert process(*words).code == 0
    loaded = loaded_by(words)
    assert "turnlog.catalog" in loaded
    unneeded = {"_hashlib", "msgspec", "dataclasses", "inspect", "importlib.metadata"}
    assert loaded & (unneeded | {"turnlog.session.home", "turnlog.formats", "turnlog.store"}) == set()


def loaded_by(words: list[str]) -> set[str]:
    program = (
        f"import sys; sys.argv[1:] = {words!r}\nimport turnlog.cli\ntry:\n    turnlog.cli.main()\n"
        "finally:\n    print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0
    return set(done.stderr.split())


UNNEEDED = {
    "_hashlib", "typing_extensions", "platform", "textwrap", "inspect", "difflib", "tempfile", "shutil", "pathlib",
    "json", "wcwidth", "turnlog.session.session", "turnlog.cli.logpath", "turnlog.cli.draw.preview",
    "turnlog.reader.export.document", "turnlog.store.files.packs", "turnlog.store.files.packwriter",
    "turnlog.thread.space.checkpointcontent", "turnlog.view.secret.redactor",
}  # fmt: skip
"""What `turnlog show` must not wait for, whosever session it is."""


def test_to_show_a_session_of_ours_takes_nothing_that_writes(process: Cli, session: str):
    loaded = loaded_by(["show", session])
    assert "turnlog.view.terminal.line" in loaded
    writing = {"turnlog.thread.appender", "turnlog.thread.home.creator"}
    assert loaded & (UNNEEDED | writing | {"turnlog.workspace", "turnlog.catalog", "sqlite3"}) == set()


@pytest.mark.parametrize("name", ["show", "resume"])
def test_anothers_session_takes_no_more_than_reading_it(name: str, process: Cli):
    path = claude_session(Path(os.environ["HOME"]), "/work", "0d4a6d4c-3a51-4c0c-8d0e-7f2b1c3d4e5f", "say something")
    settle(process)
    loaded = loaded_by([name, f"claude-code:{path.stem}"])
    assert "turnlog.formats.claude_code.reading" in loaded
    writing = {
        "turnlog.formats.claude_code.writing",
        "turnlog.formats._shared.tally",
        "turnlog.exchange.exporting.transcript",
        "turnlog.exchange.exporting.writing",
    }
    if name == "show":  # to go on with it, what is gone is put back, and it matters where git is
        writing |= {
            "turnlog.exchange.keeping.keptfile",
            "turnlog.workspace",
            "turnlog.store.files.sessionfile",
            "turnlog.catalog",
        }
    assert loaded & (UNNEEDED | writing | {"turnlog.wire"}) == set()


def test_that_nothing_is_here_is_told_as_quickly_as_what_is(process: Cli):
    claude_session(Path(os.environ["HOME"]), "/work", "0d4a6d4c-3a51-4c0c-8d0e-7f2b1c3d4e5f", "say something")
    settle(process)
    loaded = loaded_by(["ls"])
    assert "turnlog.cli.commands.ls" in loaded
    assert loaded & {"msgspec", "difflib", "turnlog.catalog.ask.detail"} == set()


def test_to_read_what_a_session_grew_by_takes_no_more_than_that(process: Cli):
    about = (Path(os.environ["HOME"]), "/work", "0d4a6d4c-3a51-4c0c-8d0e-7f2b1c3d4e5f")
    path = claude_session(*about, "say something")
    settle(process)
    claude_session(*about, "and more")
    long_ago(path)
    loaded = loaded_by(["ls", "--all"])
    assert "turnlog.catalog.read.indexer" in loaded
    unneeded = {
        "turnlog.catalog.background",
        "turnlog.catalog.glance",
        "turnlog.exchange.keeping.keptfile",
        "turnlog.thread.home.foreignmarks",
    }
    unneeded |= {"turnlog.catalog.index.lookup", "turnlog.catalog.answer"}  # those are for questions
    assert loaded & (unneeded | {"_hashlib", "typing_extensions", "platform", "textwrap", "inspect", "json"}) == set()


BEGUN = """
import sys
from turnlog.catalog import background, upkeep
upkeep.AT_ONCE = 0
background.begin = lambda lock, arguments, **more: print("begun", *arguments[-2:], flush=True)
import turnlog.cli
try:
    turnlog.cli.main()
finally:
    print(*sys.modules, file=sys.stderr)
"""


@pytest.mark.parametrize("words", [(), ("ls",), ("resume",), ("resume", "--exec")])
def test_what_makes_the_index_begins_when_everything_is_said(
    words: tuple[str, ...], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Begun before, it takes a core and the disk from whoever waits for the first screen."""
    claude_session(Path(os.environ["HOME"]), str(Path.cwd()), "0d4a6d4c-3a51-4c0c-8d0e-7f2b1c3d4e5f", "say something")
    agent = tmp_path / "bin" / "claude"
    agent.parent.mkdir()
    agent.write_text("#!/bin/sh\necho ran\n")
    agent.chmod(0o755)
    monkeypatch.setenv("PATH", str(agent.parent), prepend=os.pathsep)
    done = subprocess.run([sys.executable, "-c", BEGUN, *words], capture_output=True, text=True, check=True)
    said = done.stdout.splitlines()
    if "--exec" in words:
        assert said == ["begun index --background", "ran"]
        return
    assert said[-1] == "begun index --background"
    assert len(said) > 1
    if words == ("resume",):
        assert "claude --resume 0d4a6d4c" in said[0]
        loaded = set(done.stderr.split())
        assert "turnlog.formats.claude_code.reading" in loaded
        assert loaded & {"turnlog.session.home", "turnlog.store.files.logfile", "turnlog.reader.naming.name"} == set()

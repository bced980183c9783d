"""What every command has, by being a file in commands/."""

import re
from pathlib import Path

import click
import pytest

from tests.cli.scene import Cli
from turnlog.cli.program import program
from turnlog.cli.reference import reference

ROOT = Path(__file__).resolve().parents[2]
NAMES = program.list_commands(click.Context(program))
# What a command needs besides --json to do something harmless, and what has to come before it.
WORDS = {
    "export": ["--to", "sofos", "-o", "out"],
    "import": ["--agent", "sofos"],
    "resume": ["--in", "sofos"],
    "redo": ["--dry-run"],
    "rewind": ["--dry-run"],
    "run": ["--", "true"],
    "undo": ["--dry-run"],
}
BEFORE = {
    "diff": [["run", "-q", "--", "true"]],
    "redo": [["run", "-q", "--", "true"], ["rewind", "--yes"], ["undo", "--yes"]],
    "undo": [["run", "-q", "--", "true"], ["rewind", "--yes"]],
}


def command(name: str) -> click.Command:
    found = program.get_command(click.Context(program), name)
    assert found is not None
    return found


def test_every_file_is_a_command():
    files = {path.stem for path in (ROOT / "src/turnlog/cli/commands").glob("*.py")} - {"__init__"}
    assert files == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_it_has_help(name: str, cli: Cli):
    done = cli(name, "--help")
    assert done.code == 0
    assert done.out.startswith(f"Usage: turnlog {name}")
    help_text = command(name).help
    assert help_text
    assert help_text.split("\n")[0].endswith(".")
    if name in (*WORDS, *BEFORE, "checkpoint", "checkpoints", "gc"):
        assert f"\n  turnlog {name}" in done.out, "an example"
    for option in command(name).params:
        if isinstance(option, click.Option) and not option.hidden:
            assert option.help, option.name


@pytest.mark.parametrize("name", NAMES)
def test_it_is_documented(name: str):
    assert f"## turnlog {name}\n" in (ROOT / "docs/cli.md").read_text()


@pytest.mark.parametrize("name", NAMES)
def test_its_json_parses_and_has_a_version(name: str, cli: Cli, session: str):
    for words in BEFORE.get(name, []):
        assert cli(*words).code == 0
    done = cli(name, "--json", *WORDS.get(name, []))
    assert done.code == 0, done.err
    assert done.json["version"] == 1
    assert done.err == ""


@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("demo", "formats")])
def test_a_home_that_cannot_be_read_is_a_clear_error(name: str, cli: Cli, folder: Path):
    folder.mkdir()
    (folder / "home.json").write_text("{")
    done = cli(name, *WORDS.get(name, []))
    assert done.code == 6
    assert re.fullmatch(r"error: [^\n]+\nhint: [^\n]+\n", done.err)


def test_the_reference_is_current():
    assert (ROOT / "docs/cli.md").read_text() == reference(), "python -m turnlog.cli.reference > docs/cli.md"


def test_every_exit_code_is_documented():
    page = (ROOT / "docs/cli.md").read_text()
    for code in (0, 1, 2, 3, 4, 5, 6, 7, 8, 126, 127, 130, 141):
        assert f"\n| {code} |" in page

"""What every command has, by being a file in commands/."""

import re
from pathlib import Path

import pytest

from tests.cli.every import EVERY, NAMES, looks_at_a_home, words_for
from tests.cli.scene import Cli
from turnlog.cli.frame.commandlist import get_command
from turnlog.cli.reference import GENERATED_NOTE, reference

ROOT = Path(__file__).resolve().parents[2]


def test_every_file_is_a_command():
    files = {path.stem for path in (ROOT / "src/turnlog/cli/commands").glob("*.py")} - {"__init__"}
    assert files == set(EVERY)


@pytest.mark.parametrize("name", EVERY)
def test_it_has_help(name: str, cli: Cli):
    done = cli(name, "--help")
    assert done.code == 0
    assert done.out.startswith(f"Usage: turnlog {name}")
    help_text = get_command(name).help
    assert help_text
    assert help_text.split("\n")[0].endswith(".")
    assert re.search(rf"\n  (\S.* )?.*turnlog {name}", done.out), "an example"
    assert all(option.help for option in get_command(name).options if not option.is_hidden)


@pytest.mark.parametrize("name", EVERY)
def test_it_is_documented(name: str):
    assert f"## turnlog {name}\n" in (ROOT / "docs/cli.md").read_text()


@pytest.mark.parametrize("name", [n for n in NAMES if looks_at_a_home(n)])
def test_a_home_that_cannot_be_read_is_a_clear_error(name: str, cli: Cli, folder: Path):
    folder.mkdir()
    (folder / "home.json").write_text("{")
    done = cli(name, *words_for(name))
    assert done.code == 6
    assert re.fullmatch(r"error: [^\n]+\nhint: [^\n]+\n", done.err)


def test_the_reference_is_current():
    assert (ROOT / "docs/cli.md").read_text() == reference(GENERATED_NOTE), (
        "python -m turnlog.cli.reference > docs/cli.md"
    )


def test_every_exit_code_is_documented():
    page = (ROOT / "docs/cli.md").read_text()
    for code in (0, 1, 2, 3, 4, 5, 6, 7, 8, 126, 127, 130, 141):
        assert f"\n| {code} |" in page


def test_the_help_of_the_program_has_every_command_once_and_cuts_nothing(process: Cli, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "80")
    whole = process("--help").out.splitlines()
    lines = whole[whole.index("Commands:") + 1 :]
    assert [line for line in lines if line[:1].strip()] == ["Find:", "Safety net:", "Share:", "Care:"]
    assert not [line for line in lines if line and not re.match(r"\S|  \w", line)], "a command is one line"
    listed = [line.split()[0] for line in lines if re.match(r"  \w", line)]
    assert sorted(listed) == sorted(EVERY)
    assert "More:" not in lines, "its place is in one of the groups of cli/frame/help.py"
    assert all(len(line) <= 80 and not line.endswith("...") for line in lines)


@pytest.mark.parametrize("name", EVERY)
def test_every_help_fits_80_columns(name: str, cli: Cli, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert [line for line in cli(name, "--help").out.splitlines() if len(line) > 80] == []

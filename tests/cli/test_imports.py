"""Starting is quick: a command imports what it needs, and nothing else."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.machine import long_ago

HEAVY = {
    "asyncio", "concurrent", "dataclasses", "email", "http", "json", "logging", "multiprocessing", "pathlib", "pickle",
    "random", "rich", "shutil", "socket", "sqlite3", "ssl", "subprocess", "tempfile", "traceback", "zstandard",
}  # fmt: skip


def loaded_by(program: str) -> set[str]:
    show = "import sys; print(*sys.modules, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", f"try:\n    {program}\nfinally:\n    {show}"], capture_output=True, text=True
    )
    return set(done.stderr.splitlines()[0].split())


def imported(*words: str) -> set[str]:
    """What a command imports; not what Python, and whatever the environment adds to it, does anyway."""
    return loaded_by(f"import sys; sys.argv[1:] = {list(words)!r}; from turnlog.cli import main; main()") - loaded_by(
        "pass"
    )


@pytest.mark.parametrize("words", [["--version"], ["ls"], ["ls", "--json"]])
def test_the_quick_ones_import_nothing_heavy(words: list[str], folder: Path, session: str):
    long_ago(folder)
    imported(*words)  # what is new has to be read, and that takes more
    names = imported(*words)
    allowed = {"sqlite3"} | ({"json"} if "--json" in words else set()) if "ls" in words else set()
    assert not {name for name in names if name.partition(".")[0] in HEAVY - allowed}
    commands = {name for name in names if name.startswith("turnlog.cli.commands.")}
    assert commands == ({"turnlog.cli.commands.ls"} if "ls" in words else set())


def test_commands_are_found_without_importing_them():
    program = (
        "import sys; from turnlog.cli.frame.commandlist import command_names; print(*command_names()); "
        "print(*[name for name in sys.modules if name.startswith('turnlog.cli.commands.')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    listed, loaded = done.stdout.split("\n")[:2]
    assert {"demo", "doctor", "log", "ls", "path", "show"} <= set(listed.split())
    assert loaded == ""

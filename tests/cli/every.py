"""Every command there is, and words with which it does something harmless."""

import click

from tests.cli.scene import Cli
from turnlog.cli.frame.program import program

NAMES = program.list_commands(click.Context(program))
# What a command needs besides --json, and what has to come before it. The session is this folder's newest.
WORDS: dict[str, list[str]] = {
    "compact": ["--keep", "0", "--dry-run"],
    "completion": ["bash"],
    "export": ["--to", "sofos", "-o", "out", "--force"],
    "import": ["--agent", "sofos"],
    "mv": ["--dry-run", ".", ".."],
    "pull": ["--all", "../copy"],
    "push": ["--all", "../copy"],
    "restore": ["20"],
    "resume": ["--in", "sofos"],
    "rm": ["@"],
    "search": ["flaky"],
    "sync": ["../copy"],
    "tag": ["@", "one"],
    "redo": ["--dry-run"],
    "rewind": ["--dry-run"],
    "run": ["--", "true"],
    "uncompact": ["--dry-run"],
    "undo": ["--dry-run"],
    "watch": ["--for", "0"],
}
BEFORE: dict[str, list[list[str]]] = {
    "checkpoints": [["checkpoint"]],
    "diff": [["run", "-q", "--", "true"]],
    "pull": [["push", "--all", "../copy"]],
    "restore": [["fork"], ["rm", "@"]],
    "rm": [["fork"]],
    "redo": [["run", "-q", "--", "true"], ["rewind", "--yes"], ["undo", "--yes"]],
    "uncompact": [["compact", "--keep", "0"]],
    "undo": [["run", "-q", "--", "true"], ["rewind", "--yes"]],
}
# Those that look at no home.
HOMELESS = ("completion", "demo", "formats")
# Those that print a line at most where nothing changed, and only on stderr.
QUIET = ("diff", "import", "run")


def prepare(cli: Cli, name: str, *more: str) -> list[str]:
    """Do what has to come before that command; gives the words for it."""
    for words in BEFORE.get(name, []):
        done = cli(*more, *words)
        assert done.code == 0, done.err
    return [*more, name, *WORDS.get(name, [])]

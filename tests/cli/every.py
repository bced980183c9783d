"""Every command there is, and words with which it does something harmless."""

from collections.abc import Iterable
from importlib import import_module

from hypothesis import settings

from tests.cli.scene import Cli
from turnlog.cli.frame.command import Argument, Option
from turnlog.cli.frame.commandlist import command_names, get_command

EVERY = command_names()
NAMES = [name for name in EVERY if name not in ("pick", "tui", "web")]
"""Those that end by themselves, and need nobody to press keys."""
# What a word is that has to be there, by what the help calls it.
REQUIRED = {"SESSION...": "@", "URL": "../copy", "PATH": "."}
# Where other words say more about a command than those it cannot do without: see `words_for`.
_WORDS: dict[str, list[str]] = {
    "api": [],
    "blame": ["notes.txt"],
    "compact": ["--keep", "0", "--dry-run"],
    "compare": ["@", "@"],
    "completion": ["bash"],
    "erase": ["--dry-run", "--matching", "flaky"],
    "export": ["--to", "sofos", "-o", "out", "--force"],
    "gc": [],
    "hooks": [],
    "import": ["--agent", "sofos"],
    "keep": ["--status"],
    "mcp": ["status"],
    "mv": ["--dry-run", ".", ".."],
    "pull": ["--all", "../copy"],
    "push": ["--all", "../copy"],
    "restore": ["20"],
    "resume": ["--in", "sofos"],
    "search": ["flaky"],
    "setup": ["--dry-run"],
    "sync": ["../copy"],
    "note": ["@", "one"],
    "tag": ["@", "one"],
    "run": ["--", "true"],
    "watch": ["--for", "0"],
    "why": ["notes.txt:1"],
}


def words_for(name: str) -> list[str]:
    """What a command needs besides --json, so that nothing much happens. The session is this folder's newest."""
    if name in _WORDS:
        return _WORDS[name]
    words: list[str] = []
    for option in get_command(name).options:
        words += ["--dry-run"] if "--dry-run" in option.flags else []
        words += [option.flags[0], _value(option, option.value)] if option.is_required else []
    return [*words, *(_value(one, one.shown) for one in get_command(name).arguments if one.is_required)]


def _value(parameter: Argument | Option, shown: str) -> str:
    return parameter.choices[0] if parameter.choices else REQUIRED[shown]


def looks_at_a_home(name: str) -> bool:
    """Whether it opens the home that the options say, or its catalog."""
    module = vars(import_module(f"turnlog.cli.commands.{name}"))
    return bool({"this_home", "session_to_read", "catalog"} & set(module))


# What has to come before it.
BEFORE: dict[str, list[list[str]]] = {
    "blame": [["run", "-q", "--", "sh", "-c", "echo one > notes.txt"]],
    "checkpoints": [["checkpoint"]],
    "diff": [["run", "-q", "--", "true"]],
    "pull": [["push", "--all", "../copy"]],
    "restore": [["fork"], ["rm", "@"]],
    "rm": [["fork"]],
    "redo": [["run", "-q", "--", "true"], ["rewind", "--yes"], ["undo", "--yes"]],
    "uncompact": [["compact", "--keep", "0"]],
    "undo": [["run", "-q", "--", "true"], ["rewind", "--yes"]],
    "why": [["run", "-q", "--", "sh", "-c", "echo one > notes.txt"]],
}
# Those that print a line at most where nothing changed, and only on stderr.
QUIET = ("diff", "import", "run")


def share(names: Iterable[str], nth: int) -> list[str]:
    """A third of these commands, another one for each `nth`: one place decides for all. The soak asks every one."""
    is_soak = settings.get_current_profile_name() == "soak"
    return [name for at, name in enumerate(names) if is_soak or at % 3 == nth % 3]


def prepare(cli: Cli, name: str, *more: str) -> list[str]:
    """Do what has to come before that command; gives the words for it."""
    for words in BEFORE.get(name, []):
        done = cli(*more, *words)
        assert done.code == 0, done.err
    return [*more, name, *words_for(name)]

"""How a command is declared: what it takes, and the function that does it. Imports nothing heavy.

A command is a file in `commands/`. Its function is called `command`, its docstring is the help with examples, and
`@declare(…)` says what it takes. Beside it stand `GROUP`, where the help lists it, `FIELDS`, what it prints with
`--json`, and `CHANGES`, what it may change. The parser, help, completion, `turnlog api` and docs/cli.md are all made of
that.
"""

from __future__ import annotations

import sys

from turnlog.cli.frame.document.shape import items_of

TYPE_CHECKING = False  # as in every module that imports nothing heavy: `typing` takes longer to load than it
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any


# Plain classes: to make a named tuple takes longer than all else here.


class Argument:
    """A word that is no option, as the usage line shows it: `FILE`, `[SESSION]`, `[AGENT]...`."""

    def __init__(
        self,
        name: str,
        shown: str = "",
        *,
        choices: tuple[str, ...] = (),
        required: bool | None = None,
        default: str | None = None,
        takes_dashed_words: bool = False,
        takes_rest: bool = False,
        kind: str = "",
    ) -> None:
        self.name = name
        """The keyword under which the function gets it."""
        self.kinds = tuple(kind.split())
        """What its words are, for completion: session, deleted, agent, command, file, folder or action, one for each
        word, and the last for all further ones. Nothing is completed for free text."""
        self.choices = choices
        self.shown = shown or (f"[{'|'.join(choices)}]" if choices else name.upper())
        self.default = default
        self.is_repeatable = self.shown.endswith("...") or " " in self.shown
        is_needed = not all(word.startswith("[") for word in self.shown.split())
        self.is_required = is_needed if required is None else required
        self.takes_dashed_words = takes_dashed_words
        """Whether a word with one dash that is no option belongs to it: `-draft` in a search."""
        self.takes_rest = takes_rest
        """Whether everything behind its first word belongs to it."""


class Option:
    """An option, as the help shows it: `--all -a`; `--limit -n N` with a value; `--keep/--no-keep`, or nothing."""

    def __init__(
        self,
        shown: str,
        help: str,
        *,
        name: str = "",
        choices: tuple[str, ...] = (),
        number: type[int | float] | None = None,
        least: int | None = None,
        most: int | None = None,
        read: Callable[[str], Any] | None = None,
        default: Any = None,
        repeatable: bool = False,
        required: bool = False,
        hidden: bool = False,
        kind: str = "",
        repeated_hint: str = "",
    ) -> None:
        words, _, self.off = shown.partition("/")
        self.flags = tuple(word for word in words.split() if word.startswith("-"))
        value = words.rpartition(" ")[2]
        self.value = f"[{'|'.join(choices)}]" if choices else "" if value.startswith("-") else value
        """What its value is called; a flag has none."""
        self.help = help
        self.name = name or self.flags[0].lstrip("-").replace("-", "_")
        """The keyword under which the function gets it."""
        self.choices = choices
        self.number = int if number is None and least is not None else number
        """The type of its value, if that is a number."""
        self.least = least
        self.most = most
        self.read = read
        """Converts its value; raises a `TurnlogError` for one that is wrong."""
        self.is_repeatable = repeatable
        """Whether it may be repeated."""
        self.is_required = required
        self.is_hidden = hidden
        self.kind = kind
        """What its value is, for completion: as for an argument, or `form`."""
        self.repeated_hint = repeated_hint
        """The hint where it is given twice. Without one, the last value counts."""
        is_flag = not self.value and not self.off
        self.default: Any = () if repeatable else False if is_flag and default is None else default


def is_dry_run(options: dict[str, Any]) -> bool:
    """Whether these options say that nothing is to be done."""
    return bool(options.get("dry_run"))


class Command:
    """One command: what it takes, and what it does."""

    def __init__(
        self,
        module: ModuleType,
        run: Callable[..., None],
        parameters: tuple[Argument | Option, ...],
        path: str,
        is_read_only: Callable[[dict[str, Any]], bool] = is_dry_run,
        exclusive: tuple[tuple[str, ...], ...] = (),
    ) -> None:
        self.module = module
        """Where its `FIELDS` and `CHANGES` are."""
        self.run = run
        self.path = path
        """What is typed: `turnlog ls`."""
        self.is_read_only = is_read_only
        """Whether it changes nothing with these options, although it may with others."""
        self.exclusive = exclusive
        """Options of which only one may be given, in groups."""
        self.arguments = [one for one in parameters if isinstance(one, Argument)]
        self.options = [one for one in parameters if isinstance(one, Option)]

    @property
    def is_program(self) -> bool:
        """Whether it is `turnlog` itself."""
        return " " not in self.path

    @property
    def help(self) -> str:
        """What it does, with examples; options and arguments are not in it."""
        from inspect import cleandoc

        return cleandoc(self.run.__doc__ or "")


HELP = Option("--help -h", "Show this message and exit.")
_SHARED = (
    Option("--json", "Print JSON for programs.", name="as_json"),
    Option("--fields LIST", "With --json, only these fields of each item: a,b.c"),
)
_LISTED = (
    Option("--max-bytes N", "With --json, the maximum size of the document: whole items only.", least=1),
    Option("--cursor CURSOR", "With --json, continue after `cursor` of the answer before."),
)
"""Options of every command that prints a list."""
_ANYWHERE = (
    Option("--home PATH", "Where the sessions are.", hidden=True, kind="folder"),
    Option("--debug", "Show a traceback.", hidden=True),
    HELP,
)

SESSION_ARGUMENT = Argument("session", "[SESSION]", kind="session")
SESSIONS_ARGUMENT = Argument("sessions", "SESSION...", kind="session")
SESSIONS_AND_URL = Argument("words", "[SESSION]... URL", kind="session")
"""`takes_session` in `commandlist` knows these by the beginning of their names."""
DRY_RUN_OPTION = Option("--dry-run -n", "Only show what it would do.")
YES_OPTION = Option("--yes -y", "Do not ask.")
HERE_OPTION = Option("--here", "Only this folder, not the whole repository it is in.")
WORKSPACE_OPTION = Option("--workspace -w PATH", "Only sessions of that folder and those below it.", kind="folder")
KEY_OPTION = Option("--key KEY", "Which session, where a file of another agent has several: a number or id.")
SESSION_OPTION = Option("--session -s SESSION", "Which session. [default: this folder's newest]", kind="session")


def declare(
    *parameters: Argument | Option,
    is_read_only: Callable[[dict[str, Any]], bool] = is_dry_run,
    exclusive: tuple[tuple[str, ...], ...] = (),
) -> Callable[[Callable[..., None]], Command]:
    """Make a function the command of its module; with a list in its `FIELDS`, it takes what every list takes.

    Of the options in each group of `exclusive`, only one may be given.
    """

    def command_of(run: Callable[..., None]) -> Command:
        module = sys.modules[run.__module__]
        path = f"turnlog {module.__name__.rpartition('.')[2]}"
        listed = _LISTED if items_of(module.FIELDS) else ()
        return Command(module, run, (*parameters, *_SHARED, *listed, *_ANYWHERE), path, is_read_only, exclusive)

    return command_of

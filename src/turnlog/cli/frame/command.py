"""How a command is declared: what it takes, and the function that does it. Imports nothing heavy.

A command is a file in `commands/`. Its function is called `command`, its docstring is the help with examples, and
`@declare(…)` says what it takes. Beside it stand `FIELDS`, what it prints with `--json`, and `CHANGES`, what it may
change. The parser, help, completion, `turnlog api` and docs/cli.md are all made of that.
"""

from __future__ import annotations

import sys

from turnlog.cli.frame.shape import items_of

TYPE_CHECKING = False
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
        dashes: bool = False,
        rest: bool = False,
    ) -> None:
        self.name = name
        """The keyword under which the function gets it."""
        self.choices = choices
        self.shown = shown or (f"[{'|'.join(choices)}]" if choices else name.upper())
        self.default = default
        self.is_many = self.shown.endswith("...") or " " in self.shown
        is_needed = not all(word.startswith("[") for word in self.shown.split())
        self.is_required = is_needed if required is None else required
        self.has_dashes = dashes
        """Whether a word with one dash that is no option belongs to it: `-draft` in a search."""
        self.is_rest = rest
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
        many: bool = False,
        required: bool = False,
        hidden: bool = False,
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
        self.is_many = many
        """Whether it may be repeated."""
        self.is_required = required
        self.is_hidden = hidden
        is_flag = not self.value and not self.off
        self.default: Any = () if many else False if is_flag and default is None else default


class Command:
    """One command: what it takes, and what it does."""

    def __init__(
        self, module: ModuleType, run: Callable[..., None], parameters: tuple[Argument | Option, ...], path: str
    ) -> None:
        self.module = module
        """Where its `FIELDS` and `CHANGES` are."""
        self.run = run
        self.path = path
        """What is typed: `turnlog ls`."""
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
    Option("--home PATH", "Where the sessions are.", hidden=True),
    Option("--debug", "Show a traceback.", hidden=True),
    HELP,
)

SESSION_ARGUMENT = Argument("session", "[SESSION]")
HERE_OPTION = Option("--here", "Only this folder, not the whole repository it is in.")
KEY_OPTION = Option("--key KEY", "Which session, where a file of another agent has several: a number or id.")
SESSION_OPTION = Option("--session -s SESSION", "Which session. [default: this folder's newest]")


def declare(*parameters: Argument | Option) -> Callable[[Callable[..., None]], Command]:
    """Make a function the command of its module; with a list in its `FIELDS`, it takes what every list takes."""

    def made(run: Callable[..., None]) -> Command:
        module = sys.modules[run.__module__]
        path = f"turnlog {module.__name__.rpartition('.')[2]}"
        listed = _LISTED if items_of(module.FIELDS) else ()
        return Command(module, run, (*parameters, *_SHARED, *listed, *_ANYWHERE), path)

    return made

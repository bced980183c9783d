"""Commands that answer before click is there: it alone takes longer to import than they take to answer.

Such a command has `QUICK` instead of `command`: what it takes, in plain words, and `work`, which does it. Its words are
taken apart here, whichever way it is reached; click prints its help, completes its words and reports its errors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import click


# Plain classes: to make a named tuple takes longer than all else here.


class Option:
    """An option: a flag, or one with a value."""

    def __init__(
        self,
        name: str,
        flags: tuple[str, ...],
        help: str,
        value: str = "",
        least: int | None = None,
        *,
        choices: tuple[str, ...] = (),
        hidden: bool = False,
    ) -> None:
        self.name = name
        """The keyword under which `work` gets it."""
        self.flags = flags
        self.help = help
        self.value = value
        """What its value is called; a flag has none."""
        self.least = least
        """A value that is a whole number, and not below this."""
        self.choices = choices
        self.hidden = hidden


class QuickCommand:
    """What a command takes, and what it does."""

    def __init__(
        self,
        name: str,
        work: Callable[..., None],
        options: tuple[Option, ...],
        words: str = "",
        help: str = "",
        *,
        most: int = 0,
    ) -> None:
        self.name = name
        self.work = work
        self.options = options
        self.words = words
        """What the words are called that are no options; without a name there may be none."""
        self.help = help
        self.most = most
        """So many words at most, of which none begins with a dash; 0: any."""


SHARED = (
    Option("as_json", ("--json",), "Print JSON for programs."),
    Option("fields", ("--fields",), "With --json, only these fields of each item: a,b.c", "LIST"),
    Option("home", ("--home",), "Where the sessions are.", "PATH", hidden=True),
    Option("debug", ("--debug",), "Show a traceback.", hidden=True),
)
LISTED = (
    Option("max_bytes", ("--max-bytes",), "With --json, at most so many bytes: whole items only.", "N", 1),
    Option("cursor", ("--cursor",), "With --json, what comes behind: `cursor` of the answer before.", "CURSOR"),
)
"""What every list has besides."""


class BadArguments(Exception):
    """Words that the command does not take."""


def parsed(quick: QuickCommand, arguments: Sequence[str]) -> dict[str, Any]:
    """The keywords for `work`. A word with one dash that is no option is a word: `-draft` in a search."""
    options = {flag: option for option in (*quick.options, *SHARED) for flag in option.flags}
    found: dict[str, Any] = {
        option.name: None if option.value else False for option in (*quick.options, *SHARED) if option.name != "debug"
    }
    words: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if argument == "--":
            words.extend(rest)
            break
        flag, equals, value = argument.partition("=")
        if flag not in options and argument[:2] in options and argument[2:].isdecimal():
            flag, equals, value = argument[:2], "=", argument[2:]  # -n5
        option = options.get(flag)
        if option is None:
            if argument.startswith("--") or (quick.most and argument.startswith("-") and argument != "-"):
                raise BadArguments(_unknown(flag, options))
            words.append(argument)
        elif not option.value:
            if equals:
                raise BadArguments(f"option '{flag}' does not take a value")
            found[option.name] = True
        else:
            given = value if equals else next(rest, None)
            if given is None:
                raise BadArguments(f"option '{flag}' requires an argument")
            found[option.name] = _value(option, flag, given)
    found.pop("debug", None)
    extra = words[quick.most :] if quick.most or not quick.words else []
    if extra:
        raise BadArguments(f"got unexpected extra argument{'s' if len(extra) > 1 else ''} ({' '.join(extra)})")
    if quick.words:
        found["words"] = tuple(words)
    return found


def _unknown(flag: str, options: Mapping[str, Option]) -> str:
    from difflib import get_close_matches

    shown = [flag for flag, option in options.items() if not option.hidden]
    near = get_close_matches(flag, shown, n=1, cutoff=0.7)
    return f"no such option '{flag}'" + (f". Did you mean '{near[0]}'?" if near else "")


def _value(option: Option, flag: str, text: str) -> str | int:
    if option.least is not None:
        try:
            number = int(text)
        except ValueError:
            raise BadArguments(f"invalid value for '{flag}': {text!r} is not a whole number") from None
        if number < option.least:
            raise BadArguments(f"invalid value for '{flag}': {number} is not at least {option.least}")
        return number
    if option.choices and text not in option.choices:
        raise BadArguments(f"invalid value for '{flag}': {text!r} is not one of {', '.join(option.choices)}")
    return text


def answered(arguments: Sequence[str]) -> int | None:
    """Run a command without click and return its exit code; None if that takes click: to help, or to complain.

    Whoever has no `QUICK` lost no time: click needs the same module next.
    """
    import gc
    from importlib import import_module

    from turnlog.cli.frame.exitcode import ended
    from turnlog.cli.frame.home import choose_home
    from turnlog.machine.modules import without_old

    if arguments and not arguments[0].isidentifier():
        return None
    name = f"commands.{arguments[0]}" if arguments else "draw.dashboard"
    before = gc.get_threshold()
    gc.set_threshold(100_000)  # modules and thousands of rows are no garbage, and the process ends soon
    try:
        with without_old():
            quick: QuickCommand = import_module(f"turnlog.cli.{name}").QUICK
        found = parsed(quick, arguments[1:])
        if {"-h", "--help"} & set(found.get("words", ())):
            raise BadArguments("--help")
    except (ImportError, AttributeError, BadArguments):  # it fails the other way as well, where that is told properly
        gc.set_threshold(*before)
        return None
    choose_home(found["home"])
    code = ended(arguments, lambda: run(quick, found))
    gc.freeze()  # nor does it need to look through everything once more when it ends
    return code


def run(quick: QuickCommand, options: dict[str, Any]) -> None:
    """Do what the command does, with what `parsed` found."""
    from turnlog.cli.frame.output import want

    want(quick.work.__module__, options)
    quick.work(**options)


def command_of(quick: QuickCommand) -> click.Command:
    """The command for click: for its help, for completion, and for what it has to say about wrong words."""
    import click

    from turnlog.cli.frame.home import choose_home, home_location

    class _Parsed(click.Command):
        def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
            own = args[: args.index("--")] if "--" in args else args
            if ctx.resilient_parsing or {"-h", "--help"} & set(own):
                return super().parse_args(ctx, args)
            try:
                ctx.params = parsed(quick, args)
            except BadArguments as error:
                raise click.UsageError(str(error), ctx) from None
            choose_home(ctx.params["home"] or home_location())
            ctx.params["home"] = home_location()
            return []

    params: list[click.Parameter] = [click.Argument(["words"], nargs=-1, metavar=quick.words)] if quick.words else []
    params += [click.Option(words, **more) for words, more in map(_for_click, (*quick.options, *SHARED))]
    settings = {"ignore_unknown_options": True, "help_option_names": ["-h", "--help"]}

    def work(**options: Any) -> None:
        run(quick, options)

    return _Parsed(quick.name, callback=work, params=params, help=quick.help, context_settings=settings)


def click_option(option: Option) -> Callable[[Any], Any]:
    """The same option for a command that is click's."""
    import click

    words, more = _for_click(option)
    return click.option(*words, **more)


def _for_click(option: Option) -> tuple[list[str], dict[str, Any]]:
    import click

    kind: Any = click.Choice(option.choices) if option.choices else None
    if option.least is not None:
        kind = click.IntRange(min=option.least)
    return [*option.flags, option.name], {
        "is_flag": not option.value,
        "metavar": option.value if option.value and not option.choices else None,
        "help": option.help,
        "type": kind,
        "hidden": option.hidden,
    }

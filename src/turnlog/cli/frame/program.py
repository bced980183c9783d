"""The program: its commands, and how what click has to say of them reaches `exitcode`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import click

from turnlog.cli import commands
from turnlog.cli.frame.exitcode import Left, Misused, ended
from turnlog.cli.frame.home import choose_home
from turnlog.cli.frame.quick import command_of
from turnlog.cli.frame.shape import Fields
from turnlog.version import __version__

_SUMMARY = re.compile(r'''^(?:def command\(.*?\) -> None:\n    |HELP = )"""(.+?)\.$''', re.MULTILINE | re.DOTALL)
"""The first sentence of a command's help, in its source: to import all of them takes longer than to answer."""

_ENOUGH = 15
_GROUPS = {
    "Find": [
        "ls", "search", "show", "tui", "pick", "usage", "resume", "watch", "tree", "compare", "statusline",
        "web", "mcp",
    ],
    "Safety net": [
        "setup", "hooks", "run", "checkpoint", "checkpoints", "diff", "rewind", "undo", "redo", "blame", "why", "keep",
    ],
    "Share": ["export", "import", "push", "pull", "sync", "formats"],
    "Care": [
        "title", "tag", "star", "note", "archive", "fork", "compact", "uncompact", "log", "path", "rm", "restore",
        "erase", "mv", "doctor", "gc", "index", "prices", "completion", "api", "demo",
    ],
}  # fmt: skip
_MEANT = {
    "annotate": "blame", "browse": "tui", "choose": "pick", "select": "pick",
    "cost": "usage", "costs": "usage", "spend": "usage", "stats": "usage", "money": "usage", "find": "search",
    "grep": "search", "list": "ls", "sessions": "ls", "status": "ls", "continue": "resume", "open": "resume",
    "view": "show", "cat": "show", "read": "show", "back": "rewind", "revert": "rewind", "rollback": "rewind",
    "delete": "rm", "remove": "rm", "agents": "formats", "check": "doctor", "help": "--help", "version": "--version",
}  # fmt: skip
"""What people type who know other programs."""
_SAME = {"hide": "archive", "rename": "title"}
"""What is just another word for a command, and taken for it."""


class Program(click.Group):
    """The commands are the files in `commands/`; only the one that is run is imported."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every command by name."""
        return sorted(file.stem for file in Path(commands.__path__[0]).glob("[!_]*.py"))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """One command."""
        if cmd_name not in self.list_commands(ctx):
            return None
        module = import_module(f"{commands.__name__}.{cmd_name}")
        return command_of(module.QUICK) if hasattr(module, "QUICK") else module.command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Every command on a line of its own, and what it is for: those first that somebody wants first."""
        names = self.list_commands(ctx)
        longest = max(map(len, names))
        placed = {name for group in _GROUPS.values() for name in group}
        groups = {**_GROUPS, "More": [name for name in names if name not in placed]}
        formatter.write("\nCommands:\n")
        for title, group in groups.items():
            there = [name for name in group if name in names]
            if there:
                formatter.write(f"\n{title}:\n")
            for name in there:
                formatter.write(f"  {name:{longest}}  {summary(name, formatter.width - 4 - longest)}\n")

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is meant, or what it may have been."""
        args = [_SAME.get(args[0], args[0]), *args[1:]] if args else args
        if args and args[0] not in self.list_commands(ctx) and not args[0].startswith("-"):
            from difflib import get_close_matches

            near = [_MEANT[args[0]]] if args[0] in _MEANT else get_close_matches(args[0], self.list_commands(ctx), n=1)
            raise _NoCommand(f"no such command {args[0]!r:.80}", near, ctx)
        return super().resolve_command(ctx, args)


def summary(name: str, width: int) -> str:
    """What a command is for, on one line: the first sentence of its help."""
    spec = find_spec(f"{commands.__name__}.{name}")
    source = Path(spec.origin).read_text(encoding="utf-8") if spec is not None and spec.origin is not None else ""
    found = _SUMMARY.search(source)
    said = click.Command(name, help=f"{found.group(1)}.") if found is not None else None
    command = said or program.get_command(click.Context(program), name)
    text = "" if command is None else command.get_short_help_str(1000).removesuffix(".")
    # What is too long ends where it has said something: at the first comma that is far enough on.
    stop = re.search(r"[,:;] ", text[_ENOUGH:])
    return text if len(text) <= width or stop is None else text[: _ENOUGH + stop.start()]


def fields_of(name: str) -> Fields:
    """What a command says with `--json`: its fields, and what each means."""
    return import_module(f"{commands.__name__}.{name}").FIELDS


class _NoCommand(click.UsageError):
    def __init__(self, message: str, near: list[str], ctx: click.Context) -> None:
        super().__init__(message, ctx)
        self.near = near


@click.group(
    cls=Program,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 96},
)
@click.version_option(__version__, prog_name="turnlog", message="%(prog)s %(version)s")
@click.option("--home", metavar="PATH", help="Where the sessions are. [default: $TURNLOG_HOME or ~/.turnlog]")
@click.option("--debug", is_flag=True, help="Show a traceback when something goes wrong.")
@click.pass_context
def program(context: click.Context, home: str | None, debug: bool) -> None:
    """Look at the sessions of AI coding agents, look after them, and take back what they did to files.

    `turnlog` alone tells what there is on this machine, and in this folder.

    Where a command takes a SESSION, that is its id or handle, or any unique beginning of one; agent:id for another
    agent's; "@" for the newest of this folder, "@-" for the one before, "latest" for the newest of all; or a file. Left
    out, it is "@", or else "latest".
    """
    del debug  # looked up where it is needed: see `exitcode`
    choose_home(home)
    if context.invoked_subcommand is None:
        from turnlog.cli.draw.dashboard import work

        work(home=home)


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code. Raises nothing."""
    return ended(arguments, lambda: _invoke(list(arguments)))  # click empties the list it is given


def _invoke(arguments: list[str]) -> None:
    try:
        with program.make_context("turnlog", arguments) as context:
            program.invoke(context)
    except click.exceptions.Exit as done:
        raise Left(done.exit_code) from None
    except click.Abort:
        raise KeyboardInterrupt from None
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx is not None else "turnlog"
        hint = f"see `{where} --help`"
        meant: list[str] = list(getattr(error, "possibilities", None) or ())
        if isinstance(error, _NoCommand) and error.near:
            more = "" if error.near[0].startswith("-") else " `turnlog --help` lists all"
            hint, meant = f"did you mean `turnlog {error.near[0]}`?{more}", error.near
        said = _lower(error.format_message())
        raise Misused(said, hint=hint, exit_code=error.exit_code, candidates=meant) from error
    except click.ClickException as error:
        raise Misused(_lower(error.format_message()), exit_code=error.exit_code) from error


def _lower(message: str) -> str:
    """A fact in lower case, without a full stop, as everywhere else."""
    return (message[:1].lower() + message[1:]).removesuffix(".")

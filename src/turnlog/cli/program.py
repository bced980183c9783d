"""The program: its commands, and what becomes of their errors.

Data goes to stdout and nothing else does. An error is one line and a hint on stderr, JSON under `--json`, and the
exit code of its class; a traceback only with `--debug`.
"""

from __future__ import annotations

import os
import pkgutil
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper
from typing import Any

import click

from turnlog.cli import commands
from turnlog.cli.text import one_line
from turnlog.errors import TurnlogError, TurnlogWarning
from turnlog.version import __version__

INTERRUPTED = 130
PIPE_CLOSED = 141


class Program(click.Group):
    """The commands are the files in `commands/`; only the one that is run is imported."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every command by name."""
        return sorted(module.name for module in pkgutil.iter_modules(commands.__path__))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """One command."""
        if cmd_name not in self.list_commands(ctx):
            return None
        return import_module(f"{commands.__name__}.{cmd_name}").command


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 96})
@click.version_option(__version__, prog_name="turnlog", message="%(prog)s %(version)s")
@click.option("--home", metavar="PATH", help="Where the sessions are. [default: $TURNLOG_HOME or ~/.turnlog]")
@click.option("--debug", is_flag=True, help="Show a traceback when something goes wrong.")
def program(home: str | None, debug: bool) -> None:
    """Look at the sessions of AI coding agents, look after them, and take back what they did to files.

    Where a command takes a SESSION, that is its id, any unique beginning of its id or handle, or "latest". Left out,
    it is the newest session of the folder you are in, or else the latest of all.
    """
    del home, debug  # both are looked up where they are needed: see `option`


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code. Raises nothing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments  # the rest is another program's
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default", TurnlogWarning)
            warnings.showwarning = _show_warning
            _invoke(list(arguments) or ["--help"])  # click empties the list it is given
        sys.stdout.flush()
    except click.exceptions.Exit as done:
        return _flushed(done.exit_code)
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        return _closed()
    except Exception as error:  # whatever it is, a person should see one line and not a stack
        if "--debug" in own:
            import traceback

            traceback.print_exc()
        return _fail(error, as_json="--json" in own)
    return 0


def _invoke(arguments: list[str]) -> None:
    if "_TURNLOG_COMPLETE" in os.environ:
        program.main(arguments, prog_name="turnlog")  # a shell asks what could come next
    with program.make_context("turnlog", arguments) as context:
        program.invoke(context)


def _flushed(code: int) -> int:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return _closed()
    return code


def _closed() -> int:
    """Whoever read our output has seen enough. Python would complain about it once more when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return PIPE_CLOSED


def _show_warning(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
    print(f"warning: {one_line(str(message))}", file=sys.stderr)


def _fail(error: Exception, *, as_json: bool) -> int:
    if isinstance(error, TurnlogError):
        code, exit_code, message, hint = error.code, error.exit_code, error.message, error.hint
    elif isinstance(error, click.UsageError):
        where = error.ctx.command_path if error.ctx is not None else "turnlog"
        code, exit_code, message = "usage", error.exit_code, _lower(error.format_message())
        hint = f"see `{where} --help`"
    elif isinstance(error, click.ClickException):
        code, exit_code, message, hint = "usage", error.exit_code, _lower(error.format_message()), None
    else:
        code, exit_code, message = "internal", 1, f"{type(error).__name__}: {error}"
        hint = "this is a fault in turnlog; run it again with --debug and report what it prints"
    if as_json:
        import json

        problem = {"code": code, "message": message, "hint": hint, "exit_code": exit_code}
        print(json.dumps({"version": 1, "error": problem}), file=sys.stderr)
    else:
        print(f"error: {one_line(message)}", file=sys.stderr)
        if hint:
            print(f"hint: {one_line(hint)}", file=sys.stderr)
    return exit_code


def _lower(message: str) -> str:
    """A fact in lower case, without a full stop, as everywhere else."""
    return (message[:1].lower() + message[1:]).removesuffix(".")

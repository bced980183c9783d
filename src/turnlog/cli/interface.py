"""The command line as data: commands, exit codes, environment, filters. What `turnlog api` and docs/cli.md say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import click

from turnlog import errors
from turnlog.cli import commands
from turnlog.cli.frame.exitcode import INTERRUPTED, PIPE_CLOSED
from turnlog.cli.frame.foreground import NOT_FOUND, NOT_RUNNABLE
from turnlog.cli.frame.output import VERSION
from turnlog.cli.frame.program import program, summary
from turnlog.cli.frame.schema import schema

_LONG = 1000
_EXAMPLE = re.compile(r"^ *((?:\w+ \W*\$\()?turnlog (?:\S| \S)*)(?: {2,}(.*))?$", re.MULTILINE)
_DEFAULT = re.compile(r"\[default: ([^]]+)\]")
ENVIRONMENT = {
    "TURNLOG_HOME": "where the sessions are: a folder, or postgresql://…; ~/.turnlog where it is not set",
    "TURNLOG_ALLOW_AGENT": "1 lets an agent's own shell do what only people may: purge, quotas, --force, uninstall",
    "TURNLOG_BACKGROUND": "off forbids the process that reads sessions in the background: commands read all first",
    "TURNLOG_OFFERS": "off: `turnlog` alone offers nothing",
    "COLUMNS": "how wide the output may be where it is no terminal; without it, nothing is cut",
    "NO_COLOR": "anything: no colours",
    "PAGER": "what `show` goes through on a terminal; empty or cat for none",
    "XDG_CONFIG_HOME": "where prices of your own are looked for",
    "XDG_STATE_HOME": "where this machine remembers what cannot be made again",
    "XDG_CACHE_HOME": "where the index lies",
}
"""What is read of the environment. Where agents keep their sessions, their own variables say: see `turnlog formats`."""


def names() -> list[str]:
    """Every command."""
    return program.list_commands(click.Context(program))


def described(name: str) -> dict[str, Any]:
    """One command."""
    command = program.get_command(click.Context(program), name)
    assert command is not None
    module = import_module(f"{commands.__name__}.{name}")
    version = getattr(module, "JSON_VERSION", VERSION)
    options = [one for one in command.params if isinstance(one, click.Option) and not one.hidden]
    return {
        "name": name,
        "summary": summary(name, _LONG),
        "arguments": [_argument(one) for one in command.params if isinstance(one, click.Argument)],
        "options": [_option(one) for one in options],
        "examples": list(examples(command.help or "")),
        "changes": module.CHANGES,
        "json": schema(module.FIELDS, version),
    }


def examples(help: str) -> Iterator[dict[str, str]]:
    """The lines of a help text that can be typed."""
    for found in _EXAMPLE.finditer(help):
        yield {"command": found[1].strip(), "meaning": found[2] or ""}


def _argument(one: click.Argument) -> dict[str, Any]:
    word = (one.metavar or str(one.name).upper()).strip("[].")
    return {"name": word, **_taken(one), "required": one.required, "repeatable": one.nargs != 1}


def _option(one: click.Option) -> dict[str, Any]:
    said = _DEFAULT.search(one.help or "")
    default = one.to_info_dict()["default"]
    if not isinstance(default, (bool, int, float, str)):
        default = said[1] if said is not None else None
    return {
        "flags": [*one.opts, *one.secondary_opts],
        **_taken(one),
        "value": None if one.is_flag else one.metavar or "VALUE",
        "default": default,
        "required": one.required,
        "repeatable": one.multiple,
        "meaning": one.help or "",
    }


def _taken(one: click.Parameter) -> dict[str, Any]:
    """The type of its value, and what it may be."""
    kinds = {
        click.types.IntParamType: "integer",
        click.types.FloatParamType: "number",
        click.types.BoolParamType: "boolean",
    }
    kind = next((word for known, word in kinds.items() if isinstance(one.type, known)), "string")
    choices = [str(word) for word in one.type.choices] if isinstance(one.type, click.Choice) else None
    return {"type": kind, "choices": choices}


def exit_codes() -> Iterator[dict[str, Any]]:
    """Every exit code, what it is called, and what happened."""
    told = [
        (0, "", "all is well"),
        (1, "internal", "a fault in Turnlog; a check of `turnlog demo` failed; a question was answered with no"),
        (2, "usage", "no such command, option or field, or a value that it does not take"),
        *((error.exit_code, error.code, _sentence(error)) for error in _errors(errors.TurnlogError)),
        (NOT_RUNNABLE, "not_runnable", "the command for `run` or `resume --exec` is there and cannot be run"),
        (NOT_FOUND, "no_command", "there is no such command for `run` or `resume --exec`"),
        (INTERRUPTED, "", "interrupted with Ctrl-C"),
        (PIPE_CLOSED, "", "whoever read the output closed it"),
    ]
    for code, name, meaning in told:
        yield {"code": code, "name": name, "meaning": meaning}


def _sentence(error: type[errors.TurnlogError]) -> str:
    what = (error.__doc__ or "").split("\n")[0].rstrip(".")
    return what[:1].lower() + what[1:]


def _errors(root: type[errors.TurnlogError]) -> Iterator[type[errors.TurnlogError]]:
    for error in root.__subclasses__():
        if error.__module__ == errors.__name__:
            yield error
            yield from _errors(error)


def filters() -> Iterator[dict[str, str]]:
    """What may be typed besides words to find sessions."""
    from turnlog.catalog.ask.query import HELP

    _, told = HELP.split("\n\n")
    for line in told.splitlines():
        example, meaning = re.split(r" {2,}", line, maxsplit=1)
        for one in example.split():
            if ":" in one:
                yield {"name": one.partition(":")[0], "example": example, "meaning": meaning}

"""The command line as data: commands, exit codes, environment, filters. What `turnlog api` and docs/cli.md say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from turnlog import errors
from turnlog.cli.frame.agentshell import FOR_PEOPLE
from turnlog.cli.frame.command import HELP, Argument, Option
from turnlog.cli.frame.commandlist import get_command
from turnlog.cli.frame.document.encoding import VERSION
from turnlog.cli.frame.document.schema import schema
from turnlog.cli.frame.exitcode import INTERRUPTED, PIPE_CLOSED
from turnlog.cli.frame.foreground import NOT_FOUND, NOT_RUNNABLE
from turnlog.cli.frame.help import summary

_EXAMPLE = re.compile(r"^ *((?:\w+ \W*\$\()?turnlog (?:\S| \S)*)(?: {2,}(.*))?$", re.MULTILINE)
_DEFAULT = re.compile(r"\[default: ([^]]+)\]")
ENVIRONMENT = {
    "TURNLOG_HOME": "where the sessions are: a folder, or postgresql://…; default ~/.turnlog",
    "TURNLOG_ALLOW_AGENT": f"1 allows in an agent's own shell what is refused there: {', '.join(FOR_PEOPLE)}",
    "TURNLOG_LIMIT": "the size up to which hooks may fill a home, before what `gc --limit` says: 50GB",
    "TURNLOG_QUIET": "1: hooks tell an agent nothing",
    "TURNLOG_DEBUG": "anything: `statusline` reports on stderr what went wrong",
    "TURNLOG_BACKGROUND": "off forbids the process that reads sessions in the background: commands read all first",
    "TURNLOG_OFFERS": "off: `turnlog` alone offers nothing",
    "COLUMNS": "the width of output that does not go to a terminal; without it, nothing is truncated",
    "NO_COLOR": "anything: no colours",
    "PAGER": "what `show` goes through on a terminal; empty or cat for none",
    "OTEL_EXPORTER_OTLP_ENDPOINT": "where `export --to otel` sends spans; …_HEADERS and the others, too",
    "XDG_CONFIG_HOME": "where your own prices are read from",
    "XDG_STATE_HOME": "where this machine stores state that cannot be rebuilt",
    "XDG_CACHE_HOME": "where the index is",
}
"""What is read of the environment. Where agents keep their sessions, their own variables say: see `turnlog formats`."""


def described(name: str) -> dict[str, Any]:
    """Return what programs may know of one command."""
    command = get_command(name)
    options = [option for option in command.options if not option.is_hidden and option is not HELP]
    return {
        "name": name,
        "summary": summary(name),
        "arguments": [_argument(argument) for argument in command.arguments],
        "options": [_option(option) for option in options],
        "examples": list(examples(command.help)),
        "changes": command.module.CHANGES,
        "json": schema(command.module.FIELDS, getattr(command.module, "JSON_VERSION", VERSION)),
    }


def examples(help: str) -> Iterator[dict[str, str]]:
    """Yield the lines of a help text that can be typed."""
    for match in _EXAMPLE.finditer(help):
        yield {"command": match[1].strip(), "meaning": match[2] or ""}


def _argument(argument: Argument) -> dict[str, Any]:
    name = argument.name.upper() if argument.choices else argument.shown.strip("[].")
    return {
        "name": name,
        **_json_type(argument),
        "required": argument.is_required,
        "repeatable": argument.is_repeatable,
    }


def _option(option: Option) -> dict[str, Any]:
    words = _DEFAULT.search(option.help)
    default = option.default if option.default not in (None, ()) else None
    return {
        "flags": [*option.flags, *option.off.split()],
        **_json_type(option),
        "value": None if not option.value else "VALUE" if option.choices else option.value,
        "default": words[1] if default is None and words is not None else default,
        "required": option.is_required,
        "repeatable": option.is_repeatable,
        "meaning": option.help,
    }


def _json_type(parameter: Argument | Option) -> dict[str, Any]:
    """Return the type of its value, and what it may be."""
    kind = "string"
    if isinstance(parameter, Option) and not parameter.value:
        kind = "boolean"
    elif isinstance(parameter, Option) and parameter.number is not None:
        kind = "integer" if parameter.number is int else "number"
    return {"type": kind, "choices": list(parameter.choices) or None}


def exit_codes() -> Iterator[dict[str, Any]]:
    """Yield every exit code, what it is called, and what happened."""
    codes = [
        (0, "", "success"),
        (1, "internal", "a fault in Turnlog; a check of `turnlog demo` failed; a question was answered with no"),
        (2, "usage", "no such command, option or field, or an invalid value"),
        *((error.exit_code, error.code, _sentence(error)) for error in _errors(errors.TurnlogError)),
        (NOT_RUNNABLE, "not_runnable", "the command for `run` or `resume --exec` exists but cannot be run"),
        (NOT_FOUND, "no_command", "there is no such command for `run` or `resume --exec`"),
        (INTERRUPTED, "", "interrupted with Ctrl-C"),
        (PIPE_CLOSED, "", "the reader of the output closed it"),
    ]
    for code, name, meaning in codes:
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
    """Yield the filters that may be typed beside words to find sessions."""
    from turnlog.catalog.ask.query import HELP

    _, lines = HELP.split("\n\n")
    for line in lines.splitlines():
        example, meaning = re.split(r" {2,}", line, maxsplit=1)
        for one in example.split():
            if ":" in one:
                yield {"name": one.partition(":")[0], "example": example, "meaning": meaning}

"""What `--help` prints, for a command and for the program."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from textwrap import TextWrapper

from turnlog.cli.frame.command import Command, Option
from turnlog.cli.frame.commandlist import command_names, source_of
from turnlog.view.visible import clip

_NARROWEST, _WIDEST = 50, 94
_TERM = 30
"""The most columns for the flags of an option; longer ones get a line of their own."""
_SUMMARY = re.compile(r'''^def command\(.*?\) -> None:\n    """(.+?)\.$''', re.MULTILINE | re.DOTALL)
"""Matches the first sentence of the help in a command's source: importing every command takes too long."""
_GROUP = re.compile(r"""^GROUP = "(.+?)", (\d+)$""", re.MULTILINE)
"""Matches the group of the command in its source, and its position there: those used most come first."""
_GROUPS = ("Find", "Safety net", "Share", "Care")
_OTHERS = ("More", 0)
"""The group of a command that names none."""


def help_of(command: Command, width: int | None = None) -> str:
    """The whole help text; as wide as the terminal where no width is given."""
    if width is None:
        width = max(min(shutil.get_terminal_size().columns - 2, _WIDEST), _NARROWEST)
    lines = [*_usage(command, width), "", *_text(command.help, width, "  "), "", "Options:"]
    lines += _definitions([_option(one) for one in command.options if not one.is_hidden], width)
    if command.is_program:
        lines += ["", "Commands:", *_commands(width)]
    return "\n".join(lines)


def summary(name: str) -> str:
    """What a command is for, on one line: the first sentence of its help."""
    sentence = _SUMMARY.search(source_of(name))
    return " ".join(sentence[1].split()).partition(". ")[0] if sentence is not None else ""


def _commands(width: int) -> Iterator[str]:
    """Every command with its summary on one line, in groups."""
    names = command_names()
    longest = max(map(len, names))
    groups: dict[str, list[tuple[int, str]]] = {title: [] for title in _GROUPS}
    for name in names:
        title, position = _group(name)
        groups.setdefault(title, []).append((position, name))
    for title, members in groups.items():
        if members:
            yield from ("", f"{title}:")
        for _, name in sorted(members):
            yield f"  {name:{longest}}  {clip(summary(name), width - 4 - longest)}"


def _group(name: str) -> tuple[str, int]:
    declared = _GROUP.search(source_of(name))
    return (declared[1], int(declared[2])) if declared is not None else _OTHERS


def _usage(command: Command, width: int) -> list[str]:
    start = f"Usage: {command.path} "
    words = " ".join(["[OPTIONS]", *(argument.shown for argument in command.arguments)])
    return _wrapped(words, width, start, " " * len(start))


def _text(text: str, width: int, indent: str) -> Iterator[str]:
    """Paragraphs; one that begins with a line `\\b` keeps its lines."""
    for number, paragraph in enumerate(text.split("\n\n")):
        lines = paragraph.splitlines()
        if number:
            yield ""
        if lines[0] == "\b":
            yield from (indent + line for line in lines[1:])
        else:
            yield from _wrapped(" ".join(lines), width, indent, indent)


def _definitions(rows: list[tuple[str, str]], width: int) -> Iterator[str]:
    column = min(max(len(term) for term, _ in rows), _TERM) + 4
    for term, meaning in rows:
        first, *more = _wrapped(meaning, max(width - column, 10), "", "") or [""]
        if len(term) > column - 4:
            yield f"  {term}"
            yield " " * column + first
        else:
            yield f"  {term}".ljust(column) + first
        yield from (" " * column + line for line in more)


def _option(option: Option) -> tuple[str, str]:
    """Its flags, the short one first, and what it means."""
    term = ", ".join(sorted(option.flags, key=lambda flag: flag.startswith("--")))
    term += f" / {option.off}" if option.off else f" {option.value}" if option.value else ""
    notes = [f"default: {option.default}"] if option.value and option.default not in (None, "", ()) else []
    if option.least is not None:
        notes.append(f"x>={option.least}" if option.most is None else f"{option.least}<=x<={option.most}")
    notes += ["required"] if option.is_required else []
    return term, f"{option.help}  [{'; '.join(notes)}]" if notes else option.help


def _wrapped(text: str, width: int, first: str, indent: str) -> list[str]:
    return TextWrapper(width, initial_indent=first, subsequent_indent=indent, replace_whitespace=False).wrap(text)

"""Completion: answers the shells, whose scripts `turnlog completion` prints.

The environment says which shell asks, in `_TURNLOG_COMPLETE`. The first line of the answer is `words`, `files` or
`folders`; after `words`, each line is a word, a tab, and its meaning. Sessions are looked up in the catalog as it is.
After any error the answer has no words: in the middle of a line there is no room for a message.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from turnlog.view.visible import clip, one_line, width

if TYPE_CHECKING:
    from turnlog.cli.frame.command import Command, Option

_DOCUMENTS = ("markdown", "html", "json", "jsonl", "otel")
_RECENT = {"@": "the newest session of this folder", "@-": "the one before it", "latest": "the newest of all"}
_LISTING = ("33", "63", "64")
"""COMP_TYPE of bash when it lists the candidates. Otherwise it inserts them into the line, so titles are left out."""


class Word(NamedTuple):
    """Something that could be typed, and what it means."""

    text: str
    meaning: str = ""


class Completion(NamedTuple):
    """What kind of word is completed, and for which command."""

    kind: str
    """command, option, choice, a kind of an argument or option, or empty: nothing is known of it."""
    command: Command | None = None
    choices: tuple[str, ...] = ()
    lead: str = ""
    """What stands before it in the same word: `--in=`."""


def answer(shell: str, arguments: list[str]) -> None:
    """Print what could come next."""
    try:
        lines = list(_lines(shell, arguments))
    except Exception:  # see above
        lines = ["words"]
    sys.stdout.buffer.write("".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace"))
    sys.stdout.flush()


def _lines(shell: str, arguments: list[str]) -> Iterator[str]:
    words = _split(arguments[0]) if shell == "bash" else arguments or [""]
    wanted = _completion_at(words)
    start = words[-1].removeprefix(wanted.lead)
    if wanted.kind in ("file", "folder") or (wanted.kind == "session" and start[:1] in ("/", ".", "~")):
        yield "folders" if wanted.kind == "folder" else "files"
        return
    candidates = [word for word in _words(wanted, start, words) if word.text.startswith(start) and _is_plain(word.text)]
    yield "words"
    if shell == "bash":
        yield from _for_bash(candidates, wanted.lead, words[-1], *arguments[1:])
        return
    for word in candidates:
        yield f"{one_line(wanted.lead + word.text)}\t{one_line(word.meaning)}"


def _split(line: str) -> list[str]:
    """The words of a line behind the first; the last one is not finished, and perhaps not begun."""
    for closing in ("", '"', "'", "\\"):
        try:
            words = shlex.split(line + closing)
        except ValueError:
            continue
        return [*words[1:], ""] if not closing and line[-1:].isspace() else words[1:] or [""]
    return [""]


def _for_bash(
    candidates: list[Word], lead: str, typed: str, breaks: str = "", how: str = "", room: str = ""
) -> Iterator[str]:
    """Bash replaces only what stands behind the last character that breaks words, such as `:` and `=`."""
    cut = max((typed.rfind(mark) for mark in ":=" if mark in breaks), default=-1) + 1
    texts = [(lead + word.text)[cut:] for word in candidates]
    texts = [shlex.quote(text) if _is_odd(text) else text for text in texts]
    if len(candidates) < 2 or how not in _LISTING:
        yield from texts
        return
    widest = min(40, max(map(width, texts)))
    columns = int(room) if room.isdecimal() else 80
    for text, word in zip(texts, candidates, strict=True):
        padded = text + " " * (widest - width(text))
        meaning = f"  ({one_line(word.meaning)})" if word.meaning else ""
        yield clip(padded + meaning, max(20, columns - 2)).rstrip()


def _is_plain(text: str) -> bool:
    """Whether it can be put on a line as it is."""
    return one_line(text) == text


def _is_odd(text: str) -> bool:
    return any(not (c.isalnum() or c in "-_./:=@,+%~") for c in text)


def _completion_at(words: list[str]) -> Completion:
    """Return what kind of word the last one is."""
    from turnlog.cli.frame.commandlist import takes_session

    if len(words) == 2 and not words[1].startswith("-") and takes_session(words[0]):
        return Completion("session")
    *before, typed = words
    position = _position_behind(before)
    command = position.command
    if command is None:
        return Completion("")
    if position.option is not None:
        return _about(command, position.option)
    if position.takes_options and typed.startswith("-"):
        flag, equals, _ = typed.partition("=")
        option = _option(command, flag)
        if equals and option is not None:
            return _about(command, option)._replace(lead=f"{flag}=")
        return Completion("option", command)
    return Completion("command", command) if command.is_program else _positional(command, position.arguments)


class _Position(NamedTuple):
    """What the words before the last one say about it."""

    command: Command | None
    """None where there is no such command."""
    arguments: int = 0
    """How many arguments stand before it."""
    takes_options: bool = True
    option: Option | None = None
    """The option whose value it is."""


def _position_behind(words: list[str]) -> _Position:
    from turnlog.cli.frame.arguments import option_awaiting_value
    from turnlog.cli.frame.commandlist import get_command
    from turnlog.cli.frame.exitcode import UsageError
    from turnlog.cli.program import PROGRAM

    command, arguments, takes_options = PROGRAM, 0, True
    rest = iter(words)
    for word in rest:
        if takes_options and word == "--":
            takes_options = False
        elif takes_options and word.startswith("-") and word != "-":
            option = option_awaiting_value(command, word)
            if option is not None and next(rest, None) is None:
                return _Position(command, arguments, option=option)
        elif command is PROGRAM:
            try:
                command = get_command(word)
            except UsageError:
                return _Position(None)
        else:
            arguments += 1
            takes_options = takes_options and not any(argument.takes_rest for argument in command.arguments)
    return _Position(command, arguments, takes_options)


def _option(command: Command, flag: str) -> Option | None:
    return next((option for option in command.options if flag in (*option.flags, *option.off.split())), None)


def _about(command: Command, option: Option) -> Completion:
    """Return what the value of an option is."""
    if option.choices:
        return Completion("choice", command, option.choices)
    return Completion(option.kind, command, _DOCUMENTS if option.kind == "form" else ())


def _positional(command: Command, number: int) -> Completion:
    """Return what the argument with that number is."""
    for argument in command.arguments:
        if not argument.is_repeatable and number:
            number -= 1
        elif argument.choices:
            return Completion("choice", command, argument.choices)
        elif argument.kinds:
            kind = argument.kinds[min(number, len(argument.kinds) - 1)]
            return Completion(kind, command, _actions(argument.shown) if kind == "action" else ())
        else:
            return Completion("")
    return Completion("")


def _actions(shown: str) -> tuple[str, ...]:
    """The words in `[install|uninstall|status] [AGENT]...`."""
    return tuple(shown.partition(" ")[0].strip("[]").split("|"))


def _words(wanted: Completion, start: str, words: list[str]) -> Iterable[Word]:
    if wanted.kind == "command":
        from turnlog.cli.frame.commandlist import command_names
        from turnlog.cli.frame.help import summary

        yield from (Word(name, summary(name)) for name in command_names() if name.startswith(start))
    elif wanted.kind == "option" and wanted.command is not None:
        yield from _options(wanted.command)
    elif wanted.kind == "session":
        yield from _sessions(start, _home(words))
    elif wanted.kind == "deleted":
        from turnlog.catalog.ask.completion import deleted_beginning

        yield from (Word(name, "in the trash") for name in deleted_beginning(_home(words), start))
    elif wanted.kind in ("agent", "form"):
        yield from map(Word, (*wanted.choices, *_agents()))
    elif wanted.kind in ("choice", "action"):
        yield from map(Word, wanted.choices)


def _options(command: Command) -> Iterator[Word]:
    for option in command.options:
        if not option.is_hidden:
            meaning = option.help.partition(". ")[0]
            yield Word(max(option.flags, key=len), meaning)
            if option.off:
                yield Word(max(option.off.split(), key=len), f"not: {meaning}")


def _agents() -> list[str]:
    """The names of the formats, without loading any."""
    import pkgutil
    from importlib.util import find_spec

    package = find_spec("turnlog.formats")
    places = list(package.submodule_search_locations or ()) if package is not None else []
    places += [f"{folder}/seeds" for folder in places]
    modules = {module.name for module in pkgutil.iter_modules(places) if not module.name.startswith("_")}
    return sorted(name.replace("_", "-") for name in modules - {"seeds"})


def _home(words: list[str]) -> str | None:
    """Return the home that is named on the line."""
    for index, word in enumerate(words[:-1]):
        if word == "--":
            return None  # what follows is another program's
        if word == "--home":
            return words[index + 1]
        if word.startswith("--home="):
            return word.partition("=")[2]
    return None


def _sessions(start: str, home: str | None) -> Iterator[Word]:
    if start.startswith("@") or not start or "latest".startswith(start):
        yield from (Word(text, meaning) for text, meaning in _RECENT.items() if text.startswith(start))
    from turnlog.catalog.ask.completion import names_beginning

    for name, title in names_beginning(home, start):
        yield Word(name, title)

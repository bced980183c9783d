"""What could be typed next, for the shells: `turnlog completion` prints the scripts that ask this.

The environment says which shell asks, in `_TURNLOG_COMPLETE`. The first line of the answer is `words`, `files` or
`folders`; after `words`, each line is a word, a tab, and what it means. Nothing is looked up but the catalog as
it is, and whatever goes wrong, the answer is no words: in the middle of a line there is no room for an error.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from turnlog.view.visible import clip, one_line, width

if TYPE_CHECKING:
    from turnlog.cli.frame.command import Command, Option

_AGENTS = ("--agent", "--in", "--to")
_DOCUMENTS = ("markdown", "html", "json", "jsonl", "otel")
_RECENT = {"@": "the newest session of this folder", "@-": "the one before it", "latest": "the newest of all"}
FIRST = frozenset(
    ["compact", "checkpoints", "doctor", "export", "fork", "log", "path", "pull", "push", "resume",
     "restore", "rm", "show", "sync", "tag", "title", "tree", "uncompact", "watch"]
)  # fmt: skip
"""Commands whose first word is a session, known without importing them. A missing one is only completed more slowly."""
_MEANING = 80
_LISTING = ("33", "63", "64")
"""COMP_TYPE of bash when it lists the candidates. Otherwise it inserts them into the line, so titles are left out."""


class Word(NamedTuple):
    """Something that could be typed, and what it means."""

    text: str
    meaning: str = ""


class Completion(NamedTuple):
    """What kind of word is completed, and for which command."""

    kind: str
    """command, option, session, agent, choice, file, folder, or empty."""
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
    asked = _asked(words)
    start = words[-1].removeprefix(asked.lead)
    if asked.kind in ("file", "folder") or (asked.kind == "session" and start[:1] in ("/", ".", "~")):
        yield "folders" if asked.kind == "folder" else "files"
        return
    candidates = [word for word in _words(asked, start, words) if word.text.startswith(start) and _is_plain(word.text)]
    yield "words"
    if shell == "bash":
        yield from _for_bash(candidates, asked.lead, words[-1], *arguments[1:])
        return
    for word in candidates:
        yield f"{one_line(asked.lead + word.text)}\t{one_line(word.meaning)}"


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


# ── which ─────────────────────────────────────────────────────────────────────────────────────────


def _asked(words: list[str]) -> Completion:
    if len(words) == 2 and words[0] in FIRST and not words[1].startswith("-"):
        return Completion("session")
    from turnlog.cli.frame.commandlist import get_command
    from turnlog.cli.frame.exitcode import Misused
    from turnlog.cli.frame.program import PROGRAM

    *before, typed = words
    command = PROGRAM
    rest = iter(before)
    named: list[str] = []
    is_open = True
    for word in rest:
        if is_open and word == "--":
            is_open = False
        elif is_open and word.startswith("-") and word != "-":
            option = _option(command, word.partition("=")[0])
            if option is not None and "=" not in word and option.value and next(rest, None) is None:
                return _about(command, option, word)
        elif command is PROGRAM:
            try:
                command = get_command(word)
            except Misused:
                return Completion("")
        else:
            named.append(word)
            if any(argument.is_rest for argument in command.arguments):
                is_open = False
    if is_open and typed.startswith("-"):
        flag, equals, _ = typed.partition("=")
        option = _option(command, flag)
        if equals and option is not None:
            return _about(command, option, flag)._replace(lead=f"{flag}=")
        return Completion("option", command)
    if command is PROGRAM:
        return Completion("command", command)
    return _positional(command, len(named))


def _option(command: Command, flag: str) -> Option | None:
    return next((option for option in command.options if flag in (*option.flags, option.off)), None)


def _about(command: Command, option: Option, flag: str) -> Completion:
    """What the value of an option is."""
    if option.choices:
        return Completion("choice", command, option.choices)
    if flag in _AGENTS or option.flags[0] in _AGENTS:
        return Completion("agent", command, _DOCUMENTS if "--to" in option.flags else ())
    if "--workspace" in option.flags or "--home" in option.flags:
        return Completion("folder", command)
    return Completion({"SESSION": "session", "PATH": "file"}.get(option.value, ""), command)


def _positional(command: Command, number: int) -> Completion:
    for argument in command.arguments:
        if not argument.is_many and number:
            number -= 1
            continue
        if argument.choices:
            return Completion("choice", command, argument.choices)
        names = argument.shown.upper().replace("[", "").replace("]", "").split()
        name = names[min(number, len(names) - 1)]
        for word in ("SESSION", "AGENT", "COMMAND"):
            if name.startswith(word):
                return Completion(word.lower(), command)
        return Completion("file" if name.startswith(("PATH", "--", "CMD", "ARG")) else "", command)
    return Completion("")


# ── what there is ─────────────────────────────────────────────────────────────────────────────────


def _words(asked: Completion, start: str, words: list[str]) -> Iterable[Word]:
    if asked.kind == "command":
        from turnlog.cli.frame.commandlist import command_names
        from turnlog.cli.frame.help import summary

        yield from (Word(name, summary(name, _MEANING)) for name in command_names() if name.startswith(start))
    elif asked.kind == "option" and asked.command is not None:
        yield from _options(asked.command)
    elif asked.kind == "session":
        yield from _sessions(start, _home(words))
    elif asked.kind == "agent":
        yield from map(Word, (*asked.choices, *_agents()))
    elif asked.kind == "choice":
        yield from map(Word, asked.choices)


def _options(command: Command) -> Iterator[Word]:
    for option in command.options:
        if not option.is_hidden:
            yield Word(max(option.flags, key=len), option.help.partition(". ")[0])


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
    """The home that is named on the line."""
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

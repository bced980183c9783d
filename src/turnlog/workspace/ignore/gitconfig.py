"""Git's settings, read from their files: sections, quotes, comments, and the files that they include."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator

from msgspec import Struct

from turnlog.log.startup import pattern
from turnlog.workspace.ignore.pattern import glob_expression
from turnlog.workspace.systemerror import raise_if_system_error

_MOST_INCLUDES = 10
_LARGEST = 1 << 20
_HEADER = pattern(r'\[([A-Za-z0-9.-]+)(?:[ \t]+"((?:\\.|[^"\\\n])*)")?\]')
_KEY = pattern(r"([A-Za-z][A-Za-z0-9-]*)[ \t]*=")
_PIECE = pattern(r'\\(?:\r?\n|.)?|\r?\n|[";#]|\s|[^\\";#\s]+', re.DOTALL)
_ESCAPED = {"\\n": "\n", "\\t": "\t", "\\b": "\b", "\\\n": "", "\\\r\n": ""}


class GitConfig(Struct, frozen=True):
    """Where settings apply: which of them are included depends on it."""

    expand: Callable[[str], str]
    """Resolves `~` at the beginning of a path."""
    repository: str | None
    """The git folder of the worktree; None without git."""

    def values(self, path: str, key: str, depth: int = 0) -> Iterator[str]:
        """The values of a key in one file and in those that it includes, in git's order: the last one counts."""
        text = _content(path)
        if key.rpartition(".")[2] not in text.lower() and "[include" not in text.lower():
            return
        for name, value in settings(text):
            if name == key:
                yield value
            elif depth < _MOST_INCLUDES and self._is_include(path, name):
                included = os.path.join(os.path.dirname(path), self.expand(value))
                yield from self.values(included, key, depth + 1)

    def _is_include(self, path: str, name: str) -> bool:
        """Whether a setting names a file to include; a condition is known if it is about the repository's place."""
        if name == "include.path":
            return True
        kind, _, glob = name.removeprefix("includeif.").removesuffix(".path").partition(":")
        if not (name.startswith("includeif.") and name.endswith(".path")) or kind not in ("gitdir", "gitdir/i"):
            return False
        if self.repository is None:
            return False
        glob += "**" if glob.endswith("/") else ""
        lead = ""
        if glob.startswith("./"):
            lead, glob = os.path.dirname(os.path.realpath(path)), glob[1:]
        elif glob.startswith("~/"):
            lead, glob = os.path.realpath(self.expand("~")), glob[1:]
        elif not glob.startswith("/"):
            glob = f"**/{glob}"
        expression = re.escape(_bytewise(lead)) + glob_expression(_bytewise(glob))
        paths = (os.path.realpath(self.repository), self.repository)
        flags = re.DOTALL | (re.IGNORECASE if kind == "gitdir/i" else 0)
        return any(re.fullmatch(expression, _bytewise(path), flags) for path in paths)


def settings(text: str) -> Iterator[tuple[str, str]]:
    """The settings in a text, in its order, each with its sections in front. What git would refuse is skipped."""
    section, at = "", 0
    while at < len(text):
        if text[at].isspace():
            at += 1
        elif header := _HEADER.match(text, at):
            inner = header[2]
            section = header[1].lower() + ("" if inner is None else "." + re.sub(r"\\(.)", r"\1", inner))
            at = header.end()
        elif key := _KEY.match(text, at):
            value, at = _value(text, key.end())
            if "\0" not in value:
                yield f"{section}.{key[1].lower()}", value
        else:
            at = _line_end(text, at)


def _value(text: str, at: int) -> tuple[str, int]:
    """The value that begins at a place, and where it ends."""
    value, spaces, is_quoted = "", "", False
    while piece := _PIECE.match(text, at):
        word, at = piece[0], piece.end()
        if word in ("\n", "\r\n"):
            break
        if word in (";", "#") and not is_quoted:
            return value, _line_end(text, at)
        if word.isspace() and not is_quoted:
            spaces += " " if value else ""
            continue
        value, spaces = value + spaces, ""
        if word == '"':
            is_quoted = not is_quoted
        else:
            value += _ESCAPED.get(word, word[1:]) if word[0] == "\\" else word
    return value, at


def _line_end(text: str, at: int) -> int:
    return text.find("\n", at) + 1 or len(text)


def _content(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return os.fsdecode(file.read(_LARGEST).removeprefix(b"\xef\xbb\xbf"))
    except OSError as error:
        raise_if_system_error(error, os.fsencode(path))
        return ""


def _bytewise(path: str) -> str:
    """A path with one character per byte, as globs have it."""
    return os.fsencode(path).decode("latin-1")

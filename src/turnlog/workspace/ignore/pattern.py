"""The lines of an ignore file as regular expressions, by the rules of git's own matcher.

A character stands for a byte, as in git: texts are decoded as Latin-1. A line that git cannot use is no rule here
either.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from msgspec import Struct

_STAR, _ONE, _FOLDERS, _ALL, _NEVER = "[^/]*", "[^/]", "(?:.*/)?", ".*", "(?!)"
_ANY = frozenset(map(chr, range(1, 256)))


@cache
def _members(name: str) -> str | None:
    """The members of a named class in brackets, as git has them."""
    import string  # few ignore files name one

    letters, digits, signs = string.ascii_letters, string.digits, string.punctuation
    return {
        "alnum": letters + digits,
        "alpha": letters,
        "blank": " \t",
        "cntrl": "".join(map(chr, range(1, 32))) + "\x7f",
        "digit": digits,
        "graph": letters + digits + signs,
        "lower": string.ascii_lowercase,
        "print": letters + digits + signs + " ",
        "punct": signs,
        "space": " \t\n\r",
        "upper": string.ascii_uppercase,
        "xdigit": string.hexdigits,
    }.get(name)


class IgnorePattern(Struct, frozen=True):
    """One rule: what it matches, and its verdict."""

    expression: str
    """Matches a whole path or a whole name, with `re.DOTALL`."""
    is_path: bool
    """Whether it is matched against the path, not against the last name of it."""
    is_for_folders: bool
    """Whether it matches only folders."""
    leaves_out: bool
    """Whether a match leaves the path out; otherwise it brings the path back."""


def ignore_patterns(text: str) -> list[IgnorePattern]:
    """The rules of an ignore file, in its order."""
    lines = text.removeprefix("\xef\xbb\xbf").split("\n")
    patterns = (_pattern_of(line.removesuffix("\r")) for line in lines if not line.startswith("#"))
    return [pattern for pattern in patterns if pattern is not None]


def _pattern_of(line: str) -> IgnorePattern | None:
    """The rule of a line; None if nothing can match it."""
    line = _without_last_spaces(line.partition("\0")[0])
    leaves_out = not line.startswith("!")
    glob = line if leaves_out else line[1:]
    is_for_folders = glob.endswith("/")
    glob = glob.removesuffix("/")
    expression = glob_expression(glob.removeprefix("/"))
    return IgnorePattern(expression, "/" in glob, is_for_folders, leaves_out) if expression != _NEVER else None


def _without_last_spaces(line: str) -> str:
    """The line without the spaces at its end; an escaped one stays."""
    kept = line.rstrip(" ")
    backslashes = len(kept) - len(kept.rstrip("\\"))
    return line[: len(kept) + 1] if backslashes % 2 else kept


def glob_expression(glob: str) -> str:
    """A regular expression for the whole paths, or whole names, that git's wildcards match."""
    parts = list(_parts(glob))
    if not parts or _NEVER in parts:
        return _NEVER
    expression = ""
    after_star: str | None = None
    for part in parts:
        if part == _STAR:
            if after_star is not None:  # between two stars the first match is enough: without this, many stars hang
                expression += f"(?>{_STAR}?{after_star})"
            after_star = ""
        elif after_star is None:
            expression += part
        elif part in ("/", _FOLDERS, _ALL):
            expression += _STAR + after_star + part
            after_star = None
        else:
            after_star += part
    return expression if after_star is None else expression + _STAR + after_star


def _parts(glob: str) -> Iterator[str]:
    """Each piece of a glob as a regular expression; `_NEVER` for one that matches nothing."""
    literal = next((at for at, char in enumerate(glob) if char in "*?[\\"), len(glob))
    at = 0
    while at < len(glob):
        char = glob[at]
        start, at = at, at + 1
        if char == "*":
            at = next((end for end in range(at, len(glob)) if glob[end] != "*"), len(glob))
            # Git compares what comes before the first wildcard by itself, so that is a beginning, too.
            is_double = at - start > 1 and (start == literal or glob[start - 1] == "/")
            if is_double and glob[at : at + 1] == "/":
                at += 1
                yield _FOLDERS
            elif is_double and (at == len(glob) or glob.startswith("\\/", at)):
                yield _ALL
            else:
                yield _STAR
        elif char == "?":
            yield _ONE
        elif char == "[":
            members, at = _bracket(glob, at)
            yield "[" + "".join(f"\\x{ord(member):02x}" for member in sorted(members)) + "]" if members else _NEVER
        elif char == "\\":
            yield re.escape(glob[at]) if at < len(glob) else _NEVER
            at += 1
        else:
            yield re.escape(char)


def _bracket(glob: str, at: int) -> tuple[frozenset[str], int]:
    """The characters that a bracket matches, given the place behind `[`, and the place behind `]`.

    There are none if it is not closed, or has a class of an unknown name.
    """
    nothing = frozenset[str](), len(glob)
    is_negated = glob[at : at + 1] in ("!", "^")
    at += is_negated
    members: set[str] = set()
    previous, is_first = "", True
    while is_first or glob[at : at + 1] != "]":
        is_first = False
        char, at = glob[at : at + 1], at + 1
        is_range = char == "-" and previous != "" and glob[at : at + 1] != "]"
        if is_range:
            char, at = glob[at : at + 1], at + 1
        if char == "\\":
            char, at = glob[at : at + 1], at + 1
        elif char == "[" and not is_range and glob[at : at + 1] == ":":
            end = glob.find("]", at + 1)
            if end < 0:
                return nothing
            if end > at + 1 and glob[end - 1] == ":":
                name, at = glob[at + 1 : end - 1], end + 1
                if (named := _members(name)) is None:
                    return nothing
                members.update(named)
                previous = ""
                continue
        if not char:
            return nothing
        members.update(map(chr, range(ord(previous), ord(char) + 1)) if is_range else char)
        previous = "" if is_range else char
    return (_ANY - members if is_negated else frozenset(members)) - {"/"}, at + 1

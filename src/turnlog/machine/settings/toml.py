"""Tables in TOML settings of other programs: added behind all else, found again, and taken out. Text in, text out."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Sequence
from copy import deepcopy
from typing import Any, cast

from turnlog.errors import Corrupt, Invalid
from turnlog.interop.value import fields
from turnlog.machine.replace import BY_HAND

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_HEADER = re.compile(r"^[ \t]*\[.*$", re.MULTILINE)


def toml_value(text: str) -> dict[str, Any]:
    """The whole text as plain values. Raises `Corrupt` with the place."""
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, or too many brackets, too
        raise Corrupt(str(error), hint="mend it first: its own program cannot read it") from None


def table_at(value: dict[str, Any], path: Sequence[str]) -> Any:
    """The value at a path of keys, or None."""
    table: Any = value
    for key in path:
        table = fields(table).get(key)
    return table


def with_table(text: str, path: Sequence[str], values: dict[str, Any]) -> str:
    """The text with a table that holds these texts, lists and tables of texts; one that is there is written anew."""
    before = toml_value(text)
    if table_at(before, path) == values:
        return text
    text = without_table(text, path)
    line = "\r\n" if "\r\n" in text else "\n"
    rows = [f"[{_dotted(path)}]", *(f"{_key(name)} = {_written(value)}" for name, value in values.items())]
    gap = "" if not text else line if text.endswith("\n") else line * 2
    return _checked(f"{text}{gap}{line.join(rows)}{line}", before, path, values)


def without_table(text: str, path: Sequence[str]) -> str:
    """The text without that table. One that has no header of its own is refused."""
    before = toml_value(text)
    if table_at(before, path) is None:
        return text
    headers = [
        header for header in _HEADER.finditer(text) if _names(header.group(), path) and _is_outside_text(text, header)
    ]
    for header in reversed(headers):
        end = _end_of_table(text, header.start())
        head = re.sub(r"(?<=\n)\r?\n\Z", "", text[: header.start()])
        text = head + text[end:]
    if headers:
        return _checked(text, before, path, None)
    raise Invalid(f"{_dotted(path)} has no header of its own", hint=BY_HAND)


def _checked(text: str, before: dict[str, Any], path: Sequence[str], values: dict[str, Any] | None) -> str:
    """The text, if it says what it said before but for that table."""
    refusal = Invalid(f"{_dotted(path)} stands where it cannot be changed safely", hint=BY_HAND)
    try:
        actual = toml_value(text)
    except Corrupt:
        raise refusal from None
    wanted = deepcopy(before)
    table: object = None
    for whole in (wanted, actual):
        node = whole
        for key in path[:-1]:
            inner: Any = node.setdefault(key, {})
            if not isinstance(inner, dict):
                raise refusal
            node = cast("dict[str, Any]", inner)
        table = node.pop(path[-1], None)
    if actual != wanted or table != values:
        raise refusal
    return text


def _end_of_table(text: str, start: int) -> int:
    """Where the table ends whose header begins at `start`. Blank lines and comments after it belong to what follows."""
    end = _end_of_line(text, start)
    while end < len(text):
        line = text[end : _end_of_line(text, end)]
        if line.isspace() or line.lstrip(" \t").startswith("#") or _is_header(line):
            break
        end += len(line)
    return end


def _end_of_line(text: str, start: int) -> int:
    return text.find("\n", start) + 1 or len(text)


def _is_header(line: str) -> bool:
    """Whether a line is a header, and no part of a list on several lines."""
    try:
        return line.lstrip(" \t").startswith("[") and bool(tomllib.loads(line.strip()))
    except tomllib.TOMLDecodeError:
        return False


def _names(header: str, path: Sequence[str]) -> bool:
    """Whether a header is that of this table, or of one inside it."""
    try:
        table: Any = tomllib.loads(header.rstrip())
    except tomllib.TOMLDecodeError:
        return False
    for key in path:
        if list(fields(table)) != [key]:
            return False
        table = fields(table)[key]
    return isinstance(table, dict)


def _is_outside_text(text: str, header: re.Match[str]) -> bool:
    """Whether the text is complete before a header: if it is not, the header is in a string of several lines."""
    try:
        toml_value(text[: header.start()])
    except Corrupt:
        return False
    return True


def _dotted(path: Sequence[str]) -> str:
    return ".".join(map(_key, path))


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _quoted(name)


def _written(value: Any) -> str:
    if isinstance(value, dict):
        inside = cast("dict[str, Any]", value).items()
        return "{ " + ", ".join(f"{_key(name)} = {_written(item)}" for name, item in inside) + " }" if value else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_written, cast('list[Any]', value)))}]"
    return _quoted(value) if isinstance(value, str) else json.dumps(value)


def _quoted(text: str) -> str:
    """JSON's escapes are TOML's as well, but for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")

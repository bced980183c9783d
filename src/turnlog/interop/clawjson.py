"""JSON as claw's own parser takes it, with what that parser would refuse.

It takes commas before a closing bracket, control characters as they are, and leading zeros; of equal keys the last
counts. It refuses fractions, integers beyond 64 bits and surrogate escapes. All of that is read here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import isfinite
from typing import Any, cast

from turnlog.interop.json import decode as decode_strictly
from turnlog.interop.rust import compact
from turnlog.interop.salvage import ESCAPE, unescaped
from turnlog.interop.value import json_text
from turnlog.log.codec import without_surrogates

BOM = b"\xef\xbb\xbf"
_TOKEN = re.compile(
    r'"(?P<text>[^"\\]*+(?:\\.[^"\\]*+)*+)"'
    r"|(?P<number>(?<![0-9a-zA-Z.+\\-])-?[0-9]+(?P<fraction>(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)(?![0-9a-zA-Z.+-]))"
    r"|(?P<wrong>[\[{,:][ \t\r\n]*+,)"
    r"|(?P<comma>,)(?=[ \t\r\n]*+[}\]])",
    re.DOTALL,
)
_SURROGATE = re.compile(rb"(?<!\\)(?:\\\\)*+\\u[dD][89a-fA-F]")
_FOREIGN = "a number that is no 64-bit integer"
_DIGITS = 400
"""A longer number is no number that any program means; turning it into one takes long."""


def decode(data: bytes) -> tuple[Any, list[str]]:
    """The value of one text, and what claw would refuse in it. Raises ValueError for what is no value at all."""
    refused: list[str] = []
    if data.startswith(BOM):
        data = data[len(BOM) :]
        refused.append("a byte order mark")
    try:
        value = decode_strictly(data)
    except ValueError:
        text = data.decode("utf-8", "replace")
        if text.encode() != data:
            refused.append("bytes that are not UTF-8")
        value = decode_strictly(_TOKEN.sub(lambda token: _as_others_write(token, refused), text).encode())
    else:
        if _has_foreign_number(value):
            refused.append(_FOREIGN)
    if _SURROGATE.search(data):
        refused.append("a surrogate escape")
    return value, list(dict.fromkeys(refused))


def with_integers(value: Any, tell: Callable[[], None]) -> Any:
    """The same value for claw: a number that it would refuse is told, and becomes a text of its digits."""
    if isinstance(value, dict):
        return {key: with_integers(item, tell) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [with_integers(item, tell) for item in cast("list[Any]", value)]
    if not _is_foreign(value):
        return value
    tell()
    return compact(value).decode()


def _is_foreign(value: Any) -> bool:
    return isinstance(value, float) or (isinstance(value, int) and not -(1 << 63) <= value < 1 << 63)


def _has_foreign_number(value: Any) -> bool:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            stack.extend(cast("dict[str, Any]", item).values())
        elif isinstance(item, list):
            stack.extend(cast("list[Any]", item))
        elif _is_foreign(item):
            return True
    return False


def _as_others_write(token: re.Match[str], refused: list[str]) -> str:
    """What claw's parser takes, as any other would take it."""
    if token["comma"]:
        return ""
    text, number = token["text"], token["number"]
    if text is not None:
        return json_text(without_surrogates(ESCAPE.sub(_unescaped, text)))
    if number is None:
        return token[0]
    if len(number) > _DIGITS:
        raise ValueError("a number without end")
    if token["fraction"] or not -(1 << 63) <= int(number) < 1 << 63:
        refused.append(_FOREIGN)
    if token["fraction"]:
        return repr(float(number)) if isfinite(float(number)) else json_text(number)
    return number[: number.startswith("-")] + str(abs(int(number)))


def _unescaped(escape: re.Match[str]) -> str:
    if not escape[1] and not escape[2]:
        raise ValueError(f"the escape {escape[0]!r}")
    return unescaped(escape)

"""claw's own JSON: what its parser takes and others do not, and what it refuses although it is JSON.

It takes commas before a closing bracket, control characters as they are, and leading zeros; of equal keys the last
counts. It refuses fractions, integers beyond 64 bits and surrogate escapes. All of that is read here; what claw itself
would refuse is told.
"""

from __future__ import annotations

import re
from typing import Any, cast

from turnlog.formats._shared.json import MAX_DEPTH
from turnlog.formats._shared.json import decode as decode_strictly
from turnlog.log.codec import without_surrogates

BOM = b"\xef\xbb\xbf"
_TOKEN = re.compile(
    r"[ \t\r\n]*+(?:(?P<mark>[{}\[\],:])"
    r'|"(?P<text>[^"\\]*+(?:\\.[^"\\]*+)*+)"'
    r"|(?P<number>-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![0-9a-zA-Z.+-]))"
    r"|(?P<word>true|false|null)(?![0-9a-zA-Z]))",
    re.DOTALL,
)
_SPACE = re.compile(r"[ \t\r\n]*+")
_ESCAPE = re.compile(r'\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt])|(.))', re.DOTALL)
_SURROGATE = re.compile(rb"(?<!\\)(?:\\\\)*+\\u[dD][89a-fA-F]")
_SHORT = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WORDS = {"true": True, "false": False, "null": None}
_DIGITS = 400
"""A longer number is no number that any program means; turning it into one takes long."""


def decode(data: bytes) -> tuple[Any, list[str]]:
    """The value of one text, and what claw would refuse in it. Raises ValueError for what is no value at all."""
    told: list[str] = []
    if data.startswith(BOM):
        data = data[len(BOM) :]
        told.append("a byte order mark")
    try:
        value = decode_strictly(data)
    except ValueError:
        value = _Parser(data, told).value()
    else:
        if _has_foreign_number(value):
            told.append("a number that is no 64-bit integer")
    if _SURROGATE.search(data):
        told.append("a surrogate escape")
    return value, list(dict.fromkeys(told))


def _has_foreign_number(value: Any) -> bool:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            stack.extend(cast("dict[str, Any]", item).values())
        elif isinstance(item, list):
            stack.extend(cast("list[Any]", item))
        elif isinstance(item, float) or (isinstance(item, int) and not -(1 << 63) <= item < 1 << 63):
            return True
    return False


class _Parser:
    """With a stack of its own, so that no nesting can exhaust Python's."""

    def __init__(self, data: bytes, told: list[str]) -> None:
        try:
            self.text = data.decode()
        except UnicodeDecodeError:
            self.text = data.decode("utf-8", "replace")
            told.append("bytes that are not UTF-8")
        self.told = told
        self.at = 0

    def next(self) -> tuple[str, str]:
        found = _TOKEN.match(self.text, self.at)
        if found is None or found.lastgroup is None:
            raise ValueError("not JSON" if self.text[self.at :].strip() else "breaks off")
        self.at = found.end()
        return found.lastgroup, found[found.lastgroup]

    def value(self) -> Any:
        result: list[Any] = []
        stack: list[Any] = [result]
        keys: list[str] = [""]
        kind, token = self.next()
        while True:
            if kind == "mark" and token in "{[":
                fresh: Any = {} if token == "{" else []
                self.put(stack[-1], keys[-1], fresh)
                stack.append(fresh)
                keys.append("")
                if len(stack) > MAX_DEPTH:
                    raise ValueError(f"nested more than {MAX_DEPTH} levels deep")
            elif kind == "mark":
                raise ValueError(f"{token!r} where a value should be")
            else:
                self.put(stack[-1], keys[-1], self.scalar(kind, token))
            kind, token = self.more(stack, keys)
            if len(stack) == 1:
                return result[0]

    def more(self, stack: list[Any], keys: list[str]) -> tuple[str, str]:
        """On to where the next value begins, past whatever closes here."""
        is_fresh = self.text[self.at - 1] in "{["
        while len(stack) > 1:
            inner = stack[-1]
            close = "}" if isinstance(inner, dict) else "]"
            kind, token = self.next()
            if not is_fresh and (kind, token) == ("mark", ","):
                kind, token = self.next()
            elif not is_fresh and (kind, token) != ("mark", close):
                raise ValueError(f"{token[:20]!r} where a comma should be")
            if (kind, token) == ("mark", close):
                stack.pop()
                keys.pop()
                is_fresh = False
                continue
            if isinstance(inner, dict):
                if kind != "text" or self.next() != ("mark", ":"):
                    raise ValueError("an object without keys")
                keys[-1] = self.scalar("text", token)
                return self.next()
            return kind, token
        if _SPACE.fullmatch(self.text, self.at) is None:
            raise ValueError("something follows the value")
        return "", ""

    def put(self, inner: Any, key: str, value: Any) -> None:
        if isinstance(inner, dict):
            inner[key] = value
        else:
            inner.append(value)

    def scalar(self, kind: str, token: str) -> Any:
        if kind == "word":
            return _WORDS[token]
        if kind == "text":
            if "\\" in token:
                token = _ESCAPE.sub(_unescaped, token)
            return cast("str", without_surrogates(token)) if not token.isascii() else token
        if len(token) > _DIGITS:
            raise ValueError("a number without end")
        if token.lstrip("-").isdigit():
            number = int(token)
            if not -(1 << 63) <= number < 1 << 63:
                self.told.append("a number that is no 64-bit integer")
            return number
        self.told.append("a number that is no 64-bit integer")
        fraction = float(token)
        return fraction if abs(fraction) < float("inf") else token


def _unescaped(found: re.Match[str]) -> str:
    if found[1]:
        return chr(int(found[1], 16))
    if found[2]:
        return _SHORT[found[2]]
    raise ValueError(f"the escape {found[0]!r}")

"""JSON of other programs, read as far as it goes where it is not whole."""

from __future__ import annotations

import re
from typing import Any, cast

import msgspec

from turnlog.interop.json import MAX_DEPTH, decode
from turnlog.interop.problem import Problem
from turnlog.log.codec import without_surrogates
from turnlog.log.startup import pattern

_MAX_IN_ONE_DOCUMENT = 50
"""So many problems are told of one text."""
_MARKS = pattern(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+("|\\?\Z)|[{}\[\],]', re.DOTALL)
_CLOSE = {b"{": b"}", b"[": b"]"}
_SPACE = pattern(rb"[ \t\r\n]*")
_STRING = pattern(rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)"', re.DOTALL)
_NUMBER = pattern(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![0-9a-zA-Z.+-])")
_WORDS = {b"true": True, b"false": False, b"null": None}
ESCAPE = pattern(r'\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt])|(.?))', re.DOTALL)
_SHORT = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_HOPELESS = 10_000
"""Nesting at which a damaged text is given up, so that a run of brackets cannot fill the memory."""


def salvage(data: bytes) -> tuple[Any, list[Problem]]:
    """A document as far as it can be read, and what was wrong with it.

    Where the text breaks off or makes no sense any more, every value that was complete by then is kept and whatever is
    still open is closed. Bad text inside a string, a number that is too big, or nesting that is too deep costs only
    itself. None if there is nothing at all.
    """
    try:
        return decode(data), []
    except ValueError:
        pass
    cut, text = _closed(data)
    try:
        # Most often a text breaks off and is sound up to there; then there is no need to go through it ourselves.
        return decode(text), [Problem("the JSON breaks off", offset=cut, length=len(data) - cut)]
    except ValueError:
        pass
    salvaged = _Salvage(data)
    salvaged.run()
    return salvaged.result, salvaged.problems


def _closed(data: bytes) -> tuple[int, bytes]:
    """The end of the last complete value, and the text up to there with every open container closed."""
    stack: list[bytes] = []
    cut = texts = 0
    for mark in _MARKS.finditer(data):
        token = mark[0]
        if token[:1] == b'"':
            if not mark[1]:
                break  # a text without its end
            texts += 1
            if stack and texts == (2 if stack[-1] == b"}" else 1):
                cut = mark.end()
            continue
        texts, cut = 0, mark.start() if token == b"," else mark.end()
        if token in _CLOSE:
            stack.append(_CLOSE[token])
            if len(stack) > MAX_DEPTH:
                return 0, b""
        elif token != b"," and (len(stack) < 2 or stack.pop() != token):
            return 0, b""  # not cut off, but damaged
    text = data[:cut] + b"".join(reversed(stack))
    return cast("re.Match[bytes]", _SPACE.match(data, cut)).end(), text


class _Salvage:
    """A parser with a stack of its own, so that no nesting can exhaust Python's."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 3 if data.startswith(b"\xef\xbb\xbf") else 0
        self.result: Any = None
        self.problems: list[Problem] = []
        self.open: list[Any] = []
        self.key = ""
        self.is_cut = False

    def report(self, what: str, offset: int) -> None:
        if len(self.problems) < _MAX_IN_ONE_DOCUMENT:
            self.problems.append(Problem(what, offset=offset))

    def skip_space(self) -> int:
        """The next byte that is not white space; -1 at the end."""
        self.at = cast("re.Match[bytes]", _SPACE.match(self.data, self.at)).end()
        if self.at < len(self.data):
            return self.data[self.at]
        self.is_cut = True
        return -1

    def run(self) -> None:
        is_whole = self.read_value()
        while is_whole and self.open:
            is_whole = self.read_member()
        if not is_whole or self.skip_space() != -1:
            what = "the JSON breaks off" if self.is_cut else "what follows is not JSON"
            # However much went wrong before, where reading ended is always told.
            self.problems.append(Problem(what, offset=self.at, length=len(self.data) - self.at))

    def read_member(self) -> bool:
        """One step inside the innermost container: its end, or one more of its values."""
        inner = self.open[-1]
        close = ord("}") if isinstance(inner, dict) else ord("]")
        head, start = self.skip_space(), self.at
        if head == close:
            self.at += 1
            self.open.pop()
            return True
        if inner:
            if head != ord(","):
                return False
            self.at += 1
            if self.skip_space() == close:
                self.report("a comma too many", start)
                return True
        if isinstance(inner, dict):
            key = self.read_string() if self.skip_space() == ord('"') else None
            if key is None or self.skip_space() != ord(":"):
                self.at = start
                return False
            self.at += 1
            self.key = key
        if not self.read_value():
            self.at = start
            return False
        return True

    def read_value(self) -> bool:
        head, start = self.skip_space(), self.at
        if head == ord("{") or head == ord("["):
            return self.open_container({} if head == ord("{") else [])
        if head == ord('"'):
            text = self.read_string()
            if text is not None:
                self.put(text)
            return text is not None
        for word, meaning in _WORDS.items():
            if self.data.startswith(word, start):
                self.at += len(word)
                self.put(meaning)
                return True
        match = _NUMBER.match(self.data, start)
        if match is None or match.end() == len(self.data):
            # A number at the very end may have had more digits.
            rest = self.data[start : start + 5]
            self.is_cut |= match is not None or any(word.startswith(rest) for word in _WORDS)
            return False
        self.at = match.end()
        try:
            self.put(msgspec.json.decode(match[0]))
        except (msgspec.DecodeError, ValueError):
            self.report(f"the number {match[0][:20].decode()} is out of range", start)
            self.put(None)
        return True

    def open_container(self, fresh: Any) -> bool:
        if len(self.open) > _HOPELESS:
            return False
        if len(self.open) < MAX_DEPTH:
            self.put(fresh)
        else:
            if len(self.open) == MAX_DEPTH:
                self.report(f"nested more than {MAX_DEPTH} levels deep: left out", self.at)
            self.put(None)
        self.at += 1
        self.open.append(fresh)
        return True

    def put(self, value: Any) -> None:
        if not self.open:
            self.result = value
        elif isinstance(self.open[-1], dict):
            self.open[-1][self.key] = value
        else:
            self.open[-1].append(value)

    def read_string(self) -> str | None:
        start = self.at
        match = _STRING.match(self.data, start)
        if match is None:
            self.is_cut = True
            return None
        self.at = match.end()
        try:
            return msgspec.json.decode(match[0], type=str)
        except (msgspec.DecodeError, UnicodeDecodeError):
            self.report("text that JSON cannot hold, read as well as it goes", start)
        text = ESCAPE.sub(unescaped, match[1].decode("utf-8", "replace"))
        return cast("str", without_surrogates(text))


def unescaped(match: re.Match[str]) -> str:
    """The character for an escape; an invalid escape is returned unchanged."""
    if match[1]:
        return chr(int(match[1], 16))
    return _SHORT[match[2]] if match[2] else match[0]

"""JSON of other programs: strictly where it is whole, and as far as it goes where it is not."""

from __future__ import annotations

import io
import re
from base64 import b64decode, b64encode
from collections.abc import Iterator
from typing import Any, BinaryIO, cast

import msgspec
from msgspec import Struct

from turnlog.formats import Problem
from turnlog.log import zstd
from turnlog.log.codec import without_surrogates
from turnlog.log.text import pattern

MAX_DEPTH = 190
"""A little less than the log takes, so that whatever was read can be stored."""
MAX_LINE = 256 << 20
MAX_PROBLEMS = 50
UNPACKED, RATIO = 1 << 20, 200
"""So many bytes may come out of any compressed file, and so many more for each byte of it."""
_CHUNK = 1 << 20


class JsonLine(Struct, frozen=True, gc=False):
    """One line of a file without its newline. One over the limit has a problem and no data."""

    offset: int
    length: int
    """Without the newline, also where the data was left out."""
    data: bytes
    is_ended: bool = True
    """Whether a newline followed."""
    problem: Problem | None = None


def lines(path: str, *, limit: int = MAX_LINE, start: int = 0) -> Iterator[JsonLine]:
    """The lines of a file, which end at newlines and at nothing else. Never more than one of them in memory.

    A file with `.zst` at the end of its name is decompressed on the way, up to what may come out of one of its size:
    the last line says so where more would.
    """
    with open(path, "rb") as raw:
        bounds = _Unpacked(raw) if path.endswith(".zst") else None
        file = raw if bounds is None else cast("BinaryIO", io.BufferedReader(bounds, _CHUNK))
        offset = file.seek(start) if start else 0
        for line in _lines(file, offset, limit):
            offset = line.offset + line.length + line.is_ended
            yield line
        if bounds is not None and bounds.problem is not None:
            yield JsonLine(offset, 0, b"", False, bounds.problem)


def _lines(file: BinaryIO, offset: int, limit: int) -> Iterator[JsonLine]:
    while head := file.readline(limit + 1):
        if head.endswith(b"\n"):
            yield JsonLine(offset, len(head) - 1, head[:-1])
            offset += len(head)
            continue
        if len(head) <= limit:
            yield JsonLine(offset, len(head), head, False)
            return
        length, is_ended = len(head), False
        del head
        while rest := file.readline(_CHUNK):
            is_ended = rest.endswith(b"\n")
            length += len(rest) - is_ended
            if is_ended:
                break
        problem = Problem(f"a line of {length} bytes, more than {limit}", offset=offset, length=length)
        yield JsonLine(offset, length, b"", is_ended, problem)
        offset += length + is_ended


class _Unpacked(io.RawIOBase):
    """What a compressed file holds, in proportion to its size: a few bytes can unpack to anything."""

    def __init__(self, raw: BinaryIO) -> None:
        size = raw.seek(0, io.SEEK_END)
        raw.seek(0)
        self.problem: Problem | None = None
        self._most = self._left = UNPACKED + RATIO * size
        self._reader: Any = zstd.decompressor().stream_reader(raw, read_across_frames=True)
        self._damage = zstd.damage()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            with memoryview(buffer) as view:
                taken = self._reader.readinto(view[: min(len(view), self._left + 1)])
        except self._damage as error:
            self.problem = Problem(f"it cannot be unpacked any further: {error}", offset=self._most - self._left)
            return 0
        self._left -= taken
        if self._left >= 0:
            return taken
        self.problem = Problem(f"more than {self._most} bytes come out of it: the rest was not read", offset=self._most)
        return 0


def document(path: str, *, limit: int = MAX_LINE) -> tuple[bytes, list[Problem]]:
    """A whole file, or as much of it as is allowed."""
    with open(path, "rb") as file:
        data = file.read(limit + 1)
    if len(data) <= limit:
        return data, []
    return data[:limit], [Problem(f"more than {limit} bytes: the rest was not read", offset=limit)]


def decode(data: bytes) -> Any:
    """The value of a JSON text. Raises ValueError, and nothing else, for what is not one.

    Of duplicate keys the last counts. Lone surrogates, NaN, numbers beyond a float and deep nesting are refused.
    """
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None
    if data.count(b"[") + data.count(b"{") > MAX_DEPTH and is_deep(value):
        raise ValueError(f"nested more than {MAX_DEPTH} levels deep")
    return value


def decoded(value: Any) -> Any:
    """The value of a JSON text that something else holds; None for what is none."""
    if not isinstance(value, (str, bytes)):
        return None
    try:
        return decode(value.encode() if isinstance(value, str) else value)
    except (ValueError, UnicodeEncodeError):
        return None


def from_base64(text: Any) -> bytes | None:
    """The bytes that a text in base64 stands for; None for what is none."""
    try:
        return b64decode(text, validate=True) if isinstance(text, str) else None
    except ValueError:
        return None


def same_again(text: str) -> bytes | None:
    """The same; None also where they would come back as another text."""
    data = from_base64(text)
    return data if data is not None and b64encode(data).decode() == text else None


def is_deep(value: Any, limit: int = MAX_DEPTH) -> bool:
    """Whether it is nested more than so many levels deep."""
    if type(value) is dict:
        for child in value.values():  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
            if type(child) is dict or type(child) is list:  # pyright: ignore[reportUnknownArgumentType]
                break
        else:
            return False  # as it mostly is
    elif type(value) is not list:
        return False
    level: list[Any] = [value]
    for _ in range(limit):
        if not level:
            return False
        level = _children(level[0]) if len(level) == 1 else [child for item in level for child in _children(item)]
    return bool(level)


def _children(value: Any) -> list[Any]:
    inner: Any = value
    if type(value) is dict:
        inner = value.values()  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return [child for child in inner if type(child) is dict or type(child) is list]


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


_MARKS = pattern(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+("|\\?\Z)|[{}\[\],]', re.DOTALL)
_CLOSE = {b"{": b"}", b"[": b"]"}


def _closed(data: bytes) -> tuple[int, bytes]:
    """Where the last complete value ends, and the text up to there with all that is open closed."""
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


_SPACE = pattern(rb"[ \t\r\n]*")
_STRING = pattern(rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)"', re.DOTALL)
_NUMBER = pattern(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![0-9a-zA-Z.+-])")
_WORDS = {b"true": True, b"false": False, b"null": None}
ESCAPE = pattern(r'\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt])|(.?))', re.DOTALL)
_SHORT = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_HOPELESS = 10_000
"""Nesting at which a damaged text is given up, so that a run of brackets cannot fill the memory."""


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
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(Problem(what, offset=offset))

    def space(self) -> int:
        """The next byte that means something; -1 at the end."""
        self.at = cast("re.Match[bytes]", _SPACE.match(self.data, self.at)).end()
        if self.at < len(self.data):
            return self.data[self.at]
        self.is_cut = True
        return -1

    def run(self) -> None:
        is_whole = self.value()
        while is_whole and self.open:
            is_whole = self.member()
        if not is_whole or self.space() != -1:
            what = "the JSON breaks off" if self.is_cut else "what follows is not JSON"
            # However much went wrong before, where reading ended is always told.
            self.problems.append(Problem(what, offset=self.at, length=len(self.data) - self.at))

    def member(self) -> bool:
        """One step inside the innermost container: its end, or one more of its values."""
        inner = self.open[-1]
        close = ord("}") if isinstance(inner, dict) else ord("]")
        head, start = self.space(), self.at
        if head == close:
            self.at += 1
            self.open.pop()
            return True
        if inner:
            if head != ord(","):
                return False
            self.at += 1
            if self.space() == close:
                self.report("a comma too many", start)
                return True
        if isinstance(inner, dict):
            key = self.string() if self.space() == ord('"') else None
            if key is None or self.space() != ord(":"):
                self.at = start
                return False
            self.at += 1
            self.key = key
        if not self.value():
            self.at = start
            return False
        return True

    def value(self) -> bool:
        head, start = self.space(), self.at
        if head == ord("{") or head == ord("["):
            return self.container({} if head == ord("{") else [])
        if head == ord('"'):
            text = self.string()
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

    def container(self, fresh: Any) -> bool:
        if len(self.open) > _HOPELESS:
            return False
        if len(self.open) < MAX_DEPTH:
            self.put(fresh)
        elif len(self.open) == MAX_DEPTH:
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

    def string(self) -> str | None:
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
    """What an escape in a text stands for; one that is none stands for itself."""
    if match[1]:
        return chr(int(match[1], 16))
    return _SHORT[match[2]] if match[2] else match[0]

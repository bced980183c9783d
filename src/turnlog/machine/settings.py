"""Settings of other programs, in JSON: what is changed is changed, and not a byte of the rest.

Other keys, their order, indentation, comments, line ends, the mode of the file and links to it stay. A file that its
own program would not read is refused: some take `commented` JSON, some take `jsonc`, with a comma too many as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, cast

from turnlog.errors import Corrupt, Invalid
from turnlog.machine.replace import read_bytes, replace_file, text_of

_SPACE = " \t\r\n"
_SCALAR = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null')
_DEPTH = 200
MISSING: Any = object()
"""What `value_at` gives where there is nothing."""
Path = Sequence[str | int]
Dialect = Literal["json", "commented", "jsonc"]


class SettingsFile:
    """One file of settings, as another program keeps it. Nothing is made until something is written."""

    def __init__(self, path: str, *, dialect: Dialect = "json") -> None:
        self.path = path
        self.dialect: Dialect = dialect

    def text(self) -> str:
        """What is in it; nothing where there is no such file."""
        return text_of(self.path, read_bytes(self.path))

    def value(self, path: Path) -> Any:
        """What is set at a path of keys, or `MISSING`."""
        with _naming_file(self.path):
            return value_at(self.text(), path, dialect=self.dialect)

    def change(self, edit: Callable[[str], str]) -> bool:
        """Put the edited text in its place, whole or not at all; gives whether that made a difference."""
        before = read_bytes(self.path)
        with _naming_file(self.path):
            text = edit(text_of(self.path, before))
            plain(text, dialect=self.dialect)
        after = text.encode()
        if after == (before or b""):
            return False
        replace_file(self.path, before, after)
        return True


@contextmanager
def _naming_file(path: str) -> Generator[None]:
    """Errors inside name the file."""
    try:
        yield
    except (Corrupt, Invalid) as error:
        if error.message.startswith(path):
            raise
        raise type(error)(f"{path}: {error.message}", hint=error.hint) from None


# ── text in, text out ─────────────────────────────────────────────────────────────────────────────


def plain(text: str, *, dialect: Dialect = "json") -> Any:
    """All of it as plain values; an empty text is an empty object. Raises `Corrupt` with the place."""
    return _Document(text, dialect).root.plain()


def value_at(text: str, path: Path, *, dialect: Dialect = "json") -> Any:
    """What is set at a path of keys, or `MISSING`."""
    node = _Document(text, dialect).find(path)
    return MISSING if node is None else node.plain()


def place_of(text: str, path: Path, *, dialect: Dialect = "json") -> str:
    """Where in the text that is, for people; of what is missing, the end."""
    document = _Document(text, dialect)
    node = document.find(path)
    return document.place(len(text) if node is None else node.start)


def with_value(text: str, path: Path, value: Any, *, dialect: Dialect = "json") -> str:
    """The text with that value there; objects that are missing on the way are made."""
    document = _Document(text, dialect)
    node = document.root
    for depth, key in enumerate(path):
        child = node.child(key)
        if child is None:
            for rest in reversed(path[depth + 1 :]):
                value = {str(rest): value}
            return document.added(node, str(key), value, path[:depth])
        node = child
    return text if node.plain() == value else document.replaced(node, value)


def with_item(text: str, path: Path, item: Any, *, dialect: Dialect = "json") -> str:
    """The text with one more item at the end of the list there; a list that is missing is made."""
    document = _Document(text, dialect)
    node = document.find(path)
    if node is None:
        return with_value(text, path, [item], dialect=dialect)
    if node.kind != "[":
        raise Invalid(f"{document.place(node.start)}: {_dotted(path)} is no list", hint="change it by hand")
    return document.added(node, None, item, path)


def without(text: str, path: Path, *, dialect: Dialect = "json") -> str:
    """The text without what is there."""
    document = _Document(text, dialect)
    parent = document.find(path[:-1])
    while parent is not None and parent.child(path[-1]) is not None:
        text = document.removed(parent, path[-1])
        if parent.kind == "[":
            return text
        document = _Document(text, dialect)  # a key may be there twice
        parent = document.find(path[:-1])
    return text


def as_object(value: object) -> dict[str, Any]:
    """The value, if it is an object; else an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """The value, if it is a list; else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def _dotted(path: Path) -> str:
    return ".".join(map(str, path)) or "the whole"


class _Node:
    """A value and where it stands. `start` and `end` are those of the value, `places` of whole members or items."""

    def __init__(self, kind: str, start: int) -> None:
        self.kind = kind
        self.start = start
        self.end = start
        self.value: Any = None
        self.nodes: list[_Node] = []
        self.keys: list[str] = []
        self.places: list[tuple[int, int]] = []

    def index(self, key: str | int) -> int | None:
        if self.kind == "{":
            # Of two that are called the same, the last one counts.
            return next((i for i in reversed(range(len(self.keys))) if self.keys[i] == key), None)
        return key if self.kind == "[" and isinstance(key, int) and 0 <= key < len(self.nodes) else None

    def child(self, key: str | int) -> _Node | None:
        index = self.index(key)
        return None if index is None else self.nodes[index]

    def plain(self) -> Any:
        if self.kind == "{":
            return {key: node.plain() for key, node in zip(self.keys, self.nodes, strict=True)}
        return [node.plain() for node in self.nodes] if self.kind == "[" else self.value


class _Document:
    """A text of JSON, and every value in it with its place."""

    def __init__(self, text: str, dialect: Dialect) -> None:
        self._text = text
        self._comments = dialect != "json"
        self._commas = dialect == "jsonc"
        self._line = "\r\n" if "\r\n" in text else "\n"
        at = self._skip(1 if text.startswith("\ufeff") else 0)
        self._is_empty = at == len(text)
        if self._is_empty:
            self.root = _Node("{", at)
            return
        self.root = self._node(at, 0)
        end = self._skip(self.root.end)
        if end < len(text):
            self._wrong(end, "more after the end")

    def find(self, path: Path) -> _Node | None:
        node: _Node | None = self.root
        for key in path:
            node = None if node is None else node.child(key)
        return node

    # ── reading ───────────────────────────────────────────────────────────────────────────────────

    def place(self, at: int) -> str:
        return f"line {self._text.count(chr(10), 0, at) + 1}, column {at - self._text.rfind(chr(10), 0, at)}"

    def _wrong(self, at: int, what: str) -> None:
        raise Corrupt(f"{self.place(at)}: {what}", hint="mend it first: its own program cannot read it")

    def _skip(self, at: int) -> int:
        """Behind blanks, and comments where there may be some."""
        text = self._text
        while at < len(text):
            if text[at] in _SPACE:
                at += 1
            elif text.startswith(("//", "/*"), at):
                if not self._comments:
                    self._wrong(at, "a comment, which its program does not take")
                at = self._after_comment(at)
            else:
                break
        return at

    def _after_comment(self, at: int) -> int:
        end = self._text.find("\n" if self._text[at + 1] == "/" else "*/", at + 2)
        if self._text[at + 1] == "/":
            return len(self._text) if end < 0 else end
        if end < 0:
            self._wrong(at, "a comment without an end")
        return end + 2

    def _node(self, at: int, depth: int) -> _Node:
        if depth > _DEPTH:
            self._wrong(at, "too deep")
        if at < len(self._text) and self._text[at] in "{[":
            return self._container(at, depth)
        scalar = _SCALAR.match(self._text, at)
        node = _Node("", at)
        try:
            node.value = json.loads(scalar.group()) if scalar is not None else None
        except ValueError:
            scalar = None
        if scalar is None:
            self._wrong(at, "no value" if at < len(self._text) else "it ends here")
        node.end = scalar.end() if scalar is not None else at
        return node

    def _container(self, at: int, depth: int) -> _Node:
        node = _Node(self._text[at], at)
        close = "}" if node.kind == "{" else "]"
        at = self._skip(at + 1)
        while not self._text.startswith(close, at):
            start = at
            if node.kind == "{":
                key = self._node(at, depth + 1)
                if not isinstance(key.value, str):
                    self._wrong(at, "no key")
                node.keys.append(key.value)
                at = self._skip(key.end)
                if not self._text.startswith(":", at):
                    self._wrong(at, "no colon after a key")
                at = self._skip(at + 1)
            child = self._node(at, depth + 1)
            node.nodes.append(child)
            node.places.append((start, child.end))
            at = self._skip(child.end)
            if self._text.startswith(",", at):
                comma, at = at, self._skip(at + 1)
                if self._text.startswith(close, at) and not self._commas:
                    self._wrong(comma, "a comma too many")
            elif not self._text.startswith(close, at):
                self._wrong(at, "no comma" if at < len(self._text) else "it ends here")
        node.end = at + 1
        return node

    # ── changing ──────────────────────────────────────────────────────────────────────────────────

    def _unit(self) -> str:
        first = self.root.places[0][0] if self.root.places else 0
        return (self._blanks(first) or "  ") if "\n" in self._text[:first] else "  "

    def _blanks(self, at: int) -> str:
        """What the line of that place begins with."""
        line = self._text[self._text.rfind("\n", 0, at) + 1 : at]
        return line[: len(line) - len(line.lstrip(" \t\ufeff"))].lstrip("\ufeff")

    def _encoded(self, value: Any, blanks: str | None) -> str:
        """A value as text: on one line, or on several that begin with those blanks."""
        if blanks is None:
            return json.dumps(value, ensure_ascii=False)
        lines = json.dumps(value, ensure_ascii=False, indent=self._unit()).split("\n")
        return f"{self._line}{blanks}".join(lines)

    def replaced(self, node: _Node, value: Any) -> str:
        if node is self.root and self._is_empty:
            return self._new(value)
        return self._text[: node.start] + self._encoded(value, self._blanks(node.start)) + self._text[node.end :]

    def _new(self, value: Any) -> str:
        return self._text.rstrip(_SPACE) + self._encoded(value, "") + self._line

    def added(self, node: _Node, key: str | None, value: Any, path: Path) -> str:
        if node.kind != ("[" if key is None else "{"):
            what = f"{_dotted(path)} is no {'list' if key is None else 'object'}"
            raise Invalid(f"{self.place(node.start)}: {what}", hint="change it by hand")
        if node is self.root and self._is_empty:
            return self._new({key: value})
        name = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}: "
        text = self._text
        if not node.places:
            outer = self._blanks(node.start)
            inner = outer + self._unit()
            inside = text[node.start + 1 : node.end - 1].rstrip(_SPACE)
            item = f"{inside}{self._line}{inner}{name}{self._encoded(value, inner)}{self._line}{outer}"
            return text[: node.start + 1] + item + text[node.end - 1 :]
        first, end = node.places[0][0], node.places[-1][1]
        if "\n" not in text[node.start : first]:
            return f"{text[:end]}, {name}{self._encoded(value, None)}{text[end:]}"
        inner = self._blanks(first)
        after = self._skip(end)
        has_comma = text.startswith(",", after)
        rest = self._rest_of_line(after + 1 if has_comma else end)
        new = f"{self._line}{inner}{name}{self._encoded(value, inner)}{',' if has_comma else ''}"
        return f"{text[:end]}{'' if has_comma else ','}{text[end:rest]}{new}{text[rest:]}"

    def _rest_of_line(self, at: int) -> int:
        """Behind the comments on that line: they are about what stands before them."""
        while True:
            next_at = at
            while self._text[next_at : next_at + 1] in (" ", "\t"):
                next_at += 1
            if not (self._comments and self._text.startswith(("//", "/*"), next_at)):
                return at
            at = self._after_comment(next_at)
            at -= self._text[at - 1 : at] == "\r"

    def removed(self, node: _Node, key: str | int) -> str:
        index = node.index(key)
        assert index is not None
        start, end = node.places[index]
        cuts = [(start, end)]
        comma = self._skip(end)
        if self._text.startswith(",", comma):
            cuts = (
                [(start, comma + 1)] if not self._text[end:comma].strip(_SPACE) else [(start, end), (comma, comma + 1)]
            )
        elif index:
            before = self._skip(node.places[index - 1][1])
            cuts.append((before, before + 1))
        text = self._text
        for cut in sorted(cuts, reverse=True):
            text = _cut(text, *cut)
        opened = node.start + 1
        close = opened + len(text[opened:]) - len(text[opened:].lstrip(_SPACE))
        return text[:opened] + text[close:] if text[close] in "}]" else text


def _cut(text: str, start: int, end: int) -> str:
    """Without that stretch, and without the line if nothing else is on it."""
    line = text.rfind("\n", 0, start) + 1
    stop = end
    while text[stop : stop + 1] in (" ", "\t"):
        stop += 1
    if text[start:end] == ",":
        return text[:start] + text[end:]
    if not text[line:start].strip(" \t") and line and text[stop : stop + 2].startswith(("\n", "\r\n")):
        return text[:line] + text[text.index("\n", stop) + 1 :]
    if text[stop : stop + 1] in ("}", "]"):
        return text[:start].rstrip(" \t") + text[end:]
    return text[:start] + text[stop if stop < len(text) and text[stop] not in "\r\n" else end :]

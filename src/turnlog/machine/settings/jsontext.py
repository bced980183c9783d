"""JSON as text: every value with its position, so that one can be changed and not a byte of the rest."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Literal, NoReturn

from turnlog.errors import Corrupt, Invalid
from turnlog.machine.replace import BY_HAND

_SPACE = " \t\r\n"
_SCALAR = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null')
_DEPTH = 200
Path = Sequence[str | int]
JsonSyntax = Literal["json", "commented", "jsonc"]
"""The syntax that a program reads: `commented` allows comments, `jsonc` also a comma after the last member."""


def dotted(path: Path) -> str:
    """A path of keys in words."""
    return ".".join(map(str, path)) or "the whole"


class JsonNode:
    """A value with its position. `start` and `end` are offsets of the value, `spans` those of its members or items."""

    def __init__(self, kind: str, start: int) -> None:
        self.kind = kind
        self.start = start
        self.end = start
        self.value: Any = None
        self.nodes: list[JsonNode] = []
        self.keys: list[str] = []
        self.spans: list[tuple[int, int]] = []

    def index(self, key: str | int) -> int | None:
        """The number of the member with that key, or of the item with that index; None if there is none."""
        if self.kind == "{":
            # Of two that are called the same, the last one counts.
            return next((i for i in reversed(range(len(self.keys))) if self.keys[i] == key), None)
        return key if self.kind == "[" and isinstance(key, int) and 0 <= key < len(self.nodes) else None

    def child(self, key: str | int) -> JsonNode | None:
        """The value under a key or an index; None if there is none."""
        index = self.index(key)
        return None if index is None else self.nodes[index]

    def plain(self) -> Any:
        """The value as Python has it."""
        if self.kind == "{":
            return {key: node.plain() for key, node in zip(self.keys, self.nodes, strict=True)}
        return [node.plain() for node in self.nodes] if self.kind == "[" else self.value


class JsonText:
    """A text of JSON, and every value in it with its position. A change returns the new text."""

    def __init__(self, text: str, syntax: JsonSyntax) -> None:
        self._text = text
        self._comments = syntax != "json"
        self._commas = syntax == "jsonc"
        self._line = "\r\n" if "\r\n" in text else "\n"
        at = self._skip(1 if text.startswith("\ufeff") else 0)
        self._is_empty = at == len(text)
        if self._is_empty:
            self.root = JsonNode("{", at)
            return
        self.root = self._node(at, 0)
        end = self._skip(self.root.end)
        if end < len(text):
            self._refuse(end, "more after the end")

    def find(self, path: Path) -> JsonNode | None:
        """The value at a path; None if there is none."""
        node: JsonNode | None = self.root
        for key in path:
            node = None if node is None else node.child(key)
        return node

    # ── reading ───────────────────────────────────────────────────────────────────────────────────

    def position(self, at: int) -> str:
        """An offset as line and column, for people."""
        return f"line {self._text.count(chr(10), 0, at) + 1}, column {at - self._text.rfind(chr(10), 0, at)}"

    def _refuse(self, at: int, what: str) -> NoReturn:
        raise Corrupt(f"{self.position(at)}: {what}", hint="mend it first: its own program cannot read it")

    def _skip(self, at: int) -> int:
        """Behind blanks, and comments where there may be some."""
        text = self._text
        while at < len(text):
            if text[at] in _SPACE:
                at += 1
            elif text.startswith(("//", "/*"), at):
                if not self._comments:
                    self._refuse(at, "a comment, which its program does not take")
                at = self._after_comment(at)
            else:
                break
        return at

    def _after_comment(self, at: int) -> int:
        end = self._text.find("\n" if self._text[at + 1] == "/" else "*/", at + 2)
        if self._text[at + 1] == "/":
            return len(self._text) if end < 0 else end
        if end < 0:
            self._refuse(at, "a comment without an end")
        return end + 2

    def _node(self, at: int, depth: int) -> JsonNode:
        if depth > _DEPTH:
            self._refuse(at, "too deep")
        if at < len(self._text) and self._text[at] in "{[":
            return self._container(at, depth)
        scalar = _SCALAR.match(self._text, at)
        if scalar is None:
            self._refuse(at, "no value" if at < len(self._text) else "it ends here")
        node = JsonNode("", at)
        try:
            node.value = json.loads(scalar.group())
        except ValueError:
            self._refuse(at, "no value")
        node.end = scalar.end()
        return node

    def _container(self, at: int, depth: int) -> JsonNode:
        node = JsonNode(self._text[at], at)
        close = "}" if node.kind == "{" else "]"
        at = self._skip(at + 1)
        while not self._text.startswith(close, at):
            start = at
            if node.kind == "{":
                key = self._node(at, depth + 1)
                if not isinstance(key.value, str):
                    self._refuse(at, "no key")
                node.keys.append(key.value)
                at = self._skip(key.end)
                if not self._text.startswith(":", at):
                    self._refuse(at, "no colon after a key")
                at = self._skip(at + 1)
            child = self._node(at, depth + 1)
            node.nodes.append(child)
            node.spans.append((start, child.end))
            at = self._skip(child.end)
            if self._text.startswith(",", at):
                comma, at = at, self._skip(at + 1)
                if self._text.startswith(close, at) and not self._commas:
                    self._refuse(comma, "a comma too many")
            elif not self._text.startswith(close, at):
                self._refuse(at, "no comma" if at < len(self._text) else "it ends here")
        node.end = at + 1
        return node

    # ── changing ──────────────────────────────────────────────────────────────────────────────────

    def _unit(self) -> str:
        first = self.root.spans[0][0] if self.root.spans else 0
        return (self._blanks(first) or "  ") if "\n" in self._text[:first] else "  "

    def _blanks(self, at: int) -> str:
        """The blanks at the beginning of the line with that position."""
        line = self._text[self._text.rfind("\n", 0, at) + 1 : at]
        return line[: len(line) - len(line.lstrip(" \t\ufeff"))].lstrip("\ufeff")

    def _encoded(self, value: Any, blanks: str | None) -> str:
        """A value as text: on one line, or on several that begin with those blanks."""
        if blanks is None:
            return json.dumps(value, ensure_ascii=False)
        lines = json.dumps(value, ensure_ascii=False, indent=self._unit()).split("\n")
        return f"{self._line}{blanks}".join(lines)

    def replaced(self, node: JsonNode, value: Any) -> str:
        """The text with another value in the place of this one."""
        if node is self.root and self._is_empty:
            return self._new(value)
        return self._text[: node.start] + self._encoded(value, self._blanks(node.start)) + self._text[node.end :]

    def _new(self, value: Any) -> str:
        comments = self._text.rstrip(_SPACE)
        gap = self._line if comments.strip("\ufeff") else ""  # a comment may go on to the end of its line
        return comments + gap + self._encoded(value, "") + self._line

    def added(self, node: JsonNode, key: str | None, value: Any, path: Path) -> str:
        """The text with one more member of that object, or item of that list; `path` is its own, for errors."""
        if node.kind != ("[" if key is None else "{"):
            what = f"{dotted(path)} is no {'list' if key is None else 'object'}"
            raise Invalid(f"{self.position(node.start)}: {what}", hint=BY_HAND)
        if node is self.root and self._is_empty:
            return self._new({key: value})
        name = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}: "
        text = self._text
        if not node.spans:
            outer = self._blanks(node.start)
            inner = outer + self._unit()
            inside = text[node.start + 1 : node.end - 1].rstrip(_SPACE)
            item = f"{inside}{self._line}{inner}{name}{self._encoded(value, inner)}{self._line}{outer}"
            return text[: node.start + 1] + item + text[node.end - 1 :]
        first, end = node.spans[0][0], node.spans[-1][1]
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
            if self._text[at - 1 : at] == "\r":
                at -= 1

    def removed(self, node: JsonNode, key: str | int) -> str:
        """The text without that member or item, its comma, and its line if nothing else is on it."""
        index = node.index(key)
        assert index is not None
        start, end = node.spans[index]
        text = self._text
        comma = self._skip(end)
        if text.startswith(",", comma):
            is_next = not text[end:comma].strip(_SPACE)
            cuts = [(start, comma + 1)] if is_next else [(start, end), (comma, comma + 1)]  # a comment stays
        elif index:  # the last of several: the comma before it goes
            comma = self._skip(node.spans[index - 1][1])
            cuts = [(comma, comma + 1), (start, end)]
        else:
            cuts = [(start, end)]
        for cut in reversed(cuts):  # from the end, so that the other offsets stay right
            text = _cut(text, *cut)
        inside = node.start + 1
        rest = text[inside:].lstrip(_SPACE)
        return text[:inside] + rest if rest[0] in "}]" else text  # nothing is left: `{}`, not `{` and blank lines


def _cut(text: str, start: int, end: int) -> str:
    """The text without that range, and without the line if nothing else is on it."""
    if text[start:end] == ",":  # blanks and comments beside a comma belong to its neighbours
        return text[:start] + text[end:]
    line = text.rfind("\n", 0, start) + 1
    next_at = end
    while text[next_at : next_at + 1] in (" ", "\t"):
        next_at += 1
    after = text[next_at : next_at + 2]
    is_alone = not text[line:start].strip(" \t") and after.startswith(("\n", "\r\n"))
    if is_alone and line:
        return text[:line] + text[text.index("\n", next_at) + 1 :]
    if after.startswith(("}", "]")):  # the last on a line: the blanks before the bracket stay, those before it go
        return text[:start].rstrip(" \t") + text[end:]
    if not after or after[0] in "\r\n":  # the end of a line that begins with something else
        return text[:start] + text[end:]
    return text[:start] + text[next_at:]

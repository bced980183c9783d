"""Settings of other programs, in JSON: one value is changed, and not a byte of the rest.

Other keys, their order, indentation, comments, line ends, the mode of the file and links to it stay. A file that its
own program would not read is refused: some take `commented` JSON, some take `jsonc`, with a comma too many as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from turnlog.errors import Invalid
from turnlog.machine.replace import BY_HAND, naming_file, read_bytes, replace_file, text_of
from turnlog.machine.settings.jsontext import JsonSyntax, JsonText, Path, dotted

MISSING: Any = object()
"""The value of `value_at` for a path that does not exist."""


class SettingsFile:
    """One file of settings, as another program keeps it. Nothing is made until something is written."""

    def __init__(self, path: str, *, syntax: JsonSyntax = "json") -> None:
        self.path = path
        self.syntax: JsonSyntax = syntax

    def text(self) -> str:
        """The text of the file; empty if there is none."""
        return text_of(self.path, read_bytes(self.path))

    def value(self, path: Path) -> Any:
        """The value at a path of keys, or `MISSING`."""
        with naming_file(self.path):
            return value_at(self.text(), path, syntax=self.syntax)

    def change(self, edit: Callable[[str], str]) -> bool:
        """Replace the file by the edited text, whole or not at all. Returns whether that changed anything."""
        before = read_bytes(self.path)
        with naming_file(self.path):
            text = edit(text_of(self.path, before))
            parse_settings(text, syntax=self.syntax)
        after = text.encode()
        if after == (before or b""):
            return False
        replace_file(self.path, before, after)
        return True


# ── text in, text out ─────────────────────────────────────────────────────────────────────────────


def parse_settings(text: str, *, syntax: JsonSyntax = "json") -> Any:
    """The whole text as plain values; an empty text is an empty object. Raises `Corrupt` with line and column."""
    return JsonText(text, syntax).root.plain()


def value_at(text: str, path: Path, *, syntax: JsonSyntax = "json") -> Any:
    """The value at a path of keys, or `MISSING`."""
    node = JsonText(text, syntax).find(path)
    return MISSING if node is None else node.plain()


def position_of(text: str, path: Path, *, syntax: JsonSyntax = "json") -> str:
    """The line and column of a value, for people; those of the end if it is missing."""
    document = JsonText(text, syntax)
    node = document.find(path)
    return document.position(len(text) if node is None else node.start)


def with_value(text: str, path: Path, value: Any, *, syntax: JsonSyntax = "json") -> str:
    """The text with that value there; objects that are missing on the way are made."""
    document = JsonText(text, syntax)
    node = document.root
    for depth, key in enumerate(path):
        child = node.child(key)
        if child is None:
            for rest in reversed(path[depth + 1 :]):
                value = {str(rest): value}
            return document.added(node, str(key), value, path[:depth])
        node = child
    return text if node.plain() == value else document.replaced(node, value)


def with_item(text: str, path: Path, item: Any, *, syntax: JsonSyntax = "json") -> str:
    """The text with one more item at the end of the list there; a list that is missing is made."""
    document = JsonText(text, syntax)
    node = document.find(path)
    if node is None:
        return with_value(text, path, [item], syntax=syntax)
    if node.kind != "[":
        raise Invalid(f"{document.position(node.start)}: {dotted(path)} is no list", hint=BY_HAND)
    return document.added(node, None, item, path)


def without(text: str, path: Path, *, syntax: JsonSyntax = "json") -> str:
    """The text without the value at that path."""
    document = JsonText(text, syntax)
    parent = document.find(path[:-1])
    while parent is not None and parent.child(path[-1]) is not None:
        text = document.removed(parent, path[-1])
        if parent.kind == "[":
            return text
        document = JsonText(text, syntax)  # a key may be there twice
        parent = document.find(path[:-1])
    return text

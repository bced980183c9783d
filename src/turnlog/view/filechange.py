"""The changes to files that the arguments of a tool call describe."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from turnlog.interop.value import fields, items
from turnlog.view.toolcall import arguments, text_in, words_in

_OLD = ("old_string", "oldString", "oldText", "old_text", "old_str")
_NEW = ("new_string", "newString", "newText", "new_text", "new_str")
_PATHS = ("file_path", "filePath", "path", "notebook_path", "filename", "file")
_CONTENT = ("content", "contents", "file_text", "fileText", "text")
_WRITERS = ("write", "create", "save")
_MOST_LINES = 2000
"""Comparing larger texts takes too long for what it tells."""


class FileChange(Struct, frozen=True):
    """What a call changes in one file, as lines of a unified diff without the names above them."""

    path: str
    lines: list[str]

    @property
    def plus(self) -> int:
        """How many lines come."""
        return sum(line.startswith("+") for line in self.lines)

    @property
    def minus(self) -> int:
        """How many lines go."""
        return sum(line.startswith("-") for line in self.lines)


def changes(name: str, value: Any) -> list[FileChange]:
    """What a call changes in files, where that can be seen from its arguments."""
    value = arguments(value)
    named = fields(value)
    patch = _patch_in(value if isinstance(value, str) else "", named)
    if patch:
        return list(_patched(patch))
    path = text_in(named, _PATHS)
    lines = _edits_in(named) or (_written(named) if path and _is_writer(name) else [])
    return [FileChange(path, lines)] if lines and path else []


def _patch_in(text: str, named: dict[str, Any]) -> str:
    """The patch that a call has: all of it, in an argument, or in the command; empty if it has none."""
    for key in ("input", "patch", "patchText", "diff"):
        if not text and isinstance(named.get(key), str):
            text = named[key]
    text = text or words_in(named.get("command") or named.get("cmd"))
    return text if "*** Begin Patch" in text else ""


def _edits_in(named: dict[str, Any]) -> list[str]:
    """The lines of a call that replaces one text by another, once or several times."""
    edits = named.get("edits")
    lines: list[str] = []
    for edit in items(edits) if isinstance(edits, list) else [named]:
        old, new = text_in(edit, _OLD), text_in(edit, _NEW)
        if old != new:
            lines += diff_lines(old, new)
    return lines


def _is_writer(name: str) -> bool:
    return name.lower().rpartition("__")[2].startswith(_WRITERS)


def _written(named: dict[str, Any]) -> list[str]:
    """The lines of a call that writes a whole file."""
    content = text_in(named, _CONTENT)
    return [f"+{line}" for line in content.removesuffix("\n").split("\n")] if content else []


def diff_lines(old: str, new: str) -> list[str]:
    """How one text becomes the other: lines of a unified diff, three of context."""
    before, after = (text.removesuffix("\n").split("\n") if text else [] for text in (old, new))
    if len(before) + len(after) > _MOST_LINES:
        return [*(f"-{line}" for line in before), *(f"+{line}" for line in after)]
    from difflib import unified_diff

    return [line for line in unified_diff(before, after, lineterm="", n=3)][2:]


def _patched(text: str) -> Iterator[FileChange]:
    """The files of a patch as Codex writes it."""
    path = ""
    lines: list[str] = []
    for line in text.replace("\r\n", "\n").split("\n"):  # a form feed ends no line
        verb, _, rest = line.removeprefix("*** ").partition(" File: ") if line.startswith("*** ") else ("", "", "")
        if verb in ("Add", "Update", "Delete") and rest:
            if path:
                yield FileChange(path, lines)
            path, lines = rest, []
        elif line.startswith("*** Move to: "):
            path = f"{path} → {line[13:]}"
        elif path and line[:1] in ("+", "-", " ", "@"):
            lines.append(line)
    if path:
        yield FileChange(path, lines)


def is_diff(text: str) -> bool:
    """Whether what a tool printed is a unified diff."""
    head = text[:2000]
    return head.startswith(("diff --git ", "--- ", "Index: ")) or "\ndiff --git " in head

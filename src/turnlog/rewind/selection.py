"""Selections: which of the paths in a plan a caller named."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from msgspec import Struct

from turnlog.errors import Invalid
from turnlog.workspace.tree import path_bytes


class Selection(Struct, frozen=True):
    """Files and folders that a caller named; without any, everything is selected."""

    named: tuple[bytes, ...] = ()
    """Absolute paths, each with a slash at the end."""

    def in_folder(self, folder: str) -> Callable[[bytes], bool]:
        """A test whether a path relative to this folder is selected: it was named itself, or a folder around it."""
        if not self.named:
            return lambda path: True
        lead = path_bytes(folder) + b"/"
        return lambda path: (lead + path + b"/").startswith(self.named)


EVERYTHING = Selection()


def selection(paths: Sequence[str], workspace: str | None) -> Selection:
    """The selection of these paths: absolute, or relative to the workspace; `bytes:` and %-escapes as in plans."""
    top = path_bytes(workspace or "/")
    return Selection(tuple(os.path.join(_absolute(path, top), b"") for path in paths))


def _absolute(text: str, top: bytes) -> bytes:
    try:
        path = path_bytes(text) if text.startswith("bytes:") else os.fsencode(text)
        if b"\0" in path:
            raise ValueError(text)
    except ValueError:
        raise Invalid(f"{text!r:.80} is not a path") from None
    path = os.path.normpath(os.path.join(top, path))
    if path == top or path.startswith(top.rstrip(b"/") + b"/"):
        return path  # a link in the workspace may have been a folder then
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))

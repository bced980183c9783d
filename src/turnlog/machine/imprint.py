"""Our changes in other programs' files, each with a copy of the original, so that they can be reverted to the byte."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from difflib import SequenceMatcher

from turnlog.log.digest import sha256
from turnlog.log.startup import NamedTuple
from turnlog.machine.replace import read_bytes, replace_file

_ABOUT, _BEFORE, _AFTER = "about.json", "before", "after"


class Imprint(NamedTuple):
    """A file before our change, and after it."""

    path: str
    before: bytes | None
    after: bytes
    folders: list[str]
    """Those that were made for it, the outermost first."""


class Imprints:
    """The imprints of one purpose, each in a folder of its own. Without one, a revert is only less exact."""

    def __init__(self, folder: str, purpose: str) -> None:
        self._folder = folder
        self._purpose = purpose

    def find(self, path: str) -> Imprint | None:
        """The imprint of a file, if there is one."""
        folder = self._folder_of(path)
        about, after = read_bytes(os.path.join(folder, _ABOUT)), read_bytes(os.path.join(folder, _AFTER))
        try:
            facts = json.loads(about or b"{}")
            folders = [str(name) for name in facts["folders"]]
        except (ValueError, KeyError, TypeError):
            return None
        before = read_bytes(os.path.join(folder, _BEFORE)) if facts.get("existed") else None
        return None if after is None else Imprint(path, before, after, folders)

    def keep(self, imprint: Imprint) -> None:
        """Store the imprint of a file. Called before the file itself is changed."""
        folder = self._folder_of(imprint.path)
        facts = {"path": imprint.path, "existed": imprint.before is not None, "folders": imprint.folders}
        files = {_BEFORE: imprint.before or b"", _AFTER: imprint.after, _ABOUT: json.dumps(facts).encode() + b"\n"}
        for name, data in files.items():
            path = os.path.join(folder, name)
            replace_file(path, read_bytes(path), data)

    def forget(self, path: str) -> None:
        """Remove the imprint of a file whose change was reverted."""
        shutil.rmtree(self._folder_of(path), ignore_errors=True)

    def others(self, path: str) -> list[Imprints]:
        """The other purposes that have an imprint of the same file."""
        end = _end(path)
        try:
            names = sorted(os.listdir(self._folder))
        except FileNotFoundError:
            return []
        purposes = [name.removesuffix(end) for name in names if name.endswith(end)]
        return [Imprints(self._folder, purpose) for purpose in purposes if purpose != self._purpose]

    def _folder_of(self, path: str) -> str:
        return os.path.join(self._folder, f"{self._purpose}{_end(path)}")


def _end(path: str) -> str:
    return f"-{sha256(os.fsencode(path)).hexdigest()[:16]}"


def missing_folders(path: str) -> list[str]:
    """The folders that have to be created for a file, the outermost first."""
    missing: list[str] = []
    folder = os.path.dirname(os.path.realpath(path))
    while folder and not os.path.isdir(folder):
        missing.insert(0, folder)
        folder = os.path.dirname(folder)
    return missing


def reverted(now: str, imprint: Imprint, rest: str, *, same: Callable[[str, str], bool]) -> str:
    """The text without our change, but with what others changed since.

    `rest` is the text with our part removed, which may be formatted in another way; `same` returns whether two texts
    mean the same.
    """
    try:
        before, after = (imprint.before or b"").decode(), imprint.after.decode()
    except UnicodeDecodeError:
        return rest
    if now == after:
        return before
    merged = _merged(after, before, now)
    return merged if merged is not None and same(merged, rest) else rest


def _merged(base: str, ours: str, theirs: str) -> str | None:
    """What both sides did to the lines of a text; None where they did it to the same ones."""
    lines = base.splitlines(keepends=True)
    changes = sorted([*_changes(lines, ours), *_changes(lines, theirs)], key=lambda one: one[:2])
    merged, at = list[str](), 0
    for number, (start, end, new) in enumerate(changes):
        if start < at or (number and start == changes[number - 1][0]):
            return None
        merged += [*lines[at:start], *new]
        at = end
    return "".join([*merged, *lines[at:]])


def _changes(lines: list[str], text: str) -> list[tuple[int, int, list[str]]]:
    others = text.splitlines(keepends=True)
    matcher = SequenceMatcher(None, lines, others, autojunk=False)
    return [(a, b, others[c:d]) for what, a, b, c, d in matcher.get_opcodes() if what != "equal"]

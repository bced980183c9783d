"""Changed files for people: how many, which, and the lines."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TextIO

from turnlog.cli.draw.table import table
from turnlog.cli.draw.text import path_of
from turnlog.cli.frame.terminal import coloured
from turnlog.view.number import count, size
from turnlog.view.visible import safe
from turnlog.workspace.diff import Difference
from turnlog.workspace.tree import FILE, FOLDER, LINK, UNKNOWN, TreeNode, path_bytes

COLOURS = {"created": "green", "modified": "yellow", "deleted": "red", "mode": "cyan"}
_LINE_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def count_changes(differences: Iterable[Difference]) -> dict[str, int]:
    """Return how many paths were created, modified, deleted, or got another mode."""
    numbers = dict.fromkeys(COLOURS, 0)
    for item in differences:
        numbers[item.action] = numbers.get(item.action, 0) + 1
    return {action: number for action, number in numbers.items() if number}


def changes_in_words(numbers: dict[str, int]) -> str:
    """Return the numbers in words: `3 changes: 2 created, 1 deleted`."""
    if not numbers:
        return "nothing changed"
    parts = ", ".join(f"{number:,} {action}" for action, number in numbers.items())
    return f"{count(sum(numbers.values()), 'change')}: {parts}"


def _kind_in_words(node: TreeNode) -> str:
    """Return what a node is, in a word or two."""
    if node.kind == FOLDER:
        return "folder"
    if node.kind == LINK:
        return f"link → {path_of(node.target)}"
    return "not covered" if node.kind != FILE else size(node.size)


def facts(item: Difference) -> str:
    """Return what else there is to say of a path: sizes, modes, where a link leads."""
    old, new = item.before, item.after
    if old is None or new is None:
        node = new or old
        text = _kind_in_words(node) if node is not None else ""
        is_program = node is not None and node.kind == FILE and node.mode & 0o111
        return f"{text}, executable" if is_program else text
    parts: list[str] = []
    if old.kind == new.kind == LINK:
        parts.append(f"link {path_of(old.target)} → {path_of(new.target)}")
    elif old.kind == new.kind == UNKNOWN:
        parts.append(_kind_in_words(new))
    elif old.kind != new.kind:
        parts.append(f"{_kind_in_words(old)} becomes {_kind_in_words(new)}")
    elif old.digest != new.digest and old.kind == FILE:
        parts.append(size(old.size) if size(old.size) == size(new.size) else f"{size(old.size)} → {size(new.size)}")
    if old.kind == new.kind and old.extra != new.extra:
        parts.append("owner or attributes")
    return ", ".join([*parts, *_mode_change(item)])


def _mode_change(item: Difference) -> list[str]:
    """Return the change of the mode in words, if there is one."""
    old, new = item.before, item.after
    if old is None or new is None or old.kind != new.kind or old.mode == new.mode:
        return []
    return [f"mode {old.mode:o} → {new.mode:o}"]


def is_uncovered(item: Difference) -> bool:
    """Whether a rewind leaves it as it is, because nobody knows what was in it."""
    return any(node is not None and node.kind == UNKNOWN for node in (item.before, item.after))


def name_of(item: Difference) -> str:
    """Return the path, with a slash behind folders."""
    node = item.after or item.before
    return path_of(path_bytes(item.path)) + ("/" if node is not None and node.kind == FOLDER else "")


def stat_table(differences: list[Difference], *, lines: bool = False, stream: TextIO | None = None) -> list[str]:
    """Return a line per path; with `lines`, how many lines came and went."""
    rows = [(item.action, name_of(item), _plus_minus(item) if lines else facts(item)) for item in differences]
    return _table(rows, stream or sys.stdout)


def _table(rows: list[tuple[str, str, str]], stream: TextIO) -> list[str]:
    def paint(action: str) -> str:
        return coloured(action, COLOURS.get(action.strip()), stream)

    return table(("", "", ""), rows, paths=1, paint=paint)[1:]


def summary_lines(differences: list[Difference], most: int, stream: TextIO) -> list[str]:
    """Return a few lines: one per path, or where there are many, one per folder at the top."""
    if len(differences) <= most:
        return stat_table(differences, stream=stream)
    groups: dict[tuple[str, str], list[Difference]] = {}
    for item in differences:
        top, slash, _ = path_bytes(item.path).partition(b"/")
        groups.setdefault((item.action, path_of(top + slash)), []).append(item)
    rows = [
        (action, name, facts(items[0]) if not name.endswith("/") else count(len(items), "path"))
        for (action, name), items in sorted(groups.items(), key=lambda group: -len(group[1]))
    ]
    lines = _table(rows[:most], stream)
    return [*lines, f"… and {len(rows) - most:,} more lines like these"] if len(rows) > most else lines


def _plus_minus(item: Difference) -> str:
    if not item.lines or _is_link(item):
        return facts(item)
    plus, minus = item.counts
    return ", ".join([f"+{plus:,} -{minus:,}", *_mode_change(item)])


def _is_link(item: Difference) -> bool:
    return any(node is not None and node.kind == LINK for node in (item.before, item.after))


def diff_lines(differences: Iterable[Difference]) -> Iterator[str]:
    """Yield a unified diff; changes without lines (modes, binary files) are named."""
    for number, item in enumerate(differences):
        if number:
            yield ""
        name = name_of(item)
        is_binary = not item.lines and item.action != "mode" and _has_content(item)
        about = ", ".join(filter(None, ("binary or large" if is_binary else "", facts(item))))
        yield coloured(f"{item.action} {name}", "bold", sys.stdout) + (f"  ({about})" if about else "")
        if not item.lines or _is_link(item):
            continue
        yield coloured(f"--- {f'a/{name}' if item.before is not None else '/dev/null'}", "bold", sys.stdout)
        yield coloured(f"+++ {f'b/{name}' if item.after is not None else '/dev/null'}", "bold", sys.stdout)
        body = item.hunks
        is_dos = all(line.endswith("\r") for line in body if not line.startswith(("@", "\\")))
        for line in body:
            text = safe(line[:-1] if is_dos and line.endswith("\r") else line)
            yield coloured(text, _LINE_COLOURS.get(line[:1]), sys.stdout)


def _has_content(item: Difference) -> bool:
    nodes = [node for node in (item.before, item.after) if node is not None]
    return all(node.kind == FILE for node in nodes) and any(node.size for node in nodes)

"""Changed files for people: how many, which, and the lines."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any, TextIO

from turnlog.cli.draw.table import table
from turnlog.cli.draw.text import coloured, path_of, safe
from turnlog.cli.frame import shape
from turnlog.errors import Corrupt, NotFound
from turnlog.log.entry import Checkpoint
from turnlog.rewind.overlay import Overlay
from turnlog.store import Store
from turnlog.view.number import count, size
from turnlog.workspace.diff import Difference, differences
from turnlog.workspace.tree import FILE, FOLDER, LINK, UNKNOWN, Tree, TreeNode, path_bytes

_NODE = {
    "kind": shape.text(),
    "mode": shape.number(null=True),
    "digest": shape.text(null=True),
    "size": shape.number(null=True),
    "target": shape.text("for a link", null=True),
}
CHANGE = {
    "path": shape.text(),
    "action": shape.text("`created`, `modified`, `deleted` or `mode`"),
    "before": shape.one(fields=_NODE, null=True),
    "after": shape.one(fields=_NODE, null=True),
    "lines": shape.text("a diff, if it is text", null=True),
}
"""A changed path, as `--json` has it."""
COLOURS = {"created": "green", "modified": "yellow", "deleted": "red", "mode": "cyan"}
_LINE_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


class Trees:
    """The trees behind checkpoints: how much is in them, and how many paths differ."""

    def __init__(self, store: Store) -> None:
        self._overlay = Overlay(store.get)
        self._weights: dict[str, tuple[int, int]] = {}

    def weight(self, checkpoint: Checkpoint) -> tuple[int, int] | None:
        """How many files and bytes; None where a tree cannot be read."""
        try:
            trees = [self._overlay.tree(checkpoint, root) for root in checkpoint.roots if not root.is_private]
            weights = [self._weight_of(tree) for tree in trees if tree is not None]
        except (Corrupt, NotFound):
            return None
        return sum(files for files, _ in weights), sum(total for _, total in weights)

    def _weight(self, digest: str) -> tuple[int, int]:
        if digest not in self._weights:
            self._weights[digest] = self._weight_of(self._overlay.get(digest))
        return self._weights[digest]

    def _weight_of(self, tree: Tree) -> tuple[int, int]:
        files = total = 0
        for node in tree.values():
            if node.kind == UNKNOWN:
                continue  # it is there, and not in the checkpoint
            more = self._weight(node.digest) if node.kind == FOLDER else (node.kind in (FILE, LINK), node.size)
            files, total = files + more[0], total + more[1]
        return files, total

    def changes(self, before: Checkpoint, after: Checkpoint) -> dict[str, int] | None:
        """How many paths were created, modified, deleted; None where a tree cannot be read."""
        try:
            return counts(self._differences(before, after))
        except (Corrupt, NotFound):
            return None

    def _differences(self, before: Checkpoint, after: Checkpoint) -> Iterator[Difference]:
        for root in before.roots:
            trees = None if root.is_private else self._overlay.trees(before, after, root)
            if trees is not None:
                yield from differences(*trees, self._overlay.get, None)


# ── in a line ─────────────────────────────────────────────────────────────────────────────────────


def counts(differences: Iterable[Difference]) -> dict[str, int]:
    """How many paths of each kind."""
    numbers = dict.fromkeys(COLOURS, 0)
    for item in differences:
        numbers[item.action] = numbers.get(item.action, 0) + 1
    return {action: number for action, number in numbers.items() if number}


def in_words(numbers: dict[str, int]) -> str:
    """`3 changes: 2 created, 1 deleted`."""
    if not numbers:
        return "nothing changed"
    parts = ", ".join(f"{number:,} {action}" for action, number in numbers.items())
    return f"{count(sum(numbers.values()), 'change')}: {parts}"


def _sort(node: TreeNode) -> str:
    """What a node is, in a word or two."""
    if node.kind == FOLDER:
        return "folder"
    if node.kind == LINK:
        return f"link → {path_of(node.target)}"
    return "not covered" if node.kind != FILE else size(node.size)


def detail(item: Difference) -> str:
    """What else there is to say of a path: sizes, modes, where a link leads."""
    old, new = item.before, item.after
    if old is None or new is None:
        node = new or old
        text = _sort(node) if node is not None else ""
        is_program = node is not None and node.kind == FILE and node.mode & 0o111
        return f"{text}, executable" if is_program else text
    parts: list[str] = []
    if old.kind == new.kind == LINK:
        parts.append(f"link {path_of(old.target)} → {path_of(new.target)}")
    elif old.kind == new.kind == UNKNOWN:
        parts.append(_sort(new))
    elif old.kind != new.kind:
        parts.append(f"{_sort(old)} becomes {_sort(new)}")
    elif old.digest != new.digest and old.kind == FILE:
        parts.append(size(old.size) if size(old.size) == size(new.size) else f"{size(old.size)} → {size(new.size)}")
    if old.kind == new.kind and old.extra != new.extra:
        parts.append("owner or attributes")
    if old.kind == new.kind and old.mode != new.mode:
        parts.append(f"mode {old.mode:o} → {new.mode:o}")
    return ", ".join(parts)


def is_uncovered(item: Difference) -> bool:
    """Whether a rewind leaves it as it is, because nobody knows what was in it."""
    return any(node is not None and node.kind == UNKNOWN for node in (item.before, item.after))


def name_of(item: Difference) -> str:
    """The path, with a slash behind folders."""
    node = item.after or item.before
    return path_of(path_bytes(item.path)) + ("/" if node is not None and node.kind == FOLDER else "")


# ── a table ───────────────────────────────────────────────────────────────────────────────────────


def stat_table(differences: list[Difference], *, lines: bool = False, stream: TextIO | None = None) -> list[str]:
    """A line per path; with `lines`, how many came and went."""
    rows = [(item.action, name_of(item), _plus_minus(item) if lines else detail(item)) for item in differences]
    return _table(rows, stream or sys.stdout)


def _table(rows: list[tuple[str, str, str]], stream: TextIO) -> list[str]:
    def paint(action: str) -> str:
        return coloured(action, COLOURS.get(action.strip()), stream)

    return table(("", "", ""), rows, paths=1, paint=paint)[1:]


def in_short(differences: list[Difference], most: int, stream: TextIO) -> list[str]:
    """A few lines: a line per path, or where there are many, per folder at the top."""
    if len(differences) <= most:
        return stat_table(differences, stream=stream)
    groups: dict[tuple[str, str], list[Difference]] = {}
    for item in differences:
        top, slash, _ = path_bytes(item.path).partition(b"/")
        groups.setdefault((item.action, path_of(top + slash)), []).append(item)
    rows = [
        (action, name, detail(items[0]) if not name.endswith("/") else count(len(items), "path"))
        for (action, name), items in sorted(groups.items(), key=lambda group: -len(group[1]))
    ]
    lines = _table(rows[:most], stream)
    return [*lines, f"… and {len(rows) - most:,} more lines like these"] if len(rows) > most else lines


def _plus_minus(item: Difference) -> str:
    if not item.lines or _is_link(item):
        return detail(item)
    plus, minus = item.counts
    mode = detail(item).rpartition("mode ")
    return f"+{plus:,} -{minus:,}" + (f", mode {mode[2]}" if mode[1] else "")


def _is_link(item: Difference) -> bool:
    return any(node is not None and node.kind == LINK for node in (item.before, item.after))


# ── the lines ─────────────────────────────────────────────────────────────────────────────────────


def in_full(differences: Iterable[Difference]) -> Iterator[str]:
    """A unified diff; changes without lines (modes, binary files) are named."""
    for number, item in enumerate(differences):
        if number:
            yield ""
        name, more = name_of(item), detail(item)
        is_binary = not item.lines and item.action != "mode" and _has_content(item)
        facts = ", ".join(filter(None, ("binary or large" if is_binary else "", more)))
        yield coloured(f"{item.action} {name}", "bold", sys.stdout) + (f"  ({facts})" if facts else "")
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


def as_plain(item: Difference) -> dict[str, Any]:
    """For programs."""
    return {
        "path": item.path,
        "action": item.action,
        "before": _plain(item.before),
        "after": _plain(item.after),
        "lines": item.lines,
    }


def _plain(node: TreeNode | None) -> dict[str, Any] | None:
    if node is None:
        return None
    target = path_of(node.target) if node.kind == LINK else None
    return {
        "kind": node.kind, "mode": node.mode, "digest": node.digest or None, "size": node.size, "target": target,
    }  # fmt: skip

"""What changed between two trees, for people: one item per path, with the lines where it is text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from difflib import unified_diff
from io import StringIO

from msgspec import Struct

from turnlog.workspace.tree import FILE, LINK, GetTree, Tree, TreeNode, changes, is_folder, path_text

_LARGEST_TEXT = 1 << 20


class Difference(Struct, frozen=True):
    """A path that differs."""

    path: str
    action: str
    """created · modified · deleted · mode"""
    before: TreeNode | None
    after: TreeNode | None
    lines: str
    """A unified diff; empty if the file is not text."""
    is_private: bool = False
    """Whether the file is ignored on either side, so that its content is private."""

    @property
    def hunks(self) -> list[str]:
        """The lines of the diff without its file names, which may look like anything."""
        old = f"--- {f'a/{self.path}' if self.before is not None else '/dev/null'}\n"
        new = f"+++ {f'b/{self.path}' if self.after is not None else '/dev/null'}\n"
        return self.lines.removeprefix(old + new).split("\n")[:-1]

    @property
    def counts(self) -> tuple[int, int]:
        """The number of added and of removed lines."""
        hunks = self.hunks
        return sum(line.startswith("+") for line in hunks), sum(line.startswith("-") for line in hunks)


Content = Callable[[bytes, TreeNode], bytes | None]
"""The content of the file at a path; None if it no longer exists."""


def differences(
    before: Tree,
    after: Tree,
    get: GetTree,
    content: Content | None,
    is_private: Callable[[bytes], bool] = lambda path: False,
    lead: bytes = b"",
) -> Iterator[Difference]:
    """Every changed file and link, and every created or deleted empty folder; without `content`, no lines.

    `lead` is put before the paths.
    """
    for path, old, new in changes(before, after, get):
        if is_folder(old) and is_folder(new):
            action = "mode"
        elif old is None:
            action = "created"
        elif new is None:
            action = "deleted"
        else:
            same = (old.kind, old.digest, old.target) == (new.kind, new.digest, new.target)
            action = "mode" if same else "modified"
        if action in ("created", "deleted") and (is_folder(old) or is_folder(new)):
            node = new or old
            if node is not None and get(node.digest):
                continue  # its content is reported instead
        name = path_text(lead + path)
        lines = _lines(path, name, old, new, content) if content else ""
        yield Difference(name, action, old, new, lines, is_private(path))


def _lines(path: bytes, name: str, old: TreeNode | None, new: TreeNode | None, content: Content) -> str:
    left, right = _text(path, old, content), _text(path, new, content)
    if left is None or right is None:
        return ""
    lines = unified_diff(
        list(StringIO(left, newline="\n")),  # `splitlines` would also split at form feeds and the like
        list(StringIO(right, newline="\n")),
        f"a/{name}" if old is not None else "/dev/null",
        f"b/{name}" if new is not None else "/dev/null",
    )
    return "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines)


def _text(path: bytes, node: TreeNode | None, content: Content) -> str | None:
    if node is None:
        return ""
    if node.kind == LINK:
        return node.target.decode("utf-8", "replace") + "\n"
    if node.kind != FILE or node.size > _LARGEST_TEXT:
        return None
    data = content(path, node)
    if data is None or b"\0" in data[:8000]:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None

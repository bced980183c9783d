"""Which files a checkpoint leaves alone, by git's own rules: `.gitignore`, `.ignore`, and those outside the tree."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from turnlog.workspace.tree import FILE, FOLDER, GetTree, Tree

RULE_FILES = (b".gitignore", b".ignore")
"""In each folder; where both speak of a path, the second one counts."""
ALWAYS = frozenset((b".git",))


Outside = list[tuple[bytes, bytes]]
"""Rules from outside the tree: the path of its root as they see it, and their text."""


class Rules:
    """The rules that hold in one folder: its own, those above it, and those outside the tree."""

    __slots__ = ("_above", "_specs", "_start", "key")

    def __init__(self, above: Rules | None, prefix: bytes, texts: Outside) -> None:
        from pathspec import GitIgnoreSpec

        self._above = above
        self._start = len(prefix)
        self._specs: list[tuple[str, Any]] = [
            (_text(lead), GitIgnoreSpec.from_lines(_text(text).splitlines())) for lead, text in reversed(texts)
        ]
        inner = repr((prefix, texts)).encode()
        self.key: str = hashlib.sha256((above.key.encode() if above is not None else b"") + inner).hexdigest()
        """Equal keys mean equal verdicts."""

    def below(self, prefix: bytes, texts: list[bytes]) -> Rules:
        """The rules of a folder that adds these."""
        return Rules(self, prefix, [(b"", text) for text in texts]) if texts else self

    def ignores(self, path: bytes, *, is_folder: bool) -> bool:
        """Whether a path is left out; the innermost rule that speaks of it decides."""
        rules: Rules | None = self
        while rules is not None:
            relative = _text(path[rules._start :]) + ("/" if is_folder else "")
            for lead, spec in rules._specs:
                verdict = spec.check_file(lead + relative).include
                if verdict is not None:
                    return bool(verdict)
            rules = rules._above
        return False


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def rules_of_tree(outside: Outside) -> Rules:
    """The rules at the top: git's `info/exclude`, the global excludes file, `.gitignore` in folders above."""
    return Rules(None, b"", outside)


def was_covered(tree: Tree, path: bytes, outside: Outside, get: GetTree, content: Callable[[str], bytes]) -> bool:
    """Whether a checkpoint would have had this path: no rule of that time left it or a folder above it out.

    The rule files are in the tree itself; `outside` are those that were not.
    """
    rules = rules_of_tree(outside)
    names = path.split(b"/")
    prefix = b""
    for index, name in enumerate(names):
        nodes = [tree.get(rule) for rule in RULE_FILES]
        texts = [content(node.digest) for node in nodes if node is not None and node.kind == FILE]
        rules = rules.below(prefix, texts)
        is_folder = index < len(names) - 1
        if name in ALWAYS or rules.ignores(prefix + name, is_folder=is_folder):
            return False
        node = tree.get(name)
        if node is None or node.kind != FOLDER:
            return True  # no rule files below what was not there
        tree = get(node.digest)
        prefix += name + b"/"
    return True

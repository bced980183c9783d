"""Which files a checkpoint leaves out, by git's own rules: `.gitignore`, `.ignore`, and those outside the tree."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import cached_property, lru_cache

from turnlog.log.digest import sha256
from turnlog.log.startup import pattern
from turnlog.workspace.ignore.pattern import ignore_patterns
from turnlog.workspace.tree import FILE, FOLDER, GetTree, Tree

RULE_FILES = (b".gitignore", b".ignore")
"""The rule files of a folder; if both match a path, the second one decides."""
ALWAYS = frozenset((b".git",))
ALWAYS_NAMES = frozenset(os.fsdecode(name) for name in ALWAYS)
TEMPORARY = b".turnlog-half-done-"
"""The prefix of a temporary file during a restore; a digest follows."""
HALF_DONE = pattern(re.escape(TEMPORARY.decode()) + "[0-9a-f]{24}")


Outside = list[tuple[bytes, bytes]]
"""Rules from outside the tree: the path of its root relative to them, and their text."""


class _Spec:
    """One file of rules. The last rule that matches a path decides; a folder is judged before its content."""

    def __init__(self, text: bytes) -> None:
        patterns = ignore_patterns(_text(text))
        self._rules = [(re.compile(rule.expression, re.DOTALL), rule) for rule in reversed(patterns)]
        self._any_name, self._any_path = (
            re.compile("|".join(rule.expression for rule in patterns if rule.is_path == is_path) or "(?!)", re.DOTALL)
            for is_path in (False, True)
        )

    def verdict(self, path: str, *, is_folder: bool) -> bool | None:
        """Whether a path is left out; None if no rule matches it, as for most paths."""
        name = path[path.rfind("/") + 1 :]
        if self._any_name.fullmatch(name) is None and self._any_path.fullmatch(path) is None:
            return None
        for expression, rule in self._rules:
            if (is_folder or not rule.is_for_folders) and expression.fullmatch(path if rule.is_path else name):
                return rule.leaves_out
        return None


_spec = lru_cache(64)(_Spec)
"""Each path that is judged alone asks for the same few files."""


class Rules:
    """The rules that apply in one folder: its own, those above it, and those outside the tree."""

    def __init__(self, above: Rules | None, prefix: bytes, key: bytes, read: Callable[[], Outside]) -> None:
        self._above = above
        self._start = len(prefix)
        self._read = read
        self.key = key
        """Equal keys mean equal verdicts."""

    @cached_property
    def _specs(self) -> list[tuple[str, _Spec]]:
        return [(_text(lead), _spec(text)) for lead, text in reversed(self._read())]

    def below(self, prefix: bytes, texts: list[bytes]) -> Rules:
        """The rules of a subfolder with these rule files."""
        return _rules(self, prefix, [(b"", text) for text in texts]) if texts else self

    def known_below(self, prefix: bytes, key: bytes, read: Callable[[], list[bytes]]) -> Rules:
        """The rules of a subfolder with a known key; their texts are read only when a name must be judged."""
        return self if key == self.key else Rules(self, prefix, key, lambda: [(b"", text) for text in read()])

    def ignores(self, path: bytes, *, is_folder: bool) -> bool:
        """Whether a path is left out; the innermost matching rule decides."""
        rules: Rules | None = self
        while rules is not None:
            relative = _text(path[rules._start :])
            for lead, spec in rules._specs:
                verdict = spec.verdict(lead + relative, is_folder=is_folder)
                if verdict is not None:
                    return verdict
            rules = rules._above
        return False


def _rules(above: Rules | None, prefix: bytes, texts: Outside) -> Rules:
    inner = repr((prefix, texts)).encode()
    key = sha256((above.key if above is not None else b"") + inner).digest()
    return Rules(above, prefix, key, lambda: texts)


def _text(data: bytes) -> str:
    """One character per byte: `?` matches a byte, as it does for git."""
    return data.decode("latin-1")


def rules_of_tree(outside: Outside) -> Rules:
    """The rules at the top: git's `info/exclude`, the global excludes file, `.gitignore` in folders above."""
    return _rules(None, b"", outside)


def was_covered(tree: Tree, path: bytes, outside: Outside, get: GetTree, content: Callable[[str], bytes]) -> bool:
    """Whether a checkpoint would have covered this path: none of its rules left out the path or a folder above it.

    The rule files are in the tree itself; `outside` are the rules from outside.
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
            return True  # there are no rule files below a missing path
        tree = get(node.digest)
        prefix += name + b"/"
    return True

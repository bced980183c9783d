"""What a file was called before, where it appears at one sighting and was not there at the one before."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence

from turnlog.blame.alignment import tells
from turnlog.blame.version import Versions
from turnlog.workspace.tree import TreeNode

_MOST_READ = 50
ALIKE = 0.5
"""So much of the larger one of two files has to be the same."""


def earlier_name(
    path: bytes, digest: str, lines: Sequence[bytes], gone: Iterable[tuple[bytes, TreeNode]], versions: Versions
) -> bytes | None:
    """The one of these files that it is: the same to the byte, or else the one that is most like it."""
    others = [(name, node) for name, node in gone if name != path]
    same = [name for name, node in others if node.digest == digest]
    if same:
        return min(same, key=lambda name: (os.path.basename(name) != os.path.basename(path), name))
    size = sum(map(len, lines)) + len(lines)
    near = [(name, node) for name, node in others if size * ALIKE <= node.size and node.size * ALIKE <= size]
    near.sort(key=lambda pair: (abs(pair[1].size - size), pair[0]))
    candidates = [(alike(versions.lines(node.digest) or (), lines), name) for name, node in near[:_MOST_READ]]
    share, name = max(candidates, default=(0.0, b""))
    return name if share >= ALIKE else None


def alike(old: Sequence[bytes], new: Sequence[bytes]) -> float:
    """How much of the larger one is in the other, too; lines that say nothing of their own do not count."""
    left, right = (Counter(line for line in lines if tells(line)) for lines in (old, new))
    most = max(left.total(), right.total())
    return (left & right).total() / most if most else 0.0

"""Finding the earlier name of a file that appears at one sighting and did not exist at the one before."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence

from turnlog.blame.alignment import has_word
from turnlog.blame.version import Versions
from turnlog.workspace.tree import TreeNode

_MOST_READ = 50
MIN_SIMILARITY = 0.5
"""The share of the larger of two files that has to be equal."""


def earlier_name(
    path: bytes, digest: str, lines: Sequence[bytes], gone: Iterable[tuple[bytes, TreeNode]], versions: Versions
) -> bytes | None:
    """The file among those that disappeared which became this one: with equal content, or else the most similar one."""
    others = [(name, node) for name, node in gone if name != path]
    same = [name for name, node in others if node.digest == digest]
    if same:
        return min(same, key=lambda name: (os.path.basename(name) != os.path.basename(path), name))
    size = sum(map(len, lines)) + len(lines)
    near = [(name, node) for name, node in others if min(size, node.size) >= max(size, node.size) * MIN_SIMILARITY]
    near.sort(key=lambda pair: (abs(pair[1].size - size), pair[0]))
    candidates = [(_similarity(versions.lines(node.digest) or (), lines), name) for name, node in near[:_MOST_READ]]
    highest, name = max(candidates, default=(0.0, b""))
    return name if highest >= MIN_SIMILARITY else None


def _similarity(old: Sequence[bytes], new: Sequence[bytes]) -> float:
    """The equal share of the larger version; lines without a letter or a digit do not count."""
    old_counts, new_counts = (Counter(line for line in lines if has_word(line)) for lines in (old, new))
    most = max(old_counts.total(), new_counts.total())
    return (old_counts & new_counts).total() / most if most else 0.0

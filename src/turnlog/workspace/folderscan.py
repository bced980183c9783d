"""One folder while a scan looks at it: what becomes its tree, and what the next scan will know of it."""

from __future__ import annotations

import os
import stat
import sys

from msgspec import Struct

from turnlog.workspace.cache import IS_FOLDER, IS_IGNORED, IS_PARTIAL_FOLDER, IS_UNKNOWN, NONE, Known, Seen, SeenFolder
from turnlog.workspace.handle import FolderHandle
from turnlog.workspace.ignore import Rules
from turnlog.workspace.read import signature
from turnlog.workspace.tree import UNKNOWN, Extra, Tree, TreeNode

BLANK = (0, 0, 0, 0, 0)
REPOSITORY = "a repository of its own: a session in that folder covers it"


class Separate(Exception):
    """That folder is a workspace of its own."""


def refuse_repository(prefix: bytes, names: list[str], tracked: frozenset[bytes]) -> None:
    """Raise `Separate` for a git worktree or a repository below the root, unless all of it is tracked."""
    if prefix and ".git" in names and not any(prefix.startswith(path + b"/") for path in tracked):
        raise Separate


def wanted_names(prefix: bytes, tracked: frozenset[bytes]) -> list[str]:
    """The names in a folder that is only looked into for what is tracked; `tracked` has the folders above it, too."""
    start = len(prefix)
    paths = (path for path in tracked if path.startswith(prefix))
    return sorted(os.fsdecode(path[start:]) for path in paths if b"/" not in path[start:])


class Skipped(Struct, frozen=True):
    """A path that a checkpoint does not cover, and why."""

    path: bytes
    reason: str
    size: int = 0


class Scan(Struct):
    """What a scan found."""

    tree: str
    seen: Seen
    skipped: list[Skipped]
    files: int = 0
    bytes: int = 0
    read: int = 0
    """How many files had to be read."""
    is_news: bool = False
    """Whether `seen` differs from what the last scan saw."""


class FolderScan:
    """One folder while it is looked at, name by name, in the order of the listing."""

    __slots__ = ("digests", "extras", "files", "is_settled", "kinds", "numbers", "size", "skipped", "tree")

    def __init__(self) -> None:
        self.kinds = bytearray()
        self.numbers: list[int] = []
        self.digests: list[bytes] = []
        self.tree: Tree = {}
        self.skipped: list[tuple[bytes, str, int]] = []
        self.is_settled = True
        self.files = self.size = 0
        self.extras: dict[str, Extra] = {}

    def add(self, kind: int, numbers: tuple[int, ...], digest: bytes = NONE) -> None:
        """The next name: what it is, what tells it from what it was, and its digest if that can be relied on."""
        kinds = bytes((kind,))
        # Without a call in between, at which a signal's exception could come up: what is kept of them goes by position.
        self.kinds += kinds
        self.numbers += numbers
        self.digests += (digest,)

    def note_extra(self, name: str, extra: Extra | None) -> None:
        """What the next scan will know of that name beside content and mode."""
        if extra is not None:
            self.extras[name] = extra

    def skip(self, name: str, status: os.stat_result | None, reason: str, size: int = 0) -> None:
        """The next name is not covered."""
        self.skipped.append((os.fsencode(name), reason, size))
        self.tree[os.fsencode(name)] = TreeNode(UNKNOWN, size=size, reason=reason)
        self.add(IS_UNKNOWN, BLANK if status is None else mark_of(IS_UNKNOWN, status))


class FolderVisit:
    """One folder that a scan is in: where it is, what was known of it, and what is scanned of it so far."""

    __slots__ = (
        "above", "below", "depth", "extras", "here", "is_judged", "known", "partly", "prefix", "rules", "scanned",
        "texts",
    )  # fmt: skip

    def __init__(self, here: FolderHandle, prefix: bytes, above: Rules, depth: int, partly: bool) -> None:
        self.here = here
        self.prefix = prefix
        self.above = above
        self.depth = depth
        self.partly = partly
        """Whether only what is tracked in it is looked at."""
        self.below: dict[str, str] = {}
        """Digests of the folders in it that were scanned already."""

    def begin(self, old: SeenFolder | None) -> FolderScan:
        """Look at its names one by one, with what the last scan saw."""
        self.known: dict[str, Known] = {} if old is None else old.known()
        self.extras: dict[str, Extra] = {} if old is None else old.extras
        self.rules = self.above
        self.texts: dict[str, bytes | None] = {}
        """Its rule files, with their texts as far as they had to be read."""
        self.is_judged = False
        """Whether its rules are those by which the last scan judged."""
        self.scanned = FolderScan()
        return self.scanned


def mark_of(kind: int, status: os.stat_result) -> tuple[int, ...]:
    """What tells whether a name is what it was: of folders and the like only what they are, their insides do not."""
    if kind == IS_IGNORED:
        return (*BLANK[:4], stat.S_IFMT(status.st_mode))
    if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
        return signature(status)
    changed = status.st_ctime_ns if kind in (IS_FOLDER, IS_PARTIAL_FOLDER) else 0
    return (0, 0, changed, 0, status.st_mode)


def was_folder(known: Known) -> bool:
    """Whether a name was a folder when the last scan saw it."""
    return stat.S_ISDIR(int.from_bytes(known[1][-8:], sys.byteorder))

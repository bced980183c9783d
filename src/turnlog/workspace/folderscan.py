"""One folder during a scan: what goes into its tree, and what is cached for the next scan."""

from __future__ import annotations

import os
import stat
import sys
from types import FrameType

from msgspec import Struct

from turnlog.log.path import is_at_or_below
from turnlog.workspace.cache import (
    IS_FOLDER,
    IS_IGNORED,
    IS_PARTIAL_FOLDER,
    IS_UNKNOWN,
    NO_DIGEST,
    CachedName,
    Seen,
    SeenFolder,
    names_to_bytes,
    signature_bytes,
)
from turnlog.workspace.handle import FolderHandle
from turnlog.workspace.ignore.rule import Rules
from turnlog.workspace.read import signature
from turnlog.workspace.tree import UNKNOWN, Extra, Tree, TreeNode

BLANK = (0, 0, 0, 0, 0)
_FRAMES_LEFT = 80
"""The stack frames that are left for what is done with one file."""
REPOSITORY = "a repository of its own: a session in that folder covers it"


class Separate(Exception):
    """Raised for a folder that is a repository of its own."""


def refuse_repository(prefix: bytes, names: list[str], tracked: frozenset[bytes]) -> None:
    """Raise `Separate` for a git worktree or a repository below the root, unless all of it is tracked."""
    if prefix and ".git" in names and not is_at_or_below(prefix[:-1], tracked):
        raise Separate


def wanted_names(prefix: bytes, tracked: frozenset[bytes]) -> list[str]:
    """The names to scan in a partial folder; `tracked` also contains the folders above tracked files."""
    start = len(prefix)
    paths = (path for path in tracked if path.startswith(prefix))
    return sorted(os.fsdecode(path[start:]) for path in paths if b"/" not in path[start:])


class Skipped(Struct, frozen=True):
    """A path that a checkpoint does not cover, and why."""

    path: bytes
    reason: str
    size: int = 0


class Scan(Struct):
    """The result of a scan."""

    tree: str
    seen: Seen
    skipped: list[Skipped]
    files: int = 0
    bytes: int = 0
    read: int = 0
    """The number of files that were read."""
    has_changed: bool = False
    """Whether `seen` differs from the last scan."""


class FolderVisit:
    """A folder on the way of a scan: where it is, and which rules lie above it."""

    __slots__ = ("above", "below", "depth", "here", "partly", "prefix")

    def __init__(self, here: FolderHandle, prefix: bytes, above: Rules, depth: int, partly: bool) -> None:
        self.here = here
        self.prefix = prefix
        self.above = above
        self.depth = depth
        self.partly = partly
        """Whether only tracked files in it are scanned."""
        self.below: dict[str, str] = {}
        """The digests of subfolders that were scanned already."""


class ChangedFolder:
    """A folder that is scanned name by name: what the last scan knows of it, and the results so far."""

    __slots__ = (
        "digests", "extras", "files", "has_same_rules", "is_settled", "kinds", "known", "known_extras", "rule_texts",
        "rules", "signature_numbers", "size", "skipped", "tree", "visit",
    )  # fmt: skip

    def __init__(
        self,
        visit: FolderVisit,
        old: SeenFolder | None,
        known: dict[str, CachedName],
        rules: Rules,
        texts: dict[str, bytes | None],
    ) -> None:
        self.visit = visit
        self.known = known
        self.known_extras: dict[str, Extra] = {} if old is None else old.extras
        self.rules = rules
        self.rule_texts = texts
        """Its rule files, each with its text if that had to be read."""
        self.has_same_rules = old is not None and old.above == visit.above.key and old.rules == rules.key
        """Whether the last scan used the same rules."""
        self.kinds = bytearray()
        self.signature_numbers: list[int] = []
        self.digests: list[bytes] = []
        self.tree: Tree = {}
        self.skipped: list[tuple[bytes, str, int]] = []
        self.is_settled = not visit.partly
        """Whether the next scan may take over all of it, if nothing changed."""
        self.files = self.size = 0
        self.extras: dict[str, Extra] = {}

    def add(self, kind: int, numbers: tuple[int, ...], digest: bytes = NO_DIGEST) -> None:
        """Add the next name: its kind, its signature, and its digest if that can be relied on."""
        kinds = bytes((kind,))
        # No call between these lines, so that no signal's exception separates them: the lists are matched by position.
        self.kinds += kinds
        self.signature_numbers += numbers
        self.digests += (digest,)

    def note_extra(self, name: str, extra: Extra | None) -> None:
        """Record the extra metadata of a name for the next scan."""
        if extra is not None:
            self.extras[name] = extra

    def skip(self, name: str, status: os.stat_result | None, reason: str, size: int = 0) -> None:
        """Add the next name as not covered."""
        self.skipped.append((os.fsencode(name), reason, size))
        self.tree[os.fsencode(name)] = TreeNode(UNKNOWN, size=size, reason=reason)
        self.add(IS_UNKNOWN, BLANK if status is None else mark_of(IS_UNKNOWN, status))

    def record(self, names: list[str], tree: str) -> SeenFolder:
        """What to cache for the next scan, given the names in order and the digest of the tree."""
        return SeenFolder(
            self.visit.above.key,
            self.rules.key,
            names_to_bytes(names),
            bytes(self.kinds),
            signature_bytes(self.signature_numbers),
            b"".join(self.digests),
            tree,
            self.is_settled,
            self.skipped,
            self.files,
            self.size,
            self.extras,
        )


class UnreadableName(Struct, frozen=True):
    """The reason why nothing is known of a name."""

    reason: str


def mark_of(kind: int, status: os.stat_result) -> tuple[int, ...]:
    """The signature of a name; for folders and special files only kind and mode, because their content is separate."""
    if kind == IS_IGNORED:
        return (*BLANK[:4], stat.S_IFMT(status.st_mode))
    if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
        return signature(status)
    changed = status.st_ctime_ns if kind in (IS_FOLDER, IS_PARTIAL_FOLDER) else 0
    return (0, 0, changed, 0, status.st_mode)


def depth_that_fits(frames: int) -> int:
    """How many levels of folders fit on what the callers leave of the stack; each takes that many frames."""
    used = 0
    frame: FrameType | None = sys._getframe()  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        used, frame = used + 1, frame.f_back
    return max(0, (sys.getrecursionlimit() - used - _FRAMES_LEFT) // frames)

"""Ignored files: small ones are covered, up to a limit, in a tree of their own beside that of the workspace.

A scan lists ignored names and does not enter them. Ignored files that are not covered are unknown, never absent;
folders of dependencies and builds are not entered.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress

from msgspec import Struct

from turnlog.log.digest import sha256
from turnlog.workspace.cache import (
    IS_IGNORED,
    IS_PARTIAL_FOLDER,
    Seen,
    SeenFolder,
    SeenIgnored,
    digest_bytes,
    digest_text,
    mode_in,
    names_from_bytes,
    signature_bytes,
)
from turnlog.workspace.folderscan import REPOSITORY, depth_that_fits
from turnlog.workspace.handle import FolderHandle, Handles
from turnlog.workspace.ignore.rule import ALWAYS, ALWAYS_NAMES, HALF_DONE
from turnlog.workspace.metadata import extra_of
from turnlog.workspace.read import YOUNG_NS, read_file, signature
from turnlog.workspace.sink import Sink
from turnlog.workspace.systemerror import raise_if_system_error
from turnlog.workspace.tree import FILE, FOLDER, LINK, UNKNOWN, Owner, Tree, TreeNode, encode_tree

MOST_FILES = 2000
MOST_BYTES = 16 << 20
_MOST_NAMES = 10_000
"""The most names that are examined; the rest is unknown."""
_MOST_DEEP = 60
_FRAMES = 2
"""The stack frames that a scan takes for each depth."""
_CONTAINER = 0o755
"""The mode of a folder that is in this tree only for its content: the workspace's tree has its real mode."""
CACHES = frozenset((
    "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", ".tox", ".nox", ".eggs", ".cache",
    ".parcel-cache", ".turbo", ".nyc_output", ".ipynb_checkpoints", ".sass-cache", "zig-cache", ".zig-cache",
    ".ccache",
))  # fmt: skip
"""Folders that tools recreate by themselves: they are not reported."""
DEPENDENCIES = frozenset((
    "node_modules", "bower_components", "jspm_packages", ".pnpm-store", ".yarn", ".venv", "venv", "virtualenv",
    "site-packages", "vendor", "Pods", "Carthage", "deps", ".bundle", ".gradle", ".m2", ".cargo", ".stack-work",
    "elm-stuff", ".dart_tool", ".terraform", "target", "build", "_build", "dist", "dist-newstyle", "out", "obj",
    ".build", "DerivedData", "cmake-build-debug", "cmake-build-release", "zig-out", ".next", ".nuxt", ".output",
    ".svelte-kit", ".angular", ".serverless", "coverage", "htmlcov",
))  # fmt: skip
"""Folders of dependencies and builds: large, and recreated by a command."""
NEVER_KEPT = ALWAYS.union(name.encode() for name in CACHES)
"""Names of folders whose content is in no checkpoint."""
_GONE = (FileNotFoundError, NotADirectoryError)
_TOO_MUCH = "ignored, and more than is covered of what is ignored"


class _TooMany(Exception):
    """A folder has more content than can be covered."""


class _IgnoredFiles(Struct):
    """The ignored files of one folder, or of all."""

    files: dict[bytes, os.stat_result] = {}
    nodes: dict[bytes, TreeNode] = {}
    """Links and unknown nodes."""
    folders: dict[bytes, int] = {}
    """With their modes."""
    names: int = 0

    def unknown(self, path: bytes, reason: str, status: os.stat_result | None = None) -> None:
        """Record a path as existing but not covered; `status` is used to detect changes."""
        mark, size = b"", 0
        if status is not None:
            size = 0 if stat.S_ISDIR(status.st_mode) else status.st_size
            mark = f"{size} {status.st_mtime_ns} {status.st_ino}".encode()
        self.nodes[path] = TreeNode(UNKNOWN, size=size, target=mark, reason=reason)

    def add(self, other: _IgnoredFiles) -> None:
        """Add everything of another part."""
        self.files |= other.files
        self.nodes |= other.nodes
        self.folders |= other.folders


class IgnoredScanner:
    """One scan of the ignored files below a root, after the scan of it. See `Scanner` for `has` and `avoid`."""

    def __init__(
        self,
        sink: Sink,
        *,
        seen: SeenIgnored,
        tracked: frozenset[bytes],
        max_file: int,
        has: Callable[[str], bool] | None = None,
        avoid: frozenset[tuple[int, int]] = frozenset(),
    ) -> None:
        self._sink = sink
        self._seen = seen
        self._tracked = tracked
        self._max_file = min(max_file, MOST_BYTES)
        self._has = has
        self._avoid = avoid
        self._names_left = _MOST_NAMES
        self._part = _IgnoredFiles()
        self._young = time.time_ns() - YOUNG_NS
        self._handles: Handles
        self._owner: Owner
        self._max_depth = _MOST_DEEP

    def scan(self, root: str, seen: Seen) -> SeenIgnored:
        """The tree of ignored files, and what to cache. `seen` is the result of the scan."""
        self._owner = seen.owner
        self._max_depth = min(_MOST_DEEP, depth_that_fits(_FRAMES))
        self._handles = Handles(root)
        try:
            for prefix, names in self._listed(seen.folders):
                self._scan_listed(prefix, names)
            return self._result(self._select_files())
        finally:
            self._handles.close()

    # ── finding them ──────────────────────────────────────────────────────────────────────────────

    def _listed(self, folders: dict[bytes, SeenFolder]) -> Iterator[tuple[bytes, list[str]]]:
        """The ignored names in each folder, from the scan alone: most folders have none."""
        for prefix in sorted(prefix for prefix, seen in folders.items() if _has_ignored(seen.kinds)):
            if prefix[:-1] in self._part.folders:
                continue  # it contains a tracked file, and was entered as a whole
            seen = folders[prefix]
            listed = enumerate(zip(names_from_bytes(seen.names), seen.kinds, strict=True))
            ignored = ((i, name) for i, (name, kind) in listed if kind in (IS_IGNORED, IS_PARTIAL_FOLDER))
            names = [
                name
                for i, name in ignored
                if name not in ALWAYS_NAMES and not (name in CACHES and stat.S_ISDIR(mode_in(seen.signature(i))))
            ]
            if names:
                yield prefix, names

    def _scan_listed(self, prefix: bytes, names: list[str]) -> None:
        """Scan the ignored names of one folder."""
        try:
            with self._inside(prefix) as here:
                for name in names:
                    self._add_top(here, prefix, name)
        except _GONE:
            return
        except OSError as error:
            raise_if_system_error(error, prefix)
            for name in names:
                self._part.unknown(prefix + os.fsencode(name), f"unreadable: {error.strerror}")

    @contextmanager
    def _inside(self, prefix: bytes) -> Generator[FolderHandle]:
        here, entered = self._handles.root, list[FolderHandle]()
        try:
            for name in prefix.split(b"/")[:-1]:
                here = self._handles.enter(here, os.fsdecode(name))
                entered.append(here)
            yield here
        finally:
            for handle in reversed(entered):
                self._handles.leave(handle)

    def _add_top(self, here: FolderHandle, prefix: bytes, name: str) -> None:
        """A name that is ignored itself; a folder with too much content is not covered at all."""
        path, part = prefix + os.fsencode(name), _IgnoredFiles()
        if self._names_left <= 0:
            return self._part.unknown(path, _TOO_MUCH)
        try:
            self._add_name(here, prefix, name, part, 0)
        except _TooMany:
            part = _IgnoredFiles(names=MOST_FILES)
            with suppress(*_GONE):  # this one may be removed meanwhile, and the others are still there
                part.unknown(path, _TOO_MUCH, os.lstat(name, dir_fd=self._handles.fd(here)))
        self._names_left -= part.names + 1
        self._part.add(part)

    def _add_name(self, here: FolderHandle, prefix: bytes, name: str, part: _IgnoredFiles, depth: int) -> None:
        path = prefix + os.fsencode(name)
        if path in self._tracked or name in ALWAYS_NAMES:
            return
        try:
            fd: int = self._handles.fd(here)
            status = os.lstat(name, dir_fd=fd)
            if stat.S_ISDIR(status.st_mode):
                self._folder(here, path, name, status, part, depth)
            elif stat.S_ISREG(status.st_mode) and not HALF_DONE.fullmatch(name):
                part.files[path] = status
            elif stat.S_ISLNK(status.st_mode):
                part.nodes[path] = TreeNode(LINK, target=os.readlink(os.fsencode(name), dir_fd=fd))
            else:
                part.unknown(path, "ignored, and a special file")
        except _GONE:
            return
        except OSError as error:
            raise_if_system_error(error, path)
            part.unknown(path, f"ignored, and unreadable: {error.strerror}")

    def _folder(
        self, here: FolderHandle, path: bytes, name: str, status: os.stat_result, part: _IgnoredFiles, depth: int
    ) -> None:
        if name in CACHES or (status.st_dev, status.st_ino) in self._avoid:
            return
        if name in DEPENDENCIES:
            return part.unknown(path, "ignored, a folder of dependencies or builds", status)
        if depth >= self._max_depth:
            return part.unknown(path, f"ignored, and nested more than {self._max_depth} folders deep", status)
        below = self._handles.enter(here, name)
        try:
            names = self._names(below, min(MOST_FILES, self._names_left) - part.names)
            part.names += len(names)
            if ".git" in names:
                return part.unknown(path, REPOSITORY, status)
            part.folders[path] = stat.S_IMODE(status.st_mode)
            for inner in names:
                self._add_name(below, path + b"/", inner, part, depth + 1)
        finally:
            self._handles.leave(below)

    def _names(self, folder: FolderHandle, most: int) -> list[str]:
        names: list[str] = []
        with os.scandir(self._handles.fd(folder)) as entries:
            for entry in entries:
                names.append(entry.name)
                if len(names) > most:
                    raise _TooMany
        return sorted(names)

    # ── covering them ─────────────────────────────────────────────────────────────────────────────

    def _select_files(self) -> list[tuple[bytes, os.stat_result]]:
        """The smallest files, as many as can be covered; the others become unknown."""
        chosen: list[tuple[bytes, os.stat_result]] = []
        size = 0
        for path, status in sorted(self._part.files.items(), key=lambda item: (item[1].st_size, item[0])):
            size += status.st_size
            if len(chosen) < MOST_FILES and size <= MOST_BYTES and status.st_size <= self._max_file:
                chosen.append((path, status))
            else:
                self._part.unknown(path, _TOO_MUCH, status)
        return sorted(chosen, key=lambda item: item[0])

    def _result(self, chosen: list[tuple[bytes, os.stat_result]]) -> SeenIgnored:
        """The tree with these files, and what to cache; the cached tree if nothing changed."""
        part = self._part
        signatures = [(path, signature(status)) for path, status in chosen]
        rest = sorted(part.folders.items()), sorted((path, repr(node)) for path, node in part.nodes.items())
        fingerprint = sha256(repr((signatures, rest)).encode()).digest()
        known = {path: self._known(path, status) for path, status in chosen}
        if (
            self._seen.tree
            and fingerprint == self._seen.fingerprint
            and None not in known.values()
            and self._has is None
        ):
            return self._seen
        digests: dict[bytes, tuple[bytes, bytes]] = {}
        for path, status in chosen:
            digest = known[path]
            if digest is None:
                self._read(path, status, digests)
            else:
                extra = self._seen.extras.get(path)
                part.nodes[path] = TreeNode(FILE, stat.S_IMODE(status.st_mode), digest, status.st_size, extra=extra)
                digests[path] = self._seen.digests[path]
        extras = {path: node.extra for path, node in part.nodes.items() if node.extra is not None}
        return SeenIgnored(self._tree(), fingerprint, digests, extras)

    def _known(self, path: bytes, status: os.stat_result) -> str | None:
        mark, digest = self._seen.digests.get(path, (b"", b""))
        if mark != signature_bytes(signature(status)):
            return None
        text = digest_text(digest)
        return text if self._has is None or self._has(text) else None

    def _read(self, path: bytes, status: os.stat_result, digests: dict[bytes, tuple[bytes, bytes]]) -> None:
        prefix, slash, name = path.rpartition(b"/")
        try:
            with self._inside(prefix + slash) as here:
                read = read_file(self._sink, self._handles.fd(here), os.fsdecode(name))
        except _GONE:
            return
        except OSError as error:
            raise_if_system_error(error, path)
            return self._part.unknown(path, f"ignored, and unreadable: {error.strerror}")
        extra = extra_of(status, self._owner, read.attributes)
        self._part.nodes[path] = TreeNode(FILE, read.mode, read.digest, read.size, extra=extra)
        if read.signature == signature(status) and max(status.st_mtime_ns, status.st_ctime_ns) < self._young:
            digests[path] = signature_bytes(read.signature), digest_bytes(read.digest)

    def _tree(self) -> str:
        """Everything as one tree, including the folders above."""
        trees: dict[bytes, Tree] = {b"": {}}
        for path in self._part.folders:
            trees[path] = {}
        for path, node in self._part.nodes.items():
            folder, _, name = path.rpartition(b"/")
            trees.setdefault(folder, {})[name] = node
        for path in list(trees):
            while path:
                path = path.rpartition(b"/")[0]
                trees.setdefault(path, {})
        for path in sorted(trees, key=lambda path: (path.count(b"/"), path), reverse=True):
            if path:
                folder, _, name = path.rpartition(b"/")
                mode = self._part.folders.get(path, _CONTAINER)
                trees[folder][name] = TreeNode(FOLDER, mode, self._sink.add(encode_tree(trees[path])))
        return self._sink.add(encode_tree(trees[b""]))


def _has_ignored(kinds: bytes) -> bool:
    return IS_IGNORED in kinds or IS_PARTIAL_FOLDER in kinds

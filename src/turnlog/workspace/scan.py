"""The files as they are now, as a tree. Reads what changed since the last scan, and nothing else.

Every folder is opened through the one above it and never through a link, so nothing outside the root is read.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from turnlog.workspace.cache import Seen, SeenFile, SeenFolder, Signature
from turnlog.workspace.ignore import ALWAYS, RULE_FILES, Outside, Rules, rules_of_tree
from turnlog.workspace.tree import FILE, FOLDER, LINK, UNKNOWN, Node, Tree, encode_tree

MAX_FILE = 256 << 20
MAX_DEPTH = 200
_YOUNG_NS = 2_000_000_000
"""A file changed this short before a scan may change again without its times showing it."""
_WHOLE = 1 << 20
"""Files up to this size are read at once."""
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class Sink(Protocol):
    """Where contents go."""

    def add(self, data: bytes) -> str:
        """Keep these bytes; returns their digest."""
        ...

    def add_file(self, fd: int) -> str:
        """Keep the content of an open file, whatever its size; returns its digest."""
        ...


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


class Scanner:
    """One scan of one root."""

    def __init__(
        self,
        sink: Sink,
        *,
        outside: Outside,
        tracked: frozenset[bytes] = frozenset(),
        max_file: int = MAX_FILE,
        seen: Seen | None = None,
        avoid: frozenset[tuple[int, int]] = frozenset(),
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self._sink = sink
        self._tracked = tracked
        self._tracked_parents = frozenset(
            path[:index] for path in tracked for index, char in enumerate(path) if char == 0x2F
        )
        self._max_file = max_file
        self._old = (seen or Seen()).folders
        self._avoid = avoid
        self._progress = progress
        self._top = rules_of_tree(outside)
        self._young = time.time_ns() - _YOUNG_NS
        self._scan = Scan("", Seen(), [])

    def scan(self, root: str, *, only_tracked: bool = False) -> Scan:
        """Look at everything below `root`, or only at what is tracked."""
        fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._scan.tree = self._folder(fd, b"", self._top, 0, only_tracked)
        finally:
            os.close(fd)
        return self._scan

    def _folder(self, fd: int, prefix: bytes, rules: Rules, depth: int, only_tracked: bool) -> str:
        with os.scandir(fd) as listing:
            entries = sorted((os.fsencode(entry.name), entry) for entry in listing)
        texts = [self._read_rules(fd, name) for name, entry in entries if name in RULE_FILES and entry.is_file()]
        rules = rules.below(prefix, [text for text in texts if text])
        key = rules.key
        old = self._old.get(prefix)
        known = old is not None and old.rules == key
        old_files = old.files if old is not None else {}
        old_ignored = frozenset(old.ignored) if old is not None and known else frozenset[bytes]()
        tree: Tree = {}
        files: dict[bytes, SeenFile] = {}
        ignored: list[bytes] = []
        for name, entry in entries:
            path = prefix + name
            is_folder = entry.is_dir(follow_symlinks=False)
            left_out = only_tracked or name in ALWAYS or name in old_ignored
            if not left_out and not (known and name in old_files):
                left_out = rules.ignores(path, is_folder=is_folder)
            if left_out and path not in self._tracked:
                ignored.append(name)
                if not is_folder or path not in self._tracked_parents:
                    continue
            try:
                status = entry.stat(follow_symlinks=False)
                if is_folder:
                    node = self._subfolder(fd, name, path, status, rules, depth, left_out and path not in self._tracked)
                elif stat.S_ISREG(status.st_mode):
                    node = self._file(fd, name, path, status, old_files.get(name), files)
                elif stat.S_ISLNK(status.st_mode):
                    node = Node(LINK, target=os.readlink(name, dir_fd=fd))
                else:
                    node = self._skip(path, "a special file")
            except FileNotFoundError:
                continue  # it went away while we looked: then it is not there
            except OSError as error:
                node = self._skip(path, f"unreadable: {error.strerror}")
            tree[name] = node
        digest = self._sink.add(encode_tree(tree))
        self._scan.seen.folders[prefix] = SeenFolder(key, files, ignored)
        return digest

    def _subfolder(
        self,
        fd: int,
        name: bytes,
        path: bytes,
        status: os.stat_result,
        rules: Rules,
        depth: int,
        only_tracked: bool,
    ) -> Node:
        if (status.st_dev, status.st_ino) in self._avoid:
            return self._skip(path, "Turnlog's own folder")
        if depth >= MAX_DEPTH:
            return self._skip(path, f"nested more than {MAX_DEPTH} folders deep")
        below = os.open(name, _FOLDER_FLAGS, dir_fd=fd)
        try:
            digest = self._folder(below, path + b"/", rules, depth + 1, only_tracked)
        finally:
            os.close(below)
        return Node(FOLDER, stat.S_IMODE(status.st_mode), digest)

    def _file(
        self,
        fd: int,
        name: bytes,
        path: bytes,
        status: os.stat_result,
        old: SeenFile | None,
        files: dict[bytes, SeenFile],
    ) -> Node:
        mode = stat.S_IMODE(status.st_mode)
        size = status.st_size
        signature: Signature = (size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_mode)
        self._scan.files += 1
        self._scan.bytes += size
        if self._progress is not None and not self._scan.files & 1023:
            self._progress(self._scan.files)
        if size > self._max_file:
            return self._skip(path, f"larger than {self._max_file} bytes", size)
        if old is not None and old.digest and old.signature == signature:
            files[name] = old
            return Node(FILE, mode, old.digest, size)
        digest, size, after = self._read(fd, name)
        is_old = after == signature and max(status.st_mtime_ns, status.st_ctime_ns) < self._young
        files[name] = SeenFile(signature, digest if is_old else "")
        return Node(FILE, mode, digest, size)

    def _read(self, folder: int, name: bytes) -> tuple[str, int, Signature]:
        """The digest and size of what is in a file, and its signature after it was read."""
        self._scan.read += 1
        fd = os.open(name, _FILE_FLAGS, dir_fd=folder)
        try:
            size = os.fstat(fd).st_size
            if size <= _WHOLE:
                data = os.read(fd, _WHOLE + 1)
                while len(data) <= _WHOLE and (more := os.read(fd, _WHOLE)):
                    data += more
                digest, size = self._sink.add(data), len(data)
            else:
                digest = self._sink.add_file(fd)
            status = os.fstat(fd)
        finally:
            os.close(fd)
        return digest, size, (
            status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_mode,
        )  # fmt: skip

    def _read_rules(self, fd: int, name: bytes) -> bytes:
        try:
            rules = os.open(name, _FILE_FLAGS, dir_fd=fd)
        except OSError:
            return b""
        try:
            return os.read(rules, 1 << 20)
        finally:
            os.close(rules)

    def _skip(self, path: bytes, reason: str, size: int = 0) -> Node:
        self._scan.skipped.append(Skipped(path, reason, size))
        return Node(UNKNOWN, size=size, reason=reason)


def hash_file(folder: int, name: bytes) -> str:
    """The digest of what is in a file now."""
    fd = os.open(name, _FILE_FLAGS, dir_fd=folder)
    try:
        hashed = hashlib.sha256()
        while piece := os.read(fd, _WHOLE):
            hashed.update(piece)
    finally:
        os.close(fd)
    return "sha256:" + hashed.hexdigest()

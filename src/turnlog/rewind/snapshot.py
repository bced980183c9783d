"""The files of a session as they are now: stored for a checkpoint, or only examined."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
from msgspec import Struct

from turnlog.errors import OutOfSpace, Unavailable
from turnlog.log.entry import Checkpoint
from turnlog.log.fold import State
from turnlog.log.part import Root
from turnlog.log.payload import digest
from turnlog.machine.environment import config_folder
from turnlog.machine.folder import expand
from turnlog.store import AddBlob, OpenFile, Store, derived
from turnlog.thread.home.settings import Settings
from turnlog.workspace import cache
from turnlog.workspace.folderscan import Scan
from turnlog.workspace.git import git_now
from turnlog.workspace.ignore.outside import dump_rules, outside_rules
from turnlog.workspace.ignore.rule import Outside, rules_of_tree
from turnlog.workspace.ignoredscan import IgnoredScanner
from turnlog.workspace.rootfolder import permissions_of
from turnlog.workspace.scan import Scanner
from turnlog.workspace.sink import DigestOnlySink, Sink
from turnlog.workspace.tree import encode_tree, path_bytes, path_text

WORKSPACE = "workspace"
"""The name of the root that is the workspace."""
IGNORED = "ignored"
_MOST_SKIPPED = 1000
_MORE_FILES = "let this process open more files (`ulimit -n`), or end what has many open; then try again"
_HINTS = {
    errno.EMFILE: _MORE_FILES,
    errno.ENFILE: _MORE_FILES,
    errno.ENOMEM: "free some memory, then try again",
    errno.EIO: "the disk may be failing: save what can be read, move away what cannot, then try again",
}
Progress = Callable[[int], None]


class _Batch:
    """A sink that makes blobs of the content of files; see `Sink`."""

    def __init__(self, add: AddBlob) -> None:
        self.add = add

    def add_file(self, fd: int, size: int) -> str:
        """See `Sink.add_file`."""
        return self.add(OpenFile(fd, size))


class CoveredRoot(Struct, frozen=True):
    """A folder that checkpoints cover."""

    name: str
    path: str
    tracked: frozenset[bytes] = frozenset()
    is_partial: bool = False
    """Whether only tracked files in it are covered."""

    def root(self, tree: str, *, rules: str | None = None, mode: int | None = None, is_gone: bool = False) -> Root:
        """The folder as the root of a checkpoint."""
        names = sorted(path_text(item) for item in self.tracked)
        path = path_text(os.fsencode(self.path))
        return Root(self.name, path, tree, rules, names, self.is_partial, mode, is_gone=is_gone)


class _ScanSettings(Struct, frozen=True):
    """The settings of a scan."""

    sink: Sink
    """Where new content goes."""
    has: Callable[[str], bool]
    packs: frozenset[str]
    """The packs that hold the blobs: an earlier scan can be relied on if all of its packs are there."""
    progress: Progress | None
    is_start: bool = False
    """Whether a turn begins: a missing folder, such as an unmounted disk, is then not covered yet."""


class _RootScan(Struct, frozen=True):
    """The result of the scan of one folder."""

    roots: list[Root] = []
    skipped: list[dict[str, Any]] = []
    key: str = ""
    scan: Scan | None = None


class Snapshots:
    """Scans the roots of a session."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._pending_values: dict[str, bytes] = {}
        """Values that are cached once the checkpoint is stored."""

    def take(self, state: State, *, label: str | None, when: str | None, progress: Progress | None) -> Checkpoint:
        """Take a checkpoint, as a draft. New content is durable when this returns."""
        quota = self._settings.quota_bytes
        # The checkpoint after a rewind is exempt, or the rewind could not be undone.
        check = self._quota_check(quota) if quota is not None and when != "after" else None
        with self._store.add(progress=check) as add, _whole(state):
            is_start = when in (None, "begin")
            before = derived.packs(self._store, add)
            settings = _ScanSettings(_Batch(add), self._store.has, before, progress, is_start=is_start)
            draft, scans = self._scan(state, settings)
        for key, value in self._pending_values.items():
            derived.save(self._store, key, value)
        self._pending_values.clear()
        # Earlier packs are still there: no collection runs while the caller is inside `keeping`.
        packs = sorted(derived.packs(self._store, add))
        for key, scan in scans:
            # Only now, because the result of a scan must not be relied on unless its content is stored.
            if scan.has_changed or packs != scan.seen.packs:
                scan.seen.packs = packs
                derived.save(self._store, key, cache.encode_seen(scan.seen))
        return msgspec.structs.replace(draft, label=label, when=when)

    def _quota_check(self, quota: int) -> Callable[[int], None]:
        """A check that the batch fits into the rest of the quota; otherwise nothing of it is stored."""
        left: int | None = None

        def check(size_bytes: int) -> None:
            nonlocal left
            if size_bytes < quota // 1000:
                return  # summing up what is there would take longer than storing that little
            left = max(0, quota - derived.blob_bytes(self._store)) if left is None else left
            if size_bytes > left:
                raise OutOfSpace(
                    f"this checkpoint would take the home over its quota of {quota} bytes",
                    hint="`turnlog gc` gives up the oldest automatic checkpoints; nothing was changed",
                )

        return check

    def look(self, state: State, progress: Progress | None) -> tuple[Checkpoint, DigestOnlySink]:
        """Examine the files; nothing is written. The sink has the trees."""
        sink = DigestOnlySink()
        with _whole(state):
            draft, _ = self._scan(state, _ScanSettings(sink, sink.has, derived.packs(self._store), progress))
            return draft, sink

    def _scan(self, state: State, settings: _ScanSettings) -> tuple[Checkpoint, list[tuple[str, Scan]]]:
        """Scan all folders. Returns each scan with the key under which the next one finds it."""
        covered = list(roots_of(state))
        scanned = [self._scan_root(root, settings) for root in covered]
        project = next((root.path for root in covered if root.name == WORKSPACE), None)
        git = git_now(project, self._cached) if project is not None else None
        roots = [root for scan in scanned for root in scan.roots]
        skipped = [item for scan in scanned for item in scan.skipped]
        scans = [(scan.key, scan.scan) for scan in scanned if scan.scan is not None]
        return Checkpoint(roots=roots, skipped=skipped[:_MOST_SKIPPED], git=git), scans

    def _scan_root(self, covered: CoveredRoot, settings: _ScanSettings) -> _RootScan:
        is_workspace = covered.name == WORKSPACE
        try:
            mode = permissions_of(covered.path)
        except PermissionError:
            if is_workspace:
                raise
            return _RootScan()  # without a folder elsewhere, the rest is still a checkpoint
        if mode is not None:
            return self._scan_present(covered, mode, settings)
        was_there = not settings.is_start and (covered.is_partial or is_workspace)
        return self._missing_root(covered, settings) if was_there else _RootScan()

    def _scan_present(self, covered: CoveredRoot, mode: int, settings: _ScanSettings) -> _RootScan:
        """Scan a folder that exists and has this mode."""
        outside = [] if covered.is_partial else _outside(covered.path)
        what = (covered.path, sorted(covered.tracked), covered.is_partial, self._settings.max_file_bytes)
        key = "scan-" + digest(repr(what).encode())[7:39]
        seen = cache.decode_seen(derived.load(self._store, key))
        is_all_there = settings.packs.issuperset(seen.packs)
        has = None if is_all_there else settings.has
        scanner = Scanner(
            settings.sink,
            outside=outside,
            tracked=covered.tracked,
            max_file=self._settings.max_file_bytes,
            seen=seen,
            has=has,
            avoid=derived.own_folders(self._store),
            progress=settings.progress,
        )
        scan = scanner.scan(covered.path, only_tracked=covered.is_partial)
        has_ignored = self._covers_ignored(covered)
        if has_ignored:
            self._scan_ignored(covered, scan, seen, settings.sink, has)
        scan.seen.packs = seen.packs
        rules = _store_rules(outside, scan, seen if is_all_there else None, settings.sink)
        root = covered.root(scan.tree, rules=rules, mode=mode)
        private = [Root(IGNORED, root.path, scan.seen.ignored.tree, is_private=True)] if has_ignored else []
        skipped = [
            {"root": covered.name, "path": path_text(s.path), "reason": s.reason, "size": s.size} for s in scan.skipped
        ]
        return _RootScan([root, *private], skipped, key, scan)

    def _missing_root(self, covered: CoveredRoot, settings: _ScanSettings) -> _RootScan:
        """The scan of a folder that existed and is now missing: it is empty."""
        tree = settings.sink.add(encode_tree({}))
        root = covered.root(tree, is_gone=True)
        private = [Root(IGNORED, root.path, tree, is_private=True)] if self._covers_ignored(covered) else []
        return _RootScan([root, *private])

    def _covers_ignored(self, covered: CoveredRoot) -> bool:
        return self._settings.covers_ignored and not covered.is_partial

    def _cached(self, key: str, value: bytes | None) -> bytes | None:
        if value is not None:
            self._pending_values[key] = value
        return derived.load(self._store, key)

    def _scan_ignored(
        self, covered: CoveredRoot, scan: Scan, seen: cache.Seen, sink: Sink, has: Callable[[str], bool] | None
    ) -> None:
        scanner = IgnoredScanner(
            sink,
            seen=seen.ignored if seen.owner == scan.seen.owner else cache.SeenIgnored(),
            tracked=covered.tracked,
            max_file=self._settings.max_file_bytes,
            has=has,
            avoid=derived.own_folders(self._store),
        )
        scan.seen.ignored = scanner.scan(covered.path, scan.seen)
        scan.has_changed = scan.has_changed or scan.seen.ignored is not seen.ignored


@contextmanager
def _whole(state: State) -> Generator[None]:
    """Report an unreadable file as `Unavailable`: a checkpoint is complete, or there is none."""
    try:
        yield
    except OSError as error:
        name = error.filename
        where = (
            path_text(os.fsencode(name)) if isinstance(name, (str, bytes)) else workspace_of(state) or "the workspace"
        )
        raise Unavailable(
            f"no checkpoint: {where} cannot be looked at: {error.strerror or error}", hint=_HINTS.get(error.errno or 0)
        ) from error


def _outside(path: str) -> Outside:
    return outside_rules(path, config_folder(), expand)


def _store_rules(outside: Outside, scan: Scan, seen: cache.Seen | None, sink: Sink) -> str | None:
    """Store the ignore rules from outside a folder. `seen` is the last scan, if its content is still there."""
    if not outside:
        return None
    top = rules_of_tree(outside).key
    is_known = seen is not None and seen.outside[0] == top
    rules = seen.outside[1] if seen is not None and is_known else sink.add(dump_rules(outside))
    scan.has_changed = scan.has_changed or not is_known
    scan.seen.outside = (top, rules)
    return rules


def workspace_of(state: State) -> str | None:
    """The current path of the workspace, as text of the log; None without a workspace."""
    workspace = state.wide.get("workspace")
    return str(workspace) if workspace else None


def workspace_folder(state: State) -> str | None:
    """The same as a path in the file system."""
    workspace = workspace_of(state)
    return None if workspace is None else os.fsdecode(path_bytes(workspace))


def workspace_prefix(state: State) -> bytes:
    """The real path of the workspace with a slash at the end; `/` without a workspace."""
    return folder_path(workspace_of(state) or "/")


def current_path(root: Root, workspace: str | None) -> str:
    """Where a root is now: the workspace at its current path, any other folder where it was."""
    return workspace if root.name == WORKSPACE and workspace is not None else root.path


def folder_path(folder: str) -> bytes:
    """The real path of a folder, with a slash at the end, so that a prefix of it is a folder above."""
    return os.path.join(os.path.realpath(path_bytes(folder)), b"")


def roots_of(state: State) -> Iterator[CoveredRoot]:
    """The folders that checkpoints cover."""
    workspace = workspace_folder(state)
    folders = [os.fsdecode(path_bytes(text)) for text in state.folders]
    inside: set[bytes] = set()
    others: dict[str, set[bytes]] = {}
    for text in state.tracked:
        path = os.fsdecode(path_bytes(text))
        relative = os.path.relpath(path, workspace) if workspace is not None else ".."
        if any(path.startswith(f"{folder}/") for folder in folders):
            continue
        if relative == ".." or relative.startswith("../"):
            others.setdefault(os.path.dirname(path), set()).add(os.fsencode(os.path.basename(path)))
        else:
            inside.add(os.fsencode(relative))
    if workspace is not None:
        yield CoveredRoot(WORKSPACE, workspace, frozenset(inside))
    for folder in folders:
        yield CoveredRoot(path_text(os.fsencode(folder)), folder)
    for folder, names in sorted(others.items()):
        yield CoveredRoot(path_text(os.fsencode(folder)), folder, frozenset(names), is_partial=True)

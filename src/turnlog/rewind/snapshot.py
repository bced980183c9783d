"""The files of a session as they are now: kept for a checkpoint, or only looked at."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
from msgspec import Struct

from turnlog.errors import OutOfSpace, Unavailable
from turnlog.log.entry import Checkpoint, Root
from turnlog.log.fold import State
from turnlog.log.payload import digest
from turnlog.machine.environment import config_folder, user_folder
from turnlog.machine.folder import expand
from turnlog.store import AddBlob, OpenFile, Store, derived
from turnlog.thread.settings import Settings
from turnlog.workspace import cache
from turnlog.workspace.exclude import global_excludes, outside_rules
from turnlog.workspace.folder import permissions_of
from turnlog.workspace.folderscan import Scan
from turnlog.workspace.git import git_now
from turnlog.workspace.ignore import Outside, rules_of_tree
from turnlog.workspace.ignored import IgnoredScanner
from turnlog.workspace.read import Glance, Sink
from turnlog.workspace.scan import Scanner
from turnlog.workspace.tree import encode_tree, path_bytes, path_text

WORKSPACE = "workspace"
IGNORED = "ignored"
_MOST_SKIPPED = 1000
_GONE, _UNREAD = -1, -2
_RULES = msgspec.json.Decoder(list[tuple[str, str]]).decode
_MORE_FILES = "let this process open more files (`ulimit -n`), or end what has many open; then try again"
_HINTS = {
    errno.EMFILE: _MORE_FILES,
    errno.ENFILE: _MORE_FILES,
    errno.ENOMEM: "free some memory, then try again",
    errno.EIO: "the disk may be failing: save what can be read, move away what cannot, then try again",
}
Progress = Callable[[int], None]


class _Batch:
    """See `Sink`: what is in the files becomes blobs."""

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
    """Whether only what is tracked in it is covered."""

    def root(self, tree: str, *, rules: str | None = None, mode: int | None = None, is_gone: bool = False) -> Root:
        """It, as a checkpoint has it."""
        names = sorted(path_text(item) for item in self.tracked)
        path = path_text(os.fsencode(self.path))
        return Root(self.name, path, tree, rules, names, self.is_partial, mode, is_gone=is_gone)


class _Look(Struct, frozen=True):
    """How folders are looked at."""

    sink: Sink
    """Where new content goes."""
    has: Callable[[str], bool]
    packs: frozenset[str]
    """What holds the blobs: what an earlier scan saw may be relied on if all of its are there."""
    progress: Progress | None
    is_start: bool = False
    """What is not there now may come any time, as a disk does, and is not covered yet."""


class _RootScan(Struct, frozen=True):
    """What a scan of one folder gave."""

    roots: list[Root] = []
    skipped: list[dict[str, Any]] = []
    key: str = ""
    scan: Scan | None = None


class Snapshots:
    """Scans the roots of a session."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._news: dict[str, bytes] = {}
        """What may be remembered when a checkpoint is kept."""

    def take(self, state: State, *, label: str | None, when: str | None, progress: Progress | None) -> Checkpoint:
        """A draft of a checkpoint. What is new is on the disk when this returns."""
        quota = self._settings.quota_bytes
        # What a rewind did has to be recorded, or it could not be undone.
        within = self._within(quota) if quota is not None and when != "after" else None
        with self._store.add(progress=within) as add, _whole(state):
            is_start = when in (None, "begin")
            before = derived.packs(self._store, add)
            draft, scans = self._scan(state, _Look(_Batch(add), self._store.has, before, progress, is_start=is_start))
        for key, value in self._news.items():
            derived.save(self._store, key, value)
        self._news.clear()
        # Those of before are still there: nothing is collected while the caller is inside `keeping`.
        packs = sorted(derived.packs(self._store, add))
        for key, scan in scans:
            # Only now: what a scan has seen must not be relied on unless it is kept.
            if scan.is_news or packs != scan.seen.packs:
                scan.seen.packs = packs
                derived.save(self._store, key, cache.dump(scan.seen))
        return msgspec.structs.replace(draft, label=label, when=when)

    def _within(self, quota: int) -> Callable[[int], None]:
        """The batch must not become larger than what is left of the quota: then nothing of it is kept."""
        left: int | None = None

        def check(size_bytes: int) -> None:
            nonlocal left
            if size_bytes < quota // 1000:
                return  # to sum up what is there would take longer than to keep that little
            left = max(0, quota - derived.blob_bytes(self._store)) if left is None else left
            if size_bytes > left:
                raise OutOfSpace(
                    f"this checkpoint would take the home over its quota of {quota} bytes",
                    hint="`turnlog gc` gives up the oldest automatic checkpoints; nothing was changed",
                )

        return check

    def look(self, state: State, progress: Progress | None) -> tuple[Checkpoint, Glance]:
        """The files as they are; nothing is written. Trees that no checkpoint has are in the glance."""
        glance = Glance()
        with _whole(state):
            draft, _ = self._scan(state, _Look(glance, glance.has, derived.packs(self._store), progress))
            return draft, glance

    def _scan(self, state: State, look: _Look) -> tuple[Checkpoint, list[tuple[str, Scan]]]:
        """The folders as they are, and each scan with the key under which the next one finds what it saw."""
        covered = list(roots_of(state))
        scanned = [self._scan_root(one, look) for one in covered]
        project = next((one.path for one in covered if one.name == WORKSPACE), None)
        git = git_now(project, self._remembered) if project is not None else None
        roots = [root for one in scanned for root in one.roots]
        skipped = [item for one in scanned for item in one.skipped]
        scans = [(one.key, one.scan) for one in scanned if one.scan is not None]
        return Checkpoint(roots=roots, skipped=skipped[:_MOST_SKIPPED], git=git), scans

    def _scan_root(self, covered: CoveredRoot, look: _Look) -> _RootScan:
        is_extra = covered.name != WORKSPACE
        mode = _mode(covered.path, is_extra)
        if mode == _GONE and not look.is_start and (covered.is_partial or not is_extra):
            return self._gone(covered, look)
        if mode < 0:
            return _RootScan()
        outside = [] if covered.is_partial else _outside(covered.path)
        what = (covered.path, sorted(covered.tracked), covered.is_partial, self._settings.max_file_bytes)
        key = "scan-" + digest(repr(what).encode())[7:39]
        seen = cache.load(derived.load(self._store, key))
        is_all_there = look.packs.issuperset(seen.packs)
        has = None if is_all_there else look.has
        scanner = Scanner(
            look.sink,
            outside=outside,
            tracked=covered.tracked,
            max_file=self._settings.max_file_bytes,
            seen=seen,
            has=has,
            avoid=derived.own_folders(self._store),
            progress=look.progress,
        )
        scan = scanner.scan(covered.path, only_tracked=covered.is_partial)
        is_whole = self._settings.covers_ignored and not covered.is_partial
        if is_whole:
            self._scan_ignored(covered, scan, seen, look.sink, has)
        scan.seen.packs = seen.packs
        rules = _keep_rules(outside, scan, seen if is_all_there else None, look.sink)
        root = covered.root(scan.tree, rules=rules, mode=mode)
        private = [Root(IGNORED, root.path, scan.seen.ignored.tree, is_private=True)] if is_whole else []
        skipped = [
            {"root": covered.name, "path": path_text(s.path), "reason": s.reason, "size": s.size} for s in scan.skipped
        ]
        return _RootScan([root, *private], skipped, key, scan)

    def _gone(self, covered: CoveredRoot, look: _Look) -> _RootScan:
        """A folder that is not there, and was: then nothing is in it."""
        tree = look.sink.add(encode_tree({}))
        root = covered.root(tree, is_gone=True)
        is_whole = self._settings.covers_ignored and not covered.is_partial
        return _RootScan([root, Root(IGNORED, root.path, tree, is_private=True)] if is_whole else [root])

    def _remembered(self, key: str, value: bytes | None) -> bytes | None:
        if value is not None:
            self._news[key] = value
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
        scan.is_news = scan.is_news or scan.seen.ignored is not seen.ignored


@contextmanager
def _whole(state: State) -> Generator[None]:
    """A checkpoint has everything in it, or there is none."""
    try:
        yield
    except OSError as error:
        name = error.filename
        where = path_text(os.fsencode(name)) if isinstance(name, (str, bytes)) else str(state.wide.get("workspace"))
        raise Unavailable(
            f"no checkpoint: {where} cannot be looked at: {error.strerror or error}", hint=_HINTS.get(error.errno or 0)
        ) from error


def _mode(path: str, is_extra: bool) -> int:
    """The permission bits of a root; below 0 if it is gone, or cannot be told."""
    try:
        mode = permissions_of(path)
    except PermissionError:
        if is_extra:
            return _UNREAD
        raise
    return _GONE if mode is None else mode


def _outside(path: str) -> Outside:
    return outside_rules(path, expand(global_excludes(user_folder(), config_folder())))


def _keep_rules(outside: Outside, scan: Scan, seen: cache.Seen | None, sink: Sink) -> str | None:
    """The rules from outside a folder, kept; `seen` is what the last scan saw, if its contents are still there."""
    if not outside:
        return None
    top = rules_of_tree(outside).key
    is_known = seen is not None and seen.outside[0] == top
    rules = seen.outside[1] if seen is not None and is_known else sink.add(dump_rules(outside))
    scan.is_news = scan.is_news or not is_known
    scan.seen.outside = (top, rules)
    return rules


def roots_of(state: State) -> Iterator[CoveredRoot]:
    """The folders that checkpoints cover."""
    named = state.wide.get("workspace")
    workspace = os.fsdecode(path_bytes(str(named))) if named else None
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
        yield CoveredRoot(folder, folder)
    for folder, names in sorted(others.items()):
        yield CoveredRoot(folder, folder, frozenset(names), is_partial=True)


def dump_rules(outside: Outside) -> bytes:
    """Rules from outside a tree, to be kept beside it."""
    return msgspec.json.encode([(path_text(lead), path_text(text)) for lead, text in outside])


def load_rules(data: bytes) -> Outside:
    """What `dump_rules` kept."""
    return [(path_bytes(lead), path_bytes(text)) for lead, text in _RULES(data)]

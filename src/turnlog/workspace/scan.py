"""Scanning the files as they are now into a tree. Reads only what changed since the last scan.

Every folder is opened through the one above it and never through a link, so nothing outside the root is read. Every
name is listed and every file's signature taken; a folder without changes keeps its digest.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager

from turnlog.workspace.cache import (
    IS_FILE,
    IS_FOLDER,
    IS_IGNORED,
    IS_LINK,
    IS_PARTIAL_FOLDER,
    IS_UNKNOWN,
    NO_DIGEST,
    WIDTH,
    CachedName,
    Seen,
    SeenFolder,
    digest_bytes,
    digest_text,
    names_to_bytes,
    signature_bytes,
)  # fmt: skip
from turnlog.workspace.folderscan import (
    BLANK,
    REPOSITORY,
    ChangedFolder,
    FolderVisit,
    Scan,
    Separate,
    Skipped,
    UnreadableName,
    depth_that_fits,
    mark_of,
    refuse_repository,
    wanted_names,
)
from turnlog.workspace.handle import Handles
from turnlog.workspace.ignore.rule import ALWAYS_NAMES, HALF_DONE, RULE_FILES, Outside, Rules, rules_of_tree
from turnlog.workspace.metadata import attributes_of, extra_of
from turnlog.workspace.read import YOUNG_NS, read_file, read_rules, signature
from turnlog.workspace.sink import Sink
from turnlog.workspace.systemerror import raise_if_system_error
from turnlog.workspace.tree import FILE, FOLDER, LINK, Extra, Owner, TreeNode, encode_tree

MAX_FILE = 256 << 20
MAX_DEPTH = 200
_FRAMES = 4
"""The stack frames that a scan takes for each depth."""
_RULE_FILES = tuple(os.fsdecode(name) for name in RULE_FILES)
_FOLDERS = (IS_FOLDER, IS_PARTIAL_FOLDER)


class Scanner:
    """One scan of one root.

    `seen` is the result of the last scan; if `has` is given, every digest in it is checked before it is relied on.
    """

    def __init__(
        self,
        sink: Sink,
        *,
        outside: Outside,
        tracked: frozenset[bytes] = frozenset(),
        max_file: int = MAX_FILE,
        seen: Seen | None = None,
        has: Callable[[str], bool] | None = None,
        avoid: frozenset[tuple[int, int]] = frozenset(),
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self._sink = sink
        self._tracked = tracked
        self._tracked_parents = frozenset(
            path[:index] for path in tracked for index, char in enumerate(path) if char == 0x2F
        )
        self._max_file = max_file
        self._old = seen.folders if seen is not None else {}
        self._has = has
        self._avoid = avoid
        self._progress = progress
        self._top = rules_of_tree(outside)
        self._young = time.time_ns() - YOUNG_NS
        self._scan = Scan("", Seen(folders={}), [])
        self._max_depth = MAX_DEPTH
        self._handles: Handles
        self._owner: Owner = (-1, -1)
        self._was_owner = seen.owner if seen is not None else self._owner

    def scan(self, root: str, *, only_tracked: bool = False) -> Scan:
        """Scan everything below `root`, or only what is tracked.

        Raises errors that are not those of a single file: too few descriptors, too little memory, a failing disk.
        """
        self._max_depth = min(MAX_DEPTH, depth_that_fits(_FRAMES))
        self._handles = Handles(root)
        try:
            top = os.fstat(self._handles.root.fd)
            self._owner = self._scan.seen.owner = (top.st_uid, top.st_gid)
            if self._was_owner != self._owner:
                self._old = {}
            self._scan.tree = self._scan_folder(FolderVisit(self._handles.root, b"", self._top, 0, only_tracked))
        finally:
            self._handles.close()
        self._scan.has_changed = self._scan.has_changed or len(self._old) != len(self._scan.seen.folders)
        return self._scan

    def _scan_folder(self, visit: FolderVisit) -> str:
        """Scan a folder; returns the digest of its tree."""
        if visit.partly:
            return self._scan_changed(visit, wanted_names(visit.prefix, self._tracked | self._tracked_parents))
        names = os.listdir(self._handles.fd(visit.here))
        refuse_repository(visit.prefix, names, self._tracked)
        old = self._old.get(visit.prefix)
        if (
            old is not None
            and old.is_settled
            and self._has is None
            and old.above == visit.above.key
            and old.names == names_to_bytes(names)
            and self._is_unchanged(visit, names, old)
        ):
            self._record(visit.prefix, old)
            return old.tree
        return self._scan_changed(visit, names)

    def _record(self, prefix: bytes, folder: SeenFolder) -> None:
        """Add a folder to the result of the scan."""
        self._scan.seen.folders[prefix] = folder
        self._scan.skipped += [Skipped(prefix + name, reason, size) for name, reason, size in folder.skipped]
        before = self._scan.files
        self._scan.files += folder.files
        self._scan.bytes += folder.size
        if self._progress is not None and before >> 10 != self._scan.files >> 10:
            self._progress(self._scan.files)

    # ── folders where nothing happened ────────────────────────────────────────────────────────────

    def _is_unchanged(self, visit: FolderVisit, names: list[str], old: SeenFolder) -> bool:
        """Whether everything in a folder is unchanged; also adds the digests of its subfolders to `visit.below`."""
        try:
            if self._signatures(self._handles.fd(visit.here), names, old.kinds) != old.signatures:
                return False
        except OSError:
            return False
        if IS_FOLDER not in old.kinds and IS_PARTIAL_FOLDER not in old.kinds:
            return True
        if visit.depth >= self._max_depth:
            return False
        rules = visit.above.known_below(visit.prefix, old.rules, lambda: self._rule_texts(visit))
        is_same = True
        for index, (name, kind) in enumerate(zip(names, old.kinds, strict=True)):
            if kind in _FOLDERS:
                try:
                    with self._entered(visit, name, rules, kind == IS_PARTIAL_FOLDER) as inner:
                        visit.below[name] = digest = self._scan_folder(inner)
                except (OSError, Separate):
                    is_same = False  # scanned again, and reported then
                else:
                    is_same = is_same and digest_bytes(digest) == old.digests[index * WIDTH : (index + 1) * WIDTH]
        return is_same

    def _signatures(self, fd: int, names: list[str], kinds: bytes) -> bytes:
        # Every file of the workspace passes here at every checkpoint: only what is necessary.
        numbers: list[int] = []
        lstat = os.lstat
        for name, kind in zip(names, kinds, strict=True):
            status = lstat(name, dir_fd=fd)
            if kind == IS_FILE:
                numbers += (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_mode)
            else:
                numbers += mark_of(kind, status)
                if kind in _FOLDERS and (status.st_dev, status.st_ino) in self._avoid:
                    return b""
        return signature_bytes(numbers)

    # ── folders where something did ───────────────────────────────────────────────────────────────

    def _scan_changed(self, visit: FolderVisit, names: list[str]) -> str:
        """Scan a folder name by name; returns the digest of its tree."""
        old = self._old.get(visit.prefix)
        known = {} if old is None else old.by_name()
        stats = self._stats(visit, names)
        rules, texts = (visit.above, {}) if visit.partly else self._rules_in(visit, known, stats, old)
        folder = ChangedFolder(visit, old, known, rules, texts)
        for name, status in stats.items():
            if isinstance(status, UnreadableName):
                folder.is_settled = False
                folder.skip(name, None, status.reason)
            else:
                self._scan_name(folder, name, status)
        record = folder.record(list(stats), self._sink.add(encode_tree(folder.tree)))
        self._scan.has_changed = self._scan.has_changed or record != old
        self._record(visit.prefix, record)
        return record.tree

    def _stats(self, visit: FolderVisit, names: list[str]) -> dict[str, os.stat_result | UnreadableName]:
        """The status of each name in a folder, without names that are gone."""
        stats: dict[str, os.stat_result | UnreadableName] = {}
        fd = self._handles.fd(visit.here)
        for name in names:
            try:
                stats[name] = os.lstat(name, dir_fd=fd)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise_if_system_error(error, visit.prefix + os.fsencode(name))
                stats[name] = UnreadableName(f"unreadable: {error.strerror}")
        return stats

    def _scan_name(self, folder: ChangedFolder, name: str, status: os.stat_result) -> None:
        """Scan one name of a folder, or leave it out."""
        path = folder.visit.prefix + os.fsencode(name)
        is_folder, is_tracked = stat.S_ISDIR(status.st_mode), path in self._tracked
        is_left_out = not is_tracked and self._is_left_out(folder, name, path, is_folder=is_folder)
        if is_left_out and not (is_folder and path in self._tracked_parents):
            folder.add(IS_IGNORED, mark_of(IS_IGNORED, status))
            return
        try:
            if is_folder:
                rules = rules_of_tree([]) if is_tracked else folder.rules
                self._scan_subfolder(folder, name, status, rules, partly=is_left_out)
            else:
                self._scan_leaf(folder, name, status)
        except FileNotFoundError:
            folder.is_settled = False  # it was deleted during the scan, so it does not exist
            folder.add(IS_IGNORED, BLANK)
        except OSError as error:
            raise_if_system_error(error, path)
            folder.is_settled = False
            folder.skip(name, status, f"unreadable: {error.strerror}")

    def _is_left_out(self, folder: ChangedFolder, name: str, path: bytes, *, is_folder: bool) -> bool:
        """Whether an untracked name is ignored: by the rules, or by the last scan's verdict with the same rules."""
        if folder.visit.partly or name in ALWAYS_NAMES:
            return True
        if name in folder.rule_texts:
            return False  # a rule file
        known = folder.known.get(name) if folder.has_same_rules else None
        # A folder may be covered in part because it was a repository of its own, whatever the rules say.
        if known is not None and known.kind not in (IS_UNKNOWN, IS_PARTIAL_FOLDER) and is_folder == known.is_folder:
            return known.kind == IS_IGNORED
        return folder.rules.ignores(path, is_folder=is_folder)

    def _scan_leaf(self, folder: ChangedFolder, name: str, status: os.stat_result) -> None:
        """Scan a name that is not a folder."""
        fd = self._handles.fd(folder.visit.here)
        if HALF_DONE.fullmatch(name):
            folder.skip(name, status, "named like what a rewind has half done")
        elif stat.S_ISREG(status.st_mode):
            self._scan_file(folder, name, status)
        elif stat.S_ISLNK(status.st_mode):
            target = os.readlink(os.fsencode(name), dir_fd=fd)
            folder.tree[os.fsencode(name)] = TreeNode(LINK, target=target, extra=extra_of(status, self._owner))
            folder.is_settled = folder.is_settled and self._is_old(status)
            folder.add(IS_LINK, signature(status))
        else:
            folder.skip(name, status, "a special file")

    def _rules_in(
        self, visit: FolderVisit, known: Mapping[str, CachedName], stats: Mapping[str, object], old: SeenFolder | None
    ) -> tuple[Rules, dict[str, bytes | None]]:
        """The rules in a folder, and its rule files, each with its text if that had to be read.

        Rule files are covered even if a rule leaves them out: they decide what may be absent, so a rewind can never
        mistake an ignored file for a missing one.
        """
        above, prefix = visit.above, visit.prefix
        texts: dict[str, bytes | None] = {}
        trusted = old is not None and old.above == above.key
        for name in _RULE_FILES:
            status = stats.get(name)
            is_rule = isinstance(status, os.stat_result) and stat.S_ISREG(status.st_mode)
            if isinstance(status, os.stat_result) and is_rule and status.st_size <= self._max_file:
                texts[name] = None
                trusted = trusted and self._digest_of(known.get(name), status) is not None
            elif name in known:
                trusted = False
        if old is not None and trusted and not any(name in known and name not in texts for name in _RULE_FILES):
            return above.known_below(prefix, old.rules, lambda: self._rule_texts(visit)), texts
        for name in texts:
            texts[name] = read_rules(self._handles.fd(visit.here), prefix, name)
        return above.below(prefix, [text for text in texts.values() if text]), texts

    def _rule_texts(self, visit: FolderVisit) -> list[bytes]:
        texts = (read_rules(self._handles.fd(visit.here), visit.prefix, name) for name in _RULE_FILES)
        return [text for text in texts if text]

    def _scan_subfolder(
        self, folder: ChangedFolder, name: str, status: os.stat_result, rules: Rules, *, partly: bool
    ) -> None:
        visit, extra = folder.visit, self._extra(folder, name, status)
        if (status.st_dev, status.st_ino) in self._avoid:
            return folder.skip(name, status, "Turnlog's own folder")
        if visit.depth >= self._max_depth:
            return folder.skip(name, status, f"nested more than {self._max_depth} folders deep")
        try:
            digest = visit.below.get(name)
            if digest is None:
                with self._entered(visit, name, rules, partly) as inner:
                    digest = self._scan_folder(inner)
        except Separate:
            folder.is_settled = False  # entered in every scan: it may stop being one
            partly = visit.prefix + os.fsencode(name) in self._tracked_parents
            if not partly:
                return folder.skip(name, status, REPOSITORY)
            with self._entered(visit, name, rules, partly) as inner:
                digest = self._scan_folder(inner)
        folder.tree[os.fsencode(name)] = TreeNode(FOLDER, stat.S_IMODE(status.st_mode), digest, extra=extra)
        folder.note_extra(name, extra)
        folder.add(IS_PARTIAL_FOLDER if partly else IS_FOLDER, mark_of(IS_FOLDER, status), digest_bytes(digest))

    def _extra(self, folder: ChangedFolder, name: str, status: os.stat_result) -> Extra | None:
        """Owner and attributes of a folder; read only if something in it or about it changed."""
        known = folder.known.get(name)
        if known is not None and known.signature == signature_bytes(mark_of(IS_FOLDER, status)):
            return folder.known_extras.get(name)
        with self._handles.entered(folder.visit.here, name) as below:
            return extra_of(status, self._owner, attributes_of(self._handles.fd(below)))

    @contextmanager
    def _entered(self, visit: FolderVisit, name: str, rules: Rules, partly: bool) -> Generator[FolderVisit]:
        """A subfolder during its scan.

        Not a method that scans, because every call takes a stack frame at every depth.
        """
        with self._handles.entered(visit.here, name) as below:
            prefix = visit.prefix + os.fsencode(name) + b"/"
            yield FolderVisit(below, prefix, rules, visit.depth + 1, partly)

    def _scan_file(self, folder: ChangedFolder, name: str, status: os.stat_result) -> None:
        extra = folder.known_extras.get(name)
        folder.files += 1
        folder.size += status.st_size
        if status.st_size > self._max_file:
            return folder.skip(name, status, f"larger than {self._max_file} bytes", status.st_size)
        digest = self._digest_of(folder.known.get(name), status)
        is_sure = digest is not None
        if digest is None:
            self._scan.read += 1
            read = read_file(self._sink, self._handles.fd(folder.visit.here), name, folder.rule_texts.get(name))
            digest, extra = read.digest, extra_of(status, self._owner, read.attributes)
            node = TreeNode(FILE, read.mode, digest, read.size, extra=extra)
            is_sure = read.signature == signature(status) and self._is_old(status)
            folder.is_settled = folder.is_settled and is_sure
        else:
            node = TreeNode(FILE, stat.S_IMODE(status.st_mode), digest, status.st_size, extra=extra)
        folder.tree[os.fsencode(name)] = node
        folder.note_extra(name, extra)
        folder.add(IS_FILE, signature(status), digest_bytes(digest) if is_sure else NO_DIGEST)

    def _digest_of(self, known: CachedName | None, status: os.stat_result) -> str | None:
        """The digest of an unchanged file, if it can be relied on."""
        if known is None or known.kind != IS_FILE or known.digest == NO_DIGEST:
            return None
        if known.signature != signature_bytes(signature(status)):
            return None
        digest = digest_text(known.digest)
        return digest if self._has is None or self._has(digest) else None

    def _is_old(self, status: os.stat_result) -> bool:
        return max(status.st_mtime_ns, status.st_ctime_ns) < self._young

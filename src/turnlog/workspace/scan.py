"""The files as they are now, as a tree. Reads what changed since the last scan, and nothing else.

Every folder is opened through the one above it and never through a link, so nothing outside the root is read. Every
name is listed and every file's signature taken; a folder that is in all of that as it was has the digest it had.
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
    NONE,
    WIDTH,
    Known,
    Seen,
    SeenFolder,
    digest_bytes,
    digest_text,
    flat,
    join,
)  # fmt: skip
from turnlog.workspace.extra import extra_of
from turnlog.workspace.folderscan import (
    BLANK,
    REPOSITORY,
    FolderScan,
    FolderVisit,
    Scan,
    Separate,
    Skipped,
    mark_of,
    refuse_repository,
    wanted_names,
    was_folder,
)
from turnlog.workspace.handle import Handles
from turnlog.workspace.ignore import ALWAYS, HALF_DONE, RULE_FILES, Outside, Rules, rules_of_tree
from turnlog.workspace.read import Sink, attributes_of, raise_if_system_error, read_file, read_rules, signature
from turnlog.workspace.tree import FILE, FOLDER, LINK, Extra, Owner, TreeNode, encode_tree

MAX_FILE = 256 << 20
MAX_DEPTH = 200
_YOUNG_NS = 2_000_000_000
"""A file changed this short before a scan may change again without its times showing it."""
_ALWAYS = frozenset(os.fsdecode(name) for name in ALWAYS)
_RULE_FILES = tuple(os.fsdecode(name) for name in RULE_FILES)
_FOLDERS = (IS_FOLDER, IS_PARTIAL_FOLDER)


class Scanner:
    """One scan of one root.

    `seen` is what the last scan saw; `has`, if given, is asked about every digest in it before it is relied on.
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
        self._young = time.time_ns() - _YOUNG_NS
        self._scan = Scan("", Seen(folders={}), [])
        self._handles: Handles
        self._owner: Owner = (-1, -1)
        self._was_owner = seen.owner if seen is not None else self._owner

    def scan(self, root: str, *, only_tracked: bool = False) -> Scan:
        """Look at everything below `root`, or only at what is tracked.

        Raises what is not the fault of a single file: too few descriptors, too little memory, a failing disk.
        """
        self._handles = Handles(root)
        try:
            top = os.fstat(self._handles.root.fd)
            self._owner = self._scan.seen.owner = (top.st_uid, top.st_gid)
            if self._was_owner != self._owner:
                self._old = {}
            self._scan.tree = self._folder(FolderVisit(self._handles.root, b"", self._top, 0, only_tracked))
        finally:
            self._handles.close()
        self._scan.is_news = self._scan.is_news or len(self._old) != len(self._scan.seen.folders)
        return self._scan

    def _folder(self, visit: FolderVisit) -> str:
        if visit.partly:
            return self._look(visit, wanted_names(visit.prefix, self._tracked | self._tracked_parents))
        names = os.listdir(self._handles.fd(visit.here))
        refuse_repository(visit.prefix, names, self._tracked)
        old = self._old.get(visit.prefix)
        if (
            old is not None
            and old.is_settled
            and self._has is None
            and old.above == visit.above.key
            and old.names == join(names)
            and self._is_as_it_was(visit, names, old)
        ):
            self._take(visit.prefix, old)
            return old.tree
        return self._look(visit, names)

    # ── folders where nothing happened ────────────────────────────────────────────────────────────

    def _is_as_it_was(self, visit: FolderVisit, names: list[str], old: SeenFolder) -> bool:
        """Whether everything in a folder is what it was; `visit.below` gets the digests of the folders in it."""
        try:
            if self._signatures(self._handles.fd(visit.here), names, old.kinds) != old.signatures:
                return False
        except OSError:
            return False
        if IS_FOLDER not in old.kinds and IS_PARTIAL_FOLDER not in old.kinds:
            return True
        rules = visit.above.known_below(visit.prefix, old.rules, lambda: self._texts(visit))
        is_same = True
        for index, (name, kind) in enumerate(zip(names, old.kinds, strict=True)):
            if kind in _FOLDERS:
                try:
                    with self._entered(visit, name, rules, kind == IS_PARTIAL_FOLDER) as inner:
                        visit.below[name] = digest = self._folder(inner)
                except (OSError, Separate):
                    is_same = False  # looked at once more, and reported then
                else:
                    is_same = is_same and digest_bytes(digest) == old.digests[index * WIDTH : (index + 1) * WIDTH]
        return is_same

    def _signatures(self, fd: int, names: list[str], kinds: bytes) -> bytes:
        # Every file of the workspace comes through here at every checkpoint: nothing but what is needed.
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
        return flat(numbers)

    def _take(self, prefix: bytes, folder: SeenFolder) -> None:
        self._scan.seen.folders[prefix] = folder
        self._scan.skipped += [Skipped(prefix + name, reason, size) for name, reason, size in folder.skipped]
        before = self._scan.files
        self._scan.files += folder.files
        self._scan.bytes += folder.size
        if self._progress is not None and before >> 10 != self._scan.files >> 10:
            self._progress(self._scan.files)

    # ── folders where something did ───────────────────────────────────────────────────────────────

    def _look(self, visit: FolderVisit, names: list[str]) -> str:
        old = self._old.get(visit.prefix)
        scanned = visit.begin(old)
        fd = self._handles.fd(visit.here)
        stats = {name: self._stat(fd, visit.prefix, name, scanned) for name in names}
        names = [name for name in names if stats[name] is not FileNotFoundError]
        if not visit.partly:
            visit.rules, visit.texts = self._rules(visit, stats, old)
        visit.is_judged = old is not None and old.above == visit.above.key and old.rules == visit.rules.key
        for name in names:
            status = stats[name]
            if isinstance(status, os.stat_result):
                self._look_at(visit, name, status)
            else:
                scanned.skip(name, None, str(status))
        folder = SeenFolder(
            visit.above.key,
            visit.rules.key,
            join(names),
            bytes(scanned.kinds),
            flat(scanned.numbers),
            b"".join(scanned.digests),
            self._sink.add(encode_tree(scanned.tree)),
            scanned.is_settled,
            scanned.skipped,
            scanned.files,
            scanned.size,
            scanned.extras,
        )
        self._scan.is_news = self._scan.is_news or folder != old
        self._take(visit.prefix, folder)
        return folder.tree

    def _look_at(self, visit: FolderVisit, name: str, status: os.stat_result) -> None:
        """One name of a folder: left out, or scanned as what it is."""
        path = visit.prefix + os.fsencode(name)
        is_folder, is_tracked = stat.S_ISDIR(status.st_mode), path in self._tracked
        is_left_out = not is_tracked and self._is_left_out(visit, name, path, is_folder=is_folder)
        if is_left_out and not (is_folder and path in self._tracked_parents):
            visit.scanned.add(IS_IGNORED, mark_of(IS_IGNORED, status))
            return
        try:
            if is_folder:
                rules = rules_of_tree([]) if is_tracked else visit.rules
                self._subfolder(visit, name, status, rules, partly=is_left_out)
            else:
                self._leaf(visit, name, status)
        except FileNotFoundError:
            visit.scanned.is_settled = False  # it went away while we looked: then it is not there
            visit.scanned.add(IS_IGNORED, BLANK)
        except OSError as error:
            raise_if_system_error(error, path)
            visit.scanned.is_settled = False
            visit.scanned.skip(name, status, f"unreadable: {error.strerror}")

    def _is_left_out(self, visit: FolderVisit, name: str, path: bytes, *, is_folder: bool) -> bool:
        """Whether an untracked name is ignored: by the rules, or as the last scan judged by the same rules."""
        if visit.partly or name in _ALWAYS:
            return True
        if name in visit.texts:
            return False  # a rule file
        known = visit.known.get(name) if visit.is_judged else None
        if known is not None and known[0] != IS_UNKNOWN and is_folder == was_folder(known):
            return known[0] in (IS_IGNORED, IS_PARTIAL_FOLDER)
        return visit.rules.ignores(path, is_folder=is_folder)

    def _leaf(self, visit: FolderVisit, name: str, status: os.stat_result) -> None:
        """Whatever is no folder."""
        scanned, fd = visit.scanned, self._handles.fd(visit.here)
        if HALF_DONE.fullmatch(name):
            scanned.skip(name, status, "named like what a rewind has half done")
        elif stat.S_ISREG(status.st_mode):
            self._file(visit, name, status)
        elif stat.S_ISLNK(status.st_mode):
            target = os.readlink(os.fsencode(name), dir_fd=fd)
            scanned.tree[os.fsencode(name)] = TreeNode(LINK, target=target, extra=extra_of(status, self._owner))
            scanned.is_settled = scanned.is_settled and self._is_old(status)
            scanned.add(IS_LINK, signature(status))
        else:
            scanned.skip(name, status, "a special file")

    def _stat(
        self, fd: int, prefix: bytes, name: str, scanned: FolderScan
    ) -> os.stat_result | str | type[FileNotFoundError]:
        try:
            return os.lstat(name, dir_fd=fd)
        except FileNotFoundError:
            return FileNotFoundError
        except OSError as error:
            raise_if_system_error(error, prefix + os.fsencode(name))
            scanned.is_settled = False
            return f"unreadable: {error.strerror}"

    def _rules(
        self, visit: FolderVisit, stats: Mapping[str, object], old: SeenFolder | None
    ) -> tuple[Rules, dict[str, bytes | None]]:
        """The rules in a folder, and its rule files with their texts, as far as they had to be read.

        Rule files are covered even where a rule leaves them out: they decide what may be absent, so that going back
        can never mistake something ignored for something that was not there.
        """
        above, prefix, known = visit.above, visit.prefix, visit.known
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
            return above.known_below(prefix, old.rules, lambda: self._texts(visit)), texts
        for name in texts:
            texts[name] = read_rules(self._handles.fd(visit.here), prefix, name)
        return above.below(prefix, [text for text in texts.values() if text]), texts

    def _texts(self, visit: FolderVisit) -> list[bytes]:
        texts = (read_rules(self._handles.fd(visit.here), visit.prefix, name) for name in _RULE_FILES)
        return [text for text in texts if text]

    def _subfolder(self, visit: FolderVisit, name: str, status: os.stat_result, rules: Rules, *, partly: bool) -> None:
        scanned, extra = visit.scanned, self._extra(visit, name, status)
        if (status.st_dev, status.st_ino) in self._avoid:
            return scanned.skip(name, status, "Turnlog's own folder")
        if visit.depth >= MAX_DEPTH:
            return scanned.skip(name, status, f"nested more than {MAX_DEPTH} folders deep")
        try:
            digest = visit.below.get(name)
            if digest is None:
                with self._entered(visit, name, rules, partly) as inner:
                    digest = self._folder(inner)
        except Separate:
            scanned.is_settled = False  # looked into every time: it may cease to be one
            partly = visit.prefix + os.fsencode(name) in self._tracked_parents
            if not partly:
                return scanned.skip(name, status, REPOSITORY)
            with self._entered(visit, name, rules, partly) as inner:
                digest = self._folder(inner)
        scanned.tree[os.fsencode(name)] = TreeNode(FOLDER, stat.S_IMODE(status.st_mode), digest, extra=extra)
        scanned.note_extra(name, extra)
        scanned.add(IS_PARTIAL_FOLDER if partly else IS_FOLDER, mark_of(IS_FOLDER, status), digest_bytes(digest))

    def _extra(self, visit: FolderVisit, name: str, status: os.stat_result) -> Extra | None:
        """Owner and attributes of a folder; looked up if anything in it or about it changed."""
        known = visit.known.get(name)
        if known is not None and known[1] == flat(list(mark_of(IS_FOLDER, status))):
            return visit.extras.get(name)
        with self._handles.entered(visit.here, name) as below:
            return extra_of(status, self._owner, attributes_of(self._handles.fd(below)))

    @contextmanager
    def _entered(self, visit: FolderVisit, name: str, rules: Rules, partly: bool) -> Generator[FolderVisit]:
        """A folder in a folder, while it is looked at. No call of its own: each takes a frame at every depth."""
        with self._handles.entered(visit.here, name) as below:
            prefix = visit.prefix + os.fsencode(name) + b"/"
            yield FolderVisit(below, prefix, rules, visit.depth + 1, partly)

    def _file(self, visit: FolderVisit, name: str, status: os.stat_result) -> None:
        scanned, extra = visit.scanned, visit.extras.get(name)
        scanned.files += 1
        scanned.size += status.st_size
        if status.st_size > self._max_file:
            return scanned.skip(name, status, f"larger than {self._max_file} bytes", status.st_size)
        size, mode, digest = status.st_size, status.st_mode, self._digest_of(visit.known.get(name), status)
        is_sure = digest is not None
        if digest is None:
            self._scan.read += 1
            digest, size, after, attributes = read_file(
                self._sink, self._handles.fd(visit.here), name, visit.texts.get(name)
            )
            mode, extra = after[4], extra_of(status, self._owner, attributes)
            is_sure = after == signature(status) and self._is_old(status)
            scanned.is_settled = scanned.is_settled and is_sure
        scanned.tree[os.fsencode(name)] = TreeNode(FILE, stat.S_IMODE(mode), digest, size, extra=extra)
        scanned.note_extra(name, extra)
        scanned.add(IS_FILE, signature(status), digest_bytes(digest) if is_sure else NONE)

    def _digest_of(self, known: Known | None, status: os.stat_result) -> str | None:
        """The digest of a file that is as it was, if that can be relied on."""
        if known is None or known[0] != IS_FILE or known[2] == NONE or known[1] != flat(list(signature(status))):
            return None
        digest = digest_text(known[2])
        return digest if self._has is None or self._has(digest) else None

    def _is_old(self, status: os.stat_result) -> bool:
        return max(status.st_mtime_ns, status.st_ctime_ns) < self._young

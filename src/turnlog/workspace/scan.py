"""The files as they are now, as a tree. Reads what changed since the last scan, and nothing else.

Every folder is opened through the one above it and never through a link, so nothing outside the root is read. Every
name is listed and every file's signature taken; a folder that is in all of that as it was has the digest it had.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Mapping

from turnlog.workspace.cache import (
    IS_FILE,
    IS_FOLDER,
    IS_IGNORED,
    IS_LINK,
    IS_PARTLY,
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
from turnlog.workspace.found import (
    BLANK,
    REPOSITORY,
    FolderScan,
    Scan,
    Separate,
    Skipped,
    mark_of,
    refuse_repository,
    wanted_names,
    was_folder,
)
from turnlog.workspace.handle import FolderHandle, Handles
from turnlog.workspace.ignore import ALWAYS, HALF_DONE, RULE_FILES, Outside, Rules, rules_of_tree
from turnlog.workspace.read import Sink, attributes_of, read_file, read_rules, refuse_hole, signature
from turnlog.workspace.tree import FILE, FOLDER, LINK, Extra, Owner, TreeNode, encode_tree

MAX_FILE = 256 << 20
MAX_DEPTH = 200
_YOUNG_NS = 2_000_000_000
"""A file changed this short before a scan may change again without its times showing it."""
_ALWAYS = frozenset(os.fsdecode(name) for name in ALWAYS)
_RULE_FILES = tuple(os.fsdecode(name) for name in RULE_FILES)
_FOLDERS = (IS_FOLDER, IS_PARTLY)


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
            self._scan.tree = self._folder(self._handles.root, b"", self._top, 0, only_tracked)
        finally:
            self._handles.close()
        self._scan.is_news = self._scan.is_news or len(self._old) != len(self._scan.seen.folders)
        return self._scan

    def _folder(self, here: FolderHandle, prefix: bytes, above: Rules, depth: int, partly: bool) -> str:
        if partly:
            return self._look(
                here, prefix, wanted_names(prefix, self._tracked | self._tracked_parents), above, depth, True, {}
            )
        fd: int = self._handles.fd(here)
        names = os.listdir(fd)
        refuse_repository(prefix, names, self._tracked)
        old = self._old.get(prefix)
        below: dict[str, str] = {}
        if (
            old is not None
            and old.is_settled
            and self._has is None
            and old.above == above.key
            and old.names == join(names)
            and self._is_as_it_was(here, prefix, names, old, above, depth, below)
        ):
            self._take(prefix, old)
            return old.tree
        return self._look(here, prefix, names, above, depth, False, below)

    # ── folders where nothing happened ────────────────────────────────────────────────────────────

    def _is_as_it_was(
        self,
        here: FolderHandle,
        prefix: bytes,
        names: list[str],
        old: SeenFolder,
        above: Rules,
        depth: int,
        below: dict[str, str],
    ) -> bool:
        """Whether everything in a folder is what it was; `below` gets the digests of the folders in it."""
        try:
            if self._signatures(self._handles.fd(here), names, old.kinds) != old.signatures:
                return False
        except OSError:
            return False
        if IS_FOLDER not in old.kinds and IS_PARTLY not in old.kinds:
            return True
        rules = above.known_below(prefix, old.rules, lambda: self._texts(here, prefix))
        is_same = True
        for index, (name, kind) in enumerate(zip(names, old.kinds, strict=True)):
            if kind in _FOLDERS:
                try:
                    below[name] = digest = self._below(here, name, prefix, rules, depth, kind == IS_PARTLY)
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

    def _look(
        self,
        here: FolderHandle,
        prefix: bytes,
        names: list[str],
        above: Rules,
        depth: int,
        partly: bool,
        below: dict[str, str],
    ) -> str:
        old = self._old.get(prefix)
        known = old.known() if old is not None else {}
        extras = old.extras if old is not None else {}
        scanned = FolderScan()
        fd = self._handles.fd(here)
        stats = {name: self._stat(fd, prefix, name, scanned) for name in names}
        names = [name for name in names if stats[name] is not FileNotFoundError]
        rules, texts = above, {}
        if not partly:
            rules, texts = self._rules(here, prefix, stats, old, known, above)
        is_judged = old is not None and old.above == above.key and old.rules == rules.key
        for name in names:
            status = stats[name]
            if not isinstance(status, os.stat_result):
                scanned.skip(name, None, str(status))
                continue
            path = prefix + os.fsencode(name)
            is_folder = stat.S_ISDIR(status.st_mode)
            is_tracked = path in self._tracked
            left_out = partly or name in _ALWAYS
            if not left_out and not is_tracked and name not in texts:
                kind = known[name][0] if is_judged and name in known else None
                if kind is not None and kind != IS_UNKNOWN and is_folder == was_folder(known[name]):
                    left_out = kind in (IS_IGNORED, IS_PARTLY)
                else:
                    left_out = rules.ignores(path, is_folder=is_folder)
            if left_out and not is_tracked and not (is_folder and path in self._tracked_parents):
                scanned.add(IS_IGNORED, mark_of(IS_IGNORED, status))
                continue
            try:
                fd = self._handles.fd(here)
                if is_folder:
                    inner = rules_of_tree([]) if is_tracked else rules
                    is_part = left_out and not is_tracked
                    extra = self._extra(here, name, status, known.get(name), extras.get(name))
                    self._subfolder(scanned, here, name, prefix, status, inner, depth, is_part, below.get(name), extra)
                elif HALF_DONE.fullmatch(name):
                    scanned.skip(name, status, "named like what a rewind has half done")
                elif stat.S_ISREG(status.st_mode):
                    self._file(scanned, fd, name, status, known.get(name), texts.get(name), extras.get(name))
                elif stat.S_ISLNK(status.st_mode):
                    target = os.readlink(os.fsencode(name), dir_fd=fd)
                    scanned.tree[os.fsencode(name)] = TreeNode(LINK, target=target, extra=extra_of(status, self._owner))
                    scanned.is_settled = scanned.is_settled and self._is_old(status)
                    scanned.add(IS_LINK, signature(status))
                else:
                    scanned.skip(name, status, "a special file")
            except FileNotFoundError:
                scanned.is_settled = False  # it went away while we looked: then it is not there
                scanned.add(IS_IGNORED, BLANK)
            except OSError as error:
                refuse_hole(error, path)
                scanned.is_settled = False
                scanned.skip(name, status, f"unreadable: {error.strerror}")
        folder = SeenFolder(
            above.key,
            rules.key,
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
        self._take(prefix, folder)
        return folder.tree

    def _stat(
        self, fd: int, prefix: bytes, name: str, scanned: FolderScan
    ) -> os.stat_result | str | type[FileNotFoundError]:
        try:
            return os.lstat(name, dir_fd=fd)
        except FileNotFoundError:
            return FileNotFoundError
        except OSError as error:
            refuse_hole(error, prefix + os.fsencode(name))
            scanned.is_settled = False
            return f"unreadable: {error.strerror}"

    def _rules(
        self,
        here: FolderHandle,
        prefix: bytes,
        stats: Mapping[str, object],
        old: SeenFolder | None,
        known: dict[str, Known],
        above: Rules,
    ) -> tuple[Rules, dict[str, bytes | None]]:
        """The rules in a folder, and its rule files with their texts, as far as they had to be read.

        Rule files are covered even where a rule leaves them out: they decide what may be absent, so that going back
        can never mistake something ignored for something that was not there.
        """
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
            return above.known_below(prefix, old.rules, lambda: self._texts(here, prefix)), texts
        for name in texts:
            texts[name] = read_rules(self._handles.fd(here), prefix, name)
        return above.below(prefix, [text for text in texts.values() if text]), texts

    def _texts(self, here: FolderHandle, prefix: bytes) -> list[bytes]:
        texts = (read_rules(self._handles.fd(here), prefix, name) for name in _RULE_FILES)
        return [text for text in texts if text]

    def _subfolder(
        self,
        scanned: FolderScan,
        here: FolderHandle,
        name: str,
        prefix: bytes,
        status: os.stat_result,
        rules: Rules,
        depth: int,
        partly: bool,
        digest: str | None,
        extra: Extra | None,
    ) -> None:
        if (status.st_dev, status.st_ino) in self._avoid:
            return scanned.skip(name, status, "Turnlog's own folder")
        if depth >= MAX_DEPTH:
            return scanned.skip(name, status, f"nested more than {MAX_DEPTH} folders deep")
        try:
            digest = digest or self._below(here, name, prefix, rules, depth, partly)
        except Separate:
            scanned.is_settled = False  # looked into every time: it may cease to be one
            partly = prefix + os.fsencode(name) in self._tracked_parents
            if not partly:
                return scanned.skip(name, status, REPOSITORY)
            digest = self._below(here, name, prefix, rules, depth, partly)
        scanned.tree[os.fsencode(name)] = TreeNode(FOLDER, stat.S_IMODE(status.st_mode), digest, extra=extra)
        scanned.note_extra(name, extra)
        scanned.add(IS_PARTLY if partly else IS_FOLDER, mark_of(IS_FOLDER, status), digest_bytes(digest))

    def _extra(
        self, here: FolderHandle, name: str, status: os.stat_result, known: Known | None, extra: Extra | None
    ) -> Extra | None:
        """Owner and attributes of a folder; looked up if anything in it or about it changed."""
        if known is not None and known[1] == flat(list(mark_of(IS_FOLDER, status))):
            return extra
        with self._handles.entered(here, name) as below:
            return extra_of(status, self._owner, attributes_of(self._handles.fd(below)))

    def _below(self, here: FolderHandle, name: str, prefix: bytes, rules: Rules, depth: int, partly: bool) -> str:
        below = self._handles.enter(here, name)
        try:
            return self._folder(below, prefix + os.fsencode(name) + b"/", rules, depth + 1, partly)
        finally:
            self._handles.leave(below)

    def _file(
        self,
        scanned: FolderScan,
        fd: int,
        name: str,
        status: os.stat_result,
        known: Known | None,
        text: bytes | None,
        extra: Extra | None,
    ) -> None:
        scanned.files += 1
        scanned.size += status.st_size
        if status.st_size > self._max_file:
            return scanned.skip(name, status, f"larger than {self._max_file} bytes", status.st_size)
        size, mode, digest = status.st_size, status.st_mode, self._digest_of(known, status)
        is_sure = digest is not None
        if digest is None:
            self._scan.read += 1
            digest, size, after, attributes = read_file(self._sink, fd, name, text)
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

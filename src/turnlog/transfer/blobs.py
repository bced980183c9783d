"""The blobs that lines need: finding those that the target lacks, and transferring them."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager

from msgspec import Struct

from turnlog.errors import Corrupt, NotFound, Unavailable
from turnlog.log.entry import Checkpoint
from turnlog.log.part import Root
from turnlog.store import AddBlob, OpenFile, Store, derived
from turnlog.thread.space.checkpointcontent import is_kept_at_home
from turnlog.transfer.outgoing import OutgoingLine
from turnlog.transfer.report import SentBlobs
from turnlog.workspace.tree import FILE, FOLDER, decode_tree

_BIG_BYTES = 8 << 20
"""A larger blob is copied through a file instead of memory."""
_PACK_BYTES = 64 << 20
"""A pack is finished at this size, so that an interruption loses no more than that."""


class NeededBlobs(Struct):
    """The blobs that some lines need, and that the target must have before the lines."""

    new_blobs: dict[str, bytes] = {}
    """Blobs that are not in the source store, because renumbering created them."""
    needed: list[str] = []
    """All other blobs, the content of a folder before the folder."""
    lacking: set[str] = set()
    """The blobs of `needed` that the target lacks."""
    below: dict[str, list[str]] = {}
    """For each tree, the blobs without which it is incomplete."""
    roots: set[str] = set()
    """The root trees, whose presence at the target says that a checkpoint was not given up."""
    lost: set[str] = set()
    """Blobs that cannot be transferred completely."""
    problems: list[str] = []

    @property
    def incomplete_roots(self) -> set[str]:
        """Root trees that are at the target although something below them is missing."""
        return self.roots & self.lost - self.lacking


@contextmanager
def keeping_if_writable(store: Store) -> Generator[None]:
    """Prevent collections in this store. A store that is not writable cannot be locked, and is read without a lock."""
    with ExitStack() as stack:
        try:
            stack.enter_context(store.keeping())
        except Unavailable as error:
            if getattr(error.__cause__, "errno", None) not in (errno.EROFS, errno.EACCES, errno.EPERM):
                raise
        yield


class BlobTransfer:
    """Transfers blobs from one store to another. A tree never arrives before everything below it."""

    def __init__(self, source: Store, target: Store) -> None:
        self._source = source
        self._target = target
        self._at_target: set[str] = set()
        """Blobs that entries at the target refer to."""
        self._packs: frozenset[str] = frozenset()
        """The packs at the target when `_at_target` was filled: while all of them exist, so do those blobs."""

    def load(self, lines: Iterable[OutgoingLine], dropped: Callable[[], frozenset[str]]) -> NeededBlobs:
        """Find the blobs to transfer. `dropped` returns the checkpoints whose content may be missing."""
        needs = NeededBlobs()
        gone: frozenset[str] | None = None
        needed: dict[str, None] = {}
        self._forget_if_collected()
        for line in lines:
            entry = line.entry
            needs.new_blobs.update(line.blobs)
            trees: list[str] = []
            if isinstance(entry, Checkpoint):
                gone = dropped() if gone is None else gone
                if entry.id in gone:
                    continue
                trees = [root.tree for root in entry.roots]
                for root in entry.roots:
                    if not is_kept_at_home(root):
                        self._load_root(root, needed, needs)
            needed.update(dict.fromkeys(name for name in entry.blobs if name not in trees))
        return self._with_lacking(needs, needed)

    def load_roots(self, roots: Iterable[Root]) -> NeededBlobs:
        """Find the blobs of these roots to transfer."""
        needs, needed = NeededBlobs(), dict[str, None]()
        self._forget_if_collected()
        for root in roots:
            self._load_root(root, needed, needs)
        return self._with_lacking(needs, needed)

    def _with_lacking(self, needs: NeededBlobs, needed: dict[str, None]) -> NeededBlobs:
        needs.needed = [name for name in needed if name not in self._at_target and name not in needs.new_blobs]
        needs.lacking = derived.lacking(self._target, needs.needed) if needs.needed else set()
        return needs

    def _forget_if_collected(self) -> None:
        packs = derived.packs(self._target)
        if not packs >= self._packs:
            self._at_target.clear()  # a collection ran, and may have removed what we transferred
        self._packs = packs

    def _load_root(self, root: Root, needed: dict[str, None], needs: NeededBlobs) -> None:
        """Add every blob of a root: the content of a folder before the folder, the ignore rules before the root."""
        needs.roots.add(root.tree)
        if root.rules is not None:
            needed[root.rules] = None
        waiting = [(root.tree, False)]
        while waiting:
            name, is_walked = waiting.pop()
            if is_walked:
                needed[name] = None
            elif name not in needed and name not in self._at_target:
                waiting.append((name, True))
                waiting += [(folder, False) for folder in self._load_tree(name, needed, needs)]
        if root.rules is not None and root.tree in needs.below:
            needs.below[root.tree].append(root.rules)

    def _load_tree(self, name: str, needed: dict[str, None], needs: NeededBlobs) -> list[str]:
        """Add the files of a folder; returns its subfolders."""
        try:
            nodes = decode_tree(self._either(name)).values()
        except (NotFound, Corrupt) as error:
            needs.lost.add(name)
            needs.problems.append(f"a folder of a checkpoint cannot be brought: {error.message}")
            return []
        files = [node.digest for node in nodes if node.kind == FILE]
        folders = [node.digest for node in nodes if node.kind == FOLDER]
        needed.update(dict.fromkeys(files))
        needs.below[name] = [*files, *folders]
        return folders

    def _either(self, name: str) -> bytes:
        try:
            return self._source.get(name)
        except (NotFound, Corrupt):
            if not self._target.has(name):
                raise
            return self._target.get(name)

    def transfer(self, needs: NeededBlobs) -> SentBlobs:
        """Transfer the blobs, durable when this returns; damaged ones are added to the problems. Returns the others."""
        sent = SentBlobs()
        names = iter(needs.needed)
        new_blobs = needs.new_blobs
        has_more = True
        while has_more:  # for each pack
            before = sent.size_bytes
            with self._target.add() as add:
                for name, data in new_blobs.items():
                    _check(add(data), name)
                    sent.count += 1
                    sent.size_bytes += len(data)
                new_blobs = {}
                has_more = self._fill_pack(add, needs, names, sent, before + _PACK_BYTES)
        return sent

    def _fill_pack(
        self, add: AddBlob, needs: NeededBlobs, names: Iterator[str], sent: SentBlobs, full_bytes: int
    ) -> bool:
        """Add blobs until `full_bytes` were sent in all. Returns whether the pack is full, so that more may be left."""
        for name in names:
            if not needs.lost.isdisjoint(needs.below.get(name, ())):
                needs.lost.add(name)
            if name in needs.lost or name not in needs.lacking:
                continue
            try:
                sent.size_bytes += self._add(add, name)
            except (NotFound, Corrupt) as error:
                needs.lost.add(name)
                needs.problems.append(error.message)
                continue
            sent.count += 1
            if sent.size_bytes > full_bytes:
                return True
        return False

    def record_present(self, needs: NeededBlobs) -> None:
        """Record that the entries which need these blobs are at the target."""
        self._at_target.update(needs.new_blobs, (name for name in needs.needed if name not in needs.lost))

    def _add(self, add: AddBlob, name: str) -> int:
        pieces: list[bytes] = []
        size = 0
        stream = iter(self._source.stream(name))
        for piece in stream:
            pieces.append(piece)
            size += len(piece)
            if size > _BIG_BYTES:
                return _add_big(add, name, pieces, stream)
        _check(add(b"".join(pieces)), name)
        return size


def _add_big(add: AddBlob, name: str, pieces: list[bytes], rest: Iterator[bytes]) -> int:
    try:
        with tempfile.TemporaryFile() as file:
            file.writelines(pieces)
            pieces.clear()
            file.writelines(rest)
            file.flush()
            size = os.fstat(file.fileno()).st_size
            os.lseek(file.fileno(), 0, os.SEEK_SET)
            _check(add(OpenFile(file.fileno(), size)), name)
            return size
    except OSError as error:
        raise Unavailable(f"blob {name}, through a temporary file: {error.strerror or error}") from error


def _check(digest: str, name: str) -> None:
    if digest != name:
        raise Corrupt(f"blob {name} became {digest} on its way", hint="the memory or disk of this machine is failing")

"""The blobs that lines need: which there are, which the other side lacks, and bringing them there."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager

from msgspec import Struct

from turnlog.errors import Corrupt, NotFound, TurnlogError, Unavailable
from turnlog.log.entry import Checkpoint, Root
from turnlog.store import AddBlob, OpenFile, Store, derived
from turnlog.thread.content import stays
from turnlog.transfer.outgoing import Shipment
from turnlog.workspace.tree import FILE, FOLDER, decode_tree

_BIG = 8 << 20
"""A larger blob goes through a file, so that nobody has to hold it whole."""
_PACK = 64 << 20
"""What is in a pack is there for good when this much of it is full: an interruption costs no more."""


class Cargo(Struct):
    """What some lines need, as the other side has to have it before them."""

    new_blobs: dict[str, bytes] = {}
    """Blobs that the home they come from has not."""
    needed: list[str] = []
    """Every other one, what is in a folder before the folder."""
    lacking: set[str] = set()
    """Those of them that are to be brought."""
    below: dict[str, list[str]] = {}
    """What a tree is nothing without."""
    roots: set[str] = set()
    """The trees that say over there whether a checkpoint was given up."""
    lost: set[str] = set()
    """What cannot be brought whole."""
    problems: list[str] = []

    @property
    def halves(self) -> set[str]:
        """Root trees that are over there, and not all that is below them."""
        return self.roots & self.lost - self.lacking


@contextmanager
def held(store: Store) -> Generator[None]:
    """Nobody collects what is read here meanwhile. Where we may not write, we cannot keep anybody from it either."""
    with ExitStack() as stack:
        try:
            stack.enter_context(store.keeping())
        except Unavailable as error:
            if getattr(error.__cause__, "errno", None) not in (errno.EROFS, errno.EACCES, errno.EPERM):
                raise
        yield


class Carrier:
    """Brings blobs from one store to another. No tree arrives without all that is below it."""

    def __init__(self, source: Store, target: Store) -> None:
        self._source = source
        self._target = target
        self._there: set[str] = set()
        """Blobs that an entry over there refers to by now."""
        self._packs: frozenset[str] = frozenset()
        """Where those lay: while all of that is there, so are they."""

    def load(self, lines: Iterable[Shipment], dropped: Callable[[], frozenset[str]]) -> Cargo:
        """Find out what is to be brought. `dropped` are checkpoints whose content may be gone."""
        cargo = Cargo()
        gone: frozenset[str] | None = None
        needed: dict[str, None] = {}
        self._look_again()
        for carried in lines:
            entry = carried.entry
            cargo.new_blobs.update(carried.blobs)
            trees: list[str] = []
            if isinstance(entry, Checkpoint):
                gone = dropped() if gone is None else gone
                if entry.id in gone:
                    continue
                trees = [root.tree for root in entry.roots]
                for root in entry.roots:
                    if not stays(root):
                        self._load_root(root, needed, cargo)
            needed.update(dict.fromkeys(name for name in entry.blobs if name not in trees))
        return self._with_lacking(cargo, needed)

    def load_roots(self, roots: Iterable[Root]) -> Cargo:
        """Find out what of these roots is to be brought."""
        cargo, needed = Cargo(), dict[str, None]()
        self._look_again()
        for root in roots:
            self._load_root(root, needed, cargo)
        return self._with_lacking(cargo, needed)

    def _with_lacking(self, cargo: Cargo, needed: dict[str, None]) -> Cargo:
        cargo.needed = [name for name in needed if name not in self._there and name not in cargo.new_blobs]
        cargo.lacking = derived.lacking(self._target, cargo.needed) if cargo.needed else set()
        return cargo

    def _look_again(self) -> None:
        packs = derived.packs(self._target)
        if not packs >= self._packs:
            self._there.clear()  # somebody collected, and may have given up what we brought
        self._packs = packs

    def _load_root(self, root: Root, needed: dict[str, None], cargo: Cargo) -> None:
        """Every blob of a root; what is in a folder comes before it, and the ignore rules before the whole."""
        cargo.roots.add(root.tree)
        if root.rules is not None:
            needed[root.rules] = None
        waiting = [(root.tree, False)]
        while waiting:
            name, is_walked = waiting.pop()
            if is_walked:
                needed[name] = None
            elif name not in needed and name not in self._there:
                waiting.append((name, True))
                waiting += [(folder, False) for folder in self._load_tree(name, needed, cargo)]
        if root.rules is not None and root.tree in cargo.below:
            cargo.below[root.tree].append(root.rules)

    def _load_tree(self, name: str, needed: dict[str, None], cargo: Cargo) -> list[str]:
        """The folders in it; its files are needed."""
        try:
            nodes = decode_tree(self._either(name)).values()
        except (NotFound, Corrupt) as error:
            cargo.lost.add(name)
            cargo.problems.append(f"a folder of a checkpoint cannot be brought: {error.message}")
            return []
        files = [node.digest for node in nodes if node.kind == FILE]
        folders = [node.digest for node in nodes if node.kind == FOLDER]
        needed.update(dict.fromkeys(files))
        cargo.below[name] = [*files, *folders]
        return folders

    def _either(self, name: str) -> bytes:
        try:
            return self._source.get(name)
        except (NotFound, Corrupt):
            if not self._target.has(name):
                raise
            return self._target.get(name)

    def bring(self, cargo: Cargo) -> tuple[int, int]:
        """Bring it, durable when this returns; what is damaged is told. Returns how many blobs and bytes it was."""
        names = iter(cargo.needed)
        blobs = size = 0
        made: dict[str, bytes] = cargo.new_blobs
        while True:
            with self._target.add() as add:
                for name, data in made.items():
                    _check(add(data), name)
                filled = sum(map(len, made.values()))
                blobs, made = blobs + len(made), {}
                for name in names:
                    if not cargo.lost.isdisjoint(cargo.below.get(name, ())):
                        cargo.lost.add(name)
                    if name in cargo.lost or name not in cargo.lacking:
                        continue
                    try:
                        filled += self._add(add, name)
                    except (NotFound, Corrupt) as error:
                        cargo.lost.add(name)
                        cargo.problems.append(error.message)
                        continue
                    blobs += 1
                    if filled > _PACK:
                        break
                else:
                    return blobs, size + filled
            size += filled

    def arrived(self, cargo: Cargo) -> None:
        """The entries that need it are there, too."""
        self._there.update(cargo.new_blobs, (name for name in cargo.needed if name not in cargo.lost))

    def _add(self, add: AddBlob, name: str) -> int:
        pieces: list[bytes] = []
        size = 0
        stream = iter(self._source.stream(name))
        for piece in stream:
            pieces.append(piece)
            size += len(piece)
            if size > _BIG:
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
        raise TurnlogError(
            f"blob {name} became {digest} on its way", hint="the memory or disk of this machine is failing"
        )

"""The blobs that lines need: which there are, which the other side lacks, and bringing them there."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from turnlog.errors import Corrupt, NotFound, TurnlogError, Unavailable
from turnlog.log.entry import Checkpoint
from turnlog.session.outgoing import Carried
from turnlog.store import Pack, Store
from turnlog.workspace.tree import FILE, FOLDER, decode_tree

_BIG = 8 << 20
"""A larger blob goes through a file, so that nobody has to hold it whole."""
_PACK = 64 << 20
"""What is in a pack is there for good when this much of it is full: an interruption costs no more."""


class Cargo(Struct):
    """What some lines need, as the other side has to have it before them."""

    made: dict[str, bytes] = {}
    """Blobs that the home they come from has not."""
    lacking: list[str] = []
    """Blobs to be brought, the content of a folder before the folder."""
    problems: list[str] = []


class Carrier:
    """Brings blobs from one store to another."""

    def __init__(self, source: Store, target: Store) -> None:
        self._source = source
        self._target = target
        self._there: set[str] = set()
        """Blobs that an entry over there refers to by now."""

    def load(self, lines: Iterable[Carried], dropped: Callable[[], frozenset[str]]) -> Cargo:
        """Find out what is to be brought. `dropped` are checkpoints whose content may be gone."""
        cargo = Cargo()
        gone: frozenset[str] | None = None
        needed: dict[str, None] = {}
        for carried in lines:
            entry = carried.entry
            cargo.made.update(carried.blobs)
            if isinstance(entry, Checkpoint):
                gone = dropped() if gone is None else gone
                if entry.id not in gone:
                    trees = [root.tree for root in entry.roots]
                    needed.update(dict.fromkeys(name for name in entry.blobs if name not in trees))
                    for tree in trees:
                        self._walk(tree, needed, cargo.problems)
            else:
                needed.update(dict.fromkeys(entry.blobs))
        wanted = [name for name in needed if name not in self._there and name not in cargo.made]
        lacking = self._target.lacking(wanted) if wanted else set[str]()
        cargo.lacking = [name for name in wanted if name in lacking]
        return cargo

    def _walk(self, tree: str, needed: dict[str, None], problems: list[str]) -> None:
        """Every blob of a folder; what is in it comes before it."""
        if tree in needed or tree in self._there:
            return
        try:
            nodes = decode_tree(self._source.get(tree))
        except (NotFound, Corrupt) as error:
            problems.append(f"a folder of a checkpoint is not there: {error.message}")
            return
        for node in nodes.values():
            if node.kind == FOLDER:
                self._walk(node.digest, needed, problems)
            elif node.kind == FILE:
                needed[node.digest] = None
        needed[tree] = None

    def bring(self, cargo: Cargo) -> tuple[int, int]:
        """Bring it, durable when this returns; what is damaged is told. Returns how many blobs and bytes it was."""
        names = iter(cargo.lacking)
        blobs = size = 0
        made: dict[str, bytes] = cargo.made
        while True:
            with self._target.pack() as pack:
                filled = sum(self._add_made(pack, name, data) for name, data in made.items())
                blobs, made = blobs + len(made), {}
                for name in names:
                    try:
                        filled += self._add(pack, name)
                    except (NotFound, Corrupt) as error:
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
        self._there.update(cargo.made, cargo.lacking)

    def _add_made(self, pack: Pack, name: str, data: bytes) -> int:
        _check(pack.add(data), name)
        return len(data)

    def _add(self, pack: Pack, name: str) -> int:
        pieces: list[bytes] = []
        size = 0
        stream = iter(self._source.stream(name))
        for piece in stream:
            pieces.append(piece)
            size += len(piece)
            if size > _BIG:
                return _add_big(pack, name, pieces, stream)
        _check(pack.add(b"".join(pieces)), name)
        return size


def _add_big(pack: Pack, name: str, pieces: list[bytes], rest: Iterator[bytes]) -> int:
    try:
        with tempfile.TemporaryFile() as file:
            file.writelines(pieces)
            pieces.clear()
            file.writelines(rest)
            file.flush()
            size = os.fstat(file.fileno()).st_size
            os.lseek(file.fileno(), 0, os.SEEK_SET)
            _check(pack.add_file(file.fileno(), size), name)
            return size
    except OSError as error:
        raise Unavailable(f"blob {name}, through a temporary file: {error.strerror or error}") from error


def _check(digest: str, name: str) -> None:
    if digest != name:
        raise TurnlogError(
            f"blob {name} became {digest} on its way", hint="the memory or disk of this machine is failing"
        )

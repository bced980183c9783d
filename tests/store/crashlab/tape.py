"""What a run did, as the smallest steps that a disk can do or not do."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from turnlog.log.entry import AnyEntry

PAGE = 4096
SECTOR = 512
ROOT = 0
SESSIONS, TRASH, GONE = "sessions", "trash", "gone"


class Data(NamedTuple):
    """Bytes within one page of a file."""

    node: int
    offset: int
    data: bytes


class Size(NamedTuple):
    """The length of a file."""

    node: int
    size: int


class Link(NamedTuple):
    """A name for a file or folder."""

    folder: int
    name: str
    node: int


class Unlink(NamedTuple):
    """A name is gone."""

    folder: int
    name: str


class Rename(NamedTuple):
    """A name moves, both ends at once."""

    folder: int
    name: str
    new_folder: int
    new_name: str
    node: int


class Synced(NamedTuple):
    """Everything done to this file, or to the names in this folder, is on the disk."""

    node: int


class Told(NamedTuple):
    """From here on the caller may rely on what this book says."""

    book: Book


Step = Data | Size | Link | Unlink | Rename
NAMES = (Link, Unlink, Rename)


class Book(Struct, frozen=True):
    """What the caller of the store knows at one moment."""

    places: dict[str, frozenset[str]] = {}
    """Session: where it may be."""
    entries: dict[str, dict[str, AnyEntry]] = {}
    """Session: the acknowledged entries by id."""
    tried: dict[str, frozenset[str]] = {}
    """Session: ids that were handed in, acknowledged or not."""
    batches: dict[str, tuple[frozenset[str], ...]] = {}
    """Session: ids that are there together or not at all."""
    blobs: dict[str, bytes] = {}
    is_shared: bool = False
    """Whether somebody whose entries we do not know writes, too."""


class Tree:
    """Folders and files as they lie on a disk."""

    def __init__(self) -> None:
        self.folders: dict[int, dict[str, int]] = {ROOT: {}}
        self.files: dict[int, bytes] = {}

    def write_to(self, folder: str, node: int = ROOT, made: dict[int, str] | None = None) -> None:
        """Make this tree in an empty folder."""
        made = {} if made is None else made
        for name, child in self.folders[node].items():
            path = os.path.join(folder, name)
            if child in self.folders:
                os.mkdir(path)
                self.write_to(path, child, made)
            elif child in made:
                os.link(made[child], path)
            else:
                made[child] = path
                fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
                data = self.files.get(child, b"")
                if data:
                    os.write(fd, data)
                os.close(fd)

    def signature(self, node: int = ROOT) -> Any:
        """Equal for trees that look the same from the root."""
        return tuple(
            (name, self.signature(child) if child in self.folders else self.files.get(child, b""))
            for name, child in sorted(self.folders[node].items())
        )


class Tape:
    """All that lives in one folder, one after the other, did to it."""

    def __init__(self, top: str, book: Book | None = None) -> None:
        self.top = os.path.abspath(top)
        self.first_book = self.book = book or Book()
        self.events: list[Step | Synced | Told] = []
        self.names: dict[int, dict[str, int]] = {ROOT: {}}
        self.sizes: dict[int, int] = {}
        self._count = ROOT
        self._known: dict[int, int] = {}
        self.base = Tree()
        self._take_in(self.top, ROOT)

    def _take_in(self, path: str, node: int) -> None:
        """What is there before anything is recorded is on the disk."""
        with os.scandir(path) as found:
            for item in found:
                child = self._known.setdefault(item.inode(), self.new_node())  # one file may have two names
                self.base.folders[node][item.name] = self.names[node][item.name] = child
                if item.is_dir():
                    self.base.folders[child], self.names[child] = {}, {}
                    self._take_in(item.path, child)
                else:
                    with open(item.path, "rb") as file:
                        self.base.files[child] = file.read()
                    self.sizes[child] = len(self.base.files[child])

    def new_node(self) -> int:
        self._count += 1
        return self._count

    def place(self, path: str) -> tuple[int, str]:
        """The folder and the name of a path."""
        relative = os.path.relpath(os.path.abspath(path), self.top)
        *folders, name = relative.split(os.sep)
        node = ROOT
        for folder in folders:
            node = self.names[node][folder]
        return node, name

    def node(self, path: str) -> int:
        if os.path.abspath(path) == self.top:
            return ROOT
        folder, name = self.place(path)
        return self.names[folder][name]

    def tell(self, **changes: Any) -> None:
        self.book = replace(self.book, **changes)
        self.events.append(Told(self.book))

"""Power cuts, thought through: what a run changes is recorded, and every state a crash may leave is built and opened.

The store runs for real on a real folder, through a `Recorder`. A tape holds what it did, as the smallest steps
that a disk can do or not do: the bytes of one page, the length of a file, one name. Only a sync orders them:

posix   nothing else does. The weakest system that keeps its word, and our bar.
ext4    names change in the order they were changed, every sync brings all earlier names with it, and a file never
        grows on the disk before its bytes are there.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from turnlog import Home, Image, Session, Text
from turnlog.log.draft import prepare
from turnlog.log.entry import AnyEntry, Fold, Message, Note, Start, Writer
from turnlog.store.files import connect
from turnlog.store.files.disk import Disk, Held

PAGE = 4096
SECTOR = 512
ROOT = 0
SESSIONS, TRASH, GONE = "sessions", "trash", "gone"

_ALL_SUBSETS_UP_TO = 9
_RANDOM_SUBSETS = 12
_CUTS = 4


@contextmanager
def fast_folder() -> Iterator[str]:
    """A folder in memory where there is one: thousands of states are written and thrown away."""
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = tempfile.mkdtemp(prefix="turnlog-crash-", dir=place)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# ── what was done ─────────────────────────────────────────────────────────────────────────────────


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
_NAMES = (Link, Unlink, Rename)


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


class Killed(BaseException):
    """The process is gone: nothing of it runs any more, not even its clean-up."""


class Recorder(Disk):
    """A disk that remembers, and that can kill the process which uses it before its n-th change."""

    def __init__(self, tape: Tape, *, dies_before: int | None = None, torn: bool = False) -> None:
        self.tape = tape
        self.changes = 0
        self.died_writing = False
        self._dies_before = dies_before
        self._torn = torn
        self._is_dead = False
        self._files: dict[int, int] = {}
        self._held: list[Held] = []
        """Files that close themselves."""
        self._nodes: dict[int, int] = {}

    def _change(self, *, can_tear: bool = False) -> bool:
        """Called before every change; True where this one is to be cut short by the kill."""
        if self._is_dead:
            raise Killed
        self.changes += 1
        if self.changes != self._dies_before:
            return False
        self.died_writing = can_tear
        if self._torn and can_tear:
            return True
        self.die()
        raise Killed

    def die(self) -> None:
        """As the kernel does for a killed process: its descriptors are closed, its locks are free."""
        self._is_dead = True
        for fd in self._files:
            os.close(fd)
        for held in self._held:
            held.close()
        self._files, self._held = {}, []

    def open(self, path: str, flags: int, *, create: bool = False) -> int:
        if create:
            self._change()
        elif self._is_dead:
            raise Killed
        fd = super().open(path, flags, create=create)
        if create:
            folder, name = self.tape.place(path)
            node = self.tape.names[folder][name] = self.tape.new_node()
            self.tape.sizes[node] = 0
            self.tape.events.append(Link(folder, name, node))
        self._files[fd] = self.tape.node(path)
        return fd

    def close(self, fd: int) -> None:
        if not self._is_dead:
            del self._files[fd]
            os.close(fd)

    def write_once(self, fd: int, data: bytes | memoryview) -> int:
        if self._change(can_tear=True):
            self._write(fd, bytes(data[: max(1, len(data) // 2)]))
            self.die()
            raise Killed
        return self._write(fd, bytes(data))

    def _write(self, fd: int, data: bytes) -> int:
        tape, node = self.tape, self._files[fd]
        done = os.write(fd, data)
        start = tape.sizes[node]
        position = start
        while position < start + done:
            stop = min((position // PAGE + 1) * PAGE, start + done)
            tape.events.append(Data(node, position, data[position - start : stop - start]))
            tape.events.append(Size(node, stop))
            position = stop
        tape.sizes[node] = position
        assert os.fstat(fd).st_size == position, "a write that was not an append"
        return done

    def pwrite(self, fd: int, data: bytes, offset: int) -> int:
        self._change()
        done = os.pwrite(fd, data, offset)
        node = self._files[fd]
        assert offset + done <= self.tape.sizes[node], "a write behind the end"
        middle = min((offset // PAGE + 1) * PAGE, offset + done) - offset
        for start, piece in ((offset, data[:middle]), (offset + middle, data[middle:done])):
            if piece:
                self.tape.events.append(Data(node, start, piece))
        return done

    def ftruncate(self, fd: int, length: int) -> None:
        self._change()
        os.ftruncate(fd, length)
        node = self._files[fd]
        self.tape.sizes[node] = length
        self.tape.events.append(Size(node, length))

    def rename(self, source: str, target: str) -> None:
        self._change()
        os.rename(source, target)
        folder, name = self.tape.place(source)
        new_folder, new_name = self.tape.place(target)
        node = self.tape.names[folder].pop(name)
        self.tape.names[new_folder][new_name] = node
        self.tape.events.append(Rename(folder, name, new_folder, new_name, node))

    def link(self, source: str, target: str) -> None:
        self._change()
        super().link(source, target)
        node = self.tape.node(source)
        folder, name = self.tape.place(target)
        self.tape.names[folder][name] = node
        self.tape.events.append(Link(folder, name, node))

    def unlink(self, path: str) -> None:
        self._change()
        os.unlink(path)
        folder, name = self.tape.place(path)
        del self.tape.names[folder][name]
        self.tape.events.append(Unlink(folder, name))

    def mkdir(self, path: str) -> None:
        self._change()
        super().mkdir(path)
        folder, name = self.tape.place(path)
        node = self.tape.names[folder][name] = self.tape.new_node()
        self.tape.names[node] = {}
        self.tape.events.append(Link(folder, name, node))

    def sync(self, fd: int) -> None:
        self._change()
        self.tape.events.append(Synced(self._files[fd] if fd in self._files else self._nodes[fd]))

    def sync_folder(self, path: str) -> None:
        self._change()
        if os.path.abspath(path).startswith(self.tape.top):
            self.tape.events.append(Synced(self.tape.node(path)))

    def fstat(self, fd: int) -> os.stat_result:
        if self._is_dead:
            raise Killed
        return os.fstat(fd)

    def hold(self, path: str, *, shared: bool = False, create: bool = False) -> Held:
        held = super().hold(path, shared=shared, create=create)
        self._nodes[held.fileno()] = self._files.pop(held.fileno())
        self._held = [*(one for one in self._held if not one.closed), held]
        return held

    def lock(self, fd: int) -> None:
        if self._is_dead:
            raise Killed
        super().lock(fd)

    def lock_shared(self, fd: int) -> None:
        if self._is_dead:
            raise Killed
        super().lock_shared(fd)

    def unlock(self, fd: int) -> None:
        if not self._is_dead:
            super().unlock(fd)


class Witness:
    """Uses a home and writes into the book what it was promised, when it was promised."""

    def __init__(self, home: Home, tape: Tape, disk: Recorder) -> None:
        self.home = home
        self.tape = tape
        self.disk = disk

    def _may_be(self, session_id: str, *places: str) -> None:
        self.tape.tell(places={**self.tape.book.places, session_id: frozenset(places)})

    def _rely_on(self, session_id: str, entries: Iterable[AnyEntry]) -> None:
        known = self.tape.book.entries
        mine = {**known.get(session_id, {}), **{entry.id: entry for entry in entries}}
        self.tape.tell(entries={**known, session_id: mine})

    def _tries(self, session_id: str, ids: Sequence[str]) -> None:
        book = self.tape.book
        tried = book.tried.get(session_id, frozenset()) | set(ids)
        batches = book.batches.get(session_id, ())
        if len(ids) > 1:
            batches = (*batches, frozenset(ids))
        self.tape.tell(tried={**book.tried, session_id: tried}, batches={**book.batches, session_id: batches})

    def create(self, session_id: str, **fields: Any) -> Session:
        self._may_be(session_id, SESSIONS, GONE)
        self._tries(session_id, [session_id])
        session = self.home.create(id=session_id, **fields)
        self._created(session)
        return session

    def fork(self, session: Session, session_id: str) -> Session:
        self._may_be(session_id, SESSIONS, GONE)
        tried = self.tape.book.tried
        self.tape.tell(tried={**tried, session_id: tried[session.id] | {session_id}})
        fork = session.fork(id=session_id)
        self._created(fork)
        return fork

    def _created(self, session: Session) -> None:
        self._may_be(session.id, SESSIONS)
        self._rely_on(session.id, session.entries())

    def resume(self, session_id: str) -> Session:
        return self.home.resume(session_id)

    def rely_on(self, session: Session, last: AnyEntry) -> None:
        """Everything up to this entry was acknowledged with it."""
        self._rely_on(session.id, [entry for entry in session.entries() if entry.seq <= last.seq])

    def append(self, session: Session, *drafts: AnyEntry, rebase: bool = False) -> None:
        self._tries(session.id, [draft.id for draft in drafts])
        done = session.append(*drafts, rebase=rebase)
        entries = done if isinstance(done, list) else [done]
        # One sync serves the whole file: what stands before these is on the disk with them.
        self._rely_on(session.id, [e for e in session.entries() if e.seq <= entries[-1].seq])

    def begin_to_append(self, session_id: str, *drafts: AnyEntry) -> Callable[[], None]:
        """Write, but do not sync yet: that is what the function does that this returns."""
        self._tries(session_id, [draft.id for draft in drafts])
        log = self.home.store.open(session_id)
        done = log.append([prepare(draft)[0] for draft in drafts], after=1 << 40, head=0)

        def sync() -> None:
            log.sync(done[-1].seq)
            self._rely_on(session_id, done)

        return sync

    def beside(self) -> Witness:
        """Another process, at the same time."""
        disk = type(self.disk)(self.tape)
        return Witness(home_at(os.path.join(self.tape.top, HOME), disk), self.tape, disk)

    def put(self, data: bytes) -> str:
        digest = self.home.put_blob(data)
        self.tape.tell(blobs={**self.tape.book.blobs, digest: data})
        return digest

    def delete(self, session_id: str) -> None:
        self._may_be(session_id, SESSIONS, TRASH)
        self.home.delete(session_id)
        self._may_be(session_id, TRASH)

    def restore(self, session_id: str) -> None:
        self._may_be(session_id, SESSIONS, TRASH)
        self.home.restore(session_id)
        self._may_be(session_id, SESSIONS)

    def purge(self, session_id: str) -> None:
        self._may_be(session_id, *self.tape.book.places[session_id], GONE)
        self.home.purge(session_id)
        self._may_be(session_id, GONE)


# ── what a crash may leave ────────────────────────────────────────────────────────────────────────


class Kept(NamedTuple):
    """One state: the crash came after `time` events, and these steps had reached the disk."""

    time: int
    steps: frozenset[int]
    cut: tuple[int, int] | None = None
    """A page that was torn: the step, and how many of its bytes arrived."""


class Timeline:
    """A tape read under one model: what is certain, and what is pending, at every moment."""

    def __init__(self, tape: Tape, model: str, *, since: int = 0) -> None:
        self.tape = tape
        self.events = tape.events
        self.is_ordered = model == "ext4"
        self.since = since

    def certain(self, time: int) -> frozenset[int]:
        """The steps that a sync has brought to the disk by then."""
        done: set[int] = set()
        for moment in range(time):
            event = self.events[moment]
            if isinstance(event, Synced):
                done.update(i for i in range(moment) if self._covers(event.node, self.events[i]))
        return frozenset(done)

    def _covers(self, node: int, event: Step | Synced | Told) -> bool:
        if isinstance(event, (Data, Size)):
            return event.node == node
        if not isinstance(event, _NAMES):
            return False
        if self.is_ordered or event.folder == node:
            return True
        return isinstance(event, Rename) and event.new_folder == node

    def legal(self, steps: frozenset[int], time: int) -> frozenset[int]:
        """The same, without what the model does not let reach the disk before the rest."""
        if not self.is_ordered:
            return steps
        kept: set[int] = set()
        missing: dict[int, int] = {}
        """File: from where on bytes are missing."""
        is_over = False
        for index in range(time):
            event = self.events[index]
            if isinstance(event, _NAMES):
                is_over = is_over or index not in steps
                if not is_over:
                    kept.add(index)
            elif isinstance(event, Data):
                if index in steps:
                    kept.add(index)
                else:
                    missing[event.node] = min(event.offset, missing.get(event.node, event.offset))
            elif isinstance(event, Size) and index in steps and event.size <= missing.get(event.node, event.size):
                kept.add(index)
        return frozenset(kept)

    def states(self, rng: random.Random) -> Iterator[Kept]:
        """Every subset of what is pending where that can be; else prefixes, single losses and random ones."""
        certain: frozenset[int] = frozenset()
        for time in range(self.since, len(self.events) + 1):
            if time == self.since or isinstance(self.events[time - 1], Synced):
                certain = self.certain(time)
            pending = [i for i in range(time) if not isinstance(self.events[i], (Synced, Told)) and i not in certain]
            for some in _subsets(pending, rng):
                yield Kept(time, self.legal(certain | some, time))
            yield from self._torn(time, certain, pending, rng)

    def _torn(self, time: int, certain: frozenset[int], pending: list[int], rng: random.Random) -> Iterator[Kept]:
        """The newest page of a write arrived in part."""
        newest = next((i for i in reversed(pending) if isinstance(self.events[i], Data)), None)
        if newest is None:
            return
        event = self.events[newest]
        assert isinstance(event, Data)
        length = len(event.data)
        cuts = {1, length // 2, length - 1, SECTOR - event.offset % SECTOR}
        cuts |= {rng.randrange(1, length) for _ in range(_CUTS) if length > 1}
        steps = certain | {i for i in pending if i <= newest}
        for cut in sorted(c for c in cuts if 0 < c < length):
            yield Kept(time, steps, (newest, cut))
            if not self.is_ordered and newest + 1 < time:
                yield Kept(time, steps | {newest + 1}, (newest, cut))

    def tree(self, kept: Kept) -> Tree:
        """The state itself."""
        tree = Tree()
        tree.folders = {node: dict(names) for node, names in self.tape.base.folders.items()}
        files = {node: bytearray(data) for node, data in self.tape.base.files.items()}
        sizes = {node: len(data) for node, data in files.items()}
        for index in sorted(kept.steps):
            match self.events[index]:
                case Data(node, offset, data):
                    grown = kept.cut is not None and kept.cut[0] == index
                    if grown:
                        data = data[: kept.cut[1]]
                    content = files.setdefault(node, bytearray())
                    if len(content) < offset:
                        content.extend(bytes(offset - len(content)))
                    content[offset : offset + len(data)] = data
                    if grown:
                        sizes[node] = max(sizes.get(node, 0), offset + len(data))
                case Size(node, size):
                    if size < sizes.get(node, 0):
                        del files.setdefault(node, bytearray())[size:]
                    sizes[node] = size
                case Link(folder, name, node):
                    tree.folders.setdefault(folder, {})[name] = node
                case Unlink(folder, name):
                    tree.folders.setdefault(folder, {}).pop(name, None)
                case Rename(folder, name, new_folder, new_name, node):
                    old = tree.folders.setdefault(folder, {})
                    if old.get(name) == node:
                        del old[name]
                    tree.folders.setdefault(new_folder, {})[new_name] = node
        for node in self.tape.names:
            tree.folders.setdefault(node, {})
        for node, content in files.items():
            size = sizes.get(node, 0)
            tree.files[node] = bytes(content[:size]).ljust(size, b"\0")
        return tree

    def book(self, kept: Kept) -> Book:
        """What the caller had been promised by then."""
        for event in reversed(self.events[: kept.time]):
            if isinstance(event, Told):
                return event.book
        return self.tape.first_book

    def describe(self, kept: Kept) -> str:
        lost = [
            _brief(self.events[i])
            for i in range(kept.time)
            if i not in kept.steps and not isinstance(self.events[i], (Synced, Told))
        ]
        torn = f", {_brief(self.events[kept.cut[0]])} cut to {kept.cut[1]} bytes" if kept.cut else ""
        return f"crash after event {kept.time}, lost: {'; '.join(lost) or 'nothing'}{torn}"


def _subsets(pending: list[int], rng: random.Random) -> Iterator[frozenset[int]]:
    if len(pending) <= _ALL_SUBSETS_UP_TO:
        for count in range(len(pending) + 1):
            yield from map(frozenset, combinations(pending, count))
        return
    whole = frozenset(pending)
    for count in range(len(pending) + 1):
        yield frozenset(pending[:count])
    for one in pending:
        yield whole - {one}
        yield frozenset({one})
    for share in (0.2, 0.5, 0.8):
        for _ in range(_RANDOM_SUBSETS):
            yield frozenset(i for i in pending if rng.random() < share)


def _brief(event: Any) -> str:
    fields = [f"{len(value)} bytes" if isinstance(value, bytes) else str(value) for value in event]
    return f"{type(event).__name__}({', '.join(fields)})"


# ── looking at what is left ───────────────────────────────────────────────────────────────────────


class Counter:
    """A clock for tests: a millisecond goes by each time somebody looks."""

    def __init__(self) -> None:
        self.now = 1_700_000_000_000

    def __call__(self) -> int:
        self.now += 1
        return self.now


def home_at(folder: str, disk: Disk | None = None) -> Home:
    """A home of the file store, with a clock that does not depend on the hour."""
    clock = Counter()
    return Home(connect(folder, clock=clock, disk=disk), clock=clock)


class Violation(AssertionError):
    """A promise that was not kept."""


def check(folder: str, book: Book) -> None:
    """Open what the crash left and hold it against the book. Raises `Violation`."""
    home = home_at(folder)
    listed = {info.id: info for info in home.sessions()}
    deleted = {info.id: info for info in home.sessions(deleted=True)}
    for session_id, places in book.places.items():
        actual = SESSIONS if session_id in listed else TRASH if session_id in deleted else GONE
        _hold(actual in places, f"session {session_id} is in {actual}, not in {' or '.join(sorted(places))}")
        _hold(not (session_id in listed and session_id in deleted), f"session {session_id} is there twice")
    for session_id, info in {**listed, **deleted}.items():
        _hold(session_id in book.places, f"session {session_id} was never made")
        _hold(info.is_readable, f"session {session_id} is listed without its first line")
    for digest, data in book.blobs.items():
        _hold(home.get_blob(digest) == data, f"blob {digest} is not what was put")
    for session_id in deleted:
        home.restore(session_id)
    for session_id in (*listed, *deleted):
        _check_session(folder, home, session_id, book)
    fresh = home.create(id="made after the crash")
    fresh.user("hello")
    home.close()
    again = home_at(folder)
    _hold("made after the crash" in {info.id for info in again.sessions()}, "a new session is not listed")
    again.close()


def _check_session(folder: str, home: Home, session_id: str, book: Book) -> None:
    session = home.resume(session_id)
    entries = list(session.entries())
    check_entries(session_id, entries, book)
    for entry in entries:
        for digest in entry.blobs:
            home.get_blob(digest)
    backwards = [entry.id for entry in session.entries(reverse=True)]
    _hold(backwards[::-1] == [entry.id for entry in entries], f"{session_id} reads differently backwards")
    session.context()
    new = session.user("after the crash")
    _hold(new.seq > entries[-1].seq, f"{session_id}: seq {new.seq} after {entries[-1].seq}")
    top = max((entry.seq for entry in book.entries.get(session_id, {}).values()), default=0)
    _hold(new.seq > top, f"{session_id}: seq {new.seq} was given out before the crash")
    other = home_at(folder)
    later = [entry for entry in other.resume(session_id).entries() if entry.seq < new.seq]
    later = [entry for entry in later if not isinstance(entry, Writer) or entry in entries]
    _hold(later == entries, f"{session_id}: appending changed what was there before")
    _hold(other.resume(session_id).find(new.id) == new, f"{session_id}: what was appended after is not there")
    other.close()


def check_entries(session_id: str, entries: Sequence[AnyEntry], book: Book) -> None:
    """One session's entries against the book."""
    seqs = [entry.seq for entry in entries]
    ids = [entry.id for entry in entries]
    found = dict(zip(ids, entries, strict=True))
    _hold(seqs == sorted(set(seqs)), f"{session_id}: seqs do not increase: {seqs}")
    _hold(len(found) == len(ids), f"{session_id}: an id is there twice: {ids}")
    for entry_id, entry in book.entries.get(session_id, {}).items():
        _hold(entry_id in found, f"{session_id}: acknowledged entry {entry.seq} ({entry.type}) is lost")
        _hold(found[entry_id] == entry, f"{session_id}: entry {entry.seq} changed: {entry} → {found[entry_id]}")
        if entry.parent:
            _hold(entry.parent in seqs, f"{session_id}: entry {entry.seq} lost its parent {entry.parent}")
    for batch in book.batches.get(session_id, ()):
        there = batch & found.keys()
        _hold(not there or there == batch, f"{session_id}: {len(there)} of a batch of {len(batch)}")
    promised = book.entries.get(session_id, {}).keys() | book.tried.get(session_id, frozenset())
    for entry in entries:
        name = entry.session_id if isinstance(entry, Start) else entry.id
        known = book.is_shared or {name, entry.id} & promised or isinstance(entry, (Writer, Fold))
        _hold(known, f"{session_id}: entry {entry.seq} ({entry.id}) was never appended")


def _hold(is_kept: bool, promise: str) -> None:
    if not is_kept:
        raise Violation(promise)


# ── going through all of it ───────────────────────────────────────────────────────────────────────

Scenario = Callable[[Witness], None]
Look = Callable[[str, Book], None]
HOME = os.path.join("new", "home")


class Findings(Struct):
    """How many states were looked at, and what was wrong with some."""

    states: int = 0
    violations: list[str] = []

    def assert_none(self, seed: int) -> None:
        first = "\n".join(self.violations[:3])
        assert not self.violations, f"seed {seed}: {len(self.violations)} of {self.states} states:\n{first}"


class Explorer:
    """Runs scenarios, and looks at what crashes of them leave."""

    def __init__(self, folder: str, seed: int, *, disk: type[Recorder] = Recorder, limit: int = 1000) -> None:
        self.rng = random.Random(seed)
        self.seed = seed
        self.limit = limit
        self.states = 0
        """How many were looked at so far."""
        self._folder = folder
        self._disk = disk
        self._count = 0

    def new_folder(self) -> str:
        self._count += 1
        path = os.path.join(self._folder, str(self._count))
        os.mkdir(path)
        return path

    def record(self, scenario: Scenario, *, before: Scenario | None = None) -> tuple[Tape, int]:
        """Run it; `before` comes first and its crashes are not looked at. Returns the tape and where it began."""
        tape = Tape(self.new_folder())
        if before is not None:
            self.live(tape, before)
        since = len(tape.events)
        self.live(tape, scenario)
        return tape, since

    def live(self, tape: Tape, scenario: Scenario, disk: Recorder | None = None) -> bool:
        """One process: True if it came to its end, False if it was killed."""
        disk = disk or self._disk(tape)
        home = home_at(os.path.join(tape.top, HOME), disk)
        try:
            scenario(Witness(home, tape, disk))
        except Killed:
            return False
        finally:
            disk.die()
        return True

    def crash(self, scenario: Scenario, *, before: Scenario | None = None, model: str = "posix") -> Findings:
        """A power cut at every moment of the scenario."""
        tape, since = self.record(scenario, before=before)
        return self.look_at(Timeline(tape, model, since=since))

    def look_at(self, timeline: Timeline, *, limit: int | None = None) -> Findings:
        findings = Findings()
        for kept, tree in self.sample(timeline, limit or self.limit):
            findings.states += 1
            self.states += 1
            try:
                self.open_and_check(tree, timeline.book(kept))
            except Exception as error:
                why = str(error) if isinstance(error, Violation) else f"{type(error).__name__}: {error}"
                findings.violations.append(f"{why}\n  {timeline.describe(kept)}")
        return findings

    def sample(self, timeline: Timeline, limit: int) -> list[tuple[Kept, Tree]]:
        """All states that differ in what is on the disk or in what was promised, or so many of them."""
        states = list(dict.fromkeys(timeline.states(self.rng)))
        if len(states) > 4 * limit:
            states = self.rng.sample(states, 4 * limit)
        different: dict[Any, tuple[Kept, Tree]] = {}
        for kept in states:
            tree = timeline.tree(kept)
            different.setdefault((id(timeline.book(kept)), tree.signature()), (kept, tree))
        found = list(different.values())
        return found if len(found) <= limit else self.rng.sample(found, limit)

    def open_and_check(self, tree: Tree, book: Book) -> None:
        folder = self.new_folder()
        try:
            tree.write_to(folder)
            check(os.path.join(folder, HOME), book)
        finally:
            shutil.rmtree(folder)

    def crash_twice(self, scenario: Scenario, *, before: Scenario | None = None, lives: int = 8) -> Findings:
        """A power cut, a second life that goes on from what is left, and another power cut at every moment of it."""
        findings = Findings()
        tape, since = self.record(scenario, before=before)
        timeline = Timeline(tape, "posix", since=since)
        for kept, tree in self.sample(timeline, lives):
            folder = self.new_folder()
            tree.write_to(folder)
            second = Tape(folder, timeline.book(kept))
            self.live(second, go_on)
            found = self.look_at(Timeline(second, "posix"), limit=self.limit // lives)
            findings.states += found.states
            findings.violations += [f"{why}\n  after a {timeline.describe(kept)}" for why in found.violations]
            shutil.rmtree(folder)
        return findings

    def kill_then_crash(self, scenario: Scenario, then: Scenario, *, before: Scenario | None = None) -> Findings:
        """The process is killed before each of its changes, another goes on beside what it left, and then the power
        goes: what the dead one did not sync is not on the disk, though the second one saw it.
        """
        findings = Findings()
        is_over, torn, number = False, False, 1
        while not is_over:
            tape = Tape(self.new_folder())
            if before is not None:
                self.live(tape, before)
            disk = self._disk(tape, dies_before=number, torn=torn)
            is_over = self.live(tape, scenario, disk)
            since = len(tape.events)
            self.live(tape, then)
            found = self.look_at(Timeline(tape, "posix", since=since), limit=self.limit)
            findings.states += found.states
            findings.violations += [f"{why}\n  after a kill before change {number}" for why in found.violations]
            shutil.rmtree(tape.top)
            torn = disk.died_writing and not torn
            number += not torn
        return findings


def go_on(witness: Witness) -> None:
    """What the next process does with whatever it finds: it appends to every session."""
    for info in witness.home.sessions():
        session = witness.resume(info.id)
        witness.append(session, Message(role="user", blocks=[Text("on we go")]))
        witness.append(session, Note(text="one"), Note(text="x" * 300), Note(text="three"))


def random_life(seed: int) -> Scenario:
    """A few things that somebody may do, chosen by the seed: the same ones each time it is lived."""

    def live(witness: Witness) -> None:
        rng = random.Random(seed)
        for number in range(rng.randrange(2, 7)):
            _ACTS[rng.choice(list(_ACTS))](witness, rng, f"{seed:x}-{number}")

    return live


def _in(witness: Witness, place: str) -> list[str]:
    return [session_id for session_id, places in witness.tape.book.places.items() if places == {place}]


def _some_text(rng: random.Random) -> str:
    return chr(rng.randrange(97, 123)) * rng.choice([1, 200, 1_500, 4_000, 9_000])


def _act_create(witness: Witness, rng: random.Random, name: str) -> None:
    witness.create(name, title=_some_text(rng)[:500])


def _act_append(witness: Witness, rng: random.Random, name: str) -> None:
    for session_id in _in(witness, SESSIONS)[:2]:
        session = witness.resume(session_id)
        for _ in range(rng.randrange(1, 4)):
            drafts: list[AnyEntry] = []
            for _ in range(rng.choice([1, 1, 2, 4])):
                if rng.random() < 0.5:
                    drafts.append(Message(role="user", blocks=[Text(_some_text(rng))]))
                else:
                    drafts.append(Note(text=_some_text(rng)))
            witness.append(session, *drafts)


def _act_show(witness: Witness, rng: random.Random, name: str) -> None:
    for session_id in _in(witness, SESSIONS)[:1]:
        image = Image("image/png", data=rng.choice([b"one", b"two", rng.randbytes(6_000)]))
        witness.append(witness.resume(session_id), Message(role="user", blocks=[image]))


def _act_fork(witness: Witness, rng: random.Random, name: str) -> None:
    for session_id in _in(witness, SESSIONS)[-1:]:
        witness.fork(witness.resume(session_id), name)


def _act_delete(witness: Witness, rng: random.Random, name: str) -> None:
    if there := _in(witness, SESSIONS):
        witness.delete(rng.choice(there))


def _act_restore(witness: Witness, rng: random.Random, name: str) -> None:
    if there := _in(witness, TRASH):
        witness.restore(rng.choice(there))


def _act_purge(witness: Witness, rng: random.Random, name: str) -> None:
    if there := _in(witness, TRASH):
        witness.purge(rng.choice(there))


def _act_beside(witness: Witness, rng: random.Random, name: str) -> None:
    for session_id in _in(witness, SESSIONS)[:1]:
        syncs = [
            writer.begin_to_append(session_id, *(Note(text=_some_text(rng)) for _ in range(rng.randrange(1, 4))))
            for writer in (witness, witness.beside(), witness)
        ]
        rng.shuffle(syncs)
        for sync in syncs:
            sync()


_ACTS: dict[str, Callable[[Witness, random.Random, str], None]] = {
    "create": _act_create,
    "append": _act_append,
    "more": _act_append,
    "show": _act_show,
    "fork": _act_fork,
    "delete": _act_delete,
    "restore": _act_restore,
    "purge": _act_purge,
    "beside": _act_beside,
}

"""Disks that fail, and one that forgets what it failed to write; and a caller who goes on regardless."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from typing import Any

from tests.store.crashlab import GONE, PAGE, SESSIONS, TRASH, Book, home_at
from turnlog import AlreadyExists, Home, Image, Note, NotFound, Session, Text, TurnlogError
from turnlog.log.entry import AnyEntry, Message
from turnlog.store.files.disk import Disk

OPERATIONS = (
    "open", "write_once", "pwrite", "sync", "sync_folder", "pread", "fstat", "stat", "ftruncate", "rename", "link",
    "unlink", "mkdir", "listdir",
)  # fmt: skip


class FailingDisk(Disk):
    """The n-th call fails, once or from then on until it is healed. A write that fails has written half."""

    def __init__(self, *, at: int, error: int = errno.EIO, for_ever: bool = False, only: str | None = None) -> None:
        self.calls = 0
        self.failed: list[str] = []
        """Which calls failed."""
        self._at = at
        self._error = error
        self._for_ever = for_ever
        self._only = only

    def before(self, name: str, args: tuple[Any, ...]) -> None:
        if self._only not in (None, name):
            return
        self.calls += 1
        if self.calls == self._at or (self._for_ever and self.calls > self._at > 0):
            self.failed.append(name)
            if name == "write_once":
                fd, data = args
                os.write(fd, data[: len(data) // 2])
            raise OSError(self._error, os.strerror(self._error))

    def break_now(self) -> None:
        self._at = self.calls + 1

    def heal(self) -> None:
        self._at = 0


def _may_fail(name: str) -> Callable[..., Any]:
    original = getattr(Disk, name)
    takes_self = not isinstance(Disk.__dict__[name], staticmethod)

    def call(self: FailingDisk, *args: Any, **options: Any) -> Any:
        self.before(name, args)
        return original(self, *args, **options) if takes_self else original(*args, **options)

    return call


for _name in OPERATIONS:
    setattr(FailingDisk, _name, _may_fail(_name))


class ForgetfulDisk(Disk):
    """As Linux is since fsyncgate: a sync that fails calls the lost pages clean. Reading shows them, the disk does not
    have them, and no later sync brings them there. Everybody who had the file open is told of it, once.
    """

    def __init__(self, *, fails: Callable[[int], bool] = lambda number: False) -> None:
        self.syncs = 0
        self.fail_next = False
        self.before_failure: Callable[[], Any] | None = None
        """What happens just before the next sync fails."""
        self.given_up: set[int] = set()
        """Descriptors whose sync failed."""
        self.used_after: list[int] = []
        """Those of them that somebody wrote to or synced again."""
        self._fails = fails
        self._mutex = threading.Lock()
        self._content: dict[int, bytearray] = {}
        self._on_disk: dict[int, dict[int, bytes]] = {}
        self._dirty: dict[int, set[int]] = {}
        self._errors: dict[int, int] = {}
        self._told: dict[int, int] = {}

    def open(self, path: str, flags: int, *, create: bool = False) -> int:
        fd = super().open(path, flags, create=create)
        node = os.fstat(fd).st_ino
        if create:
            self._content[node], self._on_disk[node] = bytearray(), {}
            self._dirty[node], self._errors[node] = set(), 0
        self._told[fd] = self._errors.setdefault(node, 0)
        self.given_up.discard(fd)
        return fd

    def write_once(self, fd: int, data: Any) -> int:
        self._note_use(fd)
        node = os.fstat(fd).st_ino
        with self._mutex:
            start = len(self._content[node])
            done = os.write(fd, data)
            self._content[node] += data[:done]
            self._dirty[node].update(range(start // PAGE, (start + done - 1) // PAGE + 1))
        return done

    def pwrite(self, fd: int, data: bytes, offset: int) -> int:
        self._note_use(fd)
        node = os.fstat(fd).st_ino
        done = os.pwrite(fd, data, offset)
        self._content[node][offset : offset + done] = data[:done]
        self._dirty[node].update(range(offset // PAGE, (offset + done - 1) // PAGE + 1))
        return done

    def ftruncate(self, fd: int, length: int) -> None:
        self._note_use(fd)
        os.ftruncate(fd, length)
        node = os.fstat(fd).st_ino
        del self._content[node][length:]
        pages = self._on_disk[node]
        for page in [page for page in pages if page * PAGE >= length]:
            del pages[page]
        last = length // PAGE
        if last in pages:
            pages[last] = pages[last][: length % PAGE]

    def sync(self, fd: int) -> None:
        self._note_use(fd)
        if self.before_failure is not None:
            happens, self.before_failure = self.before_failure, None
            happens()
            self.fail_next = True
        with self._mutex:
            self._sync(fd, os.fstat(fd).st_ino)

    def _sync(self, fd: int, node: int) -> None:
        self.syncs += 1
        if self.fail_next or self._fails(self.syncs):
            self.fail_next = False
            self._dirty[node].clear()
            self._errors[node] += 1
        if self._errors[node] > self._told[fd]:
            self._told[fd] = self._errors[node]
            self.given_up.add(fd)
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        for page in self._dirty[node]:
            self._on_disk[node][page] = bytes(self._content[node][page * PAGE : (page + 1) * PAGE])
        self._dirty[node].clear()

    def _note_use(self, fd: int) -> None:
        if fd in self.given_up:
            self.used_after.append(fd)

    def reboot(self, folder: str) -> None:
        """What was only in memory is gone; the names are there."""
        for place, _, names in os.walk(folder):
            for name in names:
                path = os.path.join(place, name)
                status = os.stat(path)
                content = bytearray(status.st_size)
                for page, data in self._on_disk.get(status.st_ino, {}).items():
                    data = data[: max(0, status.st_size - page * PAGE)]
                    content[page * PAGE : page * PAGE + len(data)] = data
                with open(path, "wb") as file:
                    file.write(content)


def said(text: str) -> Message:
    return Message(role="user", blocks=[Text(text)])


class Caller:
    """Does one thing after the other, whatever fails, and remembers what was acknowledged.

    Tries each thing up to `attempts` times, with the same drafts. Lets through everything but a `TurnlogError`.
    """

    def __init__(self, folder: str, disk: Disk, *, attempts: int = 1) -> None:
        self.folder = folder
        self.book = Book()
        self.errors: list[str] = []
        self.undone: list[str] = []
        """What did not come about, however often it was tried."""
        self._disk = disk
        self._attempts = attempts
        self.sessions: dict[str, Session] = {}
        self.home: Home | None = None

    def _try(self, what: str, act: Callable[[], Any]) -> Any:
        for _ in range(self._attempts):
            try:
                return act()
            except TurnlogError as error:
                self.errors.append(f"{type(error).__name__}: {error}")
        self.undone.append(f"{what}: {self.errors[-1]}")
        return None

    def open(self) -> bool:
        self.home = self._try("open", lambda: home_at(self.folder, self._disk))
        return self.home is not None

    def _make(self, session_id: str, make: Callable[[], Session], inherited: frozenset[str]) -> None:
        home = self.home
        assert home is not None

        def act() -> Session:
            try:
                return make()
            except AlreadyExists:
                return home.resume(session_id)

        self.book.places[session_id] = frozenset({SESSIONS, GONE})
        self.book.tried[session_id] = inherited | {session_id}
        session = self._try(f"make {session_id}", act)
        if session is not None:
            self.sessions[session_id] = session
            self.book.places[session_id] = frozenset({SESSIONS})

    def create(self, session_id: str) -> None:
        home = self.home
        assert home is not None
        self._make(session_id, lambda: home.create(id=session_id), frozenset())

    def fork(self, session_id: str, new: str) -> None:
        session = self.sessions.get(session_id)
        if session is not None:
            self._make(new, lambda: session.fork(id=new), self.book.tried[session_id])

    def append(self, session_id: str, *drafts: AnyEntry) -> None:
        session = self.sessions.get(session_id)
        if session is None:
            return
        if session.is_closed:  # to open it again had failed
            self.reopen(session_id)
            session = self.sessions[session_id]
        ids = frozenset(draft.id for draft in drafts)
        self.book.tried[session_id] |= ids
        if len(ids) > 1:
            self.book.batches[session_id] = (*self.book.batches.get(session_id, ()), ids)
        done = self._try(f"append to {session_id}", lambda: session.append(*drafts))
        if done is not None:
            entries = done if isinstance(done, list) else [done]
            mine = {entry.id: entry for entry in entries}
            self.book.entries.setdefault(session_id, {}).update(mine)

    def reopen(self, session_id: str) -> None:
        """As the next process would: nothing is known of the log any more."""
        if session_id in self.sessions:
            self.sessions[session_id].close()
            home = self.home
            assert home is not None
            session = self._try(f"resume {session_id}", lambda: home.resume(session_id))
            if session is not None:
                self.sessions[session_id] = session

    def _move(self, act: Callable[[str], None], session_id: str, to: str) -> None:
        if session_id not in self.sessions:
            return
        before = self.book.places[session_id]

        def move() -> bool:
            try:
                act(session_id)
            except NotFound:
                home = home_at(self.folder)
                places = {info.id for info in home.sessions(deleted=to == TRASH)}
                if session_id not in places:
                    raise
            return True

        self.book.places[session_id] = before | {to}
        if self._try(f"move {session_id} to {to}", move):
            self.book.places[session_id] = frozenset({to})

    def delete(self, session_id: str) -> None:
        assert self.home is not None
        self._move(self.home.delete, session_id, TRASH)

    def restore(self, session_id: str) -> None:
        assert self.home is not None
        self._move(self.home.restore, session_id, SESSIONS)

    def collect(self) -> None:
        assert self.home is not None
        self._try("collect", self.home.gc)

    def close(self) -> None:
        if self.home is not None:
            self.home.close()


def work(caller: Caller) -> None:
    """A bit of everything."""
    if not caller.open():
        return
    caller.create("one")
    caller.append("one", said("hello"))
    caller.append("one", Note(text="1"), said("x" * 5_000), Note(text="3"))
    caller.reopen("one")
    caller.append("one", Message(role="user", blocks=[Image("image/png", data=b"\x89PNG" * 40)]))
    caller.fork("one", "two")
    caller.append("two", said("there"))
    caller.append("one", said("here"))
    caller.collect()
    caller.delete("two")
    caller.restore("two")
    caller.append("two", said("back"))

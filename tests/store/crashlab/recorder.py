"""A disk that writes down on a tape what is done with it."""

from __future__ import annotations

import os

from tests.store.crashlab.tape import (
    PAGE,
    Data,
    Link,
    Rename,
    Size,
    Synced,
    Tape,
    Unlink,
)
from turnlog.store.files.disk import Disk, Held


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

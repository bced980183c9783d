"""Kept files: compressed copies of other agents' files, in a place where those agents delete nothing.

A copy has the path of the file below the folder `kept`, with the suffix `.zst`; `zstd -d` reads it, too. What a file
grew by is appended as one more frame: see `keptframe`.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import chain, count
from typing import BinaryIO

from msgspec.structs import replace

from turnlog.errors import AlreadyExists, Corrupt, TurnlogError, Unavailable
from turnlog.exchange.keeping.keptframe import append, contents, framed, frames_of, sound_frames
from turnlog.formats import Source, format_of
from turnlog.interop.place import private_folders, put_file, sync_folder
from turnlog.interop.proof import proof_of
from turnlog.machine.environment import default_home, state_folder
from turnlog.machine.folder import workspace_path
from turnlog.machine.location import folder_of, key_of

_SUFFIX = ".zst"
_ABOUT = ".meta.json"
"""The suffix of a file with metadata beside that of a session; it is no session."""
_MOST_FRAMES = 8
"""A copy with more frames is written again when the file grows: many small frames take more space than one."""


def kept_folder(location: str) -> str:
    """The folder of the kept files of a home: in it, or in the state folder of this machine if it is no folder."""
    folder = folder_of(location)
    return os.path.join(folder or os.path.join(state_folder(), key_of(location)), "kept")


class KeptFiles:
    """The kept files of one home; of the default one for None."""

    def __init__(self, location: str | None) -> None:
        self.folder = kept_folder(location or default_home())

    def path_of(self, agent: str, path: str) -> str:
        """The path of the copy of a file, whether or not it exists."""
        return os.path.join(self.folder, agent, os.path.abspath(path).lstrip("/") + _SUFFIX)

    def has(self, agent: str, path: str) -> bool:
        """Whether a file is kept."""
        return os.path.exists(self.path_of(agent, path))

    def size_of(self, agent: str, path: str) -> int:
        """The number of bytes of a file that are kept."""
        frames = frames_of(self.path_of(agent, path))
        return frames[-1].note.size if frames else 0

    def every(self, agent: str) -> Iterator[str]:
        """The paths of all kept files of an agent, including those that the agent still has."""
        return self._below(agent, "")

    def gone(self, agent: str, workspace: str | None = None) -> Iterator[Source]:
        """The kept sessions whose files the agent deleted; only those of `workspace` if it is given.

        One that cannot be read is among them: reading it raises the error.
        """
        for path in self.every(agent):
            if os.path.lexists(path):
                continue
            try:
                yield from self._sessions_in(agent, path, workspace)
            except (OSError, TurnlogError):
                if not path.endswith(_ABOUT):
                    yield Source(agent, path)

    def _sessions_in(self, agent: str, path: str, workspace: str | None) -> list[Source]:
        """The sessions in one kept file."""
        form = format_of(agent)
        with self.unpacked(agent, path) as unpacked:
            sources = [source for source in form.find(unpacked) if source.path == unpacked]
            if workspace is not None:
                sources = [source for source in sources if _workspace_of(source) == workspace_path(workspace)]
        return [replace(source, path=path) for source in sources]

    def agents(self) -> list[str]:
        """The agents that have kept files."""
        try:
            return sorted(entry.name for entry in os.scandir(self.folder) if entry.is_dir())
        except OSError:
            return []

    def bytes_of(self, agent: str) -> int:
        """The bytes that the copies of an agent's files take on the disk."""
        return sum(os.path.getsize(self.path_of(agent, path)) for path in self.every(agent))

    def keep(self, agent: str, path: str) -> bool:
        """Copy what is new in a file, and return whether anything was. Raises `OSError`."""
        target = self.path_of(agent, path)
        try:
            frames, is_damaged = sound_frames(target), False
        except Corrupt:
            frames, is_damaged = [], True
        last = frames[-1] if frames else None
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            if last is not None and (status.st_size, status.st_mtime_ns) == (last.note.size, last.note.mtime):
                return False
            has_grown = (
                last is not None
                and status.st_size >= last.note.size
                and proof_of(file, last.note.size).hex() == last.note.proof
            )
            if last is not None and has_grown and status.st_size == last.note.size:
                return False  # only its time changed
            private_folders(os.path.dirname(target))
            if last is None or not has_grown or len(frames) >= _MOST_FRAMES:
                has_more = is_damaged or (last is not None and status.st_size < last.note.size)
                self._write(target, file, status, has_more=has_more)
            else:
                append(target, last, framed(file, last.note.size, status))
        return True

    def _write(self, target: str, file: BinaryIO, status: os.stat_result, *, has_more: bool) -> None:
        """Write the whole copy again. The old one stays beside it if it has more, or nobody can tell."""
        temporary = f"{target}.{os.getpid()}.tmp"
        for stale in _beside(target, ".tmp"):
            os.unlink(stale)  # of a process that was killed: one at a time writes here
        try:
            with open(temporary, "wb", opener=_private) as out:
                out.writelines(framed(file, 0, status))
                out.flush()
                os.fsync(out.fileno())
            if has_more:
                os.replace(target, _free_name(f"{target.removesuffix(_SUFFIX)}.before"))
            os.replace(temporary, target)
            sync_folder(os.path.dirname(target))  # the stamps that say it is kept are synced later
        finally:
            if os.path.exists(temporary):
                os.unlink(temporary)

    def data(self, agent: str, path: str) -> Iterator[bytes]:
        """The content of a file, piece by piece. Raises `Corrupt` if the copy is damaged."""
        return contents(self.path_of(agent, path))

    def family(self, agent: str, path: str) -> list[str]:
        """The paths of a kept file and of those that belong to it: named like it, or in the folder of that name."""
        stem = os.path.splitext(path)[0]
        paths = [path] if self.has(agent, path) else []
        paths += self._below(agent, stem)
        near = [f"{stem}{_ABOUT}"]
        return paths + [other for other in near if other != path and self.has(agent, other)]

    def _below(self, agent: str, top: str) -> Iterator[str]:
        """The kept files in a folder of an agent, by the path that they had."""
        base = os.path.join(self.folder, agent)
        for folder, folders, names in os.walk(base + top):
            folders.sort()
            for name in sorted(names):
                if name.endswith(_SUFFIX):
                    yield os.path.join(folder, name).removeprefix(base).removesuffix(_SUFFIX)

    @contextmanager
    def unpacked(self, agent: str, path: str) -> Generator[str]:
        """Unpack a kept file and its family into a temporary folder; gives the path of the file there."""
        import tempfile  # few sessions are read from here

        with tempfile.TemporaryDirectory(prefix="turnlog-") as folder:
            for member in self.family(agent, path):
                self._unpack_file(agent, member, folder + member)
            yield folder + path

    def restore(self, agent: str, path: str) -> list[str]:
        """Put a file and its family back where they were, and return their paths. Nothing is overwritten."""
        restored: list[str] = []
        for member in self.family(agent, path):
            if not os.path.lexists(member):
                try:
                    put_file(member, b"".join(self.data(agent, member)), mode=0o600)
                except AlreadyExists:
                    continue  # its agent was quicker
                restored.append(member)
        return restored

    @contextmanager
    def readable(self, source: Source) -> Generator[Source]:
        """Give a source that can be read: the session where it lies, or its unpacked copy if its agent deleted it."""
        if not self._is_only_kept(source):
            yield source
            return
        with self.unpacked(source.agent, source.path) as unpacked:
            yield replace(source, path=unpacked)

    def file_of(self, source: Source) -> str:
        """The file of a session, or its copy if the agent deleted it."""
        return self.path_of(source.agent, source.path) if self._is_only_kept(source) else source.path

    def put_back(self, source: Source) -> list[str]:
        """Restore a session that its agent deleted, if it is kept; returns the paths of its files."""
        return [] if os.path.lexists(source.path) else self.restore(source.agent, source.path)

    def _is_only_kept(self, source: Source) -> bool:
        return not os.path.lexists(source.path) and self.has(source.agent, source.path)

    def _unpack_file(self, agent: str, path: str, target: str) -> None:
        try:
            os.makedirs(os.path.dirname(target), 0o700, exist_ok=True)
            with open(target, "wb", opener=_private) as out:
                for data in self.data(agent, path):
                    out.write(data)
            frames = frames_of(self.path_of(agent, path))
            if frames:
                os.utime(target, ns=(frames[-1].note.mtime, frames[-1].note.mtime))
        except OSError as error:
            raise Unavailable(f"{target} could not be written: {error.strerror}") from None


def _workspace_of(source: Source) -> str | None:
    workspace = format_of(source.agent).read(source).header.workspace
    return None if workspace is None else workspace_path(workspace)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def _beside(path: str, suffix: str) -> list[str]:
    """The files in the same folder whose names begin with the name of this one and a dot, and end with the suffix."""
    folder, name = os.path.split(path)
    return [
        os.path.join(folder, other)
        for other in os.listdir(folder)
        if other.startswith(f"{name}.") and other.endswith(suffix)
    ]


def _free_name(path: str) -> str:
    """The first of `path`, `path.2`, `path.3`, … that is not taken."""
    numbered = (f"{path}.{number}" for number in count(2))
    return next(name for name in chain([path], numbered) if not os.path.lexists(name))

"""Files of other agents, kept: compressed, where the agent that wrote them does not delete them.

A kept file lies under the path it has, with `.zst` behind it: `zstd -d` reads it, too. What a file grew by is appended
as one more frame; before each stands, in a frame that readers of zstd skip, how long it is and which bytes of the file
it has. What was cut short while it was written does not count, and the next one overwrites it.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import msgspec
from msgspec.structs import replace

from turnlog.errors import AlreadyExists, Corrupt, Unavailable
from turnlog.formats import format_of, private_folders, put_file
from turnlog.log import zstd
from turnlog.log.digest import sha256
from turnlog.machine.environment import default_home, state_folder
from turnlog.machine.location import folder_of, key_of
from turnlog.machine.proof import proof_of

if TYPE_CHECKING:
    from turnlog.formats import Source

_SUFFIX = ".zst"
_NOTE = struct.Struct("<II")
_SKIPPED = 0x184D2A57
_LEVEL = 9
_MOST_FRAMES = 8
"""A file with more is written anew when it has grown again: many small frames take more room than one."""
_CHUNK = 64 << 20


class _Frame(NamedTuple):
    start: int
    """Of its bytes in the kept file; the note stands before them."""
    length: int
    size: int
    """How much of the file is kept up to its end."""
    digest: str
    """Of what it has of the file."""
    proof: str
    mtime: int


def folder_for(location: str) -> str:
    """Where those of a home are: in it, or, where that is no folder, with what this machine remembers."""
    folder = folder_of(location)
    return os.path.join(folder or os.path.join(state_folder(), key_of(location)), "kept")


class KeptFiles:
    """The kept files of one home."""

    def __init__(self, location: str) -> None:
        self.folder = folder_for(location)

    def place(self, agent: str, path: str) -> str:
        """Where a file is kept, or would be."""
        return os.path.join(self.folder, agent, os.path.abspath(path).lstrip("/") + _SUFFIX)

    def has(self, agent: str, path: str) -> bool:
        """Whether that file is kept."""
        return os.path.exists(self.place(agent, path))

    def size_of(self, agent: str, path: str) -> int:
        """How much of a file is kept."""
        frames = _frames(self.place(agent, path))
        return frames[-1].size if frames else 0

    def every(self, agent: str) -> Iterator[str]:
        """The files of an agent that are kept, there or not."""
        base = os.path.join(self.folder, agent)
        for folder, folders, names in os.walk(base):
            folders.sort()
            for name in sorted(names):
                if name.endswith(_SUFFIX):
                    yield "/" + os.path.relpath(os.path.join(folder, name.removesuffix(_SUFFIX)), base)

    def gone(self, agent: str, workspace: str | None = None) -> Iterator[Source]:
        """The sessions of an agent whose files are not there any more; only those of a workspace, if told."""
        form = format_of(agent)
        for path in self.every(agent):
            if os.path.lexists(path):
                continue
            with self.unpacked(agent, path) as there:
                sources = [one for one in form.find(there) if one.path == there]
                if workspace is not None:
                    sources = [one for one in sources if form.read(one).header.workspace == workspace]
            yield from (replace(one, path=path) for one in sources)

    def agents(self) -> list[str]:
        """Of which something is kept."""
        try:
            return sorted(entry.name for entry in os.scandir(self.folder) if entry.is_dir())
        except OSError:
            return []

    def bytes_of(self, agent: str) -> int:
        """How much room they take."""
        return sum(os.path.getsize(self.place(agent, path)) for path in self.every(agent))

    def keep(self, agent: str, path: str) -> bool:
        """Bring what a file has that is not kept yet; gives whether there was anything. Raises `OSError`."""
        target = self.place(agent, path)
        frames = _sound(target)
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            last = frames[-1] if frames else None
            if last is not None and (status.st_size, status.st_mtime_ns) == (last.size, last.mtime):
                return False
            is_grown = (
                last is not None and status.st_size >= last.size and proof_of(file, last.size).hex() == last.proof
            )
            if last is not None and is_grown and status.st_size == last.size:
                return False  # only its time is another one
            private_folders(os.path.dirname(target))
            if last is None or not is_grown or len(frames) >= _MOST_FRAMES:
                self._write(target, file, status, shrank=last is not None and status.st_size < last.size)
            else:
                _append(target, last, _framed(file, last.size, status))
        return True

    def _write(self, target: str, file: BinaryIO, status: os.stat_result, *, shrank: bool) -> None:
        """All of it anew. One that is shorter than what is kept does not take its place: that stays beside it."""
        temporary = f"{target}.{os.getpid()}.tmp"
        try:
            with open(temporary, "wb", opener=_private) as out:
                out.writelines(_framed(file, 0, status))
                out.flush()
                os.fsync(out.fileno())
            if shrank:
                os.replace(target, f"{target.removesuffix(_SUFFIX)}.before")
            os.replace(temporary, target)
        finally:
            if os.path.exists(temporary):
                os.unlink(temporary)

    def data(self, agent: str, path: str) -> Iterator[bytes]:
        """What is kept of a file. Raises `Corrupt` where that is not what was kept."""
        target = self.place(agent, path)
        frames = _frames(target)
        with open(target, "rb") as file:
            for number, frame in enumerate(frames, start=1):
                data = _unpacked(file, frame)
                if data is not None:
                    yield data
                elif number == 1 or number < len(frames):
                    raise Corrupt(f"{target} is not what was written", hint="restore it from a backup")

    def family(self, agent: str, path: str) -> list[str]:
        """A kept file, and those that belong to it: named like it, or in the folder that is."""
        stem = path.rpartition(".")[0] or path
        base = os.path.join(self.folder, agent)
        paths = [path] if self.has(agent, path) else []
        for folder, _, names in os.walk(base + stem):
            paths += [os.path.join(folder, name).removeprefix(base).removesuffix(_SUFFIX) for name in sorted(names)]
        near = [f"{stem}.meta.json"]
        return paths + [other for other in near if other != path and self.has(agent, other)]

    @contextmanager
    def unpacked(self, agent: str, path: str) -> Generator[str]:
        """A kept file and its family in a folder that is gone afterwards; gives the path of the file there."""
        import tempfile  # few sessions are read from here

        with tempfile.TemporaryDirectory(prefix="turnlog-") as folder:
            for one in self.family(agent, path):
                self._put(agent, one, folder + one)
            yield folder + path

    def restore(self, agent: str, path: str) -> list[str]:
        """Put a file and its family back where they were, to the byte; nothing is written over. Gives what was put."""
        restored: list[str] = []
        for one in self.family(agent, path):
            if not os.path.lexists(one):
                try:
                    put_file(one, b"".join(self.data(agent, one)), mode=0o600)
                except AlreadyExists:
                    continue  # its agent was quicker
                restored.append(one)
        return restored

    def _put(self, agent: str, path: str, target: str) -> None:
        try:
            os.makedirs(os.path.dirname(target), 0o700, exist_ok=True)
            with open(target, "wb", opener=_private) as out:
                for data in self.data(agent, path):
                    out.write(data)
            frames = _frames(self.place(agent, path))
            if frames:
                os.utime(target, ns=(frames[-1].mtime, frames[-1].mtime))
        except OSError as error:
            raise Unavailable(f"{target} could not be written: {error.strerror}") from None


@contextmanager
def kept_or_there(location: str | None, source: Source) -> Generator[Source]:
    """A session where it can be read: where it lies, or, if it is gone from there and kept, unpacked for a while."""
    kept = KeptFiles(location or default_home())
    if os.path.lexists(source.path) or not kept.has(source.agent, source.path):
        yield source
        return
    with kept.unpacked(source.agent, source.path) as there:
        yield replace(source, path=there)


def place_of(location: str | None, source: Source) -> str:
    """The file of a session: its own, or, if that is gone and kept, the copy."""
    kept = KeptFiles(location or default_home())
    is_gone = not os.path.lexists(source.path) and kept.has(source.agent, source.path)
    return kept.place(source.agent, source.path) if is_gone else source.path


def put_back(location: str | None, source: Source) -> list[str]:
    """Where its agent looks for a session, if that was deleted and is kept; gives the files."""
    kept = KeptFiles(location or default_home())
    return [] if os.path.lexists(source.path) else kept.restore(source.agent, source.path)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def _frames(path: str) -> list[_Frame]:
    """The frames that are whole."""
    frames: list[_Frame] = []
    try:
        file = open(path, "rb")  # noqa: SIM115
    except FileNotFoundError:
        return frames
    with file:
        end = os.fstat(file.fileno()).st_size
        at = 0
        while at + _NOTE.size <= end:
            magic, length = _NOTE.unpack(file.read(_NOTE.size))
            start = at + _NOTE.size + length
            if magic != _SKIPPED or start > end:
                break
            try:
                note = msgspec.json.decode(file.read(length))
            except msgspec.DecodeError:
                break
            if start + note["length"] > end:
                break
            frames.append(_Frame(start, note["length"], note["size"], note["digest"], note["proof"], note["mtime"]))
            at = file.seek(start + note["length"])
    return frames


def _sound(path: str) -> list[_Frame]:
    """The frames, without a last one that never reached the disk."""
    frames = _frames(path)
    if frames:
        with open(path, "rb") as file:
            if _unpacked(file, frames[-1]) is None:
                frames.pop()
    return frames


def _unpacked(file: BinaryIO, frame: _Frame) -> bytes | None:
    file.seek(frame.start)
    try:
        data = zstd.decompressor().decompress(file.read(frame.length), max_output_size=_CHUNK)
    except zstd.damage():
        return None
    return data if sha256(data).hexdigest()[:32] == frame.digest else None


def _framed(file: BinaryIO, at: int, status: os.stat_result) -> Iterator[bytes]:
    """What a file has from there on: frames, each with the note before it.

    Raises `OSError` for a file that is not the one any more that was looked at: an agent that writes it anew would
    have half of the one kept, and half of the other.
    """
    before = proof_of(file, status.st_size)
    while True:
        file.seek(at)
        data = file.read(min(_CHUNK, status.st_size - at))
        packed = zstd.compressor(_LEVEL, has_checksum=True).compress(data)
        at += len(data)
        proof = proof_of(file, at)
        is_last = at == status.st_size
        if proof != before if is_last else not data:
            raise OSError(errno.EBUSY, "its agent wrote it anew while it was read")
        note = {
            "length": len(packed),
            "size": at,
            "digest": sha256(data).hexdigest()[:32],
            "proof": proof.hex(),
            "mtime": status.st_mtime_ns,
        }
        header = msgspec.json.encode(note)
        yield _NOTE.pack(_SKIPPED, len(header)) + header + packed
        if is_last:
            return


def _append(path: str, last: _Frame, frames: Iterator[bytes]) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    end = last.start + last.length
    with open(fd, "wb") as file:
        file.truncate(end)
        file.seek(end)
        try:
            file.writelines(frames)
        except OSError:
            file.truncate(end)
            raise
        file.flush()
        os.fsync(file.fileno())

"""The frames of a kept file: writing them, reading them, and telling damage from an incomplete write.

Before each frame of data is a note, in a frame that readers of zstd skip: its length, and which bytes of the file it
has. A last frame that was not written to its end does not count, and the next one overwrites it. Everything else that
is not what was written is damage: it is reported, and nothing is read from such a file.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterator
from typing import Annotated, BinaryIO

import msgspec
from msgspec import Meta, Struct

from turnlog.errors import Corrupt, Unavailable
from turnlog.interop.proof import proof_of
from turnlog.log import zstd
from turnlog.log.digest import sha256
from turnlog.log.startup import NamedTuple

_HEAD = struct.Struct("<II")
"""The beginning of a frame that readers of zstd skip: its magic number, and its length."""
_SKIPPED = 0x184D2A57
_DATA = b"\x28\xb5\x2f\xfd"
"""The magic number of a frame with data."""
_LEVEL = 9
_CHUNK = 64 << 20


_Size = Annotated[int, Meta(ge=0)]


class _Note(Struct):
    """What is written before a frame of data."""

    length: _Size
    """The length of the frame."""
    size: _Size
    """The number of bytes of the file that are kept in this frame and those before it."""
    digest: str
    """The digest of the data in the frame."""
    proof: str
    """The proof for the first `size` bytes of the file: see `interop.proof`."""
    mtime: int
    """When the file was last written, in nanoseconds."""


class KeptFrame(NamedTuple):
    """A frame that is complete from its note to its end; its data may be damaged."""

    head: int
    """Where its note begins in the kept file."""
    start: int
    """Where its data begins."""
    end: int
    note: _Note


def frames_of(path: str) -> list[KeptFrame]:
    """The frames of a kept file; none if it does not exist. Raises `Corrupt` if it is damaged."""
    try:
        with open(path, "rb") as file:
            return _frames_in(file)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise _unreadable(path, error) from None


def sound_frames(path: str) -> list[KeptFrame]:
    """The frames of a kept file, without a last one whose data never reached the disk."""
    frames = frames_of(path)
    if frames:
        with open(path, "rb") as file:
            if _data_of(file, frames[-1]) is None:
                _check_cut_short(file, frames[-1].head)
                frames.pop()
    return frames


def contents(path: str) -> Iterator[bytes]:
    """The content of a kept file, piece by piece. Raises `Corrupt` if it is damaged."""
    try:
        with open(path, "rb") as file:
            frames = _frames_in(file)
            for frame in frames:
                data = _data_of(file, frame)
                if data is not None:
                    yield data
                elif frame is frames[-1]:
                    _check_cut_short(file, frame.head)
                else:
                    raise _damaged(file)
    except OSError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: str, error: OSError) -> Unavailable:
    return Unavailable(f"{path} could not be read: {error.strerror or error}")


def _damaged(file: BinaryIO) -> Corrupt:
    return Corrupt(f"{file.name} is not what was written", hint="restore it from a backup")


def _frames_in(file: BinaryIO) -> list[KeptFrame]:
    frames: list[KeptFrame] = []
    at, end = 0, os.fstat(file.fileno()).st_size
    while at < end or not frames:
        frame = _frame_at(file, at, end)
        if frame is None:
            _check_cut_short(file, at)
            break
        frames.append(frame)
        at = frame.end
    return frames


def _frame_at(file: BinaryIO, at: int, end: int) -> KeptFrame | None:
    """The frame that begins at an offset, according to its note; None if the note or the frame is not complete."""
    file.seek(at)
    head = file.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    magic, length = _HEAD.unpack(head)
    start = at + _HEAD.size + length
    if magic != _SKIPPED or start > end:
        return None
    note = _note_in(file.read(length))
    return None if note is None or start + note.length > end else KeptFrame(at, start, start + note.length, note)


def _note_in(data: bytes) -> _Note | None:
    try:
        return msgspec.json.decode(data, type=_Note)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _check_cut_short(file: BinaryIO, at: int) -> None:
    """Raise `Corrupt` unless what begins there is a last frame that was not written to its end.

    Then the file ends within it, or with zeros that stand for what never reached the disk; and no data in it is whole.
    The first frame is written to its end before the file gets its name.
    """
    file.seek(at)
    rest = file.read()
    if at == 0 or not (_ends_within_frame(rest) or rest.endswith(b"\0")) or _has_whole_data(rest):
        raise _damaged(file)


def _ends_within_frame(rest: bytes) -> bool:
    """Whether this is the beginning of a frame and its note, and not all of it."""
    head = _HEAD.pack(_SKIPPED, 0)[:4]
    if not rest.startswith(head[: len(rest)]):
        return False
    if len(rest) < _HEAD.size:
        return True
    start = _HEAD.size + _HEAD.unpack_from(rest)[1]
    if len(rest) < start:
        return True
    note = _note_in(rest[_HEAD.size : start])
    return note is not None and len(rest) < start + note.length


def _has_whole_data(rest: bytes) -> bool:
    """Whether a frame of data is complete in it, including its checksum."""
    at = rest.find(_DATA)
    while at >= 0 and not zstd.unpacked(rest[at:], _CHUNK):  # zeros after the magic number are an empty frame
        at = rest.find(_DATA, at + 1)
    return at >= 0


def _data_of(file: BinaryIO, frame: KeptFrame) -> bytes | None:
    """The data of a frame; None if it is damaged."""
    file.seek(frame.start)
    data = zstd.unpacked(file.read(frame.note.length), _CHUNK)
    return data if data is not None and sha256(data).hexdigest()[:32] == frame.note.digest else None


def framed(file: BinaryIO, at: int, status: os.stat_result) -> Iterator[bytes]:
    """The content of a file from an offset on as frames, each after its note.

    Raises `OSError` if the agent rewrites the file meanwhile: the copy would have half of the old one and half of the
    new one.
    """
    before = proof_of(file, status.st_size)
    while True:
        file.seek(at)
        data = file.read(min(_CHUNK, status.st_size - at))
        packed = zstd.compressor(_LEVEL, has_checksum=True).compress(data)
        at += len(data)
        proof = proof_of(file, at)
        is_last = at == status.st_size
        has_changed = proof != before if is_last else not data
        if has_changed:
            raise OSError(errno.EBUSY, "its agent wrote it anew while it was read")
        note = _Note(len(packed), at, sha256(data).hexdigest()[:32], proof.hex(), status.st_mtime_ns)
        header = msgspec.json.encode(note)
        yield _HEAD.pack(_SKIPPED, len(header)) + header + packed
        if is_last:
            return


def append(path: str, last: KeptFrame, frames: Iterator[bytes]) -> None:
    """Write more frames after the last sound one, over a frame that was cut short."""
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    with open(fd, "wb") as file:
        file.truncate(last.end)
        file.seek(last.end)
        try:
            file.writelines(frames)
        except OSError:
            file.truncate(last.end)
            raise
        file.flush()
        os.fsync(file.fileno())

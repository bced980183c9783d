"""Messages of protobuf without their schema."""

from __future__ import annotations

from collections.abc import Iterator


def length_fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The number and the bytes of each field of a message that has a length; what cannot be a field ends it."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        match tag & 7:
            case 0:
                _, at = _varint(data, at)
            case 1:
                at += 8
            case 5:
                at += 4
            case 2:
                size, at = _varint(data, at)
                if at + size > len(data):
                    return
                yield tag >> 3, data[at : at + size]
                at += size
            case _:
                return


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 64:
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return value, at
    return 7, len(data)  # no field is of that kind: it ends there

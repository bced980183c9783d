"""Accidents that happen to files in the field, as functions on their bytes."""

from __future__ import annotations

import random

_INSERTED = [b"[" * 5000, b'{"a":' * 3000, b"1e999", b"\xff\xfe", b"\\ud800", b"}{"]


def damaged(data: bytes, chance: random.Random) -> bytes:
    """The same bytes after one accident."""
    if not data:
        return b"\0"
    start, end = sorted((chance.randrange(len(data) + 1), chance.randrange(len(data) + 1)))
    return chance.choice(_ACCIDENTS)(data, start, end, chance)


def _cut_off(data: bytes, start: int, end: int, chance: random.Random) -> bytes:
    return data[:start]


def _with_zeros(data: bytes, start: int, end: int, chance: random.Random) -> bytes:
    return data[:start] + b"\0" * chance.randrange(1, 3000) + data[start:]


def _with_another_byte(data: bytes, start: int, end: int, chance: random.Random) -> bytes:
    return data[:start] + bytes([chance.randrange(256)]) + data[start + 1 :]


def _without_a_part(data: bytes, start: int, end: int, chance: random.Random) -> bytes:
    return data[:start] + data[end:]


def _with_a_part_twice(data: bytes, start: int, end: int, chance: random.Random) -> bytes:
    return data[:end] + data[start:]


def _with_odd_text(data: bytes, start: int, end: int, chance: random.Random) -> bytes:
    return data[:start] + chance.choice(_INSERTED) + data[start:]


def _with_lines_shuffled(data: bytes, start: int, end: int, chance: random.Random) -> bytes:
    lines = data.split(b"\n")
    chance.shuffle(lines)
    return b"\n".join(lines)


def _with_other_types(data: bytes, start: int, end: int, chance: random.Random) -> bytes:
    return data.replace(b'":"', b'":7,"', 1).replace(b"null", b"[]", 3).replace(b"true", b'{"x":1}', 2)


_ACCIDENTS = (
    _cut_off,
    _with_zeros,
    _with_another_byte,
    _without_a_part,
    _with_a_part_twice,
    _with_odd_text,
    _with_lines_shuffled,
    _with_other_types,
)

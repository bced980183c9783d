"""Texts of neighbours kept together: compressed as one, they take two thirds of the room that they take one by one."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from turnlog.catalog.index.texts import MAX_TEXT, damaged

if TYPE_CHECKING:
    from collections.abc import Sequence

SIZE = 64 << 10
"""The number of characters in a bundle: larger ones take less space, but reading one text takes longer."""
_MOST = 5 * MAX_TEXT
_LEVEL = 3
_AT_ONCE = 16


@lru_cache(maxsize=1)
def _tools() -> tuple[Any, Any]:
    from turnlog.log.zstd import compressor, decompressor  # only who shows a hit, or reads something new, needs it

    return compressor(_LEVEL), decompressor()


def packed(bundles: Sequence[list[str]]) -> list[bytes]:
    """Bundles as they are kept: how many bytes each of its texts has, and the texts."""
    data: list[bytes] = []
    for begin in range(0, len(bundles), _AT_ONCE):
        # Many at once: between single ones, a thread would wait for others that run Python.
        contents = [_content(texts) for texts in bundles[begin : begin + _AT_ONCE]]
        made = _tools()[0].multi_compress_to_buffer(contents, threads=1)
        data += [made[number].tobytes() for number in range(len(made))]
    return data


def _content(texts: list[str]) -> bytes:
    encoded = [text.encode() for text in texts]
    return b"%b\n%b" % (" ".join([str(len(text)) for text in encoded]).encode(), b"".join(encoded))


class Bundle:
    """One of them, to take texts out."""

    def __init__(self, data: bytes) -> None:
        from turnlog.log.zstd import unpacked

        content = unpacked(data, _MOST, _tools()[1])
        if content is None:
            raise damaged()
        self._content = content
        begin = content.find(b"\n") + 1
        self._ends = [begin]
        for size in map(int, content[:begin].split()):
            self._ends.append(self._ends[-1] + size)
        if self._ends[-1] != len(content):
            raise damaged()

    def text(self, number: int) -> str:
        """One of the texts."""
        begin, end = self._ends[number : number + 2]
        return self._content[begin:end].decode()

    def without(self, numbers: set[int]) -> bytes | None:
        """The same with nothing in the place of some; None where nothing is left."""
        texts = ["" if number in numbers else self.text(number) for number in range(len(self._ends) - 1)]
        return packed([texts])[0] if any(texts) else None

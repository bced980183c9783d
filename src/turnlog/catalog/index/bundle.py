"""Texts of neighbours kept together: compressed as one, they take two thirds of the room that they take one by one."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from turnlog.catalog.index.texts import MAX_TEXT, damaged

if TYPE_CHECKING:
    from collections.abc import Sequence

SIZE = 64 << 10
"""So many characters make a bundle: larger ones take less room, and longer to get at one text."""
_MOST = 5 * MAX_TEXT
_LEVEL = 3


@lru_cache(maxsize=1)
def _tools() -> tuple[Any, Any]:
    from turnlog.log.zstd import compressor, decompressor  # only who shows a hit, or reads something new, needs it

    return compressor(_LEVEL), decompressor()


def packed(bundles: Sequence[list[str]]) -> list[bytes]:
    """Bundles as they are kept: how many bytes each of its texts has, and the texts."""
    contents: list[bytes] = []
    for texts in bundles:
        encoded = [text.encode() for text in texts]
        contents.append(b"%b\n%b" % (" ".join([str(len(text)) for text in encoded]).encode(), b"".join(encoded)))
    if not contents:
        return []
    # All at once: between single ones, a thread would wait for others that run Python.
    made = _tools()[0].multi_compress_to_buffer(contents, threads=1)
    return [made[number].tobytes() for number in range(len(made))]


class Bundle:
    """One of them, to take texts out."""

    def __init__(self, data: bytes) -> None:
        from turnlog.log.zstd import unpacked

        content = unpacked(data, _MOST, _tools()[1])
        if content is None:
            raise damaged()
        head, _, self._content = content.partition(b"\n")
        self._places: list[tuple[int, int]] = []
        begin = 0
        for size in map(int, head.split()):
            self._places.append((begin, begin + size))
            begin += size
        if begin != len(self._content):
            raise damaged()

    def text(self, number: int) -> str:
        """One of the texts."""
        begin, end = self._places[number]
        return self._content[begin:end].decode()

    def without(self, numbers: set[int]) -> bytes | None:
        """The same with nothing in the place of some; None where nothing is left."""
        texts = ["" if number in numbers else self.text(number) for number in range(len(self._places))]
        return packed([texts])[0] if any(texts) else None

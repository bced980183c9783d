"""Texts of neighbours compressed together: they take two thirds of the space that they take one by one."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from turnlog.catalog.index.keys import MAX_TEXT
from turnlog.catalog.index.sqlite.damage import Damaged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnlog.catalog.index.batch import Doc

SIZE = 64 << 10
"""The number of characters in a bundle: larger ones take less space, but reading one text takes longer."""
_MOST = 5 * MAX_TEXT
_LEVEL = 3
_AT_ONCE = 16


@lru_cache(maxsize=1)
def _tools() -> tuple[Any, Any]:
    from turnlog.log.zstd import compressor, decompressor  # needed only to show a hit, or to index

    return compressor(_LEVEL), decompressor()


def bundled(docs: Sequence[Doc]) -> tuple[list[bytes], list[tuple[int, int]]]:
    """Compressed bundles of texts, sorted by session; and for each text its bundle and its number in it."""
    bundles: list[list[str]] = []
    places = [(0, 0)] * len(docs)
    room = 0
    for doc in sorted(range(len(docs)), key=lambda doc: docs[doc][1:3]):
        if room <= 0:
            bundles.append([])
            room = SIZE
        places[doc] = (len(bundles) - 1, len(bundles[-1]))
        bundles[-1].append(docs[doc].passage.text)
        room -= len(docs[doc].passage.text)
    return packed(bundles), places


def packed(bundles: Sequence[list[str]]) -> list[bytes]:
    """Encode bundles: the size in bytes of each text, and the texts."""
    data: list[bytes] = []
    for begin in range(0, len(bundles), _AT_ONCE):
        # Many at once: between single calls, a thread would wait for the interpreter lock.
        contents = [_content(texts) for texts in bundles[begin : begin + _AT_ONCE]]
        compressed = _tools()[0].multi_compress_to_buffer(contents, threads=1)
        data += [compressed[number].tobytes() for number in range(len(compressed))]
    return data


def _content(texts: list[str]) -> bytes:
    encoded = [text.encode() for text in texts]
    return b"%b\n%b" % (" ".join([str(len(text)) for text in encoded]).encode(), b"".join(encoded))


class Bundle:
    """A stored bundle, from which texts are read."""

    def __init__(self, data: bytes) -> None:
        from turnlog.log.zstd import unpacked

        content = unpacked(data, _MOST, _tools()[1])
        if content is None:
            raise Damaged("a text cannot be unpacked")
        self._content = content
        begin = content.find(b"\n") + 1
        self._ends = [begin]
        for size in map(int, content[:begin].split()):
            self._ends.append(self._ends[-1] + size)
        if self._ends[-1] != len(content):
            raise Damaged("a text cannot be unpacked")

    def text(self, number: int) -> str:
        """The text with this number."""
        begin, end = self._ends[number : number + 2]
        return self._content[begin:end].decode()

    def without(self, numbers: set[int]) -> bytes | None:
        """The bundle with some texts emptied; None if no text is left."""
        texts = ["" if number in numbers else self.text(number) for number in range(len(self._ends) - 1)]
        return packed([texts])[0] if any(texts) else None

"""Another agent's session as entries in memory: read once, then read on; any stretch of it without the rest.

It is for who looks, and quicker than an import by far: nothing is checked, folded or written. Records are numbered as
they come, from 1, as every entry is (an index counts them from 0); their ids are those that an import gives them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from turnlog.catalog.waiter import while_wanted
from turnlog.errors import NotFound, Unavailable
from turnlog.formats import Jump, Record, ResumePoint, format_of
from turnlog.interop.proof import proof
from turnlog.log.block import AnyBlock, ToolResult
from turnlog.log.entry import AnyEntry, Head, Message
from turnlog.log.identity import id_of, key_id
from turnlog.log.payload import digest as digest_of
from turnlog.log.zstd import compressor, decompressor
from turnlog.reader.opening.follow import stamp_of
from turnlog.reader.viewing.conversation import LogGrowth
from turnlog.thread.outline import Outline

if TYPE_CHECKING:
    from turnlog.formats import Problem, Reading, Source, Step
    from turnlog.log.entry import Checkpoint
    from turnlog.reader.viewing.conversation import ConversationPieces

_PACKED_ENTRIES = 128
_CHARACTERS = 1 << 20
_STEPS = 4096
"""How many steps back the place can lie from which reading goes on."""
_Pack = bytes | list[AnyEntry]
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[AnyEntry]).decode


class ForeignLog:
    """The entries of one source, packed: about a fifth of what they take as values."""

    def __init__(self, source: Source, path: str | None = None) -> None:
        self.source = source
        """Where it lies; it is read at `path`, if that is another."""
        self._read_from = replace(source, path=path) if path else source
        self._form = format_of(source.agent)
        self._packer = compressor(-5)  # to read it takes longer than it takes room
        self._stamps = stamp_of(self._read_from.path)
        self._begin()
        self._take(self._read(), while_wanted)

    def _begin(self) -> None:
        self._header_id = ""
        self.title: str | None = None
        self.head = 0
        self.problems: list[Problem] = []
        self.outline = Outline()
        self.blobs: dict[str, bytes] = {}
        self._packs: list[_Pack | Future[bytes]] = []
        self._starts: list[int] = []
        """The first entry of each pack."""
        self._open: list[AnyEntry] = []
        """What is not packed yet."""
        self._open_size = 0
        self._steps = 0
        self._seqs: dict[str, int] = {}
        self._counts: Counter[str] = Counter()
        self._trail: deque[tuple[int, int]] = deque(maxlen=_STEPS)
        """Of the last steps, where the conversation stood before each."""
        self._resume: tuple[ResumePoint, bytes] | None = None
        """Where reading goes on, and the proof that what is before it is as it was."""

    @property
    def session(self) -> None:
        """See `SessionSource`."""

    @property
    def id(self) -> str:
        """Its id where it lies."""
        return self._header_id

    def _read(self) -> Reading:
        try:
            return self._form.read(self._read_from)
        except OSError as error:
            raise Unavailable(f"{self._read_from.path}: {error.strerror or error}") from None

    def grow(self, pieces: ConversationPieces) -> LogGrowth | None:
        """See `SessionSource`."""
        stamps = stamp_of(self._read_from.path)
        if stamps == self._stamps:
            return None
        self._stamps = stamps
        first = self.read_on()
        return None if first is None else LogGrowth(first, pieces.renew(self.outline, first))

    def read_on(self) -> int | None:
        """Take in what was written since; gives the first entry that is new or changed, None if nothing changed."""
        before = [*self._packs, self._open[:]]
        if self._resume is not None and self._form.growth is not None:
            point, prefix = self._resume
            try:
                reading = None
                if proof(self._read_from.path, point.offset) == prefix:
                    reading = self._form.growth(self._read_from, point)
            except OSError as error:
                raise Unavailable(f"{self._read_from.path}: {error.strerror or error}") from None
            head = next((head for step, head in self._trail if step == point.steps), None)
            if point.steps == self._steps:
                head = self.head
            if reading is not None and head is not None:
                self._cut(point.steps, head)
                self._take(reading)
                return self._first_other(before)
        self._begin()
        self._take(self._read())
        return self._first_other(before)

    def _first_other(self, before: list[_Pack | Future[bytes]]) -> int | None:
        now = [*self._packs, self._open]
        same = 0
        while same < min(len(before), len(now)) and before[same] == now[same]:
            same += 1
        old, new = (chain.from_iterable(map(_unpacked, packs[same:])) for packs in (before, now))
        for was, is_now in zip_longest(old, new):
            if was != is_now:
                entry = is_now or was
                return None if entry is None else entry.seq
        return None

    def _cut(self, steps: int, head: int) -> None:
        """Remove everything from a step on."""
        while self._steps - len(self._open) > steps:
            self._starts.pop()
            self._open = [*_unpacked(self._packs.pop()), *self._open]
        del self._open[len(self._open) - (self._steps - steps) :]
        self._open_size = 0
        while self._trail and self._trail[-1][0] >= steps:
            self._trail.pop()
        self._seqs = {name: seq for name, seq in self._seqs.items() if seq <= steps}
        self._counts = _counts_in(self._seqs)
        self._steps, self.head = steps, head
        self.outline.cut(steps)

    def _take(self, reading: Reading, steps: Callable[[Iterable[Step]], Iterable[Step]] = iter) -> None:
        self._header_id = reading.header.id
        try:
            with ThreadPoolExecutor(1) as packing:
                for step in steps(reading.steps):
                    self._trail.append((self._steps, self.head))
                    self._steps += 1
                    self._add(self._entry(step, self._steps), packing)
        except OSError as error:
            raise Unavailable(f"{self._read_from.path}: {error.strerror or error}") from None
        finally:
            self._packs = [pack.result() if isinstance(pack, Future) else pack for pack in self._packs]
        self.title = reading.header.title or self.title
        self.problems = reading.problems
        point = reading.mark
        self._resume = None if point is None else (point, proof(self._read_from.path, point.offset))

    def _entry(self, step: Step, seq: int) -> AnyEntry:
        if isinstance(step, Jump):
            left, self.head = self.head, self._seqs.get(key_id(step.to), 0) if step.to else 0
            name = step.key or f"jump.{seq}"
            return Head(id=name, seq=seq, to=self.head, asof=seq - 1, why=step.why, left=left, at=step.at)
        name = id_of(step.key, step.entry, self._counts)
        self._seqs[name] = seq
        fields: dict[str, Any] = {"id": name, "seq": seq}
        if step.entry.is_node:
            fields["parent"], self.head = self.head, seq
        for field, key in step.names.items():
            fields[field] = self._seqs.get(key_id(key), 0)
        self._keep_blobs(step)
        return replace(step.entry, **fields)

    def _keep_blobs(self, record: Record) -> None:
        for data in record.blobs:
            self.blobs[digest_of(data)] = data

    def _add(self, entry: AnyEntry, packing: Executor) -> None:
        self._open.append(entry)
        self._open_size += self.outline.take(entry)
        if len(self._open) >= _PACKED_ENTRIES or self._open_size >= _CHARACTERS:
            self._starts.append(self._open[0].seq)
            self._packs.append(self._packed(self._open, packing))
            self._open, self._open_size = [], 0

    def _packed(self, entries: list[AnyEntry], packing: Executor) -> Future[bytes] | list[AnyEntry]:
        """Compressed beside the reading, which takes a third longer if it waits for that."""
        try:
            return packing.submit(self._packer.compress, _encode(entries))
        except (UnicodeEncodeError, OverflowError):
            return entries  # what is no text, or too large a number, stays as it is

    def forward(self, after: int = 0, before: int | None = None) -> Iterator[AnyEntry]:
        """Entries with `after < seq < before`, oldest first."""
        for number in range(max(0, bisect_right(self._starts, after + 1) - 1), len(self._packs)):
            if before is not None and self._starts[number] >= before:
                return
            yield from _between(_unpacked(self._packs[number]), after, before)
        yield from _between(self._open, after, before)

    def checkpoints(self) -> list[Checkpoint]:
        """See `SessionSource`: other agents take none that could be compared."""
        return []

    def blob(self, digest: str) -> bytes:
        """See `SessionSource`."""
        if digest in self.blobs:
            return self.blobs[digest]
        for entry in self.forward():
            for block in blocks_in(entry):
                data = getattr(block, "data", None)
                if isinstance(data, bytes) and digest_of(data) == digest:
                    return data
        raise NotFound(f"no blob {digest:.80} in session {self.id}")

    def find(self, name: str) -> int | None:
        """See `SessionSource`."""
        return self._seqs.get(name)


def _counts_in(ids: Iterable[str]) -> Counter[str]:
    """How many records without a key there are of each content; see `id_of`."""
    counts: Counter[str] = Counter()
    for id in ids:
        content, _, number = id.rpartition(".")
        if number.isascii() and number.isdecimal() and len(number) < 19:
            counts[content] = max(counts[content], int(number))
    return counts


def blocks_in(entry: AnyEntry) -> Iterator[AnyBlock]:
    """Every block of a message, those inside a result included."""
    for block in entry.blocks if isinstance(entry, Message) else ():
        yield block
        if isinstance(block, ToolResult) and isinstance(block.content, list):
            yield from block.content


def _between(entries: list[AnyEntry], after: int, before: int | None) -> Iterator[AnyEntry]:
    return (entry for entry in entries if entry.seq > after and (before is None or entry.seq < before))


def _unpacked(pack: _Pack | Future[bytes]) -> list[AnyEntry]:
    pack = pack.result() if isinstance(pack, Future) else pack
    return pack if isinstance(pack, list) else _decode(decompressor().decompress(pack))

"""Appending the lines of another copy of a log to this log's file, unchanged."""

from __future__ import annotations

from collections.abc import Iterator

from turnlog.errors import Corrupt
from turnlog.log.assemble import forward
from turnlog.log.codec import Damage, is_verified
from turnlog.log.draft import to_ms
from turnlog.log.entry import AnyEntry, is_wide
from turnlog.log.written import with_hints
from turnlog.store.files.lines import Read, last_newline, lines
from turnlog.store.files.logfile import LogFile
from turnlog.store.files.tail import PlacedLines, Tail
from turnlog.store.refusal import ends_elsewhere


def adopt(file: LogFile, bare: list[bytes], entries: list[AnyEntry], after: int) -> None:
    """Under the lock: append lines after entry `after`, batch by batch."""
    tail = file.current_tail()
    if tail.last != after:
        raise ends_elsewhere(file.id, tail.last, after)
    if tail.damaged:
        tail = _without_remains(file, tail)
    if tail.damaged and not is_verified(bare[0]):
        raise Corrupt(
            f"session {file.id} ends in {tail.damaged} bytes that an edited line cannot seal off",
            hint="repair it with `turnlog doctor --repair`",
        )
    for begin, end in _batches(entries):
        file.write(tail, placed(tail, file.handle.read, bare[begin:end], entries[begin:end]))
        if end < len(entries):
            file.sync_now(tail)


def placed(tail: Tail, read: Read, bare: list[bytes], entries: list[AnyEntry]) -> PlacedLines:
    """Return bare lines with the offsets that they need after that end."""
    torn = tail.damaged > 0 and read(1, tail.end - 1) != b"\n"
    sealed = tail.damaged + torn if tail.damaged else 0
    out, wide, at = [b"\n"] if torn else [], tail.wide, tail.at
    offset = tail.end + torn
    for line, entry in zip(bare, entries, strict=True):
        hinted = with_hints(line, wide=wide, sealed=sealed) + b"\n"
        if is_wide(entry):
            wide = offset
        out.append(hinted)
        offset, sealed = offset + len(hinted), 0
        at = at if entry.at is None else max(at, to_ms(entry.at))
    return PlacedLines(b"".join(out), entries, {entry.id: entry.seq for entry in entries}, at, wide)


def _without_remains(file: LogFile, tail: Tail) -> Tail:
    """Truncate an unfinished batch: it was never acknowledged, and its numbers are needed now."""
    read = file.handle.read
    items = forward(lines(read, tail.good, last_newline(read, tail.end)), last=tail.last)
    remains = [item.offset for item in items if isinstance(item, Damage) and item.kind == "unfinished"]
    return file.cut_to(min(remains)) if remains else tail


def _batches(entries: list[AnyEntry]) -> Iterator[tuple[int, int]]:
    """Yield the begin and end index of each batch; an entry without a batch is on its own."""
    begin = 0
    for end, entry in enumerate(entries[1:], 1):
        before = entries[begin]
        if not before.batch or (entry.batch, entry.seq + entry.more) != (before.batch, before.seq + before.more):
            yield begin, end
            begin = end
    yield begin, len(entries)

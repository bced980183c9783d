"""Entries with their lines: every entry gets its own line, whatever else is in the log, in bounded memory."""

import time
import tracemalloc
from collections import deque

import pytest

from tests.log.test_assemble import line
from turnlog.log.codec import Damage
from turnlog.log.written import placed_lines


def rows(*lines):
    offset = 0
    for one in lines:
        yield offset, one
        offset += len(one) + 1


def test_every_entry_has_its_own_line_beside_damage():
    a, b, c, d, e = (line(seq) for seq in (1, 2, 3, 4, 5))
    edited = line(6, edited=True)
    lines = [a, b"garbage", b"", b + c, a, b'{"type":"note","to' + d, b"\0" * 9, edited, e]
    items = list(placed_lines(rows(*lines)))
    placed = {entry.seq: (offset, text) for offset, entry, text in (i for i in items if not isinstance(i, Damage))}
    starts = [offset for offset, _ in rows(*lines)]
    assert {seq: text for seq, (_, text) in placed.items()} == {1: a, 2: b, 3: c, 4: d, 5: e}
    assert placed[3][0] == starts[3] + len(b)
    assert {item.kind for item in items if isinstance(item, Damage)} == {"garbled", "spliced", "order", "nul", "edited"}


TORN = b'{"type":"note","text":"' + b"x" * 1000


@pytest.mark.parametrize(
    "bad", [b"x" * 1000, TORN, b" " * 1000, line(1, id="x" * 1000)], ids=["garbled", "torn", "blank", "repeated"]
)
def test_many_lines_without_an_entry_are_not_held(bad):
    """Their bytes are let go before the next entry comes."""
    lines = rows(line(1), *(bytearray(bad) for _ in range(8_000)))
    copies = ((offset, bytes(one)) for offset, one in lines)  # a reader makes each line anew
    tracemalloc.start()
    try:
        deque(placed_lines(copies), maxlen=0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 << 20


def test_a_line_that_thousands_of_entries_share_is_looked_at_once():
    """A tool that takes the ends of all lines away leaves such a log. The time grew with the square of the entries."""
    alone = [line(seq) for seq in range(1, 5001)]
    began = time.monotonic()
    items = [item for item in placed_lines(rows(b"".join(alone))) if not isinstance(item, Damage)]
    assert [text for _, _, text in items] == alone
    assert time.monotonic() - began < 20

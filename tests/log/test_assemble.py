"""What counts and what does not, rule by rule, the same both ways."""

import pytest

from turnlog import Note
from turnlog.log import assemble
from turnlog.log.assemble import backward, forward
from turnlog.log.codec import Damage, seal
from turnlog.log.draft import prepare


def line(seq, *, batch=0, more=0, sealed=0, edited=False, id=None):
    draft, _ = prepare(Note(text="t", id=id or f"e{seq}"))
    stamps = f'"seq":{seq}'
    stamps += f',"more":{more},"batch":{batch}' if batch else ""
    stamps += f',"sealed":{sealed}' if sealed else ""
    made = seal(draft.body, draft.start, stamps)[:-1]
    return made.replace(b'"text":"t"', b'"text":"T"') if edited else made


def both_ways(rows):
    """Which entries count, and what is wrong with the others: the same whichever way one reads."""
    offset, lines = 0, []
    for row in rows:
        lines.append((offset, row))
        offset += len(row) + 1
    forwards, backwards = list(forward(lines)), list(backward(lines[::-1]))

    def split(items):
        counted = [item[1].seq for item in items if not isinstance(item, Damage)]
        damage = [item for item in items if isinstance(item, Damage)]
        assert all(item.length > 0 for item in damage)
        return counted, sorted((item.kind, item.seq or 0) for item in damage)

    counted, damage = split(forwards)
    counted_back, damage_back = split(backwards)
    assert counted_back == counted[::-1]
    assert damage_back == damage
    return counted, damage


@pytest.mark.parametrize(
    ("seqs", "counted", "misplaced"),
    [
        ([1, 2, 3], [1, 2, 3], []),
        ([1, 5, 9], [1, 5, 9], []),  # gaps are legal
        ([1, 2, 2, 3], [1, 2, 3], [2]),
        ([1, 2, 3, 1], [1, 2, 3], [1]),
        ([3, 1, 2, 3], [1, 2, 3], [3]),
        ([1, 9, 2, 3, 9], [1, 2, 3, 9], [9]),
        ([1, 2, 3, 4, 2, 5], [1, 2, 3, 4, 5], [2]),
        ([5, 1, 2, 3], [1, 2, 3], [5]),
        ([1, 3, 2, 4], [1, 3, 4], [2]),
        ([2, 1], [2], [1]),
        ([1, 9, 0 + 1, 2, 3], [1, 2, 3], [1, 9]),
        ([1, 2, 3, 1, 2, 3], [1, 2, 3], [1, 2, 3]),
        ([], [], []),
        ([7], [7], []),
    ],
)
def test_seq_only_grows_and_one_line_out_of_place_costs_no_other(seqs, counted, misplaced):
    assert both_ways([line(seq) for seq in seqs]) == (counted, [("order", seq) for seq in misplaced])


@pytest.mark.parametrize("place", range(5))
@pytest.mark.parametrize("seq", [3, 5, 7, 100])
def test_an_edited_line_counts_if_it_fits_and_has_no_say_over_the_others(place, seq):
    verified = [1, 2, 4, 6]
    rows = [line(one) for one in verified]
    rows.insert(place, line(seq, edited=True))
    fits = [0, *verified][place] < seq < [*verified, 1 << 60][place]
    counted, damage = both_ways(rows)
    assert counted == (sorted([*verified, seq]) if fits else verified)
    assert damage == [("edited", seq)] + ([] if fits else [("order", seq)])


def test_many_edited_lines_in_a_row_keep_their_order():
    rows = [line(1), *(line(seq, edited=True) for seq in (5, 3, 7, 6, 8)), line(9)]
    counted, damage = both_ways(rows)
    assert counted == [1, 5, 7, 8, 9]
    assert [seq for kind, seq in damage if kind == "order"] == [3, 6]


@pytest.mark.parametrize("around", [[], [1, 99]], ids=["alone", "between others"])
@pytest.mark.parametrize("many", [6, 7, 20])
def test_more_edited_lines_than_are_held_back_are_all_read(monkeypatch, many, around):
    monkeypatch.setattr(assemble, "_MOST_EDITED", 5)
    seqs = list(range(2, 2 + many))
    rows = [line(seq, edited=seq not in around) for seq in sorted(seqs + around)]
    counted, damage = both_ways(rows)
    assert counted == sorted(seqs + around)
    assert damage == [("edited", seq) for seq in seqs]


def test_a_log_of_edited_lines_only_is_read():
    counted, damage = both_ways([line(seq, edited=True) for seq in range(1, 30)])
    assert counted == list(range(1, 30))
    assert {kind for kind, _ in damage} == {"edited"}


def batch(first, size, **fields):
    return [line(first + index, batch=size, more=size - 1 - index, **fields) for index in range(size)]


def test_a_whole_batch_counts():
    assert both_ways([line(1), *batch(2, 3), line(5)]) == ([1, 2, 3, 4, 5], [])
    assert both_ways([*batch(1, 2), *batch(3, 2)]) == ([1, 2, 3, 4], [])


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_an_incomplete_batch_at_the_end_does_not_count(missing):
    rows = [line(1), *batch(2, 3)]
    del rows[1 + missing]
    left = [seq for seq in (2, 3, 4) if seq != 2 + missing]
    assert both_ways(rows) == ([1], [("unfinished", seq) for seq in left])


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_a_batch_that_was_damaged_later_keeps_its_other_lines(missing):
    rows = [line(1), *batch(2, 3), line(5)]
    del rows[1 + missing]
    assert both_ways(rows) == ([seq for seq in (1, 2, 3, 4, 5) if seq != 2 + missing], [])


def test_a_batch_that_the_next_line_sealed_off_never_counts():
    torn = batch(2, 3)[:2]
    size = sum(len(row) + 1 for row in torn)
    assert both_ways([line(1), *torn, line(9, sealed=size)]) == ([1, 9], [("unfinished", 2), ("unfinished", 3)])
    assert both_ways([line(1), *torn, line(9, sealed=size), line(10)])[0] == [1, 9, 10]
    assert both_ways([line(1), *torn, b"garbage", line(9, sealed=size + 8)])[0] == [1, 9]


def test_what_a_seal_does_not_reach_counts():
    torn = batch(2, 3)[:2]
    assert both_ways([line(1), *torn, b"garbage", line(9, sealed=8)])[0] == [1, 2, 3, 9]


def test_a_batch_may_follow_a_seal():
    sealed = [line(9, batch=2, more=1, sealed=8), line(10, batch=2, more=0)]
    assert both_ways([line(1), b"garbage", *sealed])[0] == [1, 9, 10]


def test_a_copy_of_one_line_of_a_batch_does_not_break_it():
    rows = batch(2, 3)
    for place in range(4):
        for copied in range(3):
            pasted = [*rows[:place], rows[copied], *rows[place:]]
            counted, damage = both_ways([line(1), *pasted])
            assert counted == [1, 2, 3, 4], (place, copied)
            assert damage == [("order", copied + 2)]


def test_blank_lines_are_nothing():
    assert both_ways([b"", line(1), b"\r", b"   ", line(2), b""]) == ([1, 2], [])


def test_a_reader_that_begins_in_the_middle_counts_from_there():
    rows = [(index * 200, line(seq)) for index, seq in enumerate([4, 5, 6])]
    found = [item[1].seq for item in forward(rows, last=4) if not isinstance(item, Damage)]
    assert found == [5, 6]
    assert [item[1].seq for item in backward(rows[::-1], before=6)] == [5, 4]

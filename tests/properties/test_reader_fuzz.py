"""Whatever happens to the bytes of a log: only typed errors, the same entries both ways, and writing goes on."""

import functools
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnlog import Damage, Entry, Message, Note, Set, Text, TurnlogError
from turnlog.log.assemble import backward, forward
from turnlog.log.codec import Flawed, Unreadable, decode, salvage
from turnlog.log.draft import to_ms, to_text
from turnlog.log.entry import Start
from turnlog.store import files, memory
from turnlog.store.files.lines import last_newline, lines, lines_back
from turnlog.store.files.reading import newest_first, oldest_first
from turnlog.testing import ManualClock, draft, message_draft
from turnlog.testing import undamaged_entries as read_log

NEVER = 1 << 63


@functools.cache
def original() -> bytes:
    """A log with batches and facts, the same on every run, and enough of it that a search has something to halve."""
    words = random.Random(7)
    store = memory.connect(clock=ManualClock())
    log = store.create("victim", [draft(Start(id="victim", title="Victim"))])
    for index in range(100):
        ids = {"id": f"e{index}"}
        if index % 6 == 0:
            batch = [
                Note(text="n", id=f"n{index}"),
                Set(key="k", value=index, id=f"s{index}"),
                Message(role="user", **ids),
            ]
        elif index % 13 == 0:
            batch = [Set(key="title", value=str(index), all={"title": str(index)}, **ids)]
        else:
            batch = [Message(role="user", blocks=[Text(text=f"{index} " + "wörd ☃ " * words.randrange(250))], **ids)]
        log.append([draft(entry) for entry in batch], after=NEVER, head=index)
    return b"".join(line_of(entry) for entry in read_log(log))


def line_of(entry: Entry) -> bytes:
    """The line that a store of files would have written."""
    stamps = f'"seq":{entry.seq},"at":"{to_text(to_ms(entry.at))}"'
    if entry.parent is not None:
        stamps += f',"parent":{entry.parent}'
    if entry.batch:
        stamps += f',"more":{entry.more},"batch":{entry.batch}'
    return draft(entry).sealed(stamps)[0]


@functools.cache
def original_lines() -> tuple[bytes, ...]:
    return tuple(original().split(b"\n")[:-1])


@functools.cache
def original_entries() -> tuple[Entry, ...]:
    return tuple(read(original()))


def reader(data: bytes):
    return lambda length, offset: data[offset : offset + length]


def read(data: bytes, **options) -> list[Entry]:
    source = forward(lines(reader(data), 0, last_newline(reader(data), len(data))), **options)
    return [item[1] for item in source if not isinstance(item, Damage)]


def read_back(data: bytes) -> list[Entry]:
    source = backward(lines_back(reader(data), last_newline(reader(data), len(data))))
    return [item[1] for item in source if not isinstance(item, Damage)]


# ── ways to harm it ───────────────────────────────────────────────────────────────────────────────


def flip(data, place, number):
    return data[:place] + bytes([data[place] ^ (1 << number % 8)]) + data[place + 1 :]


def cut_out(data, place, number):
    return data[:place] + data[place + 1 + number % 900 :]


def zero(data, place, number):
    length = min(1 + number % 5000, len(data) - place)
    return data[:place] + b"\0" * length + data[place + length :]


def put_in(data, place, number):
    pieces = [b"\n", b"}{", b'"', b"{", b"\\", b"\xff", b"\0" * 40, b'{"type":"', b',"c":"', b"\r", b"\n\n", b"1e999"]
    return data[:place] + pieces[number % len(pieces)] + data[place:]


def put_in_noise(data, place, number):
    return data[:place] + random.Random(number).randbytes(1 + number % 60) + data[place:]


def glue(data, place, number):
    newline = data.find(b"\n", place)
    return data if newline < 0 else data[:newline] + data[newline + 1 :]


def renumber(data, place, number):
    found = data.find(b'"seq":', place)
    if found < 0:
        return data
    end = data.find(b",", found)
    return data[: found + 6] + str(number % 300).encode() + data[end:]


def overwrite_with_another_part(data, place, number):
    source = number % len(data)
    piece = data[source : source + number % 400]
    return data[:place] + piece + data[place + len(piece) :]


LOCAL = [flip, cut_out, zero, put_in, put_in_noise, glue, renumber]
"""These harm the place where they happen, and nothing else."""


def harmed(ways, most):
    """The log, harmed in a few places."""
    step = st.tuples(st.sampled_from(ways), st.integers(0, 2**31), st.integers(0, 2**31))

    def apply(steps):
        data = original()
        for way, place, number in steps:
            if data:
                data = way(data, place % len(data), number)
        return data

    return st.lists(step, min_size=1, max_size=most).map(apply)


def check_reading(data: bytes) -> list[Entry]:
    entries = read(data)
    assert read_back(data) == entries[::-1]
    seqs = [entry.seq for entry in entries]
    assert seqs == sorted(set(seqs))
    for seq in (*random.Random(len(data)).sample(range(160), 5), *(seqs[-2:])):
        after = oldest_first(reader(data), len(data), after=seq, before=NEVER)
        assert [item for item in after if isinstance(item, Entry)] == [entry for entry in entries if entry.seq > seq]
        before = newest_first(reader(data), len(data), after=0, before=seq)
        assert [item for item in before if isinstance(item, Entry)] == [e for e in entries[::-1] if e.seq < seq]
    return entries


def missing(data: bytes, entries: list[Entry]) -> list[Entry]:
    """Entries whose lines are there to the letter, and which are not given back."""
    there = set(data[: data.rfind(b"\n") + 1].split(b"\n"))
    given = {entry.id for entry in entries}
    lost = [
        e for e, line in zip(original_entries(), original_lines(), strict=True) if line in there and e.id not in given
    ]
    # Of a batch at the very end of which a line is lost, nobody can tell whether it was ever whole.
    return [entry for entry in lost if not (entry.batch and (not entries or entry.seq > entries[-1].seq))]


@settings(max_examples=150)
@given(harmed(LOCAL, 6))
def test_what_is_not_harmed_is_read_both_ways(data):
    entries = check_reading(data)
    assert missing(data, entries) == []


@settings(max_examples=60)
@given(harmed([overwrite_with_another_part, cut_out, flip], 3))
def test_parts_of_a_log_over_other_parts_are_only_damage(data):
    entries = read(data)
    seqs = [entry.seq for entry in entries]
    assert seqs == sorted(set(seqs))
    assert [entry.seq for entry in read_back(data)] == sorted((e.seq for e in read_back(data)), reverse=True)


@settings(max_examples=80)
@given(st.integers(0, 10**6), st.integers(0, 10**6), st.booleans())
def test_one_line_in_the_wrong_place_costs_no_other(source, target, is_copy):
    rows = list(original_lines())
    source, target = source % len(rows), target % (len(rows) + 1)
    line = rows[source]
    if not is_copy:
        rows[source] = b""
    rows.insert(target, line)
    data = b"\n".join(rows) + b"\n"
    entries = check_reading(data)
    lost = [entry.seq for entry in original_entries() if entry not in entries]
    moved = original_entries()[source]
    if is_copy or not moved.batch:
        allowed = set() if is_copy else {moved.seq, moved.seq - 1, moved.seq + 1}
        assert set(lost) <= allowed
        assert len(lost) <= 1


@settings(max_examples=40)
@given(harmed([*LOCAL, overwrite_with_another_part], 5), st.integers(0, 3000))
def test_writing_goes_on_after_anything(tmp_path_factory, data, cut):
    folder: Path = tmp_path_factory.mktemp("fuzz")
    store = files.connect(str(folder), durability="flush")
    store.create("victim", [message_draft("x")]).close()
    path = folder / "sessions" / "victim.jsonl"
    data = data[: len(data) - cut]
    path.write_bytes(data)
    try:
        log = store.open("victim")
    except TurnlogError as error:
        assert error.code == "corrupt"  # line 1 is readable and says another id
        return
    before = [item for item in log.read() if isinstance(item, Entry)]
    added = log.append([message_draft("one")], after=NEVER, head=0)
    added += log.append([message_draft("two"), message_draft("three")], after=NEVER, head=added[0].seq)
    log.close()
    everything = [item for item in log.read() if isinstance(item, Entry)]
    assert everything[-3:] == added
    assert added[0].seq > max((entry.seq for entry in before), default=0)
    assert [entry.id for entry in everything[:-3]][: len(before)] == [entry.id for entry in before]
    assert [item for item in log.read(reverse=True) if isinstance(item, Entry)] == everything[::-1]
    assert path.read_bytes().startswith(data)
    assert next(iter(store.listing())).last == added[-1]
    log.close()


@settings(max_examples=180)
@given(
    st.one_of(
        st.binary(max_size=300),
        st.text(max_size=200).map(str.encode),
        st.from_regex(rb'\{"type":"[a-z]+","seq":[0-9]{1,22},"id":".*"\}'),
    )
)
def test_any_bytes_are_an_entry_or_unreadable(line):
    line = line.replace(b"\n", b"")
    try:
        item = decode(line)
    except Unreadable as error:
        assert error.kind in {"shape", "garbled", "torn", "nul", "deep"}
    else:
        entry = item.entry if isinstance(item, Flawed) else item
        assert entry.seq > 0
        assert entry.unverified
    assert all(start >= 0 and length > 0 for start, length, _ in salvage(line))


@settings(max_examples=100)
@given(st.binary(max_size=3000).map(lambda data: data.replace(b"\x01", b"\n")))
def test_any_bytes_are_a_log(data):
    assert check_reading(data) == []


def test_the_log_that_is_harmed_is_sound():
    entries = check_reading(original())
    assert len(entries) == len(original_lines()) > 120
    assert len(original()) > 100_000
    assert sum(1 for entry in entries if entry.batch) > 30
    with pytest.raises(Unreadable):
        decode(b"")

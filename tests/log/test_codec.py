"""Entries to lines and back: nothing is lost, and nothing that was changed goes unnoticed."""

import json
import time
import zlib
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.log.entries import entries, filled, line_of, messages
from turnlog import Compaction, Message, Note, Ref, Text, Usage
from turnlog.errors import Invalid
from turnlog.log.codec import CHECKSUM, Flawed, StrictDecoder, Unreadable, decode, is_verified, salvage, with_checksum
from turnlog.log.draft import prepare, to_ms, to_text
from turnlog.log.entry import (
    ENTRIES,
    AnyEntry,
    Checkpoint,
    Child,
    Custom,
    Drop,
    Edit,
    Entry,
    Fold,
    Head,
    Set,
    Spent,
    Start,
    Turn,
    Uncompact,
    Unknown,
    Writer,
)
from turnlog.log.part import Fork, Spawned  # fmt: skip
from turnlog.log.payload import used_blobs

AT = datetime(2026, 11, 15, 7, 0, 12, 345000, tzinfo=UTC)

ONE_OF_EACH = [
    Message(role="user", blocks=[Text(text="t")], meta={"a": 1}),
    Compaction(
        replacement=[Message(role="user", blocks=[Text(text="s")]), Ref(3)], keep=4, usage=Usage(input_tokens=1)
    ),
    Uncompact(compaction=3),
    Edit(entry=3, blocks=[Text(text="t")]),
    Custom(kind="x.y", data=[1], blocks=[Text(text="t")], role="assistant"),
    Start(workspace="/w", agent="a", title="t", labels={"a": "b"}, hidden=True, fork=Fork("p", 3, "i", "n")),
    Start(spawned=Spawned("p", "c", "r")),
    Turn(state="failed", error="e", turn="t"),
    Checkpoint(label="l"),
    Head(to=3, asof=4, why="rewind", left=7, undoes=2, facts={"k": [1]}, system={2: 5}),
    Set(key="k", value={"a": None}, all={"title": "t"}),
    Set(key="k", unset=True),
    Spent(usage=Usage(output_tokens=3, cost_micros=0), model="m", why="w", request="r"),
    Note(text="t", data=[None]),
    Child(session="s", call="c", agent="a"),
    Writer(word="w", pid=1, started="s", host="h", boot="b", version="v"),
    Fold(upto=3, state={"seq": 3}),
    Drop(),
]


@pytest.mark.parametrize("entry", ONE_OF_EACH, ids=lambda entry: entry.type)
def test_every_kind_of_entry_comes_back_as_it_was(entry):
    back = decode(line_of(entry)[:-1])
    assert back == msgspec.structs.replace(entry, seq=7, at=AT)
    assert type(back) is type(entry)


@pytest.mark.parametrize("cls", ENTRIES.values(), ids=lambda cls: cls.__name__)
def test_every_field_of_every_kind_of_entry_comes_back_as_it_was(cls):
    entry = filled(cls)
    own = set(cls.__struct_fields__) - set(Entry.__struct_fields__)
    assert not [name for name in own if getattr(entry, name) in (None, "", [], {})]
    assert decode(line_of(entry)[:-1]) == msgspec.structs.replace(entry, seq=7, at=AT, blobs=used_blobs(entry))


@settings(max_examples=200)
@given(entries)
def test_any_entry_comes_back_as_it_was(entry):
    line = line_of(entry)
    assert line.count(b"\n") == 1
    assert is_verified(line[:-1])
    assert decode(line[:-1]) == msgspec.structs.replace(entry, seq=7, at=AT)
    json.loads(line)


@settings(max_examples=60)
@given(messages, st.data())
def test_any_change_of_a_line_is_noticed(entry, data):
    line = line_of(msgspec.structs.replace(entry, id="i"))[:-1]  # an id of its own is not always as long
    place = data.draw(st.integers(0, len(line) - 1))
    for byte in {line[place] ^ (1 << bit) for bit in range(8)}:
        changed = line[:place] + bytes([byte]) + line[place + 1 :]
        assert not is_verified(changed)
        try:
            found = decode(changed)
        except Unreadable:
            continue
        assert isinstance(found, Flawed)
        assert found.entry.unverified


@settings(max_examples=60)
@given(entries, st.integers(0, 10**6))
def test_a_beginning_of_a_line_is_never_an_entry(entry, size):
    line = line_of(entry)[:-1]
    piece = line[: size % len(line)]
    with pytest.raises(Unreadable):
        decode(piece)
    assert salvage(piece) == []


@settings(max_examples=60)
@given(st.lists(entries, min_size=2, max_size=4))
def test_lines_without_newlines_between_them_are_all_found(drawn):
    lines = [line_of(entry, index + 1)[:-1] for index, entry in enumerate(drawn)]
    glued = b"".join(lines)
    found = salvage(glued)
    assert [glued[start : start + length] for start, length, _ in found] == lines
    assert [entry.seq for _, _, entry in found] == list(range(1, len(lines) + 1))


@settings(max_examples=100)
@given(entries, entries, st.integers(0, 10**6))
def test_an_entry_behind_a_torn_one_is_found_unless_it_could_be_part_of_it(torn, whole, size):
    beginning = line_of(torn, 1)[:-1]
    beginning = beginning[: size % len(beginning)]
    line = line_of(whole, 2)[:-1]
    found = [entry.seq for _, _, entry in salvage(beginning + line)]
    assert found in ([2], []) if beginning[-1:] in (b":", b"[", b",") else found == [2]


@settings(max_examples=60)
@given(entries)
def test_an_entry_inside_the_data_of_another_is_never_found(inner):
    """However the line is torn, glued or ended."""
    evil = line_of(inner, 99)[:-1]
    outer = line_of(Custom(kind="x.y", data={"list": [msgspec.Raw(evil)]}, id="outer"), 5)[:-1]
    assert evil in outer
    end = outer.index(evil) + len(evil)
    after = line_of(Note(text="after"), 6)[:-1]
    for line in (outer[:end], outer[: end + 1], outer[: end + 2], outer[:end] + after, outer[: end + 1] + after):
        assert 99 not in [entry.seq for _, _, entry in salvage(line)]


def test_a_field_of_a_later_version_is_kept_to_the_letter():
    line = line_of(Note(text="t"))[:-17] + b',"later":{"b":1.50,"a":[]}}'
    sealed = line[:-1] + b',"c":"%08x"}' % zlib.crc32(line[:-1])
    entry = decode(sealed)
    assert isinstance(entry, Note)
    assert bytes(entry.unknown["later"]) == b'{"b":1.50,"a":[]}'
    assert b'"later":{"b":1.50,"a":[]}' in line_of(entry)


def test_an_unknown_kind_is_kept_to_the_letter():
    text = b'{"type":"later","seq":3,"id":"i","x":{"b":1.50,"a":[1e400]}}'
    entry = decode(text[:-1] + b',"c":"%08x"}' % zlib.crc32(text[:-1]))
    assert isinstance(entry, Unknown)
    assert (entry.kind, entry.seq, entry.id) == ("later", 3, "i")
    assert b'"x":{"b":1.50,"a":[1e400]}' in line_of(entry)
    assert decode(line_of(entry)[:-1]).json.count('"id":"i"') == 1


@pytest.mark.parametrize(
    "text",
    [
        b'{"type":"later","seq":3,"id":"i","x":"\xff"}',
        b'{"type":"note","seq":3,"id":"i","text":"t","later":"\xff"}',
        b'{"type":"message","seq":3,"id":"i","role":"user","blocks":[{"type":"later","x":"\xff"}]}',
        b'{"type":"message","seq":3,"id":"i","role":"user","blocks":[{"type":"text","text":"t","later":"\xff"}]}',
    ],
)
def test_what_a_later_version_wrote_in_bytes_that_are_not_unicode_is_read_with_stand_ins(text):
    flawed = decode(text[:-1] + b',"c":"%08x"}' % zlib.crc32(text[:-1]))
    assert isinstance(flawed, Flawed)
    assert (flawed.kind, flawed.entry.seq, flawed.entry.unverified) == ("utf8", 3, True)
    assert "\ufffd" in flawed.entry.to_json()


@pytest.mark.parametrize("kind", [b"[]", b"{}", b"7", b"null"])
def test_a_block_whose_kind_is_no_text_is_kept_to_the_letter(kind):
    text = b'{"type":"message","seq":3,"id":"i","role":"user","blocks":[{"type":%b,"x":1}]}' % kind
    entry = decode(text[:-1] + b',"c":"%08x"}' % zlib.crc32(text[:-1]))
    assert isinstance(entry, Message)
    assert entry.blocks[0].json.encode() == b'{"type":%b,"x":1}' % kind


@given(st.integers(0, 253402300799999))
def test_times_are_written_as_they_are_read(ms):
    text = to_text(ms)
    assert text.endswith("Z") and len(text) == 24
    assert to_ms(datetime.fromisoformat(text)) == ms


def test_an_entry_carries_no_more_than_it_needs():
    draft, blobs = prepare(Note(text="t", id="i"))
    assert (draft.body, blobs) == (b'{"type":"note","text":"t","id":"i"}', {})
    assert (draft.is_node, draft.is_fence, draft.is_wide) == (False, False, False)


@pytest.mark.parametrize(
    "cls", [cls for cls in ENTRIES.values() if issubclass(cls, Entry)], ids=lambda cls: cls.__name__
)
def test_new_fields_have_defaults_so_that_old_lines_stay_readable(cls):
    required = {f.name for f in msgspec.structs.fields(cls) if f.required}
    allowed = {
        "message": {"role"}, "compaction": {"replacement"}, "uncompact": {"compaction"}, "edit": {"entry"},
        "custom": {"kind"}, "turn": {"state"}, "head": {"to", "asof", "why"}, "set": {"key"}, "usage": {"usage"},
        "note": {"text"}, "child": {"session"}, "writer": {"word", "pid"}, "fold": {"upto"}, "track": {"path"},
        "changed": {"paths"}, "session": set(), "checkpoint": set(), "intent": set(), "drop": set(),
    }  # fmt: skip
    # The first version of a kind may ask for what it likes.
    assert required <= allowed.get(cls.__struct_config__.tag, required)


def test_the_first_lines_are_read_as_all_others_are():
    lines = [line_of(entry)[: -CHECKSUM - 1] + b"}" for entry in ONE_OF_EACH]
    whole = msgspec.json.Decoder(AnyEntry).decode
    few = StrictDecoder(few=len(lines) // 2)
    assert [few.decode(line) for line in lines] == [whole(line) for line in lines]


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"message","seq":1}',
        b'{"type":"message","seq":"1","id":"a","role":"user"}',
        b'{"type":"tomorrow\'s","seq":1,"id":"a"}',
        b'{"seq":1,"id":"a"}',
        b'{"seq":"1","type":"note"}',
        b'{"type":"\xff","seq":1,"id":"a"}',
        b'{"type":"',
        b'{"type":"note","seq":1,"id":"a"',
        b"",
    ],
)
def test_what_is_refused_is_refused_in_the_same_words(line: bytes):
    def told(decoded: Callable[[bytes], object]) -> tuple[type[Exception], str]:
        with pytest.raises((msgspec.MsgspecError, UnicodeDecodeError)) as caught:
            decoded(line)
        return type(caught.value), str(caught.value)

    assert told(StrictDecoder(few=1).decode) == told(msgspec.json.Decoder(AnyEntry).decode)


@pytest.mark.parametrize("is_sealed", [True, False])
@pytest.mark.parametrize("kind", ["note", "later"])
def test_a_time_without_a_zone_is_in_utc(kind, is_sealed):
    text = b'{"type":"%b","id":"n","seq":1,"at":"2026-11-15T07:00:12.345","clock":"2026-11-15T07:00:11"' % kind.encode()
    item = decode(with_checksum(text) if is_sealed else text + b"}")
    entry = item.entry if isinstance(item, Flawed) else item
    assert (entry.at, entry.clock) == (AT, AT.replace(second=11, microsecond=0))


def test_a_seq_that_no_store_can_hold_gives_no_entry():
    with pytest.raises(Unreadable):
        decode(with_checksum(b'{"type":"note","id":"n","seq":9223372036854775808'))


def test_the_beginning_of_a_request_needs_a_time_zone():
    with pytest.raises(Invalid, match="no time zone"):
        prepare(Message(role="assistant", began_at=AT.replace(tzinfo=None)))


def test_a_torn_line_full_of_quotes_is_looked_at_only_once():
    """The time grows with its length, not with the square of it: that took minutes."""
    entry = with_checksum(b'{"type":"note","id":"n","seq":5')
    torn = b'{"type":"message","seq":4,"blocks":[{"type":"text","text":"' + rb"say \"x\" " * 16_000
    began = time.monotonic()
    [(at, length, note)] = salvage(torn + entry)
    assert (at, length, note.seq) == (len(torn), len(entry), 5)
    assert time.monotonic() - began < 10
    assert salvage(torn + rb"\"," + entry + b'"}') == []

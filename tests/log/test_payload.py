"""Payloads leave the line and come back exactly, whatever the entry."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.log.entries import entries
from turnlog import (
    Compaction,
    Custom,
    Image,
    Invalid,
    Message,
    Note,
    Set,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    UnknownBlock,
)
from turnlog.log.codec import decode
from turnlog.log.draft import prepare
from turnlog.log.payload import LINE_GOAL, digest, digest_key, restore, used_blobs

STAMPS = '"seq":7,"at":"2026-11-15T07:00:12.345Z"'


def through_a_line(entry):
    """What a reader gets back, the line, and the blobs beside it."""
    draft, blobs = prepare(entry)
    line = draft.sealed(STAMPS)[0]
    read = decode(line[:-1])
    return restore(read, blobs.get), line, blobs


sizes = st.sampled_from([10, 3000, 70_000, 200_000])
big = sizes.map(lambda size: "ü" * size)
big_blocks = st.one_of(
    st.builds(Text, text=big),
    st.builds(Thinking, text=big, data=big),
    st.builds(
        ToolCall, id=st.just("1"), name=st.just("x"), input=st.fixed_dictionaries({"a": big, "b": st.integers()})
    ),
)
big_results = st.builds(
    ToolResult,
    call=st.just("1"),
    content=st.one_of(big, st.lists(st.builds(Text, text=big), max_size=2)),
    details=big,
)
big_messages = st.builds(Message, role=st.just("assistant"), blocks=st.lists(big_blocks, min_size=1, max_size=4))
big_entries = st.one_of(
    big_messages,
    st.builds(Message, role=st.just("tool"), blocks=st.lists(big_results, max_size=2)),
    st.builds(Custom, kind=st.just("x.y"), data=big, blocks=st.lists(big_blocks, max_size=2)),
    st.builds(Note, text=big, data=big),
    st.builds(Set, key=st.just("k"), value=st.lists(big, max_size=2)),
    st.builds(Compaction, replacement=st.lists(big_messages, max_size=2)),
)


def content(entry):
    """What the caller gave, apart from where it is kept."""
    names = ("role", "blocks", "data", "text", "value", "replacement", "meta")
    return [getattr(entry, name, None) for name in names]


@settings(max_examples=60)
@given(big_entries)
def test_what_was_taken_out_comes_back(entry):
    back, line, blobs = through_a_line(entry)
    shown = content(back)
    if isinstance(entry, Compaction):
        shown = [[message.blocks for message in back.replacement]]
        assert shown == [[message.blocks for message in entry.replacement]]
    else:
        assert shown == content(entry)
    assert len(line) <= LINE_GOAL
    assert set(decode(line[:-1]).blobs) == set(used_blobs(decode(line[:-1]))) <= set(blobs)


@settings(max_examples=40)
@given(entries)
def test_a_small_entry_needs_no_blob(entry):
    draft, blobs = prepare(entry)
    assert blobs == {}
    assert restore(decode(draft.sealed(STAMPS)[0][:-1]), lambda name: 1 / 0)


@settings(max_examples=20)
@given(big_entries)
def test_a_payload_that_is_lost_leaves_something_to_read(entry):
    draft, _ = prepare(entry)
    read = decode(draft.sealed(STAMPS)[0][:-1])
    assert restore(read, lambda name: None) == read


def test_bytes_always_leave_the_line():
    entry = Message(role="user", blocks=[Image(data=b"\x00\x01", media_type="image/png")])
    back, line, blobs = through_a_line(entry)
    assert blobs == {digest(b"\x00\x01"): b"\x00\x01"}
    assert back.blocks[0].blob == digest(b"\x00\x01")
    assert back.blocks[0].data is None
    assert b'"data"' not in line


def test_the_same_payload_is_one_blob():
    block = Text(text="x" * 100_000)
    _, _, blobs = through_a_line(Message(role="user", blocks=[block, block]))
    assert len(blobs) == 1


def test_a_digest_says_which_algorithm_made_it():
    assert digest(b"") == "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert digest_key(digest(b"x")).hex() == digest(b"x")[7:]
    with pytest.raises(Exception, match="not the digest"):
        digest_key("sha256:" + "0 " * 32)


def test_blocks_may_be_tuples_at_any_depth():
    unknown = UnknownBlock(kind="later", json='{"type":"later","n":1}')
    parts = (Text(text="a"), Image(data=b"abc"), Image(blob=digest(b"abc")), unknown, Text(text="x" * 100_000))
    for blocks in (parts, (ToolResult(call="c", content=parts),), (ToolResult(call="c", content=(Text("\udcff"),)),)):
        back, line, blobs = through_a_line(Message(role="tool", blocks=blocks))
        lists = [replace(one, content=list(one.content)) if isinstance(one, ToolResult) else one for one in blocks]
        assert (back, line, blobs) == through_a_line(Message(role="tool", blocks=lists, id=back.id))
        assert b"YWJj" not in line
        assert back.blobs == sorted(blobs)


def test_a_result_with_blocks_of_the_wrong_kind_is_refused():
    for content in (("text",), 5, None, (ToolResult(call="d", content=(5,)),)):
        with pytest.raises(Invalid, match=r"is not a block|blocks are a list"):
            prepare(Message(role="tool", blocks=[ToolResult(call="c", content=content)]))


def test_what_is_no_digest_in_an_edited_line_leaves_the_stand_in():
    edited = Message(role="user", blob="nonsense", blobs=["nonsense"], blocks=[Text(text="short …", blob="sha256:1")])
    assert restore(edited, {}.__getitem__) == edited

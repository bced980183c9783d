"""Lines whose content was erased: as long as before, verified, and saying that something was there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from turnlog.errors import Invalid
from turnlog.log.block import Image, Text, Thinking, ToolCall, ToolResult
from turnlog.log.codec import decode, is_verified
from turnlog.log.context import text_of
from turnlog.log.draft import prepare, stamp_drafts
from turnlog.log.entry import (
    Checkpoint,
    Compaction,
    Custom,
    Edit,
    Fold,
    Head,
    Message,
    Note,
    Ref,
    Set,
    Start,
    Turn,
)
from turnlog.log.erasure.line import erased_line
from turnlog.log.usage import Usage
from turnlog.log.written import bare, with_hints

SECRET = "hunter2"
CALL = ToolCall(id="c1", name="bash", input={"command": SECRET})
ENTRIES = [
    Message(role="user", blocks=[Text(text="7")]),
    Message(role="user", blocks=[Text(text=SECRET)], meta=SECRET, origin={"agent": "rho", "message": SECRET}, turn="t"),
    Message(
        role="assistant", blocks=[Thinking(text=SECRET), Text(text=SECRET), CALL], model="m", request="r",
        usage=Usage(input_tokens=3, output_tokens=4), stop="tool_use", error=SECRET, display=SECRET,
    ),
    Message(role="tool", blocks=[ToolResult(call="c1", content=SECRET, name="bash", details={"at": SECRET})]),
    Message(role="user", blocks=[Image(url=f"https://{SECRET}")]),
    Compaction(replacement=[Message(role="user", blocks=[Text(text=SECRET)], id="m"), Ref(entry=4)], keep=5),
    Edit(entry=4, blocks=[Text(text=SECRET)]),
    Custom(kind="my.plan", data=SECRET),
    Custom(kind="my.plan", data=1),
    Custom(kind="my.plan", blocks=[Text(text=SECRET)]),
    Note(text=SECRET, data={"x": SECRET}),
    Note(text="a"),
    Set(key="pin", value=1),
    Set(key="title", value=SECRET, all={"title": SECRET, "workspace": "/w"}),
    Turn(state="failed", error=SECRET, turn="t"),
    Start(id="s", session="s", title=SECRET, labels={"user": SECRET}, workspace="/w"),
]  # fmt: skip


def line_of(entry, seq: int = 7, head: int = 4) -> bytes:
    draft, _ = prepare(entry)
    (stamped,) = stamp_drafts([draft], floor=seq - 1, at=0, now=1_800_000_000_000, head=head)
    return draft.sealed(stamped.stamps)[0][:-1]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.type)
def test_the_content_goes_and_the_rest_stays(entry):
    line = line_of(entry)
    gone = erased_line(line)
    assert len(gone) == len(line)
    assert is_verified(gone)
    assert SECRET.encode() not in gone
    before, after = decode(line), decode(gone)
    for name in ("seq", "id", "at", "parent", "turn", "type"):
        assert getattr(after, name) == getattr(before, name)
    assert after.void
    assert erased_line(gone) == gone


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.type)
def test_every_copy_of_an_erased_line_is_the_same_to_the_byte(entry):
    line = line_of(entry)
    gone = erased_line(line)
    for hints in ({"wide": 12_345}, {"sealed": 99, "wide": 5}):
        assert bare(erased_line(with_hints(line, **hints))) == bare(gone)
    assert erased_line(bare(gone)) == bare(gone)
    assert SECRET not in str(decode(bare(gone)))


def test_it_says_that_something_was_there():
    for entry in ENTRIES[:7] + ENTRIES[9:12]:
        assert "[erased]" in str(decode(erased_line(line_of(entry))))
    assert "[erased]" not in str(decode(erased_line(line_of(Custom(kind="k", data=1)))))


def test_tool_calls_keep_their_answers():
    asked, answered = (decode(erased_line(line_of(entry))) for entry in ENTRIES[2:4])
    assert [(block.id, block.name, block.input) for block in asked.blocks if isinstance(block, ToolCall)] == [
        ("c1", "bash", None)
    ]
    assert text_of(asked.blocks) == "[erased]"
    assert answered.blocks == [ToolResult(call="c1", content="[erased]", name="bash")]
    assert asked.usage == Usage(input_tokens=3, output_tokens=4)


def test_what_nobody_said_cannot_be_erased():
    for entry in (Checkpoint(), Head(to=1, asof=1, why="rewind"), Fold(upto=3)):
        with pytest.raises(Invalid):
            erased_line(line_of(entry))


def test_a_part_that_repeats_what_was_erased():
    head = line_of(Head(to=1, asof=1, why="rewind", facts={"pin": SECRET, "mode": "plan"}))
    gone = erased_line(head, "fact:pin")
    assert len(gone) == len(head) and is_verified(gone)
    assert decode(gone) == replace(decode(head), facts={"mode": "plan"})
    fold = line_of(Fold(upto=3, state={"facts": {"pin": SECRET}}))
    assert decode(erased_line(fold, "state")).state is None
    assert len(erased_line(fold, "state")) == len(fold)
    fork = line_of(Start(id="s", session="s", title=SECRET))
    assert SECRET.encode() not in erased_line(fork, "fact:title")


@given(st.text(min_size=1), st.none() | st.integers() | st.text(min_size=1) | st.lists(st.booleans(), min_size=1))
def test_whatever_was_said(text, data):
    for entry in (
        Message(role="user", blocks=[Text(text=text)], meta=data),
        Note(text=text, data=data),
        Custom(kind="k", data=data, blocks=[Text(text=text)]),
    ):
        line = line_of(entry)
        gone = erased_line(line)
        assert len(gone) == len(line) and is_verified(gone) and decode(gone).void

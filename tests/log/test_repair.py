"""Tool turns are mended for any conversation, and a cut never parts a call from its result."""

from hypothesis import given, settings
from hypothesis import strategies as st

from turnlog import Message, Text, ToolCall, ToolResult
from turnlog.log.context.toolturn import INTERRUPTED, cut_for_keep, pending, repair
from turnlog.log.fold.opencall import OpenCall, add_message

ids = st.sampled_from("abc")
calls = st.builds(ToolCall, id=ids, name=st.just("x"), by=st.sampled_from([None, None, "provider"]))
results = st.builds(ToolResult, call=ids, content=st.text("xyz", max_size=3))
text = st.builds(Text, text=st.just("t"))
conversations = st.lists(
    st.one_of(
        st.builds(Message, role=st.just("user"), blocks=st.lists(text, max_size=1)),
        st.builds(Message, role=st.just("assistant"), blocks=st.lists(st.one_of(text, calls), max_size=4)),
        st.builds(Message, role=st.just("tool"), blocks=st.lists(st.one_of(results, results, text), max_size=3)),
    ),
    max_size=12,
).map(lambda messages: [numbered(message, index + 1) for index, message in enumerate(messages)])


def numbered(message: Message, seq: int) -> Message:
    return Message(role=message.role, blocks=message.blocks, seq=seq, id=f"m{seq}")


def waiting_of(message: Message) -> list[str]:
    return [block.id for block in message.blocks if isinstance(block, ToolCall) and block.by != "provider"]


@settings(max_examples=300)
@given(conversations)
def test_every_call_is_followed_by_its_result_and_every_result_has_its_call(conversation):
    waiting: list[str] = []
    for message in repair(conversation):
        assert message.blocks
        if message.role == "tool":
            for block in message.blocks:
                assert isinstance(block, ToolResult)
                waiting.remove(block.call)
        else:
            assert waiting == []
            waiting = waiting_of(message) if message.role == "assistant" else []
    assert waiting == []


@settings(max_examples=300)
@given(conversations)
def test_nothing_else_changes(conversation):
    spoken = [message for message in conversation if message.role != "tool" and message.blocks]
    mended = repair(conversation)
    assert [message for message in mended if message.role != "tool" and message in spoken] == spoken
    said = {block.text for message in conversation for block in message.blocks if isinstance(block, Text)}
    assert said == {block.text for message in mended for block in message.blocks if isinstance(block, Text)}
    if all(len(set(waiting_of(message))) == len(waiting_of(message)) for message in conversation):
        assert repair(mended) == mended


@settings(max_examples=300)
@given(conversations)
def test_a_result_that_is_there_is_used_and_pending_says_which_are_not(conversation):
    made_up = [
        block.call
        for message in repair(conversation)
        if message.role == "tool"
        for block in message.blocks
        if block.content == INTERRUPTED
    ]
    assert sorted(made_up) == sorted(call.id for call in pending(conversation))
    given_back = [b for m in repair(conversation) if m.role == "tool" for b in m.blocks if b.content != INTERRUPTED]
    real = [b for m in conversation if m.role == "tool" for b in m.blocks if isinstance(b, ToolResult)]
    assert all(block in real for block in given_back)


@settings(max_examples=300)
@given(conversations, st.integers(0, 12))
def test_a_cut_keeps_at_least_what_was_asked_and_parts_nothing(conversation, keep):
    first = cut_for_keep(conversation, keep)
    kept = [message for message in conversation if first and message.seq >= first]
    assert len(kept) >= min(keep, len(conversation))
    open_calls: list[tuple[str, int]] = []
    for message in conversation:
        if message.role == "assistant":
            open_calls += [(call, message.seq) for call in waiting_of(message)]
        elif message.role == "tool":
            for block in message.blocks:
                fitting = [call for call in open_calls if isinstance(block, ToolResult) and call[0] == block.call]
                for answered in fitting[-1:]:
                    open_calls.remove(answered)
                    assert (answered[1] >= first > 0) == (message.seq >= first > 0)


def test_of_two_calls_with_one_id_in_a_message_the_first_is_answered_everywhere():
    call = Message(
        role="assistant",
        blocks=[ToolCall(id="x", name="first"), ToolCall(id="x", name="second")],
        id="a",
        seq=1,
    )
    result = Message(role="tool", blocks=[ToolResult(call="x", content="done")], id="r", seq=2)
    assert [one.name for one in pending([call, result])] == ["second"]
    whole = repair([call, result])
    assert [block.content for message in whole[1:] for block in message.blocks] == ["done", INTERRUPTED]
    opened = [OpenCall(1, "x", ask=3), OpenCall(1, "x")]
    add_message(opened, result)
    assert [one.ask for one in opened] == [0]

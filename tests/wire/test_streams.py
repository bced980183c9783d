"""Streamed responses: whole, they are what the response would have been; broken off, they are what arrived."""

from datetime import UTC, datetime
from itertools import count

import msgspec
import pytest

from tests.wire import official, rules
from tests.wire.recorded import RECORDED
from tests.wire.scene import KINDS, answer, ask, session, stream
from turnlog import Message, Text, Thinking, ToolCall
from turnlog.wire import Request, anthropic, openai

COMPLETE = {"anthropic": 2, "responses": 1, "chat": 2, "gemini": 1}
"""With at most so many events missing at the end, everything has been said (of the usage, not all)."""


def fed(kind, events):
    reader = stream(kind)
    for event in events:
        reader.feed(event)
    return reader.finish()


def but_id(message: Message):
    fields = msgspec.structs.asdict(message)
    return {name: value for name, value in fields.items() if name != "id"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_whole_stream_is_the_response(kind):
    events, whole = RECORDED[kind]
    message = fed(kind, events)
    assert but_id(message) == but_id(answer(kind, whole))
    assert (message.stop, message.role) == ("tool_use", "assistant")
    assert message.usage is not None and message.usage.output_tokens


@pytest.mark.parametrize("kind", KINDS)
def test_events_and_responses_may_be_dicts_or_the_sdks_objects(kind):
    events, whole = RECORDED[kind]
    plainly = but_id(answer(kind, whole))
    assert but_id(answer(kind, official.response(kind, whole))) == normalised(plainly, kind)
    assert but_id(fed(kind, [official.event(kind, event) for event in events])) == normalised(plainly, kind)


def normalised(fields, kind):
    """Gemini's SDK spells the fields of what it ran otherwise than REST does; that is kept as it came."""
    if kind != "gemini":
        return fields
    renamed = {"executableCode": "executable_code", "codeExecutionResult": "code_execution_result"}
    blocks = []
    for block in fields["blocks"]:
        part = (block.meta or {}).get("gemini", {}).get("part")
        if part is not None:
            part = {renamed[key]: value for key, value in part.items()}
            block = msgspec.structs.replace(block, meta={"gemini": {"part": part}})
        blocks.append(block)
    return {**fields, "blocks": blocks}


@pytest.mark.parametrize("given", ["[" * 2000, '{"a": ', '"\ud800"'])
def test_an_input_that_is_no_json_stays_text(given):
    call = {"type": "tool_use", "id": "c", "name": "ls", "input": {}}
    events = [
        {"type": "message_start", "message": {"id": "m", "role": "assistant", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": call},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": given}},
        {"type": "content_block_stop", "index": 0},
    ]
    [block] = fed("anthropic", events).blocks
    assert block.input == given


@pytest.mark.parametrize("kind", KINDS)
def test_broken_off_after_any_event_it_gives_what_arrived(kind):
    events, whole = RECORDED[kind]
    final = answer(kind, whole)
    spoken = {cls: "".join(b.text for b in final.blocks if isinstance(b, cls)) for cls in (Text, Thinking)}
    calls = [block for block in final.blocks if isinstance(block, ToolCall)]
    lengths = []
    for upto in range(len(events) + 1):
        message = fed(kind, events[:upto])
        assert message.stop == ("aborted" if upto <= len(events) - COMPLETE[kind] else "tool_use"), upto
        for cls, text in spoken.items():
            arrived = "".join(block.text for block in message.blocks if isinstance(block, cls))
            assert text.startswith(arrived)
        arrived = [block for block in message.blocks if isinstance(block, ToolCall)]
        assert arrived == calls[: len(arrived)], "a call is there whole or not at all"
        lengths.append(sum(len(block.text) for block in message.blocks if isinstance(block, Text)))
        s = session()
        s.user("go")
        s.append(message)
        s.user("and now?")
        request = ask(kind, s.context())
        rules.follow(kind, request)
        official.check(kind, request)
    assert lengths == sorted(lengths) and len(set(lengths)) >= 3, "text arrives piece by piece"


@pytest.mark.parametrize(("kind", "upto"), [("anthropic", 20), ("responses", 16), ("chat", 5)])
def test_a_call_that_was_being_written_is_kept_for_people_only(kind, upto):
    message = fed(kind, RECORDED[kind][0][:upto])
    [partial] = message.meta["openai" if kind != "anthropic" else kind]["partial"]
    assert "rm" in str(partial) and "build" not in str(partial)
    assert not any(isinstance(block, ToolCall) and block.by is None for block in message.blocks)


def test_what_was_spent_is_known_although_the_stream_broke_off():
    message = fed("anthropic", RECORDED["anthropic"][0][:3])
    assert (message.usage.input_tokens, message.usage.cache_read_tokens) == (25, 1000)


def test_an_error_in_the_stream_is_an_error():
    overloaded = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    message = fed("anthropic", [*RECORDED["anthropic"][0][:4], overloaded])
    assert (message.stop, message.error["type"]) == ("error", "overloaded_error")
    failed = {"type": "error", "code": "server_error", "message": "oh", "param": None, "sequence_number": 9}
    message = fed("responses", [*RECORDED["responses"][0][:4], failed])
    assert (message.stop, message.error) == ("error", {"code": "server_error", "message": "oh"})
    message = fed("responses", [{"type": "response.failed", "response": {"status": "failed", "error": {"code": "x"}}}])
    assert (message.stop, message.error) == ("error", {"code": "x"})


def test_what_a_later_version_streams_is_passed_over():
    for kind in KINDS:
        events, whole = RECORDED[kind]
        odd = {"type": "later.delta", "index": 0, "output_index": 0, "delta": {"type": "later"}}
        mixed = [one for event in events for one in (event, odd)]
        assert but_id(fed(kind, mixed)) == but_id(answer(kind, whole))


def test_reasoning_that_broke_off_is_not_sent_back_as_if_it_were_whole():
    message = fed("responses", RECORDED["responses"][0][:5])
    [thought] = message.blocks
    assert isinstance(thought, Thinking) and thought.text == "Thinking "
    assert "encrypted_content" not in thought.data["item"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_that_knows_its_request_keeps_what_it_sees(kind):
    s = session()
    s.user("hello")
    options = {"temperature": 0.5, "extra_headers": {"authorization": "Bearer x"}, "api_key": "k", "odd": object()}
    request = Request({**ask(kind, s.context()), **options}, [])
    times = count(1_800_000_000.0, 0.25)
    reader = stream(kind, request=request, clock=times.__next__)
    assert not reader.is_begun, "a request that failed before its first event leaves nothing to append"
    events, whole = RECORDED[kind]
    for event in events:
        reader.feed(event)
    assert reader.is_begun
    kept = s.append(reader.finish())
    assert reader.finish().duration_ms == kept.duration_ms, "it may be asked at any time"
    assert kept.began_at == datetime.fromtimestamp(1_800_000_000, UTC)
    assert kept.duration_ms == 250 * len(events)
    assert kept.first_token_ms is not None and 250 <= kept.first_token_ms <= kept.duration_ms
    assert kept.provider == {"responses": "openai", "chat": "openai"}.get(kind, kind)
    assert kept.options["temperature"] == 0.5 and kept.options["model"]
    assert not {*options, "messages", "input", "contents", "config", "tools"} & {*kept.options} - {"temperature"}
    assert kept.blocks == answer(kind, whole).blocks


@pytest.mark.parametrize(
    ("kind", "empty", "full"),
    [
        ("chat", {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]},
         {"choices": [{"index": 0, "delta": {"content": "hi"}}]}),
        ("gemini", {"candidates": [{"content": {"role": "model", "parts": [{"text": "", "thought": True}]}}]},
         {"candidates": [{"content": {"parts": [{"text": "hi"}]}}]}),
    ],
)  # fmt: skip
def test_a_first_chunk_that_says_nothing_is_no_token(kind, empty, full):
    s = session()
    s.user("hello")
    reader = stream(kind, request=ask(kind, s.context()), clock=count(1.0, 0.25).__next__)
    reader.feed(empty)
    reader.feed(full)
    assert reader.finish().first_token_ms == 500


HALF = '{"path": "/a'
CUT = {
    "anthropic": [
        {"type": "message_start", "message": {"id": "m", "content": [], "model": "c"}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "so"}},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "t", "name": "rm"}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": HALF}},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}},
    ],
    "responses": [
        {
            "type": "response.incomplete",
            "response": {
                "id": "r",
                "status": "incomplete",
                "incomplete_details": {"reason": "max_output_tokens"},
                "output": [
                    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "so"}]},
                    {"type": "function_call", "call_id": "c", "name": "rm", "arguments": HALF},
                ],
            },
        }
    ],
    "chat": [
        {"id": "x", "choices": [{"delta": {"content": "so"}}]},
        {"choices": [{"delta": {"tool_calls": [{"id": "a", "function": {"name": "rm", "arguments": HALF}}]}}]},
        {"choices": [{"delta": {}, "finish_reason": "length"}]},
    ],
}


@pytest.mark.parametrize("kind", CUT)
def test_a_call_that_a_limit_cut_off_is_kept_for_people_only(kind):
    stream = anthropic.Stream() if kind == "anthropic" else openai.Stream(api=kind)
    for event in CUT[kind]:
        stream.feed(event)
    message = stream.finish()
    assert [block.text for block in message.blocks] == ["so"]
    assert message.stop == "length"
    [meta] = message.meta.values()
    assert "/a" in str(meta["partial"])


def test_a_whole_call_before_a_limit_stays_one():
    whole = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    text = {"type": "custom_tool_call", "call_id": "d", "name": "g", "input": "whole"}
    cut = {"type": "custom_tool_call", "call_id": "e", "name": "g", "input": "ha"}
    message = openai.draft({"status": "incomplete", "output": [whole, text, cut]})
    assert [call.id for call in message.blocks] == ["c", "d"]
    called = [
        {"id": "c", "function": {"name": "f", "arguments": "{}"}},
        {"id": "d", "custom": {"name": "g", "input": "ha"}},
    ]
    message = openai.draft({"choices": [{"finish_reason": "length", "message": {"tool_calls": called}}]})
    assert [call.id for call in message.blocks] == ["c"]


@pytest.mark.parametrize("index", [{}, {"index": None}])
def test_parallel_calls_without_an_index_stay_apart(index):
    stream = openai.Stream(api="chat")
    for part in (
        {"id": "a", "function": {"name": "f", "arguments": ""}},
        {"function": {"arguments": '{"x": 1}'}},
        {"id": "b", "function": {"name": "g", "arguments": "{}"}},
    ):
        stream.feed({"choices": [{"index": 0, "delta": {"tool_calls": [{**index, **part}]}}]})
    stream.feed({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    assert [(call.id, call.name, call.input) for call in stream.finish().blocks] == [
        ("a", "f", {"x": 1}),
        ("b", "g", {}),
    ]

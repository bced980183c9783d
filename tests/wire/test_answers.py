"""What becomes of a response: its blocks, why it stopped, and what it cost in fields that never overlap."""

import msgspec
import pytest

from tests.wire.recorded import RECORDED
from tests.wire.scene import KINDS, answer, ask, session
from turnlog import File, Image, Invalid, Text, Thinking, ToolCall, ToolResult, UnknownBlock, Usage
from turnlog.wire import anthropic, gemini, openai


def test_a_response_of_anthropic_is_one_message():
    message = anthropic.draft(RECORDED["anthropic"][1])
    thought, ran, found, text, call, other = message.blocks
    assert thought == Thinking(text="Let me look.", provider="anthropic", data={"signature": "EqQBCgIYAh"})
    assert (ran.name, ran.by, ran.input) == ("web_search", "provider", {"query": "weather"})
    assert isinstance(found, ToolResult) and (found.call, found.content) == ("srvtoolu_1", "t\nhttps://example.com")
    assert (text.text, text.meta["anthropic"]["citations"][0]["title"]) == ("I will run it.", "t")
    assert call == ToolCall(id="toolu_1", name="bash", input={"command": "rm -rf build"})
    assert other.input == {}
    assert (message.role, message.model, message.request, message.stop) == (
        "assistant", "claude-sonnet-4-5", "msg_1", "tool_use",
    )  # fmt: skip


def test_a_response_of_openai_is_one_message():
    message = openai.draft(RECORDED["responses"][1])
    thought, ran, text, call, custom = message.blocks
    assert (thought.text, thought.provider) == ("Thinking it over.", "openai")
    assert thought.data["item"]["encrypted_content"] == "gAAAAA"
    assert (ran.name, ran.by, ran.id) == ("web_search", "provider", "ws_1")
    assert text == Text(text="I will run it.", meta={"openai": {"phase": "commentary"}})
    assert call == ToolCall(id="call_1", name="bash", input={"command": "rm -rf build"})
    assert (custom.id, custom.input) == ("call_2", "*** Begin")
    assert (message.model, message.request) == ("gpt-5", "resp_1")


def test_a_response_of_gemini_is_one_message():
    message = gemini.draft(RECORDED["gemini"][1])
    thought, text, signed, ran, result, call, other = message.blocks
    assert thought == Thinking(text="Let me look.", provider="gemini")
    assert (text.text, signed) == ("I will run it.", Text(text="", meta={"gemini": {"signature": "ZW5k"}}))
    assert (ran.by, ran.input["code"], result.call, result.content) == ("provider", "print(1)", ran.id, "1")
    assert (call.id, call.meta) == ("fc-1", {"gemini": {"signature": "c2ln"}})
    assert other.id == "resp-1-6", "a call without an id gets one"
    assert (message.model, message.request) == ("gemini-3-pro", "resp-1")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("anthropic", Usage(25, 1000, 100, 200, 89, 40)),
        ("responses", Usage(100, 384, 16, 0, 120, 64)),
        ("chat", Usage(100, 384, 16, 0, 120, 64)),
        ("gemini", Usage(110, 400, 0, 0, 120, 64)),
    ],
)
def test_usage_falls_into_fields_that_never_overlap(kind, expected):
    usage = answer(kind, RECORDED[kind][1]).usage
    assert usage == expected
    totals = {"anthropic": 25 + 1000 + 300, "responses": 500, "chat": 500, "gemini": 510}
    assert usage.all_input_tokens == totals[kind]


def test_a_cache_write_that_is_not_told_apart_is_the_short_one():
    raw = {"input_tokens": 1, "cache_creation_input_tokens": 7, "output_tokens": 2}
    assert anthropic.draft({"content": [], "usage": raw}).usage == Usage(1, 0, 7, 0, 2)
    raw["cache_creation"] = {"ephemeral_1h_input_tokens": 5, "ephemeral_5m_input_tokens": 2}
    assert anthropic.draft({"content": [], "usage": raw}).usage == Usage(1, 0, 2, 5, 2)


def test_no_usage_is_none_and_odd_numbers_are_nothing():
    assert anthropic.draft({"content": []}).usage is None
    odd = {"input_tokens": None, "output_tokens": -3, "cache_read_input_tokens": "9", "cache_creation": []}
    assert anthropic.draft({"content": [], "usage": odd}).usage == Usage()
    assert openai.draft({"output": [], "usage": {"input_tokens": 5, "input_tokens_details": None}}).usage == Usage(5)
    more_cached = {"input_tokens": 5, "input_tokens_details": {"cached_tokens": 9}}
    assert openai.draft({"output": [], "usage": more_cached}).usage == Usage(0, 9)


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("end_turn", "end"),
        ("stop_sequence", "end"),
        ("tool_use", "tool_use"),
        ("pause_turn", "tool_use"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "error"),
        ("something_later", "end"),
        (None, "aborted"),
    ],
)
def test_why_anthropic_stopped(reason, stop):
    assert anthropic.draft({"content": [], "stop_reason": reason}).stop == stop


@pytest.mark.parametrize(
    ("response", "stop"),
    [
        ({"status": "completed"}, "end"),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "length"),
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "error"),
        ({"status": "incomplete", "incomplete_details": {"reason": "steered"}}, "aborted"),
        ({"status": "failed", "error": {"code": "server_error"}}, "error"),
        ({"status": "cancelled"}, "aborted"),
        ({"status": "in_progress"}, "aborted"),
    ],
)
def test_why_a_response_of_openai_stopped(response, stop):
    assert openai.draft({"output": [], **response}).stop == stop


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("stop", "end"),
        ("length", "length"),
        ("tool_calls", "tool_use"),
        ("content_filter", "error"),
        (None, "aborted"),
    ],
)
def test_why_a_chat_completion_stopped(reason, stop):
    assert openai.draft({"choices": [{"message": {"content": "a"}, "finish_reason": reason}]}).stop == stop


@pytest.mark.parametrize(
    ("reason", "stop", "error"),
    [
        ("STOP", "end", None),
        ("MAX_TOKENS", "length", None),
        ("SAFETY", "error", {"type": "refusal", "reason": "SAFETY"}),
        ("MALFORMED_FUNCTION_CALL", "error", {"type": "malformed_function_call"}),
        (None, "aborted", None),
    ],
)
def test_why_gemini_stopped(reason, stop, error):
    message = gemini.draft({"candidates": [{"content": {"parts": [{"text": "a"}]}, "finishReason": reason}]})
    assert (message.stop, message.error) == (stop, error)


def test_a_refusal_is_a_refusal_whoever_refuses():
    refusals = [
        anthropic.draft(
            {"content": [], "stop_reason": "refusal", "stop_details": {"type": "refusal", "category": "bio"}}
        ),
        openai.draft({"output": [{"type": "message", "content": [{"type": "refusal", "refusal": "I cannot."}]}]}),
        openai.draft({"choices": [{"message": {"refusal": "I cannot."}, "finish_reason": "stop"}]}),
        gemini.draft({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}),
    ]
    assert {(message.stop, message.error["type"]) for message in refusals} == {("error", "refusal")}
    assert [block.text for block in refusals[1].blocks] == [block.text for block in refusals[2].blocks] == ["I cannot."]
    assert refusals[0].error["category"] == "bio"


def test_a_call_is_a_call_although_the_server_says_stop():
    message = {"tool_calls": [{"id": "", "type": "function", "function": {"name": "ls", "arguments": ""}}]}
    made = openai.draft({"id": "c1", "choices": [{"message": message, "finish_reason": "stop"}]})
    assert (made.stop, made.blocks) == ("tool_use", [ToolCall(id="c1-0", name="ls", input={})])


def test_arguments_that_are_no_json_are_kept_and_sent_as_json():
    from tests.wire.test_requests import asked
    from turnlog import Message

    broken = openai.draft({"output": [{"type": "function_call", "call_id": "1", "name": "ls", "arguments": '{"a": '}]})
    assert broken.blocks[0].input == '{"a": '
    result = Message(role="tool", blocks=[ToolResult(call="1", content="?")])
    request, _ = asked("responses", broken, result)
    assert msgspec.json.decode(request["input"][1]["arguments"]) == '{"a": '


def test_reasoning_of_servers_that_speak_chat_is_thinking():
    for name in ("reasoning_content", "reasoning"):
        message = openai.draft({"choices": [{"message": {name: "hm", "content": "a"}, "finish_reason": "stop"}]})
        assert [type(block) for block in message.blocks] == [Thinking, Text]


def test_what_gemini_drew_is_a_picture_in_the_log():
    parts = [
        {"inlineData": {"mimeType": "image/png", "data": "-_8="}},
        {"fileData": {"fileUri": "gs://a", "mimeType": "a/b"}},
    ]
    picture, document = gemini.draft({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}).blocks
    assert picture == Image(media_type="image/png", data=b"\xfb\xff")
    assert document == File(media_type="a/b", file="gs://a", provider="gemini")


@pytest.mark.parametrize("data", ["", "-", "no base64", "schön"])
def test_a_picture_that_is_broken_is_kept_as_it_came_and_is_in_nobodys_way(data):
    parts = [{"inlineData": {"mimeType": "image/png", "data": data}}, {"text": "there"}]
    message = gemini.draft({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]})
    assert [type(block) for block in message.blocks] == [UnknownBlock, Text]
    s = session()
    s.user("draw")
    s.append(message)
    s.user("again")
    for kind in KINDS:
        ask(kind, s.context())


@pytest.mark.parametrize("data", ["", "no base64", "schön"])
def test_a_picture_or_a_file_that_is_broken_is_no_fault(data):
    url = f"data:image/png;base64,{data}"
    given = [{"type": "input_image", "image_url": url}, {"type": "input_file", "file_data": data}]
    [message] = openai.messages([{"role": "user", "content": given}])
    assert [type(block) for block in message.blocks] == [UnknownBlock, UnknownBlock]
    source = {"type": "base64", "media_type": "image/png", "data": data}
    [message] = anthropic.messages([{"role": "user", "content": [{"type": "image", "source": source}]}])
    assert [type(block) for block in message.blocks] == [UnknownBlock]
    s = session()
    s.user([Text(text="look"), Image(url=url), Image(data=b"", media_type="image/png")])
    for kind in KINDS:
        assert len([one for one in ask(kind, s.context()).report if one.what == "image"]) == 2, kind


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_later_version_says_is_kept_and_can_be_logged(kind):
    later = {
        "anthropic": {"content": [{"type": "later", "n": 1}], "stop_reason": "end_turn"},
        "responses": {"output": [{"type": "later", "n": 1}]},
        "chat": {"choices": [{"message": {"content": "a", "later": 1}, "finish_reason": "later"}]},
        "gemini": {"candidates": [{"content": {"parts": [{"later": {"n": 1}}]}, "finishReason": "LATER"}]},
    }
    message = answer(kind, later[kind])
    s = session()
    s.user("go")
    kept = s.append(message)
    assert kind == "chat" or isinstance(kept.blocks[0], UnknownBlock)
    assert s.messages()[1].blocks == kept.blocks


@pytest.mark.parametrize("kind", KINDS)
def test_every_draft_goes_into_a_log_and_comes_back(kind):
    s = session()
    s.user("go")
    s.append(answer(kind, RECORDED[kind][1], account="acme"))
    made = answer(kind, RECORDED[kind][1], account="acme")
    assert s.messages()[1].blocks == made.blocks
    assert s.usage().own == made.usage


def test_what_is_no_response_is_refused():
    for wrong in (None, "text", 5):
        with pytest.raises(Invalid, match="is not a response"):
            anthropic.draft(wrong)
    with pytest.raises(Invalid, match="the api 'completions'"):
        openai.Stream(api="completions")


def nested(levels):
    value = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("levels", [1, 180, 300])
def test_an_input_that_nests_deeper_than_a_log_takes_is_its_text(levels):
    arguments = {"a": nested(levels)}
    text = msgspec.json.encode(arguments).decode()
    output = [{"type": "function_call", "call_id": "c", "name": "f", "arguments": text}]
    parts = [{"functionCall": {"name": "f", "args": arguments}}]
    for message in (
        openai.draft({"status": "completed", "output": output}),
        anthropic.draft({"stop_reason": "tool_use", "content": [{"type": "tool_use", "id": "c", "input": arguments}]}),
        gemini.draft({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}),
    ):
        s = session()
        s.user("hi")
        s.append(message)
        assert s.pending()[0].input == (text if levels > 180 else arguments)

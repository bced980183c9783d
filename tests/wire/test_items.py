"""A provider's own items, as somebody else kept them, become messages."""

import pytest

from turnlog import File, Image, Invalid, Text, Thinking, ToolCall, ToolResult, UnknownBlock
from turnlog.wire import anthropic, gemini, openai


def test_items_of_the_responses_api_become_messages():
    given = [
        {"role": "developer", "content": "be brief"},
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "look"},
                {"type": "input_image", "image_url": "data:image/png;base64,cHBw"},
            ],
        },
        {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "so"}], "encrypted_content": "e"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "yes"}]},
        {"type": "function_call", "call_id": "c1", "name": "bash", "arguments": '{"a": 1}'},
        {"type": "function_call_output", "call_id": "c1", "output": "out"},
        {"type": "of next year", "x": 1},
    ]
    made = openai.messages(given)
    assert [message.role for message in made] == [
        "system",
        "user",
        "assistant",
        "assistant",
        "assistant",
        "tool",
        "assistant",
    ]
    assert made[1].blocks == [Text("look"), Image(media_type="image/png", data=b"ppp")]
    assert isinstance(made[2].blocks[0], Thinking)
    assert made[3].blocks[0].text == "yes"
    assert made[4].blocks == [ToolCall(id="c1", name="bash", input={"a": 1})]
    assert made[5].blocks == [ToolResult(call="c1", content="out")]
    assert isinstance(made[6].blocks[0], UnknownBlock)
    assert [(one.change, one.what, one.entry) for one in made.report] == [("changed", "of next year", 6)]


def test_messages_of_chat_completions_become_messages():
    made = openai.messages(
        [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "file", "file": {"file_id": "f1"}}]},
            {
                "role": "assistant",
                "content": "yes",
                "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "out"},
        ]
    )
    assert [message.role for message in made] == ["system", "user", "assistant", "tool"]
    assert made[1].blocks == [Text("hi"), File(file="f1", provider="openai")]
    assert made[2].blocks == [Text("yes"), ToolCall(id="c1", name="bash", input={})]
    assert made.report == []


def test_the_first_item_is_told_from_none():
    made = openai.messages([{"type": "of next year", "x": 1}, {"role": "user", "content": ""}])
    assert [(one.change, one.entry) for one in made.report] == [("changed", 0), ("left out", 1)]


def test_a_sound_says_what_it_is():
    sound = {"type": "input_audio", "input_audio": {"data": "cHBw", "format": "mp3"}}
    [message] = openai.messages([{"role": "user", "content": [sound]}])
    assert message.blocks == [File(media_type="audio/mpeg", data=b"ppp")]


def test_what_is_no_item_is_refused():
    for odd in (3, "text", {"role": "nobody", "content": "x"}):
        with pytest.raises(Invalid):
            openai.messages([odd])


def test_contents_of_gemini_become_messages():
    call = {"id": "c1", "name": "bash", "args": {"a": 1}}
    made = gemini.messages(
        [
            {"role": "user", "parts": [{"text": "look"}, {"inlineData": {"mimeType": "image/png", "data": "cHBw"}}]},
            {"role": "model", "parts": [{"text": "so", "thought": True}, {"functionCall": call}]},
            {"role": "user", "parts": [{"functionResponse": {"id": "c1", "name": "sh", "response": {"output": "o"}}}]},
            {"parts": [{"function_response": {"id": "c1", "name": "bash", "response": {"error": "no"}}}]},
            {"role": "function", "parts": [{"function_response": {"id": "c1", "response": {"a": "ü", "b": 1}}}]},
            {"role": "model", "parts": [{"of_next_year": {"x": 1}}]},
            {"role": "user", "parts": []},
        ]
    )
    assert [message.role for message in made] == ["user", "assistant", "tool", "tool", "tool", "assistant", "user"]
    assert made[0].blocks == [Text("look"), Image(media_type="image/png", data=b"ppp")]
    assert made[1].blocks[0].text == "so"
    assert made[1].blocks[1] == ToolCall(id="c1", name="bash", input={"a": 1})
    assert made[2].blocks == [ToolResult(call="c1", content="o", name="sh")]
    assert made[3].blocks == [ToolResult(call="c1", content="no", name="bash", is_error=True)]
    assert made[4].blocks == [ToolResult(call="c1", content='{"a": "ü", "b": 1}')]
    assert isinstance(made[5].blocks[0], UnknownBlock)
    assert [(one.change, one.what, one.entry) for one in made.report] == [
        ("changed", "gemini", 5),
        ("left out", "content", 6),
    ]
    with pytest.raises(Invalid):
        gemini.messages([{"role": "nobody", "parts": []}])


def test_messages_of_anthropic_become_messages():
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "cHBw"}}
    made = anthropic.messages(
        [
            {"role": "user", "content": "look"},
            {"role": "user", "content": [{"type": "text", "text": "here"}, picture]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "so", "signature": "s"},
                    {"type": "tool_use", "id": "c1", "name": "bash", "input": {"a": 1}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "and"},
                    {"type": "tool_result", "tool_use_id": "c1", "content": [picture], "is_error": True},
                ],
            },
            {"role": "user", "content": [{"type": "of_next_year"}]},
            {"role": "assistant", "content": []},
        ]
    )
    assert [one.role for one in made] == ["user", "user", "assistant", "tool", "user", "user", "assistant"]
    assert made[1].blocks == [Text("here"), Image(media_type="image/png", data=b"ppp")]
    assert made[2].blocks[1] == ToolCall(id="c1", name="bash", input={"a": 1})
    assert (made[2].blocks[0].provider, made[2].blocks[0].data) == ("anthropic", {"signature": "s"})
    seen = Image(media_type="image/png", data=b"ppp")
    assert made[3].blocks == [ToolResult(call="c1", content=[seen], is_error=True)]
    assert made[4].blocks == [Text("and")]
    assert [(one.change, one.what, one.entry) for one in made.report] == [
        ("changed", "of_next_year", 4),
        ("left out", "message", 5),
    ]
    for odd in (3, {"role": "nobody", "content": "x"}):
        with pytest.raises(Invalid):
            anthropic.messages([odd])

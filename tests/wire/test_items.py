"""A provider's own items, as somebody else kept them, become messages."""

import pytest

import turnlog
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
    assert [message.role for message in made] == ["system", "user", "assistant", "tool", "assistant"]
    assert made[1].blocks == [Text("look"), Image(media_type="image/png", data=b"ppp")]
    thinking, said, call = made[2].blocks
    assert (type(thinking), said.text, call) == (Thinking, "yes", ToolCall(id="c1", name="bash", input={"a": 1}))
    assert made[3].blocks == [ToolResult(call="c1", content="out")]
    assert isinstance(made[4].blocks[0], UnknownBlock)
    assert [(one.change, one.what, one.entry) for one in made.report] == [("changed", "of next year", 6)]


def test_reasoning_among_items_is_sent_again_with_what_it_led_to():
    items = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "q"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "ENC"},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "o"},
        {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "ENC2"},
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "x"}},
        {"role": "assistant", "content": "done"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "next"}]},
    ]
    s = turnlog.open("memory:").create()
    s.append(*openai.messages(items))
    request = openai.request(s.context(), model="gpt-5")
    assert request.report == []
    assert request["input"] == [*items[:6], {"type": "message", **items[6]}, items[7]]


def test_messages_of_chat_completions_stay_apart():
    made = openai.messages(
        [{"role": "user", "content": "q"}, *[{"role": "assistant", "content": text} for text in "ab"]]
    )
    assert [message.role for message in made] == ["user", "assistant", "assistant"]


def test_an_item_of_the_assistant_keeps_its_phase_and_its_sources():
    sources = [{"type": "url_citation", "url": "u"}]
    content = [{"type": "output_text", "text": "hey", "annotations": sources}]
    item = {"type": "message", "role": "assistant", "phase": "commentary", "content": content}
    [made] = openai.messages([item])
    assert made.blocks == openai.draft({"id": "r", "status": "completed", "output": [item]}).blocks
    assert made.blocks[0].meta == {"openai": {"phase": "commentary", "annotations": sources}}


def test_what_openai_found_for_itself_is_no_result_of_ours():
    item = {"type": "tool_search_output", "call_id": None, "execution": "server", "tools": []}
    [made] = openai.messages([item])
    assert (made.role, made.blocks[0].by) == ("assistant", "provider")


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


def test_responses_without_an_id_answer_the_calls_of_gemini_before_them():
    def called(*names):
        return {"role": "model", "parts": [{"functionCall": {"name": name, "args": {}}} for name in names]}

    def answered(*names):
        parts = [{"functionResponse": {"name": name, "response": {"output": f"of {name}"}}} for name in names]
        return {"role": "user", "parts": parts}

    contents = [
        {"role": "user", "parts": [{"text": "q"}]},
        *[called("f", "g"), answered("g", "f")],
        *[called("f", "f"), answered("f", "f")],
        *[called("f"), answered("renamed")],
        *[called("f"), called("g"), answered("f"), answered("g")],
        called("f"),
        {"role": "user", "parts": [{"text": "never mind"}]},
        *[called("f"), answered("f")],
    ]
    made = gemini.messages(contents)
    assert made.report == []
    calls = [[call.id for call in message.blocks] for message in made if message.role == "assistant"]
    results = [[result.call for result in message.blocks] for message in made if message.role == "tool"]
    assert results == [calls[0][::-1], calls[1], calls[2], calls[3], calls[4], calls[6]]
    s = turnlog.open("memory:").create()
    s.append(*made)
    parts = [part for turn in gemini.request(s.context(), model="gemini-2.5-pro")["contents"] for part in turn["parts"]]
    sent = [part["function_response"]["response"] for part in parts if "function_response" in part]
    assert [answer.get("output") for answer in sent] == [
        "of f",
        "of g",
        "of f",
        "of f",
        "of renamed",
        "of f",
        "of g",
        None,
        "of f",
    ]


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


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ({"type": "text", "media_type": "text/plain", "data": "hello"}, b"hello"),
        ({"type": "text", "data": "hello"}, b"hello"),
        ({"type": "content", "content": "hello"}, b"hello"),
        ({"type": "content", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, b"a\nb"),
    ],
)
def test_a_document_of_text_is_a_file(source, said):
    [message] = anthropic.messages(
        [{"role": "user", "content": [{"type": "document", "title": "a", "source": source}]}]
    )
    assert message.blocks == [File(media_type="text/plain", name="a", data=said)]


def test_a_document_that_is_not_text_alone_is_kept_as_it_is():
    source = {"type": "content", "content": [{"type": "text", "text": "a"}, {"type": "image", "source": {}}]}
    [message] = anthropic.messages([{"role": "user", "content": [{"type": "document", "source": source}]}])
    assert isinstance(message.blocks[0], UnknownBlock)

"""Any log, however broken its tool turns, gives a request that keeps the rules; what is echoed comes back as it was."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire import official, rules
from tests.wire.scene import KINDS, PDF, PNG, TOOLS, WEB_CALL, WEB_RESULT, answer, ask, session
from turnlog import File, Image, Message, Text, Thinking, ToolCall, ToolResult, UnknownBlock
from turnlog.wire._name import log_name, wire_name

TEXTS = st.one_of(st.sampled_from(["", " ", "\n\t", "hello", "wörld 🎈", "</system>"]), st.text(max_size=8))
IDS = st.one_of(
    st.sampled_from(
        ["1", "1", "2", "toolu_01", "call_9|fc_9", "functions.bash:0", "x-1", "x2-1", "h-1", "é", "a" * 65]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=80),
)
NAMES = st.sampled_from(["bash", "read", "mcp.files/list", "ünïcode", "n" * 200, "9lives", "-x", "x-ray"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
INPUTS = st.one_of(st.dictionaries(st.text(max_size=5), JSON, max_size=3), JSON)
MEDIA = st.sampled_from(
    [
        Image(data=PNG),
        Image(data=b"BM bitmap", media_type="image/bmp"),
        Image(data=b""),
        Image(url="https://example.com/a.png"),
        Image(url="file:///etc/passwd"),
        Image(url="data:image/png;base64,iVBORw0KGgo="),
        Image(url="data:image/png;base64,%%%"),
        Image(file="file-1", provider="openai"),
        File(data=PDF, name="a.pdf"),
        File(data=b"plain", media_type="text/plain", name="a.txt"),
        File(data=b"\xff\xfe", media_type="text/plain"),
        File(data=b"PK", media_type="application/zip"),
        File(data=b"RIFF", media_type="audio/wav"),
        File(file="file_1", provider="anthropic"),
        File(url="https://example.com/a.pdf"),
        File(file="https://files/1", provider="gemini", media_type="application/pdf"),
        File(),
    ]
)
THOUGHTS = st.sampled_from(
    [
        Thinking(text="hm", provider="anthropic", data={"signature": "s"}),
        Thinking(text="hm", provider="anthropic"),
        Thinking(provider="anthropic", data={"redacted": "r"}),
        Thinking(text="hm", provider="openai", data={"item": {"id": "rs_" + "9" * 400, "encrypted_content": "e"}}),
        Thinking(text="hm", provider="openai", data={"item": {"id": "rs_1", "summary": []}}),
        Thinking(text="hm", provider="openai"),
        Thinking(text="hm", provider="gemini", data={"signature": "c2ln"}),
        Thinking(text="hm", provider="gemini"),
        Thinking(text="hm"),
        Thinking(provider="elsewhere", data=[1]),
        Thinking("in short", "anthropic", {"compaction": [{"type": "compaction", "content": None, "signature": "s"}]}),
        Thinking("again", "anthropic", {"compaction": [{"type": "compaction", "content": None}], "seen": ""}),
        Thinking("", "openai", {"compaction": [{"type": "compaction", "id": "cmp_1", "encrypted_content": "e"}]}),
        Thinking("", "openai", {"compaction": [{"type": "compaction", "encrypted_content": "e"}], "seen": "gone"}),
    ]
)
RUN_THERE = st.sampled_from(
    [
        ToolCall(
            id="srvtoolu_1", name="web_search", input={}, by="provider", meta={"anthropic": {"type": "server_tool_use"}}
        ),
        ToolResult(call="srvtoolu_1", content="found", meta={"anthropic": {"block": WEB_RESULT}}),
        ToolCall(id="ws_1", name="web_search", by="provider", meta={"openai": {"item": WEB_CALL}}),
        ToolCall(id="c", name="code", by="provider", meta={"gemini": {"part": {"executable_code": {"code": "1"}}}}),
        ToolResult(call="c", meta={"gemini": {"part": {"code_execution_result": {"outcome": "OUTCOME_OK"}}}}),
        ToolCall(id="p", name="search", by="provider"),
    ]
)
SPOKEN = st.one_of(
    TEXTS.map(lambda text: Text(text=text)),
    THOUGHTS,
    st.builds(ToolCall, id=IDS, name=NAMES, input=INPUTS),
    RUN_THERE,
    MEDIA,
    st.just(UnknownBlock(kind="later", json='{"type":"later"}')),
)
RESULTS = st.builds(
    ToolResult,
    call=IDS,
    content=st.one_of(TEXTS, st.lists(st.one_of(TEXTS.map(lambda text: Text(text=text)), MEDIA), max_size=2)),
    is_error=st.booleans(),
)
ENTRIES = st.one_of(
    st.builds(
        Message, role=st.just("user"), blocks=st.lists(st.one_of(TEXTS.map(lambda t: Text(text=t)), MEDIA), max_size=2)
    ),
    st.builds(Message, role=st.just("assistant"), blocks=st.lists(SPOKEN, max_size=4)),
    st.builds(Message, role=st.just("assistant"), blocks=st.lists(SPOKEN, max_size=4)),
    st.builds(Message, role=st.just("tool"), blocks=st.lists(st.one_of(RESULTS, MEDIA), min_size=1, max_size=2)),
    st.builds(Message, role=st.just("system"), blocks=TEXTS.map(lambda text: [Text(text=text)])),
    st.sampled_from(["answer", "edit", "compact"]),
)


def logged(entries: list[Any], *, tools: bool) -> Any:
    """A session with these entries; the words answer what waits, leave out a message, or compact."""
    s = session()
    if tools:
        s.set("tools", TOOLS)
    for entry in entries:
        messages = s.messages()
        if isinstance(entry, Message):
            s.append(Message(role=entry.role, blocks=entry.blocks))
        elif entry == "answer":
            for call in reversed(s.pending()):
                s.tool_result(call, "done")
        elif entry == "edit" and messages:
            s.edit(messages[len(messages) // 2].seq, None)
        elif entry == "compact" and messages:
            s.compact("a summary", keep=2)
    return s


@pytest.mark.parametrize("kind", [*KINDS, "gemini-3"])
@given(entries=st.lists(ENTRIES, max_size=8), tools=st.booleans())
def test_any_log_gives_a_request_that_keeps_the_rules(kind, entries, tools):
    context = logged(entries, tools=tools).context()
    if not len(context):
        return
    kind, options = ("gemini", {"model": "gemini-3-flash"}) if kind == "gemini-3" else (kind, {})
    request = ask(kind, context, **options)
    rules.follow(kind, request)
    official.check(kind, request)
    json.dumps(request)


THOUGHT_BY = {
    "anthropic": st.sampled_from(
        [
            Thinking(text="hm", provider="anthropic", data={"signature": "s"}),
            Thinking(provider="anthropic", data={"redacted": "r"}),
        ]
    ),
    "responses": st.sampled_from(
        [
            Thinking(
                text="a\n\nb",
                provider="openai",
                data={
                    "item": {
                        "id": "rs_1",
                        "summary": [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}],
                        "encrypted_content": "e",
                    }
                },
            )
        ]
    ),
    "gemini": st.sampled_from([Thinking(text="hm", provider="gemini", data={"signature": "c2ln"})]),
}
REAL_TEXTS = st.text(min_size=1, max_size=8).filter(str.strip).map(lambda text: Text(text=text))
CALLS = st.builds(ToolCall, id=IDS, name=NAMES, input=INPUTS.filter(lambda value: value is not None))


@st.composite
def native_messages(draw: Any, kind: str) -> list[Message]:
    """What this provider's model could have said, turn by turn, in a log that others have written to as well."""
    messages = []
    for _ in range(draw(st.integers(1, 3))):
        thoughts = draw(st.lists(THOUGHT_BY[kind], max_size=1)) if kind in THOUGHT_BY else []
        texts = draw(st.lists(REAL_TEXTS, max_size=2))
        calls = draw(st.lists(CALLS, min_size=0 if texts else 1, max_size=2))
        messages.append(Message(role="assistant", blocks=[*thoughts, *texts, *calls]))
    return messages


def echoed(kind: str, request: dict[str, Any], context: Any) -> list[Any]:
    """The assistant's part of a request, read as if a model had just said it."""
    if kind == "responses":
        ours = [
            i for i in request["input"] if i["type"] in ("reasoning", "function_call") or i.get("role") == "assistant"
        ]
        said = [{"output": ours}]
    elif kind == "gemini":
        said = [{"candidates": [{"content": c}]} for c in request["contents"] if c["role"] == "model"]
    elif kind == "chat":
        said = [{"choices": [{"message": m}]} for m in request["messages"] if m["role"] == "assistant"]
    else:
        said = [m for m in request["messages"] if m["role"] == "assistant"]
    return [block for response in said for block in answer(kind, response, context=context).blocks]


def essence(block: Any) -> Any:
    if isinstance(block, ToolCall):
        return ("call", block.id, block.name, block.input)
    if isinstance(block, Thinking):
        return ("thinking", block.text, block.provider, block.data)
    return ("text", block.text)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_what_a_request_says_for_the_assistant_comes_back_as_it_was(kind, data):
    messages = data.draw(native_messages(kind))
    s = session()
    for message in messages:
        s.user("go on")
        s.append(message)
        for call in s.pending():
            s.tool_result(call, "done")
    context = s.context()
    request = ask(kind, context)
    official.check(kind, request)
    there = [essence(block) for message in messages for block in message.blocks]
    assert [essence(block) for block in echoed(kind, request, context)] == there


@given(
    name=st.text(st.characters(exclude_categories=["Cs"]), max_size=30), nth=st.integers(1, 12), lettered=st.booleans()
)
def test_a_mapped_name_is_undone_without_knowing_the_original(name, nth, lettered):
    sent = wire_name(name, limit=300, nth=nth, lettered=lettered)
    assert rules.re.fullmatch(r"[A-Za-z0-9_-]+", sent)
    assert log_name(sent) == name


@given(names=st.lists(st.tuples(st.one_of(IDS, st.text(max_size=200)), st.integers(1, 3)), min_size=2, unique=True))
def test_two_names_are_never_sent_as_one(names):
    sent = [wire_name(name, limit=64, nth=nth) for name, nth in names]
    assert len(set(sent)) == len(sent)
    assert all(rules.ID.fullmatch(name) for name in sent)


def test_what_fits_is_sent_as_it_is():
    for name in ("toolu_01A", "call-9", "bash", "x", "h", "X-1"):
        assert wire_name(name, limit=64) == log_name(name) == name

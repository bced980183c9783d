"""`TurnlogConversationStore`: the same messages, two processes, a program, and what only a session of ours can do."""

import asyncio
import os
import subprocess
import sys

import pytest
from pydantic_ai import Agent, BinaryImage, DocumentUrl, ImageUrl
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationConflict
from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.usage import RequestUsage

import turnlog
from tests.adapters import theirs
from turnlog import File, Image, Invalid, Message, Text, ToolCall, ToolResult
from turnlog.adapters.pydantic_ai import TurnlogConversationStore
from turnlog.log.ids import process

PICTURE = BinaryImage(b"\xff\xfe?>", media_type="image/png")
ODD = [
    ModelRequest(parts=[SystemPromptPart("be brief"), UserPromptPart("hi")], instructions="do", run_id="r1"),
    ModelResponse(
        parts=[
            ThinkingPart("hm", signature="s" * 200, provider_name="anthropic"),
            TextPart("x\x00ü\u2028"),
            ToolCallPart("pay", {"api_key": "sk-live-1234567890abcdef", "n": [1, 2.0, None]}, "call-1"),
            ToolCallPart("pay", '{"b":  1, "a": "ü"}', "call-2"),
            ToolCallPart("pay", "not json", "call-3"),
        ],
        usage=RequestUsage(input_tokens=100, cache_read_tokens=60, output_tokens=7, details={"x": 1}),
        model_name="claude-sonnet-4-5",
        provider_response_id="msg_1",
        provider_details={"finish": {"~": "0.text"}},
        finish_reason="tool_call",
    ),
    ModelRequest(
        parts=[
            ToolReturnPart("pay", {"rows": ["a" * 40, "b"]}, "call-1"),
            ToolReturnPart("pay", "done", "call-2"),
            ToolReturnPart("pay", "again", "call-3", outcome="retried"),
        ]
    ),
    ModelRequest(
        parts=[UserPromptPart(["look", ImageUrl("https://a.example/b.png"), PICTURE])],
        metadata={"deep": {"token": "t", "": []}},
    ),
    ModelRequest(parts=[SystemPromptPart("a system prompt alone")]),
    ModelResponse(parts=[]),
]


def dumped(messages) -> bytes:
    return ModelMessagesTypeAdapter.dump_json(messages)


@pytest.mark.parametrize("backend", ["memory", "files"])
def test_every_odd_message_comes_back_exactly(backend, tmp_path):
    async def work():
        place = turnlog.open("memory:" if backend == "memory" else tmp_path)
        await TurnlogConversationStore(place).save(Conversation(conversation_id="c1", messages=list(ODD)))
        again = TurnlogConversationStore(place if backend == "memory" else turnlog.open(tmp_path))
        return await again.load("c1"), await again.load("c1", limit=2)

    whole, two = asyncio.run(work())
    assert whole.messages == ODD
    assert two.messages == ODD[-2:]
    assert dumped(whole.messages) == dumped(ODD)
    assert isinstance(whole.messages[1].parts[3].args, str)


def test_what_is_no_conversation_is_refused_and_leaves_no_session(tmp_path):
    store = TurnlogConversationStore(tmp_path)
    bad = [
        Conversation(conversation_id="", messages=[ODD[0]]),
        Conversation(conversation_id=3, messages=[ODD[0]]),
        Conversation(conversation_id="\ud800", messages=[ODD[0]]),
        Conversation(conversation_id="c1", messages=[ODD[0], "text"]),
        Conversation(conversation_id="c1", messages=[None]),
        Conversation(conversation_id="c1", messages=[ODD[0], ModelRequest(parts=[], metadata={"x": object()})]),
    ]
    for conversation in bad:
        with pytest.raises(Invalid):
            asyncio.run(store.save(conversation))
    with turnlog.open(tmp_path) as home:
        assert home.sessions() == []


def answering(text: str, seen: list) -> Agent:
    def answer(messages, info):
        seen[:] = messages
        return ModelResponse(parts=[TextPart(text)], usage=RequestUsage(input_tokens=10, output_tokens=2))

    return Agent(FunctionModel(answer))


def test_a_program_goes_on_where_it_was(tmp_path):
    async def run(number, seen):
        async with TurnlogConversationStore(tmp_path) as store:
            conversation = await store.load("c1") or Conversation(conversation_id="c1")
            agent = answering(f"answer {number}", seen)
            await store.save(await agent.run(f"question {number}", conversation=conversation))
            return (await store.load("c1")).usage.requests

    seen: list = []
    assert [asyncio.run(run(number, seen)) for number in (1, 2)] == [1, 2]
    assert [message.parts[0].content for message in seen] == ["question 1", "answer 1", "question 2"]
    with turnlog.open(tmp_path / "") as home:
        session = home.resume("c1")
        assert [message.role for message in session.messages()] == ["user", "assistant"] * 2
        assert (session.usage().own.input_tokens, session.usage().own.output_tokens) == (20, 4)
        assert session.labels == {"framework": "pydantic-ai", "conversation_id": "c1"}
        assert session.export("claude-code", tmp_path / "exported.jsonl")
    theirs.commands_see(tmp_path, "c1", "answer 2", 4)


def test_the_guide_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("TURNLOG_HOME", str(tmp_path))
    names = {"Conversation": Conversation, "agent": answering("hello", [])}
    code = "async def main():\n" + "".join(f"    {line}\n" for line in theirs.snippet("Pydantic AI").splitlines())
    exec(compile(code, "frameworks.md", "exec"), names)
    asyncio.run(names["main"]())
    with turnlog.open(tmp_path) as home:
        assert [message.role for message in home.resume("c1").messages()] == ["user", "assistant"]


def texts(conversation) -> list[str]:
    return [getattr(part, "content", part.part_kind) for message in conversation.messages for part in message.parts]


def asked(text: str) -> ModelRequest:
    return ModelRequest(parts=[UserPromptPart(text)])


def test_a_compaction_that_keeps_nothing_is_loaded_and_continued(tmp_path):
    async def work(home):
        store = TurnlogConversationStore(home)
        await store.save(Conversation(conversation_id="c1", messages=[asked("say a"), asked("say b")]))
        ours = home.resume("c1")
        ours.compact("so far")
        compacted = await TurnlogConversationStore(home).load("c1")
        assert texts(compacted) == ["so far"]
        forked = Conversation(conversation_id="c2", messages=[*compacted.messages, asked("elsewhere")])
        compacted.messages.append(asked("goes on"))
        await store.save(compacted)
        assert texts(await store.load("c1")) == ["so far", "goes on"]
        assert texts(await store.load("c1", limit=2)) == ["so far", "goes on"]
        await store.save(forked)
        assert texts(await store.load("c2")) == ["so far", "elsewhere"]
        assert texts(await store.load("c1")) == ["so far", "goes on"]

    with turnlog.open(tmp_path) as home:
        asyncio.run(work(home))


def test_what_turnlog_does_to_the_conversation_the_framework_sees(tmp_path):
    async def work(home):
        store = TurnlogConversationStore(home)
        await store.save(Conversation(conversation_id="c1", messages=[asked(f"say {word}") for word in "abc"]))
        before = await store.load("c1")
        ours = home.resume("c1")
        ours.assistant([Text("from elsewhere"), ToolCall(id="c", name="bash", input={"a": 1})])
        ours.tool_result("c", "out")
        seen = await store.load("c1")
        assert texts(seen) == ["say a", "say b", "say c", "from elsewhere", "tool-call", "out"]
        assert seen.messages[-1].parts[0].tool_name == "bash"
        before.messages.append(asked("stale"))
        with pytest.raises(ConversationConflict):
            await store.save(before)
        seen.messages.append(asked("goes on"))
        await store.save(seen)
        assert texts(await store.load("c1"))[-2:] == ["out", "goes on"]
        ours.refresh()
        ours.edit(ours.messages()[0], "[redacted]")
        assert texts(await store.load("c1"))[0] == "[redacted]"
        ours.compact("so far", keep=1)
        compacted = await store.load("c1")
        assert texts(compacted) == ["so far", "goes on"]
        assert texts(await store.load("c1", limit=1)) == ["goes on"]
        compacted.messages.append(asked("and on"))
        await store.save(compacted)
        assert texts(await store.load("c1")) == ["so far", "goes on", "and on"]
        ours.refresh()
        ours.rewind(to=ours.messages()[1])
        rewound = await store.load("c1")
        assert texts(rewound) == ["say a", "say b"]
        assert (await store.read_record("c1")).head_id == ours.messages()[1].id
        rewound.messages.append(asked("again"))
        await store.save(rewound)
        assert texts(await store.load("c1")) == ["say a", "say b", "again"]
        assert len(ours.fork().messages()) == 2

    with turnlog.open(tmp_path) as home:
        asyncio.run(work(home))


def test_a_session_of_another_agent_can_be_gone_on_with(tmp_path):
    async def work(home):
        store = TurnlogConversationStore(home)
        conversation = await store.load("other")
        assert texts(conversation) == ["hello", "hi"]
        conversation.messages.append(asked("more"))
        await store.save(conversation)
        assert texts(await store.load("other")) == ["hello", "hi", "more"]

    with turnlog.open(tmp_path) as home:
        other = home.create(id="other")
        other.user("hello")
        other.assistant("hi")
        asyncio.run(work(home))


def test_pictures_and_files_that_others_sent_are_there(tmp_path):
    async def work(home):
        asked, _, result = (await TurnlogConversationStore(home).load("other")).messages
        [prompt], [output] = asked.parts, result.parts
        assert prompt.content == [PICTURE, DocumentUrl("https://x.example/a.pdf")]
        assert output.content == ["look", BinaryImage(b"p" * 100_000, media_type="image/png")]

    with turnlog.open(tmp_path) as home:
        other = home.create(id="other")
        other.user([Image(media_type="image/png", data=PICTURE.data), File(url="https://x.example/a.pdf")])
        other.assistant([ToolCall(id="c", name="read", input={})])
        picture = Image(media_type="image/png", data=b"p" * 100_000)  # lies in a blob
        other.append(Message(role="tool", blocks=[ToolResult(call="c", content=[Text("look"), picture])]))
        asyncio.run(work(home))


def test_its_messages_have_blocks(tmp_path):
    with turnlog.open(tmp_path) as home:
        asyncio.run(TurnlogConversationStore(home).save(Conversation(conversation_id="c1", messages=list(ODD))))
        said = home.resume("c1").messages()
        assert [one.role for one in said] == ["user", "assistant", "tool", "user", "system", "assistant"]
        assert said[1].blocks[3] == ToolCall(id="call-2", name="pay", input={"b": 1, "a": "ü"})
        assert (said[1].usage.input_tokens, said[1].usage.cache_read_tokens) == (40, 60)
        assert said[2].blocks[2] == ToolResult(call="call-3", name="pay", content="again", is_error=True)


WORKER = """
import asyncio, sys
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationConflict
from pydantic_ai.messages import ModelRequest, UserPromptPart
from turnlog.adapters.pydantic_ai import TurnlogConversationStore

async def main():
    store = TurnlogConversationStore(sys.argv[1])
    for number in range(50):
        while True:
            conversation = await store.load("c1", limit=1) or Conversation(conversation_id="c1")
            conversation.messages.append(ModelRequest(parts=[UserPromptPart(f"{sys.argv[2]}:{number}")]))
            try:
                await store.save(conversation)
                break
            except ConversationConflict:
                pass

asyncio.run(main())
"""


def test_eight_processes_lose_nothing(tmp_path):
    workers = [
        subprocess.Popen([sys.executable, "-c", WORKER, str(tmp_path), str(me)], env=os.environ) for me in range(8)
    ]
    assert [worker.wait(timeout=300) for worker in workers] == [0] * 8
    found = texts(asyncio.run(TurnlogConversationStore(tmp_path).load("c1")))
    assert len(set(found)) == len(found) == 400


def test_what_no_log_can_hold_comes_back_all_the_same(tmp_path):
    messages = [
        ModelRequest(parts=[UserPromptPart("lone \ud800 surrogate")]),
        ModelResponse(parts=[ToolCallPart("pay", {"n": 10**30, "~": 2**64}, "c1")]),
        ModelResponse(
            parts=[ToolCallPart("pay", "[" * 300 + "]" * 300, "c2")], usage=RequestUsage(input_tokens=10**30)
        ),
        ModelResponse(parts=[ToolCallPart("pay", "[" * 3000 + "]" * 3000, "c3")]),
    ]

    async def work():
        async with TurnlogConversationStore(tmp_path) as store:
            await store.save(Conversation(conversation_id="c1", messages=list(messages)))
        async with TurnlogConversationStore(tmp_path) as store:
            return await store.load("c1")

    assert asyncio.run(work()).messages == messages


def test_a_listing_says_what_turnlog_did_since(tmp_path):
    async def records(store):
        found = await store.list_conversations()
        assert found == [await store.read_record(record.conversation_id) for record in found]
        return {record.conversation_id: record for record in found}

    async def work():
        with turnlog.open(tmp_path) as home:
            store = TurnlogConversationStore(home)
            for number in (1, 2):
                conversation = await store.load("c1") or Conversation(conversation_id="c1")
                conversation.messages.append(ModelRequest(parts=[UserPromptPart(f"question {number}")]))
                await store.save(conversation)
            before = (await records(store))["c1"]
            session = home.resume("c1")
            session.rewind(to=session.messages()[0], files=False)
            after = (await records(store))["c1"]
            assert after.head_id == session.messages()[0].id != before.head_id
            assert after.revision != before.revision
            session.fork(id="forked")
            assert set(await records(store)) == {"c1", "forked"}
            await store.save(await store.load("c1"))
            await records(store)

    asyncio.run(work())


def test_a_listing_opens_no_session_whichever_process_saved_last(tmp_path, monkeypatch):
    async def save(text):
        async with TurnlogConversationStore(tmp_path) as store:
            conversation = await store.load("c1") or Conversation(conversation_id="c1")
            conversation.messages.append(ModelRequest(parts=[UserPromptPart(text)]))
            await store.save(conversation)
            monkeypatch.setattr(store, "_find_record", None)  # it would open the session
            return [record.conversation_id for record in await store.list_conversations()]

    for number in range(3):
        process.renew()
        assert asyncio.run(save(f"question {number}")) == ["c1"]

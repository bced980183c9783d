"""A small program of Pydantic AI's, for `test_every`."""

import asyncio

from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationConflict
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.usage import RequestUsage

from turnlog.adapters.pydantic_ai import TurnlogConversationStore as Store

SESSION, OTHER = "c1", "c2"


def opened(home, session=SESSION):
    return Store(home)


def _answer(messages, info):
    usage = RequestUsage(input_tokens=10, output_tokens=2)
    return ModelResponse(parts=[TextPart(f"answer to {messages[-1].parts[-1].content}")], usage=usage)


def ask(store, text, session=SESSION):
    async def work():
        conversation = await store.load(session) or Conversation(conversation_id=session)
        await store.save(await Agent(FunctionModel(_answer)).run(text, conversation=conversation))

    while True:
        try:
            return asyncio.run(work())
        except ConversationConflict:
            continue  # as the framework asks of who shares a conversation


def texts(store, session=SESSION):
    conversation = asyncio.run(store.load(session))
    messages = [] if conversation is None else conversation.messages
    return [part.content for message in messages for part in message.parts if hasattr(part, "content")]


def keep(store, secret):
    async def work():
        conversation = Conversation(conversation_id=SESSION)
        conversation.deferred_tool_requests = DeferredToolRequests(approvals=[ToolCallPart("pay", secret, "call-1")])
        await store.save(conversation)

    asyncio.run(work())


def kept(store):
    return asyncio.run(store.load(SESSION)).deferred_tool_requests.approvals[0].args


def erase(store):
    asyncio.run(store.delete(SESSION))

"""What the guides put beside our programs, with Pydantic AI: the very lines."""

import asyncio

from pydantic_ai import Agent
from pydantic_ai.models.function import FunctionModel

from tests.adapters import theirs


def test_a_service(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(compile(theirs.program("service.md", "answer_pydantic_ai"), "service.md", "exec"), names)
    seen = []

    async def stream(messages, info):
        seen[:] = messages
        yield "answer "
        yield str(len(messages))

    async def ask(text):
        agent = Agent(FunctionModel(stream_function=stream))
        return "".join([piece async for piece in names["answer_pydantic_ai"](agent, "chat-1", text)])

    assert [asyncio.run(ask(text)) for text in ("question 1", "question 2")] == ["answer 1", "answer 3"]
    assert [message.parts[0].content for message in seen] == ["question 1", "answer 1", "question 2"]

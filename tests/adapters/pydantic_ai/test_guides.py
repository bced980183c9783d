"""What the guides put beside our programs, with Pydantic AI: the very lines."""

import asyncio

import pytest
from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
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


@pytest.mark.parametrize("allow", [True, False])
def test_a_tool_that_somebody_allows(allow, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(compile(theirs.program("asking.md", "begin_pydantic_ai"), "asking.md", "exec"), names)
    deleted = []

    def model(messages, info):
        is_first = len(messages) == 1
        return ModelResponse(parts=[ToolCallPart("delete", {"name": "old.log"}) if is_first else TextPart("done")])

    agent = Agent(FunctionModel(model), output_type=[str, DeferredToolRequests])

    @agent.tool_plain(requires_approval=True)
    def delete(name: str) -> str:
        deleted.append(name)
        return "gone"

    asked = asyncio.run(names["begin_pydantic_ai"](agent, "remove it"))
    assert [call.tool_name for call in asked.approvals] == ["delete"]
    assert asyncio.run(names["go_on_pydantic_ai"](agent, asked, allow=allow)) == "done"
    assert deleted == (["old.log"] if allow else [])

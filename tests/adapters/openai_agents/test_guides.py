"""What the guides put beside our programs, with OpenAI Agents: the very lines, with its own store and with ours."""

import asyncio

import pytest
from agents import Agent, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call

import turnlog
from tests.adapters import theirs
from turnlog.adapters.openai_agents import TurnlogSession

THEIRS, OURS = 'SQLiteSession(id, "chats.sqlite")', "TurnlogSession(id)"


@pytest.mark.parametrize("store", [THEIRS, OURS])
def test_a_service(store, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TURNLOG_HOME", str(tmp_path / "home"))
    names = {"TurnlogSession": TurnlogSession}
    code = theirs.program("service.md", "answer_openai")
    assert THEIRS in code
    exec(compile(code.replace(THEIRS, store), "service.md", "exec"), names)

    async def ask(agent, text):
        return "".join([piece async for piece in names["answer_openai"](agent, "chat-1", text)])

    for number in (1, 2):
        model = ScriptedModel()
        model.enqueue([assistant_message(f"answer {number}")])
        assert asyncio.run(ask(Agent(name="a", model=model), f"question {number}")) == f"answer {number}"
    given = model.last_call.input
    assert [item["content"] for item in given if item["role"] == "user"] == ["question 1", "question 2"]
    if store == OURS:
        with turnlog.open(tmp_path / "home") as home:
            assert len(home.resume("chat-1").messages()) == 4


@pytest.mark.parametrize("allow", [True, False])
def test_a_tool_that_somebody_allows(allow, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(compile(theirs.program("asking.md", "begin_openai"), "asking.md", "exec"), names)
    deleted = []

    @function_tool(needs_approval=True)
    def delete(name: str) -> str:
        deleted.append(name)
        return "gone"

    def agent(*steps):
        model = ScriptedModel()
        for step in steps:
            model.enqueue([step])
        return Agent(name="a", model=model, tools=[delete])

    asked = function_call("delete", {"name": "old.log"}, call_id="c1")
    assert not asyncio.run(names["begin_openai"](agent(asked), "remove it"))
    assert deleted == []
    assert asyncio.run(names["go_on_openai"](agent(assistant_message("done")), allow=allow)) == "done"
    assert deleted == (["old.log"] if allow else [])

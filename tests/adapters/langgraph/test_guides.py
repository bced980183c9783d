"""What the guides put beside our programs, with LangGraph: the very lines, with its own store and with ours."""

import asyncio

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

import turnlog
from tests.adapters import theirs
from turnlog.adapters.langgraph import TurnlogSaver

THEIRS, OURS = 'AsyncSqliteSaver.from_conn_string("chats.sqlite")', "TurnlogSaver()"


@pytest.mark.parametrize("store", [THEIRS, OURS])
def test_a_service(store, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TURNLOG_HOME", str(tmp_path / "home"))
    names = {"TurnlogSaver": TurnlogSaver}
    code = theirs.program("service.md", "answer_langgraph")
    assert THEIRS in code
    exec(compile(code.replace(THEIRS, store), "service.md", "exec"), names)
    model = GenericFakeChatModel(messages=iter([AIMessage("answer 1"), AIMessage("answer 2")]))
    seen = []

    async def answer(state):
        seen[:] = [message.content for message in state["messages"]]
        return {"messages": [await model.ainvoke(state["messages"])]}

    builder = StateGraph(MessagesState)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")

    async def ask(text):
        return "".join([piece async for piece in names["answer_langgraph"](builder, "chat-1", text)])

    assert [asyncio.run(ask(f"question {number}")) for number in (1, 2)] == ["answer 1", "answer 2"]
    assert seen == ["question 1", "answer 1", "question 2"]
    if store == OURS:
        with turnlog.open(tmp_path / "home") as home:
            assert len(home.resume("chat-1").messages()) == 4


@pytest.mark.parametrize("allow", [True, False])
def test_a_tool_that_somebody_allows(allow, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(compile(theirs.program("asking.md", "run_langgraph"), "asking.md", "exec"), names)
    deleted = []

    def delete(state):
        if interrupt("may old.log go?"):
            deleted.append("old.log")
        return {"messages": [AIMessage("done")]}

    builder = StateGraph(MessagesState)
    builder.add_node("delete", delete)
    builder.add_edge(START, "delete")
    begun = asyncio.run(names["run_langgraph"](builder, "r1", {"messages": [("user", "remove it")]}))
    assert [one.value for one in begun["__interrupt__"]] == ["may old.log go?"]
    ended = asyncio.run(names["run_langgraph"](builder, "r1", Command(resume=allow)))
    assert ended["messages"][-1].content == "done"
    assert deleted == (["old.log"] if allow else [])

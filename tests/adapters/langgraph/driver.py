"""A small program of LangGraph's, for `test_every`."""

import asyncio
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages

from turnlog.adapters.langgraph import TurnlogSaver as Store

SESSION, OTHER = "t1", "t2"


class State(TypedDict):
    messages: Annotated[list, add_messages]
    note: Any


def _answer(state: State) -> dict:
    usage = {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12}
    return {"messages": [AIMessage(f"answer to {state['messages'][-1].content}", usage_metadata=usage)]}


def _graph(store):
    builder = StateGraph(State)
    builder.add_node("answer", _answer)
    builder.add_edge(START, "answer")
    return builder.compile(checkpointer=store)


def _config(session):
    return {"configurable": {"thread_id": session}}


def opened(home, session=SESSION):
    return Store(home)


def ask(store, text, session=SESSION):
    asyncio.run(_graph(store).ainvoke({"messages": [("user", text)]}, _config(session)))


def texts(store, session=SESSION):
    state = asyncio.run(_graph(store).aget_state(_config(session)))
    return [message.content for message in state.values.get("messages", [])]


def keep(store, secret):
    asyncio.run(_graph(store).ainvoke({"messages": [("user", "hi")], "note": secret}, _config(SESSION)))


def kept(store):
    return asyncio.run(_graph(store).aget_state(_config(SESSION))).values["note"]


def erase(store):
    asyncio.run(store.adelete_thread(SESSION))

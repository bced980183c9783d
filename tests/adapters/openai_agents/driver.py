"""A small program of OpenAI Agents, for `test_every`."""

import asyncio

from agents import Agent, RunConfig, Runner, Usage
from agents.testing import ScriptedModel, assistant_message

from turnlog.adapters.openai_agents import TurnlogSession as Store

SESSION, OTHER = "c1", "c2"


def opened(home, session=SESSION):
    return Store(session, home)


def ask(store, text, session=SESSION):
    model = ScriptedModel()
    model.set_default_usage(Usage(requests=1, input_tokens=10, output_tokens=2, total_tokens=12))
    model.enqueue([assistant_message(f"answer to {text}")])
    agent, config = Agent(name="a", model=model), RunConfig(tracing_disabled=True)
    asyncio.run(Runner.run(agent, text, session=store, run_config=config))


def texts(store, session=SESSION):
    items = asyncio.run(store.get_items())
    said = [item["content"] for item in items if "content" in item]
    return [one if isinstance(one, str) else one[0]["text"] for one in said]


def keep(store, secret):
    asyncio.run(store.add_items([{"type": "of next year", "call_id": "c", "held": secret}]))


def kept(store):
    return asyncio.run(store.get_items())[-1]["held"]


def erase(store):
    store.sessions.home.purge(SESSION)

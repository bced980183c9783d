"""A small program of ADK's, for `test_every`."""

import asyncio

from google.adk.agents import Agent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import Runner
from google.genai import types

from turnlog.adapters.adk import TurnlogSessionService as Store

SESSION, OTHER = "app/ada/s1", "app/ada/s2"


class Scripted(BaseLlm):
    model: str = "scripted"

    async def generate_content_async(self, llm_request, stream=False):
        usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=10, candidates_token_count=2)
        asked = llm_request.contents[-1].parts[0].text
        content = types.Content(role="model", parts=[types.Part(text=f"answer to {asked}")])
        yield LlmResponse(content=content, usage_metadata=usage)


def _key(session):
    return dict(zip(("app_name", "user_id", "session_id"), session.split("/"), strict=True))


def opened(home, session=SESSION):
    return Store(home, stale="append")


def ask(store, text, session=SESSION):
    key = _key(session)

    async def work():
        agent = Agent(name="helper", model=Scripted())
        runner = Runner(app_name=key.pop("app_name"), agent=agent, session_service=store, auto_create_session=True)
        asked = types.Content(role="user", parts=[types.Part(text=text)])
        return [event async for event in runner.run_async(**key, new_message=asked)]

    asyncio.run(work())


def texts(store, session=SESSION):
    found = asyncio.run(store.get_session(**_key(session)))
    events = [] if found is None else found.events
    return [event.content.parts[0].text for event in events if event.content]


def keep(store, secret):
    asyncio.run(store.create_session(**_key(SESSION), state={"held": secret}))


def kept(store):
    return asyncio.run(store.get_session(**_key(SESSION))).state["held"]


def erase(store):
    asyncio.run(store.delete_session(**_key(SESSION)))

"""A small program of Strands', for `test_every`."""

from strands import Agent
from strands.models import Model
from strands.types.session import SessionAgent

from turnlog.adapters.strands import TurnlogSessionManager as Store

SESSION, OTHER = "s1", "s2"


class Scripted(Model):
    def get_config(self):
        return {}

    def update_config(self, **_):
        pass

    async def structured_output(self, *_, **__):
        yield {}

    async def stream(self, messages, *_, **__):
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": {}}}
        yield {"contentBlockDelta": {"delta": {"text": f"answer to {messages[-1]['content'][0]['text']}"}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}
        usage = {"inputTokens": 10, "outputTokens": 2, "totalTokens": 12}
        yield {"metadata": {"usage": usage, "metrics": {"latencyMs": 1}}}


def opened(home, session=SESSION):
    return Store(session, home)


def _agent(store):
    return Agent(agent_id="helper", model=Scripted(), session_manager=store, callback_handler=None)


def ask(store, text, session=SESSION):
    _agent(Store(session, store.sessions.home))(text)


def texts(store, session=SESSION):
    agent = _agent(Store(session, store.sessions.home))
    return [message["content"][0]["text"] for message in agent.messages]


def keep(store, secret):
    repository = store.session_repository
    repository.create_agent(SESSION, SessionAgent("helper", {"held": secret}, {}))


def kept(store):
    return store.session_repository.read_agent(SESSION, "helper").state["held"]


def erase(store):
    store.session_repository.delete_session(SESSION)

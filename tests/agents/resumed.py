"""What an agent asks its provider when it resumes a session."""

from __future__ import annotations

from pathlib import Path

from tests.agents.agent import Agent, Failed
from tests.agents.provider import Provider
from tests.agents.script import Conversation, Text, say


def heard(agent: Agent, conversation: Conversation) -> Conversation:
    """A conversation without what the agent says on its own account, and without empty text."""
    kept = (
        (role, [block for block in blocks if block != Text("") and not agent.is_noise(role, block)])
        for role, blocks in conversation
    )
    return [(role, blocks) for role, blocks in kept if blocks]


def resume_and_capture(
    agent: Agent, home: Path, session: Path | str, workspace: Path, prompt: str, *, answer: str = "Noted."
) -> Conversation:
    """The conversation in the request that an agent sends when it resumes a session with a prompt, which comes last.

    `session` is the file where the agent keeps its own (for opencode: one to import), or what its `resume` wants.
    """
    with Provider(say(answer)) as provider:
        known = agent.take_in(home, provider, workspace, session) if isinstance(session, Path) else session
        agent.invoke(home, provider, workspace, agent.resume(known, prompt))
        if not provider.main:
            raise Failed(f"{agent.name} resumed {known} and asked nothing; {provider.unknown}")
        return heard(agent, provider.main[0].conversation)

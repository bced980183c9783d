"""`r` in `turnlog tui`: the real agent takes the terminal over, with that session resumed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agents.agent import BIN, Agent, _environment
from tests.agents.desk import PROGRAM
from tests.agents.drive import ClaudeCode, Pi
from tests.agents.provider import Provider
from tests.agents.screen import Screen, skip_welcome
from tests.agents.script import Text, flat, say

READY = {"claude-code": "? for shortcuts", "pi": "escape interrupt"}
"""What an agent shows on its own screen, and `turnlog tui` never does."""


def sent(provider: Provider) -> str:
    """Every text of the conversation that the agent sent last."""
    return "\n".join(block.text for _, block in flat(provider.main[-1].conversation) if isinstance(block, Text))


@pytest.mark.parametrize("agent", [ClaudeCode(), Pi()], ids=lambda agent: agent.name)
def test_r_shows_the_agents_own_screen_with_that_session_resumed(agent: Agent, tmp_path: Path):
    if not (BIN / agent.command).exists():
        pytest.skip(f"{agent.name} is not in {BIN}")
    home, place = tmp_path / "person", tmp_path / "project"
    (home / "tmp").mkdir(parents=True)
    place.mkdir()
    with Provider() as provider:
        for prompt, answer in (("count the apples", "Seven apples."), ("count the pears", "Nine pears.")):
            provider.play(say(answer))
            agent.invoke(home, provider, place, agent.run(prompt))
        skip_welcome(home, place)
        environ = _environment(home, provider) | agent.environment(home, provider)
        environ["PATH"] = f"{PROGRAM.parent}:{environ['PATH']}"
        with Screen(home / "tmp", [str(PROGRAM), "tui"], environ, place) as screen:
            screen.until("2 sessions")
            process = screen.pid
            screen.type("apples")
            screen.until("1 session ")
            screen.press("Enter")
            screen.until("Seven apples.")
            screen.type("r")
            shown = screen.until(READY[agent.name])
            assert screen.pid == process, "the agent is the same process: nothing waits behind it"
            assert "Seven apples." in shown
            assert "Nine pears." not in shown
            provider.play(say("Eight in all."))
            screen.type("and one more")
            screen.press("Enter")
            screen.until("Eight in all.")
        assert "count the apples" in sent(provider)
        assert "and one more" in sent(provider)
        assert "pears" not in sent(provider)

"""A session of a real agent, deleted as it deletes them, that `turnlog keep` had: the agent goes on with it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agents.agent import _environment
from tests.agents.drive import AGENTS
from tests.agents.provider import Provider
from tests.agents.script import say

PROGRAM = Path(sys.executable).with_name("turnlog")


@pytest.mark.parametrize("name", ["claude-code", "gemini-cli"])
def test_what_the_agent_deletes_is_listed_shown_counted_and_resumed(name: str, tmp_path: Path):
    agent = type(AGENTS[name])()
    home, place = tmp_path / "person", tmp_path / "project"
    home.mkdir()
    place.mkdir()
    with Provider() as provider:
        environ = _environment(home, provider) | agent.environment(home, provider)

        def turnlog(*words: str) -> str:
            done = subprocess.run([PROGRAM, *words], cwd=place, env=environ, capture_output=True, text=True)
            assert done.returncode == 0, (words, done.stdout, done.stderr)
            return done.stdout

        provider.play(say("In the cellar."))
        agent.invoke(home, provider, place, agent.run("Where is the blue bicycle?"))
        [row] = json.loads(turnlog("ls", "--all", "--json"))["sessions"]
        path = Path(json.loads(turnlog("path", row["name"], "--json"))["path"])
        turnlog("keep", name)
        turnlog("keep", "--now")
        total = json.loads(turnlog("usage", "--json"))["total"]
        whole = path.read_bytes()
        path.unlink()  # as it does itself, but only some minutes after a person started it
        after = json.loads(turnlog("ls", "--all", "--json"))["sessions"]
        assert row["name"] in {one["name"] for one in after}
        assert "blue bicycle" in turnlog("show", row["name"])
        assert row["name"] in turnlog("search", "blue bicycle")
        assert json.loads(turnlog("usage", "--json"))["total"]["input_tokens"] >= total["input_tokens"]
        back = json.loads(turnlog("resume", row["name"], "--json"))
        assert Path(back["path"]) == path
        assert path.read_bytes() == whole
        provider.play(say("Still there."))
        agent.invoke(home, provider, place, agent.resume(back["id"], "And now?"))
        assert "blue bicycle" in json.dumps(provider.main[-1].body)

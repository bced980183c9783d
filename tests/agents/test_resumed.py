"""Agents whose sessions are only read: the command that Turnlog names goes on with one, in the real program.

Cline resumes on a terminal alone; the others take the next prompt on the same command line.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.agents.agent import BIN, Agent, _environment
from tests.agents.guests import GUESTS
from tests.agents.more import MORE
from tests.agents.provider import Provider
from tests.agents.screen import Screen
from tests.agents.script import say

PROGRAM = Path(sys.executable).with_name("turnlog")
AGENTS: dict[str, Agent] = {**MORE, **GUESTS}


@pytest.mark.parametrize("name", sorted(AGENTS))
def test_the_command_that_is_named_goes_on_with_the_session(name: str, tmp_path: Path):
    agent, home, place = AGENTS[name], tmp_path / "person", tmp_path / "project"
    home.mkdir()
    place.mkdir()
    with Provider() as provider:
        environ = _environment(home, provider) | agent.environment(home, provider)

        def turnlog(*words: str) -> dict[str, Any]:
            done = subprocess.run([PROGRAM, *words, "--json"], cwd=place, env=environ, capture_output=True, text=True)
            assert done.returncode == 0, (words, done.stdout, done.stderr)
            return json.loads(done.stdout)

        provider.play(say("In the cellar."))
        agent.invoke(home, provider, place, agent.run("Where is the blue bicycle?"))
        [row] = turnlog("ls")["sessions"]
        assert (row["agent"], row["turns"], row["title"] or row["preview"]) == (name, 1, "Where is the blue bicycle?")
        back = turnlog("resume")
        assert (back["agent"], back["cwd"], back["command"][0]) == (name, str(place), agent.command)
        provider.play(say("Still there."))
        if name == "cline":
            _ask_on_a_terminal(tmp_path, back["command"], environ, place)
        else:
            agent.invoke(home, provider, place, [*back["command"][1:], *agent.run("And now?")])
        asked = json.dumps(provider.main[-1].body)
        assert "Where is the blue bicycle?" in asked
        assert "And now?" in asked
        [row] = turnlog("ls")["sessions"]
        assert row["turns"] == 2
        told = turnlog("show", row["name"])
        assert [problem for problem in told["problems"] if not problem.get("is_news")] == []
        assert told["totals"]["usage"]["output_tokens"] == 2 * say("").usage.output  # one for each turn


def _ask_on_a_terminal(folder: Path, command: list[str], environ: dict[str, str], place: Path) -> None:
    words = [str(BIN / command[0]), *command[1:]]
    try:
        with Screen(folder, words, environ, place) as screen:
            screen.until("In the cellar.")  # what was said before is on the screen
            screen.type("And now?")
            screen.press("Enter")
            screen.until("Still there.")
    finally:
        _stop_hub(Path(environ["HOME"]))


def _stop_hub(home: Path) -> None:
    """What it leaves running behind its back."""
    for path in (home / ".cline/data/locks/hub").glob("*.json"):
        pid = json.loads(path.read_text()).get("pid")
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)

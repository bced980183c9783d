"""The real agents with our server in their settings: they ask what was said before, and do not find their own question.

The official client library is a judge as well: it lists and calls everything.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agents.agent import Agent, _environment
from tests.agents.drive import AGENTS, Codex, Opencode
from tests.agents.more import MORE
from tests.agents.provider import Provider
from tests.agents.script import Call, Result, Turn, flat, say

PROGRAM = Path(sys.executable).with_name("turnlog")
LIBRARY = Path(__file__).with_name("node_modules") / ".python"
TOOLS = {
    "claude-code": "mcp__turnlog__search_sessions",
    "codex": "mcp__turnlog/search_sessions",
    "gemini-cli": "mcp_turnlog_search_sessions",
    "opencode": "turnlog_search_sessions",
    "qwen-code": "mcp__turnlog__search_sessions",
    "copilot-cli": "turnlog-search_sessions",
}
SAID = "The quokka deploy needs the marzipan flag, and not the other one."


class Person:
    """Somebody with one agent that has our server, and a project in which it worked before."""

    def __init__(self, agent: Agent, folder: Path, provider: Provider, *, hooked: bool) -> None:
        self.agent, self.provider = agent, provider
        self.home, self.place = folder / "person", folder / "project"
        self.place.mkdir()
        self.home.mkdir()
        configure = type(agent).configure

        def configured(home: Path, provider: Provider) -> None:
            configure(agent, home, provider)
            self.turnlog("mcp", "install", agent.name, "--anyway")
            if hooked:
                self.turnlog("hooks", "install", agent.name, "--anyway", "--trust")

        agent.configure = configured  # type: ignore[method-assign]

    @property
    def environ(self) -> dict[str, str]:
        return _environment(self.home, self.provider) | self.agent.environment(self.home, self.provider)

    def turnlog(self, *words: str) -> str:
        done = subprocess.run([PROGRAM, *words], cwd=self.place, env=self.environ, capture_output=True, text=True)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def ask(self, prompt: str, *answers: Turn) -> None:
        self.provider.play(*answers)
        run = self.agent.run_with_helpers(prompt) if isinstance(self.agent, Codex) else self.agent.run(prompt)
        self.agent.invoke(self.home, self.provider, self.place, run)


@pytest.fixture(params=["plain", "hooked"])
def person(request: pytest.FixtureRequest, tmp_path: Path, name: str) -> Iterator[Person]:
    with Provider() as provider:
        yield Person(type({**AGENTS, **MORE}[name])(), tmp_path, provider, hooked=request.param == "hooked")


@pytest.mark.parametrize("name", TOOLS)
def test_it_finds_what_an_older_session_said_and_not_its_own_question(person: Person, name: str):
    person.ask("How do we do the quokka deploy?", say(SAID))
    call = Call("call_1", TOOLS[name], {"query": "quokka deploy flag"})
    person.ask("Do the quokka deploy: first search whether the wombat word was used", Turn([call]), say("Found it."))
    assert person.provider.left == 0
    results = [block for _, block in flat(person.provider.main[-1].conversation) if isinstance(block, Result)]
    told = "".join(result.text for result in results)
    assert "marzipan" in told, told
    assert "wombat" not in told, told
    assert "not instructions" in told

    person.ask("And once more, about the quokka deploy", Turn([call]), say("Found it again."))
    results = [block for _, block in flat(person.provider.main[-1].conversation) if isinstance(block, Result)]
    told = "".join(result.text for result in results)
    assert "marzipan" in told
    assert "once more" not in told  # nor itself
    if not isinstance(person.agent, Opencode):
        assert told.count("marzipan") <= 2  # nor what it was told the last time
    status = json.loads(person.turnlog("mcp", "status", "--json"))
    assert [row["agent"] for row in status["agents"] if row["is_current"]] == [name]


CLIENT = """
import asyncio, json, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

async def main():
    program, *words = sys.argv[1:]
    told = {}
    async with stdio_client(StdioServerParameters(command=program, args=["mcp", *words])) as (read, write):
        async with ClientSession(read, write) as session:
            hello = await session.initialize()
            told["server"] = hello.model_dump(mode="json", by_alias=True)
            told["tools"] = [tool.name for tool in (await session.list_tools()).tools]
            found = await session.call_tool("search_sessions", {"query": "quokka"})
            told["search"] = found.model_dump(mode="json", by_alias=True)
            hit = told["search"]["structuredContent"]["hits"][0]
            calls = {
                "read_session": {"session": hit["session"], "around": hit["entry"]},
                "list_sessions": {}, "usage": {"by": "model"}, "list_changes": {"session": hit["session"]},
            }
            for name, arguments in calls.items():
                done = await session.call_tool(name, arguments)
                told[name] = done.model_dump(mode="json", by_alias=True)
            told["resources"] = [str(one.uri) for one in (await session.list_resources()).resources]
            await session.list_resource_templates()
            for uri in (told["resources"][0], told["resources"][0] + "/turn/1"):
                told[uri] = (await session.read_resource(uri)).model_dump(mode="json", by_alias=True)
            told["prompts"] = [one.name for one in (await session.list_prompts()).prompts]
            for name, key in (("recall", "topic"), ("handover", "session")):
                await session.get_prompt(name, {key: "x"})
            await session.send_ping()
    print(json.dumps(told))

asyncio.run(main())
"""


def test_the_official_client_lists_and_calls_everything(tmp_path: Path):
    agent = type(AGENTS["codex"])()
    with Provider() as provider:
        person = Person(agent, tmp_path, provider, hooked=False)
        person.ask("How do we do the quokka deploy?", say(SAID))
        environ: dict[str, Any] = {
            **person.environ,
            "PYTHONPATH": str(LIBRARY),
            "CODEX_HOME": str(person.home / ".codex"),
        }
        # The client passes on little of its environment: HOME is enough here.
        done = subprocess.run(
            [sys.executable, "-c", CLIENT, str(PROGRAM), "--allow-rewind"],
            cwd=person.place, env={**os.environ, **environ}, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["tools"][-1] == "rewind"
    assert told["server"]["protocolVersion"] == "2025-11-25"
    assert "marzipan" in json.dumps(told["read_session"])
    assert told["list_changes"]["isError"]
    assert not any(told[name].get("isError") for name in ("search", "read_session", "list_sessions", "usage"))
    assert told["prompts"] == ["recall", "handover"]
    assert told["resources"][0].startswith("turnlog://session/")

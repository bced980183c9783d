"""The real agents with our hooks in their settings: each turn can be taken back, and it is one session throughout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agents.agent import Agent, Done, _environment
from tests.agents.drive import AGENTS, heard
from tests.agents.provider import Provider
from tests.agents.script import Call, Text, Turn, flat, say

PROGRAM = Path(sys.executable).with_name("turnlog")


class Desk:
    """A person with one agent, hooked, and a project."""

    def __init__(self, agent: Agent, folder: Path, provider: Provider) -> None:
        self.agent, self.home, self.provider = agent, folder / "person", provider
        self.place = folder / "project"
        self.place.mkdir()
        self.home.mkdir()
        (self.place / "a.py").write_text("x = 1\n")
        (self.place / "b.txt").write_text("bee\n")
        (self.place / "c.txt").write_text("see\n")
        subprocess.run(["git", "init", "-q", "."], cwd=self.place, check=True)
        self._calls = 0
        self._install()

    def _install(self) -> None:
        configure = type(self.agent).configure
        desk = self

        def configured(home: Path, provider: Provider) -> None:
            configure(desk.agent, home, provider)
            desk.turnlog("hooks", "install", desk.agent.name, "--anyway", "--trust")

        self.agent.configure = configured  # type: ignore[method-assign]

    @property
    def environ(self) -> dict[str, str]:
        return _environment(self.home, self.provider) | self.agent.environment(self.home, self.provider)

    def turnlog(self, *words: str, check: bool = True) -> str:
        done = subprocess.run([PROGRAM, *words], cwd=self.place, env=self.environ, capture_output=True, text=True)
        assert not check or done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def json(self, *words: str) -> dict[str, Any]:
        return json.loads(self.turnlog(*words, "--json"))

    def ask(self, arguments: list[str], *answers: Turn) -> Done:
        self.provider.play(*answers, say("Done."))
        return self.agent.invoke(self.home, self.provider, self.place, arguments)

    def shell(self, command: str) -> Turn:
        self._calls += 1
        return Turn([Call(f"call_{self._calls:04}", *self.agent.shell(command))])

    def edit(self, name: str, old: str, new: str) -> Turn:
        self._calls += 1
        return Turn([Call(f"call_{self._calls:04}", *self.agent.edit(self.place / name, old, new))])

    def look(self, name: str) -> Turn:
        self._calls += 1
        return Turn([Call(f"call_{self._calls:04}", *self.agent.read(self.place / name))])

    def settled(self) -> None:
        """What goes on behind the agent's back has ended."""
        time.sleep(1.5)

    def files(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for path in sorted(self.place.rglob("*")):
            name = str(path.relative_to(self.place))
            if name.split("/")[0] == ".git" or (path.is_dir() and not path.is_symlink()):
                continue
            found[name] = os.readlink(path) if path.is_symlink() else (path.read_bytes(), path.stat().st_mode & 0o777)
        return found

    def changes(self, turn: int) -> dict[str, str]:
        return {item["path"]: item["action"] for item in self.json("diff", "--turn", str(turn))["changes"]}

    def authors(self, name: str) -> list[tuple[Any, ...]]:
        """Of each line the session, the number of the turn, the prompt, and why it is nobody's."""
        lines = self.json("blame", name)["lines"]
        return [(line["session"], line["turn"], line["prompt"], line["why"]) for line in lines]

    def rows(self) -> list[dict[str, Any]]:
        return [row for row in self.json("ls", "--all")["sessions"]]

    def said(self) -> list[str]:
        """What the agent sent with its last prompt, in words."""
        request = self.provider.main[-1]
        return [block.text for _, block in flat(heard(self.agent, request.conversation)) if isinstance(block, Text)]


@pytest.fixture(params=AGENTS.values(), ids=AGENTS)
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Desk]:
    with Provider() as provider:
        yield Desk(type(request.param)(), tmp_path, provider)


def three_turns(desk: Desk) -> list[dict[str, Any]]:
    """The files before each turn and at the end: the person works between them."""
    agent = desk.agent
    states = [desk.files()]
    desk.ask(agent.run("first prompt"), desk.look("a.py"), desk.edit("a.py", "x = 1", "x = 2"))
    desk.settled()
    (desk.place / "mine.txt").write_text("my own\n")
    states.append(desk.files())
    shell = "sed -i s/bee/BEE/ b.txt; rm c.txt; mkdir -p gen; seq 3 > gen/n.txt; chmod 700 b.txt"
    desk.ask(agent.resume(agent.latest(desk.home), "second prompt"), desk.shell(shell))
    desk.settled()
    (desk.place / "mine.txt").write_text("my own\nand more\n")
    states.append(desk.files())
    shell = "mv a.py moved.py; ln -s b.txt link; printf '\\000\\001' > bin; rm -r gen"
    desk.ask(agent.resume(agent.latest(desk.home), "third prompt"), desk.shell(shell))
    desk.settled()
    states.append(desk.files())
    return states


def test_every_turn_is_shown_and_taken_back_to_the_byte_and_the_agent_goes_on(desk: Desk):
    states = three_turns(desk)
    [row] = desk.rows()
    session = row["id"]
    assert session.startswith(f"{desk.agent.name}-")
    assert (row["turns"], row["state"]) == (3, "idle")
    assert desk.changes(1) == {"a.py": "modified"}
    assert desk.changes(2) == {
        "b.txt": "modified", "c.txt": "deleted", "gen": "created", "gen/n.txt": "created",
    } or desk.changes(2) == {"b.txt": "modified", "c.txt": "deleted", "gen/n.txt": "created"}  # fmt: skip
    assert set(desk.changes(3)) >= {"moved.py", "link", "bin", "gen/n.txt"}
    assert desk.authors("moved.py") == [(session, 1, "first prompt", None)]
    assert desk.authors("b.txt") == [(session, 2, "second prompt", None)]
    assert desk.authors("mine.txt") == [(None, None, None, "between")] * 2

    desk.turnlog("rewind", "turn:3", "--yes")
    assert desk.files() == states[2]
    desk.turnlog("undo", "--yes")
    assert desk.files() == states[3]
    desk.turnlog("rewind", "turn:2", "--yes")
    assert desk.files() == {**states[1], "mine.txt": states[2]["mine.txt"]}

    told = desk.json("resume", session)
    assert told["agent"] == desk.agent.name
    taken = told["command"]
    if taken[:2] == ["sh", "-c"]:  # opencode takes it in first
        first = taken[2].partition("&&")[0]
        subprocess.run(["sh", "-c", first], cwd=desk.place, env=desk.environ, check=True, capture_output=True)
    desk.ask(desk.agent.resume(resumed(desk, told), "another second prompt"), desk.shell("echo two > two.txt"))
    desk.settled()
    said = [text for text in desk.said() if "prompt" in text]
    assert [text.strip() for text in said] == ["first prompt", "another second prompt"], said
    [row] = desk.rows()
    assert (row["id"], row["turns"]) == (session, 4)
    assert desk.changes(4) == {"two.txt": "created"}

    desk.turnlog("rewind", "turn:1", "--yes")
    assert desk.files() == {**states[0], "mine.txt": states[2]["mine.txt"]}
    log = (desk.home / ".turnlog/hooks.log").read_text()
    assert '"error"' not in log, log


def resumed(desk: Desk, told: dict[str, Any]) -> str:
    """What the agent's `resume` takes for what was handed over."""
    return told["path"] if desk.agent.name == "pi" else told["id"]


def test_what_is_typed_after_an_interruption_survives_every_rewind(desk: Desk):
    agent = desk.agent
    before = desk.files()
    desk.provider.play(desk.shell("echo one > one.txt"), Turn([Text("I go on and")], hold=True))
    agent.invoke(desk.home, desk.provider, desk.place, agent.run("first prompt"), interrupt=True)
    desk.settled()
    (desk.place / "mine.txt").write_text("typed after the interruption\n")
    (desk.place / "b.txt").write_text("mine as well\n")
    desk.ask(agent.resume(agent.latest(desk.home), "second prompt"), desk.shell("echo two > two.txt"))
    desk.settled()
    [row] = desk.rows()
    assert row["turns"] == 2
    assert desk.changes(1) == {"one.txt": "created"}
    assert desk.changes(2) == {"two.txt": "created"}
    desk.turnlog("rewind", "turn:1", "--yes")
    typed = {"mine.txt": (b"typed after the interruption\n", 0o644), "b.txt": (b"mine as well\n", 0o644)}
    assert desk.files() == {**before, **typed}

"""A person with one agent, hooked, and a project: what the tests of live capture do at that desk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.agents.agent import Agent, Done, _environment
from tests.agents.provider import Provider
from tests.agents.resumed import heard
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

    def told(self) -> list[str]:
        """The same, with what the agent says on its own account."""
        return [block.text for _, block in flat(self.provider.main[-1].conversation) if isinstance(block, Text)]

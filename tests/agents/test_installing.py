"""What is installed is read by the real agents and runs; and nothing that happens to the program is their problem."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.agents.agent import Agent, Done
from tests.agents.drive import AGENTS, Codex
from tests.agents.provider import Provider
from tests.agents.record import workspace
from tests.agents.script import Call, Turn, say
from turnlog.hooks import hooked_agent as hooked
from turnlog.hooks.install import plan_install, plan_uninstall
from turnlog.hooks.places import HookPlaces
from turnlog.hooks.status import status
from turnlog.machine.edit import make_edit
from turnlog.machine.imprint import Imprints

RECORDER = """#!{python}
import json, os, sys
told = {{"words": sys.argv[1:], "said": json.loads(sys.stdin.read() or "null"), "parent": os.getppid()}}
told["python"] = [os.environ.get(name, "") for name in ("PYTHONPATH", "PYTHONHOME", "PYTHONSAFEPATH")]
with open({path!r}, "a") as file:
    file.write(json.dumps(told) + "\\n")
"""


class Scene:
    """An agent with a home of its own, and a program that writes down what it is told."""

    def __init__(self, agent: Agent, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.agent = agent
        self.one = hooked(agent.name)
        self.home = folder / "home"
        self.project = folder / "project"
        self.told_in = folder / "told"
        self.program = folder / "a b" / "turnlog"
        self.program.parent.mkdir(parents=True)
        workspace(self.project)
        self.home.mkdir()
        environ = {"XDG_CONFIG_HOME": str(self.home / ".config")}
        self.places = HookPlaces(str(self.home), environ, str(self.project), Imprints(str(folder / "kept"), "hooks"))
        self.record()
        self._monkeypatch = monkeypatch

    def record(self) -> None:
        self.program.write_text(RECORDER.format(python=sys.executable, path=str(self.told_in)))
        self.program.chmod(0o755)

    def install(self, provider: Provider, scope: str = "user") -> None:
        self._monkeypatch.undo()
        self.agent.configure(self.home, provider)
        self._monkeypatch.setattr(self.agent, "configure", lambda *_: None)
        for edit in plan_install(self.one, self.places, scope, str(self.program), trust=True):
            make_edit(edit, self.places.imprints)

    def uninstall(self) -> None:
        for edit in plan_uninstall(self.one, self.places, "user"):
            make_edit(edit, self.places.imprints)

    def work(self, provider: Provider) -> Done:
        return self.agent.invoke(self.home, provider, self.project, self.agent.run("do it"))

    def told(self, enough: int = 0) -> list[dict[str, Any]]:
        """What the program was told; the last one may come when the agent is gone already."""
        for _ in range(100):
            lines = self.told_in.read_text().splitlines() if self.told_in.exists() else []
            if len(lines) >= enough:
                break
            time.sleep(0.1)
        self.told_in.unlink(missing_ok=True)
        return [json.loads(line) for line in lines]

    def script(self) -> list[Turn]:
        file = self.project / "notes.txt"
        calls = [self.agent.read(file), self.agent.edit(file, "two", "zwei"), self.agent.shell("touch new")]
        return [Turn([Call(f"call_{number}", *call)]) for number, call in enumerate(calls)] + [say("Done.")]


@pytest.fixture(params=AGENTS.values(), ids=AGENTS)
def scene(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(request.param, tmp_path, monkeypatch)


def means(scene: Scene, told: list[dict[str, Any]]) -> list[str]:
    return [event.means for one in told if (event := scene.one.event(one["words"][2])) is not None]


def test_it_is_told_of_a_turn_and_of_the_tools_that_write(scene: Scene):
    with Provider(*scene.script()) as provider:
        scene.install(provider)
        scene.work(provider)
        assert provider.left == 0
    told = scene.told(4)
    assert all(one["words"][:2] == ["hook", scene.agent.name] for one in told)
    tools = 3 if scene.agent.name == "codex" else 2  # its way to read a file is its shell
    assert means(scene, told)[: tools + 2] == ["begin", *["tool"] * tools, "end"]
    [session] = {one["said"]["session_id"] for one in told}
    assert session in scene.agent.latest(scene.home)
    assert all(one["said"]["cwd"] == str(scene.project) for one in told)
    assert all(one["python"] == ["", "", "1"] for one in told)
    assert (scene.project / "notes.txt").read_text() == "one\nzwei\nthree\n"


@pytest.mark.parametrize("trouble", ["gone", "no interpreter", "not for us", "blocks", "shouts"])
def test_whatever_happens_to_the_program_the_agent_goes_on(scene: Scene, trouble: str):
    texts = {
        "no interpreter": "#!/nowhere/python\n",
        "not for us": "#!/bin/sh\nexit 2\n",
        "blocks": "#!/bin/sh\necho no >&2\nexit 2\n",
        "shouts": "#!/bin/sh\necho oops >&2\nkill -9 $$\n",
    }
    with Provider(*scene.script()) as provider:
        scene.install(provider)
        if trouble == "gone":
            scene.program.unlink()
        else:
            scene.program.write_text(texts[trouble])
            scene.program.chmod(0o644 if trouble == "not for us" else 0o755)
        done = scene.work(provider)
        assert provider.left == 0
    assert "Done." in done.out
    said = [line for line in done.err.splitlines() if "hook" in line.lower()]
    assert [line for line in said if "fail" in line.lower() or "oops" in line or "error" in line.lower()] == []
    assert (scene.project / "notes.txt").read_text() == "one\nzwei\nthree\n"


def test_in_the_files_of_a_project(scene: Scene):
    if scene.agent.name == "codex":
        pytest.skip("reads them where its user trusts the project")
    with Provider(*scene.script()) as provider:
        scene.install(provider, "project")
        scene.work(provider)
    assert {"begin", "tool", "end"} <= set(means(scene, scene.told(4)))


def test_nothing_is_told_when_it_is_taken_out(scene: Scene):
    with Provider(say("Done.")) as provider:
        scene.install(provider)
        scene.uninstall()
        scene.work(provider)
    assert scene.told() == []
    assert status(scene.one, scene.places, "user").installed is False


@pytest.mark.parametrize("link", ["", "folder", "file"])
def test_codex_says_itself_that_they_are_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, link: str):
    agent = AGENTS["codex"]
    assert isinstance(agent, Codex)
    scene = Scene(agent, tmp_path, monkeypatch)
    real, place = tmp_path / "real", scene.home / ".codex"
    real.mkdir()
    if link == "folder":
        place.symlink_to(real)
    elif link == "file":
        place.mkdir()
        (real / "hooks.json").write_text("{}")
        (place / "hooks.json").symlink_to(real / "hooks.json")
    with Provider() as provider:
        scene.install(provider)
        asked = {"cwds": [str(scene.project)]}
        [found] = agent.ask(scene.home, provider, scene.project, "hooks/list", asked)["data"]
    assert [hook["trustStatus"] for hook in found["hooks"]] == ["trusted"] * 3
    assert found["errors"] == found["warnings"] == []

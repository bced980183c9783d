"""Two agents in one folder at once, and one that was started by `turnlog run`."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.agents.agent import BIN
from tests.agents.desk import PROGRAM, Desk
from tests.agents.drive import AGENTS
from tests.agents.provider import Provider
from tests.agents.script import Turn, say


@pytest.fixture(params=["claude-code", "gemini-cli"])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Desk]:
    agent = type(AGENTS[request.param])()
    if not (BIN / agent.command).exists():
        pytest.skip(f"{agent.name} is not in {BIN}")
    with Provider() as provider:
        yield Desk(agent, tmp_path, provider)


def meet(desk: Desk, me: str, other: str, what: str) -> Turn:
    """A shell command that ends when the other one has come as far."""
    flags = desk.home / "flags"
    flags.mkdir(exist_ok=True)
    return desk.shell(f"touch {flags}/{me}-{what}; until test -e {flags}/{other}-{what}; do sleep 0.1; done")


def test_what_each_of_two_edited_is_its_own(desk: Desk):
    work = {
        "one": [meet(desk, "one", "two", "began"), desk.look("a.py"), desk.edit("a.py", "x = 1", "x = one")],
        "two": [meet(desk, "two", "one", "began"), desk.look("b.txt"), desk.edit("b.txt", "bee", "two")],
    }
    work["one"] += [desk.shell("echo shell > shell.txt"), meet(desk, "one", "two", "edited"), say("Done.")]
    work["two"] += [meet(desk, "two", "one", "edited"), say("Done.")]
    prompts = {name: f"the prompt of number {name}" for name in work}
    desk.provider.play(*(replace(turn, to=prompts[name]) for name, turns in work.items() for turn in turns))
    threads: list[threading.Thread] = []
    for name in work:
        run = desk.agent.run(prompts[name])
        thread = threading.Thread(target=desk.agent.invoke, args=(desk.home, desk.provider, desk.place, run))
        thread.start()
        threads.append(thread)
        while not (desk.home / f"flags/{name}-began").exists() and thread.is_alive():
            time.sleep(0.1)
    for thread in threads:
        thread.join()
    desk.settled()
    sessions = {
        name: next(row["id"] for row in desk.rows() if prompts[name] in str(desk.json("show", row["id"])))
        for name in work
    }

    def plan(name: str) -> dict[str, str]:
        told = desk.json("rewind", "turn:1", "--dry-run", "--session", sessions[name])
        return {step["path"]: step["action"] for step in told["steps"]}

    assert plan("one") == {"a.py": "modify", "shell.txt": "conflict"}
    assert plan("two") == {"b.txt": "modify", "shell.txt": "conflict"}
    assert [line[0] for line in desk.authors("a.py") + desk.authors("b.txt")] == [sessions["one"], sessions["two"]]
    assert [line[3] for line in desk.authors("shell.txt")] == ["several"]
    desk.turnlog("rewind", "turn:1", "--session", sessions["one"], "--yes")
    assert ((desk.place / "a.py").read_text(), (desk.place / "b.txt").read_text()) == ("x = 1\n", "two\n")


def test_under_a_run_the_turns_are_the_agents(desk: Desk):
    (desk.home / "tmp").mkdir()
    desk.agent.configure(desk.home, desk.provider)
    desk.provider.play(desk.shell("echo one > one.txt"), say("Done."))
    words = [PROGRAM, "run", "--", BIN / desk.agent.command, *desk.agent.run("a prompt in a run")]
    done = subprocess.run(
        words, cwd=desk.place, env=desk.environ, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stderr
    desk.settled()
    [session] = [row["id"] for row in desk.rows() if row["id"].startswith(desk.agent.name)]
    assert f"its turns are in session {session}" in done.stderr
    assert [line[:2] for line in desk.authors("one.txt")] == [(session, 1)]
    desk.turnlog("rewind", "turn:1", "--session", session, "--yes")
    assert not (desk.place / "one.txt").exists()

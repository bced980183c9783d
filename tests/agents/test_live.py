"""The real agents with our hooks in their settings: each turn can be taken back, and it is one session throughout."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agents.desk import Desk
from tests.agents.drive import AGENTS
from tests.agents.more import MORE
from tests.agents.provider import Provider
from tests.agents.script import Text, Turn


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


@pytest.fixture(params=MORE.values(), ids=MORE)
def another(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Desk]:
    with Provider() as provider:
        yield Desk(type(request.param)(), tmp_path, provider)


def test_every_turn_of_more_agents_is_shown_and_taken_back_to_the_byte(another: Desk):
    states = three_turns(another)
    shown_and_taken_back(another, states)
    another.turnlog("rewind", "turn:1", "--yes")
    assert another.files() == {**states[0], "mine.txt": states[2]["mine.txt"]}
    assert '"error"' not in (another.home / ".turnlog/hooks.log").read_text()


def test_what_is_typed_after_an_interruption_of_more_agents_survives(another: Desk):
    survives_interruption(another)


def shown_and_taken_back(desk: Desk, states: list[dict[str, Any]]) -> str:
    """To before the second turn; gives the session."""
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
    return session


def test_every_turn_is_shown_and_taken_back_to_the_byte_and_the_agent_goes_on(desk: Desk):
    states = three_turns(desk)
    session = shown_and_taken_back(desk, states)
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
    survives_interruption(desk)


def test_what_is_typed_after_an_agent_was_killed_survives_every_rewind(desk: Desk):
    survives_interruption(desk, signal.SIGKILL)


def survives_interruption(desk: Desk, how: int = signal.SIGINT) -> None:
    agent = desk.agent
    before = desk.files()
    desk.provider.play(desk.shell("echo one > one.txt"), Turn([Text("I go on and")], hold=True))
    agent.invoke(desk.home, desk.provider, desk.place, agent.run("first prompt"), interrupt=True, how=how)
    desk.settled()
    if how == signal.SIGKILL:
        [row] = desk.rows()
        assert row["state"] == "crashed"
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


def test_a_fork_is_a_session_of_its_own_and_takes_back_its_own(desk: Desk):
    agent = desk.agent
    before = set(desk.files())
    desk.ask(agent.run("first prompt"), desk.shell("echo one > one.txt"))
    desk.settled()
    first = agent.latest(desk.home)
    forked = agent.fork(first, "forked prompt")
    if forked is None:
        pytest.skip(f"{agent.name} forks on a terminal only")
    desk.ask(forked, desk.shell("echo forked > forked.txt"))
    assert [text.strip() for text in desk.said() if "prompt" in text] == ["first prompt", "forked prompt"]
    desk.settled()
    desk.ask(agent.resume(first, "second prompt"), desk.shell("echo two > two.txt"))
    desk.settled()
    other, fork = desk.rows()
    assert other["turns"] == 2
    desk.turnlog("rewind", "turn:1", "--yes", "-s", other["id"])
    assert set(desk.files()) == {*before, "forked.txt"}
    desk.turnlog("undo", "--yes", "-s", other["id"])
    desk.turnlog("rewind", "--yes", "-s", fork["id"])
    assert set(desk.files()) == {*before, "one.txt", "two.txt"}
    assert '"error"' not in (desk.home / ".turnlog/hooks.log").read_text()

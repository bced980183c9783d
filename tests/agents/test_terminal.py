"""Claude Code on a terminal, with our hooks: what people press there, Esc above all, costs nobody anything."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agents.agent import BIN
from tests.agents.desk import PROGRAM, Desk
from tests.agents.drive import ClaudeCode
from tests.agents.provider import Provider
from tests.agents.screen import Screen, skip_welcome
from tests.agents.script import Text, Turn, say

READY = "bypass permissions on"


class Sitting(Desk):
    """A desk with a terminal."""

    screen: Screen

    def sit_down(self, *words: str) -> Screen:
        """Start the agent as people do; what it asks a new user was answered long ago."""
        if not (BIN / self.agent.command).exists():
            pytest.skip(f"{self.agent.name} is not in {BIN}")
        (self.home / "tmp").mkdir(exist_ok=True)
        self.agent.configure(self.home, self.provider)
        skip_welcome(self.home, self.place)
        command = [str(BIN / self.agent.command), "--model", self.agent.model, "--dangerously-skip-permissions", *words]
        path = f"{PROGRAM.parent}:{self.environ['PATH']}"
        self.screen = Screen(self.home / "tmp", command, {**self.environ, "PATH": path}, self.place)
        return self.screen

    def prompt(self, text: str, *answers: Turn) -> None:
        """Ask, and wait until the turn is over."""
        ended = self.events().count("Stop")
        self.provider.play(*answers, say(f"That was the {text}."))
        self.enter(text)
        self.screen.until(f"That was the {text}.")
        self.until(lambda: self.events().count("Stop") > ended)

    def enter(self, text: str) -> None:
        self.screen.until(READY)
        self.screen.type(text)
        self.screen.press("Enter")

    def until(self, happened: Any) -> None:
        end = time.monotonic() + 60
        while not happened():
            assert time.monotonic() < end, self.screen.text
            time.sleep(0.05)

    def events(self) -> list[str]:
        """What the agent told, in order."""
        log = self.home / ".turnlog/hooks.log"
        lines = log.read_text().splitlines() if log.exists() else []
        assert not [line for line in lines if '"error"' in line]
        return [json.loads(line)["event"] for line in lines]

    def escape(self) -> None:
        self.screen.press("Escape")
        self.screen.until("Interrupted")

    def typed(self, text: str) -> None:
        """The person types into two files, one of which is everybody's."""
        (self.place / "mine.txt").write_text(text)
        (self.place / "b.txt").write_text(text)

    def prompts(self) -> list[str]:
        """What was asked in the conversation that the agent sent last."""
        return [text.strip() for text in self.said() if text.strip().endswith(" prompt")]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Sitting]:
    with Provider() as provider:
        yield Sitting(ClaudeCode(), tmp_path, provider)


def test_three_turns_on_a_terminal_are_shown_and_taken_back_and_it_goes_on(desk: Sitting):
    states = [desk.files()]
    with desk.sit_down():
        desk.prompt("first prompt", desk.look("a.py"), desk.edit("a.py", "x = 1", "x = 2"))
        (desk.place / "mine.txt").write_text("my own\n")
        states.append(desk.files())
        shell = "sed -i s/bee/BEE/ b.txt; rm c.txt; mkdir -p gen; seq 3 > gen/n.txt; chmod 700 b.txt"
        desk.prompt("second prompt", desk.shell(shell))
        (desk.place / "mine.txt").write_text("my own\nand more\n")
        states.append(desk.files())
        shell = "mv a.py moved.py; ln -s b.txt link; printf '\\000\\001' > bin; rm -r gen"
        desk.prompt("third prompt", desk.shell(shell))
        states.append(desk.files())
        [row] = desk.rows()
        session = row["id"]
        assert (row["turns"], row["state"]) == (3, "waiting")
        assert desk.changes(1) == {"a.py": "modified"}
        assert {**desk.changes(2), "gen": "created"} == {
            "b.txt": "modified", "c.txt": "deleted", "gen": "created", "gen/n.txt": "created",
        }  # fmt: skip
        assert set(desk.changes(3)) >= {"a.py", "moved.py", "link", "bin", "gen/n.txt"}
        for _ in range(2):
            desk.turnlog("rewind", "turn:3", "--yes")
            assert desk.files() == states[2]
            desk.turnlog("undo", "--yes")
            assert desk.files() == states[3]

        desk.provider.play(say("I saw a plan."))
        desk.enter("! turnlog rewind turn:2")
        desk.screen.until("I saw a plan.")
        assert "--yes does it without asking" in desk.screen.text
        assert desk.files() == states[3]
        desk.provider.play(say("I saw that it was done."))
        desk.enter("! turnlog rewind turn:2 --yes")
        desk.screen.until("I saw that it was done.")
        assert desk.files() == {**states[1], "mine.txt": states[2]["mine.txt"]}
        desk.prompt("fourth prompt")
        assert "took back changes of earlier turns" in " ".join(desk.told())
        desk.turnlog("rewind", "turn:2", "--yes")
        desk.enter("/exit")
        desk.until(lambda: "SessionEnd" in desk.events())

    words = desk.json("resume", session)["command"]
    assert words[:2] == ["claude", "--resume"]
    with desk.sit_down(*words[1:]):
        desk.prompt("another second prompt", desk.shell("echo two > two.txt"))
        assert desk.prompts() == ["first prompt", "another second prompt"]
        desk.settled()
        [row] = desk.rows()
        assert (row["id"], row["turns"]) == (session, 5)
        assert desk.changes(5) == {"two.txt": "created"}
        desk.turnlog("rewind", "turn:1", "--yes")
        assert desk.files() == {**states[0], "mine.txt": states[2]["mine.txt"]}


def test_escape_in_an_answer_leaves_all_that_is_typed_then(desk: Sitting):
    before = desk.files()
    with desk.sit_down():
        desk.provider.play(desk.shell("echo one > one.txt"), Turn([Text("I go on and")], hold=True))
        desk.enter("first prompt")
        assert desk.provider.held.wait(60)
        desk.escape()
        survives(desk, before, {"one.txt"}, {"one.txt": "created"})


def test_escape_in_a_tool_leaves_all_that_is_typed_then(desk: Sitting):
    before = desk.files()
    with desk.sit_down():
        shell = desk.shell("echo one > one.txt"), desk.shell("echo half > half.txt; sleep 60; echo late > late.txt")
        desk.provider.play(*shell)
        desk.enter("first prompt")
        desk.until((desk.place / "half.txt").exists)
        desk.escape()
        half = {"half.txt": (b"half\n", 0o644)}
        survives(desk, {**before, **half}, {"one.txt", "half.txt"}, {"one.txt": "created"})


def survives(desk: Sitting, before: dict[str, Any], written: set[str], changed: dict[str, str]) -> None:
    """What a person types after Esc: before anybody asks anything, after a shell command, in the next turns."""
    desk.typed("typed after Esc\n")
    typed = {name: (b"typed after Esc\n", 0o644) for name in ("mine.txt", "b.txt")}
    left = {**before, **typed}
    there = {**desk.files()}
    for _ in range(2):
        desk.turnlog("rewind", "turn:1", "--yes")
        assert desk.files() == left
        desk.turnlog("undo", "--yes")
        assert desk.files() == there
    desk.provider.play(desk.shell("echo answered > answered.txt"), say("You ran something."))
    desk.enter("! true")
    desk.screen.until("You ran something.")
    desk.until(lambda: desk.events()[-1] == "Stop")
    answered = {"answered.txt": (b"answered\n", 0o644)}
    assert desk.changes(1) == changed
    desk.turnlog("rewind", "turn:1", "--yes")
    assert desk.files() == {**left, **answered}
    desk.turnlog("undo", "--yes")
    desk.prompt("second prompt", desk.shell("echo two > two.txt"))
    assert desk.changes(1) == changed
    assert desk.changes(2) == {"two.txt": "created"}
    desk.turnlog("rewind", "turn:1", "--yes")
    assert desk.files() == {**left, **answered}
    desk.turnlog("undo", "--yes")
    assert set(desk.files()) >= {*written, "two.txt"}
    desk.settled()
    [row] = desk.rows()
    assert row["turns"] == 2
    assert row["state"] in ("waiting", "idle")


def test_a_rewind_inside_the_agent_is_followed_and_a_cleared_session_is_another(desk: Sitting):
    with desk.sit_down():
        desk.prompt("first prompt", desk.shell("echo one > one.txt"))
        desk.prompt("second prompt", desk.shell("echo two > two.txt"))
        (desk.place / "mine.txt").write_text("between turns\n")
        desk.enter("/rewind")
        desk.screen.until("Restore the code and/or conversation")
        desk.screen.press("Up", "Enter")
        desk.screen.until("Restore conversation")
        desk.screen.press("Enter")
        desk.screen.until("❯ second prompt")
        desk.screen.press("C-u")
        desk.prompt("third prompt", desk.shell("echo three > three.txt"))
        assert desk.prompts() == ["first prompt", "third prompt"]
        desk.settled()
        [row] = desk.rows()
        session = row["id"]
        assert row["turns"] == 3
        assert [desk.changes(turn) for turn in (1, 2, 3)] == [
            {"one.txt": "created"}, {"two.txt": "created"}, {"three.txt": "created"},
        ]  # fmt: skip
        desk.turnlog("rewind", "turn:3", "--yes")
        kept = {"a.py", "b.txt", "c.txt", "mine.txt"}
        assert set(desk.files()) == {*kept, "one.txt", "two.txt"}
        assert [text for text in texts(desk, session) if text.endswith("prompt")] == ["first prompt"]
        desk.turnlog("undo", "--yes")
        desk.turnlog("rewind", "turn:1", "--yes")
        assert set(desk.files()) == kept
        desk.turnlog("undo", "--yes")

        desk.enter("/clear")
        desk.until(lambda: "SessionEnd" in desk.events())
        desk.prompt("fresh prompt", desk.shell("echo fresh > fresh.txt"))
        desk.settled()
        fresh, old = desk.rows()
        assert (old["id"], old["turns"], fresh["turns"]) == (session, 3, 1)
        desk.turnlog("rewind", "turn:1", "--yes", "-s", old["id"])
        assert set(desk.files()) == {*kept, "fresh.txt"}
        desk.turnlog("rewind", "turn:1", "--yes", "-s", fresh["id"])
        assert set(desk.files()) == kept


def texts(desk: Sitting, session: str) -> list[str]:
    found = desk.json("show", session)["messages"]
    return [block["text"] for message in found for block in message["blocks"] if block.get("type") == "text"]

"""The terminals of the other agents: what was typed after Esc is the person's; what opencode undoes is followed."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.agents.agent import BIN
from tests.agents.desk import PROGRAM, Desk
from tests.agents.drive import AGENTS
from tests.agents.provider import Provider
from tests.agents.screen import Screen
from tests.agents.script import Text, Turn, say

_PATIENCE_S = 60


@dataclass(frozen=True)
class Terminal:
    """How an agent is used on one."""

    words: tuple[str, ...]
    opening: tuple[tuple[str, str], ...]
    """What it shows, and the key that goes on from there; the last one is where it waits for a prompt."""
    stops: tuple[str, ...] = ("Escape",)
    stopped: str = ""


TERMINALS = {
    "codex": Terminal(
        ("-m", "gpt-5.5"),
        (("Trust and continue", "Enter"), ("Use existing model", "2"), ("permissions: YOLO mode", "")),
        stopped="Conversation interrupted",
    ),
    "gemini-cli": Terminal(
        ("--yolo", "--model", "gemini-2.5-pro"), (("Type your message", ""),), stopped="Request cancelled"
    ),
    "opencode": Terminal((), (("Ask anything", ""),), stops=("Escape", "Escape"), stopped="interrupted"),
    "pi": Terminal(("--provider", "fake", "--model", "m"), (("turnlog.ts", ""),), stopped="aborted"),
}  # fmt: skip


class Seat(Desk):
    """A desk with a terminal on which an agent runs."""

    screen: Screen

    def sit_down(self) -> Screen:
        if not (BIN / self.agent.command).exists():
            pytest.skip(f"{self.agent.name} is not in {BIN}")
        terminal = TERMINALS[self.agent.name]
        (self.home / "tmp").mkdir(exist_ok=True)
        self.agent.configure(self.home, self.provider)
        command = [str(BIN / self.agent.command), *terminal.words]
        path = f"{PROGRAM.parent}:{self.environ['PATH']}"
        self.screen = Screen(self.home / "tmp", command, {**self.environ, "PATH": path}, self.place)
        for shown, key in terminal.opening:
            self.screen.until(shown)
            time.sleep(1)  # what is typed while it draws itself is lost
            if key:
                self.screen.press(key)
        return self.screen

    def enter(self, text: str) -> None:
        self.screen.type(text)
        self.screen.press("Enter")

    def stop(self) -> None:
        terminal = TERMINALS[self.agent.name]
        self.screen.press(*terminal.stops)
        self.screen.until(terminal.stopped)
        time.sleep(1)  # nobody types into a file at the same moment

    def until(self, happened: Callable[[], bool]) -> None:
        end = time.monotonic() + _PATIENCE_S
        while not happened():
            assert time.monotonic() < end, self.screen.text
            time.sleep(0.05)


@pytest.fixture(params=TERMINALS)
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Seat]:
    with Provider() as provider:
        seat = Seat(type(AGENTS[request.param])(), tmp_path, provider)
        yield seat
        end_left_behind(seat.home)


def end_left_behind(home: Path) -> None:
    """Codex starts a server of its own from a program in the person's home, and leaves it running."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if os.readlink(process / "exe").startswith(f"{home}/"):
                os.kill(int(process.name), signal.SIGKILL)


def test_escape_in_an_answer_leaves_all_that_is_typed_then(desk: Seat):
    before = desk.files()
    with desk.sit_down():
        desk.provider.play(desk.shell("echo one > one.txt"), Turn([Text("I go on and")], hold=True))
        desk.enter("first prompt")
        assert desk.provider.held.wait(_PATIENCE_S), desk.screen.text
        desk.stop()
        survives(desk, before)


def test_escape_in_a_tool_leaves_all_that_is_typed_then(desk: Seat):
    before = desk.files()
    with desk.sit_down():
        shell = desk.shell("echo one > one.txt"), desk.shell("echo half > half.txt; sleep 60; echo late > late.txt")
        desk.provider.play(*shell)
        desk.enter("first prompt")
        desk.until((desk.place / "half.txt").exists)
        desk.stop()
        survives(desk, before)


def survives(desk: Seat, before: dict[str, object]) -> None:
    (desk.place / "mine.txt").write_text("typed after Esc\n")
    (desk.place / "b.txt").write_text("typed after Esc\n")
    left = {**before, **{name: (b"typed after Esc\n", 0o644) for name in ("mine.txt", "b.txt")}}
    there = desk.files()
    half = {name: told for name, told in there.items() if name == "half.txt"}
    # What a tool did that was cut off is the turn's only where the agent tells of its end.
    desk.turnlog("rewind", "turn:1", "--yes")
    assert {**desk.files(), **half} == {**left, **half}
    desk.turnlog("undo", "--yes")
    assert desk.files() == there
    desk.provider.play(desk.shell("echo two > two.txt"), say("That was the second prompt."))
    desk.enter("second prompt")
    desk.screen.until("That was the second prompt.")
    desk.settled()
    [row] = desk.rows()
    assert (row["turns"], row["state"]) == (2, "waiting")
    assert {**desk.changes(1), **dict.fromkeys(half, "created")} == dict.fromkeys(["one.txt", *half], "created")
    assert desk.changes(2) == {"two.txt": "created"}
    desk.turnlog("rewind", "turn:1", "--yes")
    assert {**desk.files(), **half} == {**left, **half}
    log = (desk.home / ".turnlog/hooks.log").read_text()
    assert not [line for line in log.splitlines() if "error" in json.loads(line)], log


@pytest.mark.parametrize("desk", ["opencode"], indirect=True)
def test_what_opencode_undoes_itself_is_followed(desk: Seat):
    with desk.sit_down():
        for number in ("first", "second"):
            asked(desk, number)
        (desk.place / "mine.txt").write_text("between turns\n")
        desk.enter("/undo")
        desk.screen.until("1 message reverted")
        desk.until(lambda: not (desk.place / "second.txt").exists())
        desk.screen.press("C-u")
        asked(desk, "third")
        assert [text for text in desk.said() if text.endswith("prompt")] == ["first prompt", "third prompt"]
        desk.settled()
        [row] = desk.rows()
        assert (row["turns"], row["state"]) == (3, "waiting")
        for turn, number in enumerate(("first", "second", "third"), start=1):
            assert desk.changes(turn) == {f"{number}.txt": "created"}
        kept = {"a.py", "b.txt", "c.txt", "mine.txt"}
        desk.turnlog("rewind", "turn:3", "--yes")
        assert set(desk.files()) == {*kept, "first.txt"}
        desk.turnlog("undo", "--yes")
        desk.turnlog("rewind", "turn:1", "--yes")
        assert set(desk.files()) == kept


def asked(desk: Seat, number: str) -> None:
    desk.provider.play(desk.shell(f"echo {number} > {number}.txt"), say(f"That was the {number} prompt."))
    desk.enter(f"{number} prompt")
    desk.screen.until(f"That was the {number} prompt.")
    desk.settled()

"""A machine with sessions of three agents, and the terminal that shows them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("textual", reason="`make venv` installs what `turnlog tui` needs")
pytest.importorskip("pyte")

from textual.pilot import Pilot

import turnlog
from tests.catalog.machine import Machine
from turnlog import Message, Text, ToolCall, ToolResult, Usage
from turnlog.catalog import Catalog
from turnlog.reader.viewing.desk import Desk
from turnlog.session import open_home
from turnlog.tui.browser import Browser

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x1b[31m\x9b5;5H\u202egnp.exe\x1b[?1049l\r\nbell\x07 end"
_PATIENCE_S = 60


def furnish(machine: Machine) -> None:
    """Sessions of ours, of Claude Code and of Codex; one of them says what no terminal should obey."""
    machine.claude("aaaa1111", 3)
    machine.codex("bbbb2222", 2)
    clock = iter(range(1_780_000_000_000, 1_790_000_000_000, 1000)).__next__
    elsewhere = machine.folder / "elsewhere"
    elsewhere.mkdir()
    with turnlog.open(str(machine.home), durability="flush", checkpoints=False, clock=clock) as home:
        with home.create(id="hostile1", title=HOSTILE, agent=HOSTILE, workspace=elsewhere) as session:
            session.user(HOSTILE)
            call = ToolCall(id="x", name=HOSTILE, input={"command": HOSTILE})
            session.append(Message(role="assistant", blocks=[Text(text=HOSTILE), call], model=HOSTILE))
            session.append(Message(role="tool", blocks=[ToolResult(call="x", content=HOSTILE)]))
        with home.create(id="wide1", title="漢字のタイトル é 👩‍👩‍👧", agent="mine", workspace=elsewhere) as session:
            session.user("漢字 é")
        with home.create(id="talk-one", workspace=machine.work, title="Fix the login page") as session:
            for number in range(60):
                session.user(f"please look at case {number}")
                call = ToolCall(id=f"c{number}", name="bash", input={"command": f"grep -n case{number} log.txt"})
                usage = Usage(input_tokens=1000 + number, output_tokens=10, cost_micros=1500)
                session.append(Message(role="assistant", blocks=[Text(text="I look"), call], model="m", usage=usage))
                found = "\n".join(f"line {line} of case{number}" for line in range(30))
                session.append(Message(role="tool", blocks=[ToolResult(call=call.id, content=found)]))
                session.assistant(f"answer **{number}** is `fine`")


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """One for all tests of a file: what they change is named after them. Everything is indexed."""
    with pytest.MonkeyPatch.context() as patch:
        made = Machine(tmp_path_factory.mktemp("tui"), patch)
        patch.setenv("TURNLOG_HOME", str(made.home))
        furnish(made)
        with Catalog(str(made.home), agents=True) as catalog:
            catalog.sync()
        yield made


Body = Callable[[Pilot[Any], Browser], Awaitable[None]]


def drive(machine: Machine, body: Body, query: str = "", *, size: tuple[int, int] = (80, 24), **more: Any) -> Browser:
    """Let somebody press keys in a browser without a terminal; gives it when it has ended."""

    async def run() -> Browser:
        with Catalog(str(machine.home), agents=True) as catalog, open_home(str(machine.home)) as home:
            desk = Desk(home, catalog, str(machine.home))
            browser = Browser(catalog, lambda: desk, query, **more)
            async with browser.run_test(size=size) as pilot:
                await body(pilot, browser)
            browser.close_errands()
            desk.close()
            return browser

    return asyncio.run(run())


async def until(pilot: Pilot[Any], is_so: Callable[[], Any]) -> None:
    """Wait until something is so: answers come from other threads."""
    end = time.monotonic() + _PATIENCE_S
    while not is_so():
        assert time.monotonic() < end, "it never was so:\n" + text_of(pilot.app)
        await pilot.pause(0.01)


def text_of(browser: Any) -> str:
    """What is on the screen, line by line."""
    return "\n".join(line.text.rstrip() for line in browser.screen._compositor.render_strips())


def lines(browser: Any) -> list[str]:
    return text_of(browser).split("\n")


def home_of(machine: Machine) -> Path:
    return machine.home

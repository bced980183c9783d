"""The screens in docs/guide/terminal.md: `python -m tests.tui.screens` writes them anew."""

from __future__ import annotations

import os
import re
import tempfile
import time
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from textual.pilot import Pilot

import turnlog
from tests.catalog.machine import Machine
from tests.tui.conftest import drive, lines, text_of, until
from turnlog import Message, Text, ToolCall, ToolResult, Usage
from turnlog.catalog import Catalog
from turnlog.tui.browser import Browser
from turnlog.tui.screens import listing

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "terminal.md"
_NOW_S = 1_794_000_000
_SHOP = (
    ("shop1", "Fix the login page", "claude-code", "the login page is empty after a redirect", "auth.py", 34),
    ("shop2", "Prices with VAT", "codex", "prices should have the tax of the country in them", "prices.py", 8),
    ("shop3", "Why is the nightly job slow?", "claude-code", "look at the nightly job, it takes an hour", "job.py", 12),
)


def furnish(machine: Machine) -> None:
    """Three sessions of one project, the newest with a turn that changed two files."""
    (machine.work / "auth.py").write_text("def login(user):\n    return redirect('/')\n")
    for at, (id, title, agent, asked, file, turns) in reversed(list(enumerate(_SHOP))):
        clock = count((_NOW_S - (at + 1) * 9_000) * 1000, 1000).__next__
        with (
            turnlog.open(str(machine.home), durability="flush", clock=clock) as home,
            home.create(id=id, workspace=machine.work, title=title, agent=agent) as session,
        ):
            for number in range(turns - 1):
                session.user(f"step {number + 1}: {asked}")
                usage = Usage(input_tokens=9000, output_tokens=400, cost_micros=31_000)
                session.append(Message(role="assistant", blocks=[Text(text="Done.")], usage=usage))
            with session.turn():
                session.user(asked)
                call = ToolCall(id="c1", name="bash", input={"command": f"grep -n redirect {file}"})
                said = Text(text=f"The redirect in `{file}` loses the **session cookie**.")
                session.append(Message(role="assistant", blocks=[said, call]))
                found = "\n".join(f"{file}:{line}: redirect('/')" for line in range(2, 32))
                session.append(Message(role="tool", blocks=[ToolResult(call="c1", content=found)]))
                if id == "shop1":
                    (machine.work / file).write_text("def login(user):\n    return redirect('/', keep=True)\n")
                    (machine.work / "test_auth.py").write_text("def test_login():\n    assert login('ada')\n")
                session.assistant("It keeps the cookie now, and a test says so.")


def made(folder: Path) -> dict[str, str]:
    """Each screen by its name."""
    found: dict[str, str] = {}
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        machine = Machine(folder, patch)
        patch.setenv("TZ", "UTC")
        time.tzset()
        patch.setattr(listing, "time", SimpleNamespace(time=lambda: _NOW_S, monotonic=time.monotonic))
        furnish(machine)
        with Catalog(str(machine.home), agents=True) as catalog:
            catalog.sync()

        async def body(pilot: Pilot[Any], browser: Browser) -> None:
            await until(pilot, lambda: "and a test says so" in text_of(browser))
            found["list"] = text_of(browser)
            await pilot.press("enter")
            await until(pilot, lambda: "at the end" in lines(browser)[-1])
            found["session"] = text_of(browser)
            await pilot.press("d")
            await until(pilot, lambda: "2 files" in text_of(browser))
            await pilot.press("enter")
            await until(pilot, lambda: "keep=True" in text_of(browser))
            found["changes"] = text_of(browser)
            await pilot.press("R")
            await until(pilot, lambda: "Do exactly this" in text_of(browser))
            found["plan"] = text_of(browser)

        drive(machine, body, size=(80, 24))
    time.tzset()
    return found


def written(text: str, screens: dict[str, str]) -> str:
    """The page with these screens in it."""
    for name, screen in screens.items():
        # Lines that are empty at the end of the list or the text say nothing on paper.
        body = re.sub(r"\n{4,}", "\n\n", screen)
        text = re.sub(
            rf"(<!-- screen: {name} -->\n\n```text\n).*?(\n```\n)",
            lambda found, body=body: found[1] + body + found[2],
            text,
            flags=re.DOTALL,
        )
    return text


if __name__ == "__main__":
    os.environ.pop("NO_COLOR", None)
    with tempfile.TemporaryDirectory() as folder:
        GUIDE.write_text(written(GUIDE.read_text(), made(Path(folder) / "shop")))

"""The pictures in docs/guide/web.md, made anew: `.venv-browser/bin/python -m tests.web.screens`."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

import turnlog
from tests.catalog.machine import Machine
from tests.web.browser import launched
from tests.web.conftest import Served
from turnlog import Message, Text, ToolCall, ToolResult, Usage

GUIDE = Path(__file__).parents[2] / "docs" / "guide"
PROMPTS = (
    "The login page shows an error after the upgrade. Find out why.",
    "Write a test that fails, then fix it.",
    "Now the same for the page that resets a password.",
)


def story(machine: Machine) -> None:
    """A session of three turns that changed something, and another attempt at the last one."""
    place = machine.folder / "webshop"
    place.mkdir()
    (place / "login.py").write_text("def login(user):\n    return user.name\n")
    usage = Usage(input_tokens=4200, cache_read_tokens=31_000, output_tokens=650)
    title = "The login page after the upgrade"
    with turnlog.open(str(machine.home), checkpoints=True) as home:
        session, fork = home.create(id="7k3f-login", workspace=place, title=title), 0
        with session:
            for number, prompt in enumerate(PROMPTS):
                with session.turn():
                    session.user(prompt)
                    call = ToolCall(
                        id=f"c{number}", name="bash", input={"command": "python -m pytest tests/test_login.py -q"}
                    )
                    said = Text(text="I run the tests **first**, then look at what `login` gets.")
                    session.append(
                        Message(role="assistant", blocks=[said, call], model="claude-sonnet-4-5", usage=usage)
                    )
                    told = "E   AttributeError: 'NoneType' object has no attribute 'name'\n1 failed, 14 passed"
                    session.append(
                        Message(role="tool", blocks=[ToolResult(call=call.id, content=told, is_error=number == 0)])
                    )
                    (place / "login.py").write_text(f"def login(user):\n    return user.name if user else {number!r}\n")
                    session.assistant(
                        "`login` was called with nobody. It answers with a number now, and the test passes.",
                        model="claude-sonnet-4-5", usage=usage,
                    )  # fmt: skip
                fork = session.head if number == 1 else fork
            title, guard = "The login page, with a guard before it", "def guard(user):\n    assert user is not None\n"
            with session.fork(at=fork, id="9m2d-again", title=title) as other, other.turn():
                other.user("Refuse nobody before `login` is asked, in one place.")
                (place / "guard.py").write_text(guard)
                other.assistant("A guard stands before every page now.", model="claude-opus-4-1", usage=usage)


def main() -> None:
    """Take them."""
    with (
        pytest.MonkeyPatch.context() as patch,
        tempfile.TemporaryDirectory() as folder,
        sync_playwright() as playwright,
    ):
        machine = Machine(Path(folder), patch)
        machine.claude("5f0c2b6e-41d7", 3)
        machine.codex("0199a7c2-8d13", 2)
        story(machine)
        served = Served(machine)
        browser = launched(playwright)
        for name, path, scheme in (
            ("web-sessions", "/", "light"), ("web-session", "/s/7k3f-login", "light"),
            ("web-changes", "/s/7k3f-login/changes?turn=1", "dark"),
            ("web-compare", "/compare?a=7k3f-login&b=9m2d-again", "light"),
        ):  # fmt: skip
            page = browser.new_page(viewport={"width": 1280, "height": 720}, color_scheme=scheme)
            page.goto(served.url)
            page.goto(f"http://127.0.0.1:{served.port}{path}")
            if "changes" in path:
                page.get_by_test_id("change").first.locator("summary").click()
            page.wait_for_timeout(500)
            page.screenshot(path=GUIDE / f"{name}.png")
        browser.close()
        served.stop()


if __name__ == "__main__":
    main()

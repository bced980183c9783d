"""The first paint of 100,000 rows in a real browser, beside that of a session of two: again, and the first time.

And how soon a message is on the screen that was written while the page is open: into 100,000 rows of ours, and into a
file of Claude Code. Only where there is what drives a browser: `.venv-browser/bin/python -m bench --only paint` after
`make test-web`.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

import turnlog
from bench.corpus import make
from bench.ground import Ground
from bench.measures import Row, ratio, say
from bench.measures.web import WebServer

TITLE = "turnlog web: first paint of 100,000 rows"
ROUNDS, AGAIN = 5, 9
MB = 75
_PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"


def measure(ground: Ground) -> list[Row]:
    """All rows; none where no browser can be driven."""
    if find_spec("playwright") is None:
        say("     left out: `make test-web` installs what drives a browser")
        return []
    from playwright.sync_api import sync_playwright

    from tests.web.browser import launched

    person = ground.folder / "paint-person"
    person.mkdir()
    environment = {**os.environ, "HOME": str(person)}
    claude = make(person, sessions=1, mb=MB).newest
    with turnlog.open(ground.long) as home, home.create(id="two", title="two") as session:
        session.user("hello")
        session.assistant("hello")
    program = [sys.executable, "-m", "turnlog", "--home", str(ground.long)]
    subprocess.run([*program, "index"], env=environment, check=True, capture_output=True)
    command = [*program, "web", "--no-open", "--print-url", "--port", "0"]
    first: dict[str, list[float]] = {"100,000 rows": [], "two rows": []}
    appended: list[Row] = []
    again: dict[str, list[float]] = {"100,000 rows": [], "two rows": []}
    names = {"100,000 rows": "long", "two rows": "two"}
    with sync_playwright() as playwright:
        browser = launched(playwright)
        for number in range(ROUNDS):
            with WebServer(command, environment) as web:
                page = browser.new_page(viewport={"width": 1280, "height": 800})
                page.goto(web.url)
                _painted(page, web.url, "ten")  # whichever page of a session comes first pays for its imports
                for what in sorted(names, reverse=number % 2 == 0):
                    first[what].append(_painted(page, web.url, names[what]))
                for _ in range(AGAIN if number == ROUNDS - 1 else 0):
                    for what in names:
                        again[what].append(_painted(page, web.url, names[what]))
                appended = _appended(page, web.url, ground.long, claude) if number == ROUNDS - 1 else []
                page.close()
        browser.close()
    return [
        *appended,
        ratio(f"{TITLE}, again", again, "100,000 rows", "two rows", bar=3.0),
        ratio(f"{TITLE}, the first time", first, "100,000 rows", "two rows", bar=6.0),
    ]


def _painted(page: Any, url: str, name: str) -> float:
    """The seconds from the click to the first words on the screen."""
    page.goto(f"{url.partition('?')[0].rstrip('/')}/s/{name}")
    while not (painted := page.evaluate(_PAINTED)):
        page.wait_for_timeout(20)
    return painted / 1000


def _appended(page: Any, url: str, home: Path, claude: Path) -> list[Row]:
    """From the append to the words on the screen, in a page that is at the end; the slowest of some."""
    with turnlog.open(home) as opened, opened.resume("long") as session:
        ours = _seen(page, url, "long", session.assistant)
    others = _seen(page, url, f"claude-code:{claude.stem}", lambda text: _says(claude, text))
    return [
        Row(f"turnlog web: an appended message appears, {whose}", f"{max(times):.2f} s at most",
            f"of {len(times)}, from the append to the page", max(times), "s", 2.0, rounds=times)
        for whose, times in (("100,000 rows of ours", ours), (f"Claude Code's session of {MB} MB", others))
    ]  # fmt: skip


def _seen(page: Any, url: str, name: str, append: Callable[[str], object]) -> list[float]:
    page.goto(f"{url.partition('?')[0].rstrip('/')}/s/{name}")
    page.locator("[data-testid=live][data-state=live]").wait_for(state="attached")
    times: list[float] = []
    for number in range(AGAIN):
        page.wait_for_timeout(150 * number)  # so that it falls on every moment between two looks
        word = f"news{uuid4().hex}"
        began = time.perf_counter()
        append(word)
        page.get_by_text(word).wait_for()
        times.append(time.perf_counter() - began)
    return times


def _says(path: Path, text: str) -> None:
    """One more answer at the end of a session of Claude Code."""
    with path.open("rb") as file:
        file.seek(-1_000_000, os.SEEK_END)
        last = json.loads(file.read().splitlines()[-1])
    message = {**last["message"], "id": f"msg_{uuid4().hex}", "content": [{"type": "text", "text": text}]}
    with path.open("a") as file:
        file.write(json.dumps({**last, "uuid": str(uuid4()), "parentUuid": last["uuid"], "message": message}) + "\n")

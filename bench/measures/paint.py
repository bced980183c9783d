"""The first paint of 100,000 rows in a real browser, beside that of a session of two: again, and the first time.

Only where there is what drives a browser: `.venv-browser/bin/python -m bench --only paint` after `make test-web`.
"""

import os
import subprocess
import sys
from importlib.util import find_spec
from typing import Any

import turnlog
from bench.ground import Ground
from bench.measures import Row, ratio, say
from bench.measures.web import WebServer

TITLE = "turnlog web: first paint of 100,000 rows"
ROUNDS, AGAIN = 5, 9
_PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"


def measure(ground: Ground) -> list[Row]:
    """Both rows; none where no browser can be driven."""
    if find_spec("playwright") is None:
        say("     left out: `make test-web` installs what drives a browser")
        return []
    from playwright.sync_api import sync_playwright

    from tests.web.browser import launched

    person = ground.folder / "paint-person"
    person.mkdir()
    environment = {**os.environ, "HOME": str(person)}
    with turnlog.open(ground.long) as home, home.create(id="two", title="two") as session:
        session.user("hello")
        session.assistant("hello")
    program = [sys.executable, "-m", "turnlog", "--home", str(ground.long)]
    subprocess.run([*program, "index"], env=environment, check=True, capture_output=True)
    command = [*program, "web", "--no-open", "--print-url", "--port", "0"]
    first: dict[str, list[float]] = {"100,000 rows": [], "two rows": []}
    again: dict[str, list[float]] = {"100,000 rows": [], "two rows": []}
    names = {"100,000 rows": "long", "two rows": "two"}
    with sync_playwright() as playwright:
        browser = launched(playwright)
        for number in range(ROUNDS):
            with WebServer(command, environment) as web:
                page = browser.new_page(viewport={"width": 1280, "height": 800})
                page.goto(web.url)
                for what in sorted(names, reverse=number % 2 == 0):
                    first[what].append(_painted(page, web.url, names[what]))
                for _ in range(AGAIN if number == ROUNDS - 1 else 0):
                    for what in names:
                        again[what].append(_painted(page, web.url, names[what]))
                page.close()
        browser.close()
    return [
        ratio(f"{TITLE}, again", again, "100,000 rows", "two rows", bar=3.0),
        ratio(f"{TITLE}, the first time", first, "100,000 rows", "two rows", bar=6.0),
    ]


def _painted(page: Any, url: str, name: str) -> float:
    """The seconds from the click to the first words on the screen."""
    page.goto(f"{url.partition('?')[0].rstrip('/')}/s/{name}")
    while not (painted := page.evaluate(_PAINTED)):
        page.wait_for_timeout(20)
    return painted / 1000

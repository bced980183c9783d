"""`turnlog tui` on a pseudo terminal of 80x24: the first list, a letter, Enter, and what Down writes."""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import turnlog
from bench.corpus import RARE, make
from bench.ground import Ground
from bench.measures import Row, ratio, take_turns
from tests.tui.emulator import Emulator
from turnlog.catalog import Catalog
from turnlog.tui.sessionlist import ask_list

TITLE = "turnlog tui on a terminal of 80x24: 1,500 sessions, one of 100,000 entries"
SESSIONS, MB = 1500, 90
ROUNDS = 5
_NEEDED = "import turnlog.tui.browser"


def measure(ground: Ground) -> list[Row]:
    person = ground.folder / "tui-person"
    make(person, sessions=SESSIONS, mb=MB)
    environment = {"HOME": str(person)}
    home = str(ground.long)
    with turnlog.open(home, checkpoints=False) as opened:
        if not opened.exists("tworows"):
            with opened.create(id="tworows", title="two rows") as session:
                session.user("hello")
                session.assistant("hello")
    subprocess.run([sys.executable, "-m", "turnlog", "--home", home, "index"], env={**os.environ, **environment},
                   check=True, capture_output=True)  # fmt: skip
    command = (sys.executable, "-m", "turnlog", "--home", home, "tui")

    def started() -> Emulator:
        made = Emulator(*command, **environment)  # pyright: ignore[reportArgumentType]
        made.until(lambda shown: "sessions" in shown[-1] and shown[1])
        return made

    def first_list() -> None:
        with started():
            pass

    def importing() -> None:
        subprocess.run([sys.executable, "-c", _NEEDED], check=True)

    jobs: dict[str, Callable[[], object]] = {"first list": first_list, "importing it": importing}
    for job in jobs.values():
        job()
    rows = [ratio("turnlog tui: first list", take_turns(jobs, rounds=ROUNDS), "first list", "importing it", bar=3.0)]
    with started() as terminal:
        rows += [_letter(terminal, home, environment), _down(terminal)]
    return [*rows, _enter(started)]


def _cleared(terminal: Emulator) -> None:
    terminal.press("Escape")
    terminal.until(lambda shown: "Esc end" in shown[-1])
    terminal.quiet()


def _letter(terminal: Emulator, home: str, environment: dict[str, str]) -> Row:
    """From the last letter to the list that it narrows, beside the answer of the catalog alone."""
    before = dict(os.environ)
    os.environ.update(environment)
    try:
        with Catalog(home, agents=True) as catalog:
            catalog.sync()
            answers, letters = [], []
            for _ in range(ROUNDS):
                began = time.perf_counter()
                rows = ask_list(catalog, RARE, is_here_only=False).rows
                answers.append(time.perf_counter() - began)
                began = time.perf_counter()
                terminal.type(RARE)  # at once: what its letters ask for is overtaken
                fits = f"{len(rows):,} session"
                terminal.until(lambda shown, fits=fits: shown[0] == RARE and shown[-1].startswith(fits))
                letters.append(time.perf_counter() - began)
                _cleared(terminal)
    finally:
        os.environ.clear()
        os.environ.update(before)
    more = [(letter - answer) * 1000 for letter, answer in zip(letters, answers, strict=True)]
    told = f"{statistics.median(letters) * 1000:.0f} ms", f"the catalog: {statistics.median(answers) * 1000:.0f} ms"
    return Row("turnlog tui: a letter to the narrowed list", *told, statistics.median(more), "ms", 150.0, rounds=more)


def _enter(started: Callable[[], Emulator]) -> Row:
    """The first time, in a program that has opened nothing yet."""

    def opening(name: str) -> float:
        with started() as terminal:
            terminal.type(f"session:{name}")
            terminal.until(lambda shown: shown[-1].startswith("1 session"))
            terminal.quiet()
            began = time.perf_counter()
            terminal.press("Enter")
            terminal.until(lambda shown: "at the end" in shown[-1])
            return time.perf_counter() - began

    times = {
        "100,000 rows": [opening("long") for _ in range(ROUNDS)],
        "two rows": [opening("tworows") for _ in range(ROUNDS)],
    }
    return ratio("turnlog tui: Enter to the first rows", times, "100,000 rows", "two rows", bar=3.0)


def _down(terminal: Emulator) -> Row:
    """What is written for one step in the list, also where it has to scroll; the worst of thirty."""
    most = []
    for _ in range(30):
        before = len(terminal.written)
        terminal.press("Down")
        terminal.quiet()
        most.append(float(len(terminal.written) - before))
    told = f"{statistics.median(most):.0f} bytes in the middle"
    return Row("turnlog tui: Down in the list, at most", f"{max(most):.0f} bytes", told, max(most), "bytes", 2000.0)

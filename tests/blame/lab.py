"""A folder with sessions, where turns are short to write down."""

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import turnlog
from turnlog import Session
from turnlog.blame.authorship import BlamedLine, blame
from turnlog.session.interior import interior


class Lab:
    """One folder, one home in memory, one session; more where a test asks for them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "project"
        self.folder.mkdir()
        self.home = turnlog.open("memory:", clock=self._clock)
        self.session = self.home.create(workspace=self.folder, agent="agent")

    _last = 0

    def _clock(self) -> int:
        """The time in milliseconds, never the same twice: what is in memory takes less than one."""
        self._last = max(self._last + 1, time.time_ns() // 1_000_000)
        return self._last

    def write(self, name: str, *lines: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines))

    def lines(self, name: str) -> list[str]:
        return (self.folder / name).read_text().splitlines()

    @contextmanager
    def turn(self, session: Session | None = None) -> Iterator[None]:
        with (session or self.session).turn():
            yield

    def turn_that(self, work: Callable[[], object], session: Session | None = None) -> None:
        with self.turn(session):
            work()

    def git(self, *words: str, folder: Path | None = None) -> str:
        who = ("-c", "user.name=me", "-c", "user.email=me@example.com", "-c", "commit.gpgsign=false")
        done = subprocess.run(
            ["git", *who, *words], cwd=folder or self.folder, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def commit(self, message: str = "work", folder: Path | None = None) -> str:
        self.git("add", "-A", folder=folder)
        self.git("commit", "-qm", message, folder=folder)
        return self.git("rev-parse", "HEAD", folder=folder)

    def blame(self, name: str) -> list[BlamedLine]:
        return blame(interior(self.home).store, self.folder / name).lines

    def told(self, name: str) -> dict[str, object]:
        """Of each line the number of the turn, those of several, or why there is none."""
        return {line.text: _told(line) for line in self.blame(name)}


def _told(line: BlamedLine) -> object:
    if line.author is not None:
        return line.author.turn
    return tuple(one.turn for one in line.authors) or line.why

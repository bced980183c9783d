"""Going through all of it: scenarios, and the states that crashes of them leave."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from msgspec import Struct

from tests.store.crashlab.promise import HOME, Violation, check, home_at
from tests.store.crashlab.recorder import Killed, Recorder
from tests.store.crashlab.tape import (
    Book,
    Tape,
    Tree,
)
from tests.store.crashlab.timeline import Kept, Timeline
from tests.store.crashlab.witness import Witness
from turnlog import Text
from turnlog.log.entry import Message, Note

Scenario = Callable[[Witness], None]
Look = Callable[[str, Book], None]


@contextmanager
def fast_folder() -> Iterator[str]:
    """A folder in memory where there is one: thousands of states are written and thrown away."""
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = tempfile.mkdtemp(prefix="turnlog-crash-", dir=place)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Findings(Struct):
    """How many states were looked at, and what was wrong with some."""

    states: int = 0
    violations: list[str] = []

    def assert_none(self, seed: int) -> None:
        first = "\n".join(self.violations[:3])
        assert not self.violations, f"seed {seed}: {len(self.violations)} of {self.states} states:\n{first}"


class Explorer:
    """Runs scenarios, and looks at what crashes of them leave."""

    def __init__(self, folder: str, seed: int, *, disk: type[Recorder] = Recorder, limit: int = 1000) -> None:
        self.rng = random.Random(seed)
        self.seed = seed
        self.limit = limit
        self.states = 0
        """How many were looked at so far."""
        self._folder = folder
        self._disk = disk
        self._count = 0

    def new_folder(self) -> str:
        self._count += 1
        path = os.path.join(self._folder, str(self._count))
        os.mkdir(path)
        return path

    def record(self, scenario: Scenario, *, before: Scenario | None = None) -> tuple[Tape, int]:
        """Run it; `before` comes first and its crashes are not looked at. Returns the tape and where it began."""
        tape = Tape(self.new_folder())
        if before is not None:
            self.live(tape, before)
        since = len(tape.events)
        self.live(tape, scenario)
        return tape, since

    def live(self, tape: Tape, scenario: Scenario, disk: Recorder | None = None) -> bool:
        """One process: True if it came to its end, False if it was killed."""
        disk = disk or self._disk(tape)
        home = home_at(os.path.join(tape.top, HOME), disk)
        try:
            scenario(Witness(home, tape, disk))
        except Killed:
            return False
        finally:
            disk.die()
        return True

    def crash(self, scenario: Scenario, *, before: Scenario | None = None, model: str = "posix") -> Findings:
        """A power cut at every moment of the scenario."""
        tape, since = self.record(scenario, before=before)
        return self.look_at(Timeline(tape, model, since=since))

    def look_at(self, timeline: Timeline, *, limit: int | None = None) -> Findings:
        findings = Findings()
        for kept, tree in self.sample(timeline, limit or self.limit):
            findings.states += 1
            self.states += 1
            try:
                self.open_and_check(tree, timeline.book(kept))
            except Exception as error:
                why = str(error) if isinstance(error, Violation) else f"{type(error).__name__}: {error}"
                findings.violations.append(f"{why}\n  {timeline.describe(kept)}")
        return findings

    def sample(self, timeline: Timeline, limit: int) -> list[tuple[Kept, Tree]]:
        """All states that differ in what is on the disk or in what was promised, or so many of them."""
        states = list(dict.fromkeys(timeline.states(self.rng)))
        if len(states) > 4 * limit:
            states = self.rng.sample(states, 4 * limit)
        different: dict[Any, tuple[Kept, Tree]] = {}
        for kept in states:
            tree = timeline.tree(kept)
            different.setdefault((id(timeline.book(kept)), tree.signature()), (kept, tree))
        found = list(different.values())
        return found if len(found) <= limit else self.rng.sample(found, limit)

    def open_and_check(self, tree: Tree, book: Book) -> None:
        folder = self.new_folder()
        try:
            tree.write_to(folder)
            check(os.path.join(folder, HOME), book)
        finally:
            shutil.rmtree(folder)

    def crash_twice(self, scenario: Scenario, *, before: Scenario | None = None, lives: int = 8) -> Findings:
        """A power cut, a second life that goes on from what is left, and another power cut at every moment of it."""
        findings = Findings()
        tape, since = self.record(scenario, before=before)
        timeline = Timeline(tape, "posix", since=since)
        for kept, tree in self.sample(timeline, lives):
            folder = self.new_folder()
            tree.write_to(folder)
            second = Tape(folder, timeline.book(kept))
            self.live(second, go_on)
            found = self.look_at(Timeline(second, "posix"), limit=self.limit // lives)
            findings.states += found.states
            findings.violations += [f"{why}\n  after a {timeline.describe(kept)}" for why in found.violations]
            shutil.rmtree(folder)
        return findings

    def kill_then_crash(self, scenario: Scenario, then: Scenario, *, before: Scenario | None = None) -> Findings:
        """The process is killed before each of its changes, another goes on beside what it left, and then the power
        goes: what the dead one did not sync is not on the disk, though the second one saw it.
        """
        findings = Findings()
        is_over, torn, number = False, False, 1
        while not is_over:
            tape = Tape(self.new_folder())
            if before is not None:
                self.live(tape, before)
            disk = self._disk(tape, dies_before=number, torn=torn)
            is_over = self.live(tape, scenario, disk)
            since = len(tape.events)
            self.live(tape, then)
            found = self.look_at(Timeline(tape, "posix", since=since), limit=self.limit)
            findings.states += found.states
            findings.violations += [f"{why}\n  after a kill before change {number}" for why in found.violations]
            shutil.rmtree(tape.top)
            torn = disk.died_writing and not torn
            number += not torn
        return findings


def go_on(witness: Witness) -> None:
    """What the next process does with whatever it finds: it appends to every session."""
    for info in witness.home.sessions():
        session = witness.resume(info.id)
        witness.append(session, Message(role="user", blocks=[Text("on we go")]))
        witness.append(session, Note(text="one"), Note(text="x" * 300), Note(text="three"))

"""Random lives of a folder beside a model in which every line carries its author."""

import itertools
import random
from pathlib import Path

import pytest

import turnlog
from turnlog import Session
from turnlog.blame.authorship import BlamedLine, blame
from turnlog.session.interior import interior

Tagged = tuple[str, object]
Files = dict[str, list[Tagged]]
NAMES = ("a.py", "b.py", "sub/c.py", "sub/deep/d.py", "e.txt")


class Life:
    """A folder, some sessions, and what each line should be told to be."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.folder = folder / "project"
        self.folder.mkdir()
        self.home = turnlog.open("memory:", clock=itertools.count(1_800_000_000_000, 7).__next__)
        self.files: Files = {}
        self.texts = 0
        self.points = 0
        self.touched: dict[str, tuple[int, str]] = {}
        """When each file was renamed or changed: between two points it is the one or the other."""
        self.snapshots: dict[tuple[str, int], Files] = {}
        self.sessions = [self.home.create(workspace=self.folder, agent=f"agent-{n}") for n in range(3)]
        self.turns: dict[str, tuple[object, int]] = {}
        self.numbers = {session.id: 0 for session in self.sessions}

    # ── doing it ──────────────────────────────────────────────────────────────────────────────────

    def tag(self) -> object:
        if self.turns:
            return frozenset((session, number) for session, (_, number) in self.turns.items())
        return self.points

    def write(self, name: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(text + "\n" for text, _ in self.files[name]))

    def line(self) -> Tagged:
        self.texts += 1
        return f"line {self.texts} = {self.random.random()}", self.tag()

    def edit(self) -> None:
        act = self.random.choice(("create", "insert", "insert", "replace", "delete", "move", "rename", "remove"))
        free = [name for name in NAMES if name not in self.files]
        if (act == "create" and free) or not self.files:
            name = self.random.choice(free)
            if self.touched.get(name) == (self.points, "renamed"):
                return
            self.touched[name] = (self.points, "changed")
            self.files[name] = [self.line() for _ in range(self.random.randint(4, 12))]
            self.write(name)
            return
        name = self.random.choice(sorted(self.files))
        lines = self.files[name]
        if self.touched.get(name) == (self.points, "renamed"):
            return
        if act == "rename":
            free = [other for other in free if self.touched.get(other, (0,))[0] < self.points]
            if not free or self.touched.get(name, (0,))[0] == self.points:
                return
            other = self.random.choice(free)
            self.touched[name] = self.touched[other] = (self.points, "renamed")
            self.files[other] = self.files.pop(name)
            (self.folder / name).unlink()
            self.write(other)
            return
        self.touched[name] = (self.points, "changed")
        if act == "remove" and len(self.files) > 2:
            del self.files[name]
            (self.folder / name).unlink()
            return
        start = self.random.randint(0, len(lines))
        some = self.random.randint(1, 3)
        if act == "delete" and len(lines) > 6:
            del lines[start : start + some]
        elif act == "replace":
            lines[start : start + 1] = [self.line()]
        elif act == "move":
            block = lines[start : start + some]
            del lines[start : start + some]
            place = self.random.randint(0, len(lines))
            lines[place:place] = block
        else:
            lines[start:start] = [self.line() for _ in range(some)]
        self.write(name)

    def begin(self, session: Session) -> None:
        turn = session.turn()
        turn.__enter__()
        self.points += 1
        self.numbers[session.id] += 1
        self.turns[session.id] = (turn, self.numbers[session.id])
        self.keep(session, self.numbers[session.id])

    def keep(self, session: Session, number: int) -> None:
        self.snapshots[session.id, number] = {name: list(lines) for name, lines in self.files.items()}

    def end(self, session: Session) -> None:
        turn, _ = self.turns.pop(session.id)
        session.user("so it is")
        turn.__exit__(None, None, None)
        self.points += 1

    def rewind(self, session: Session) -> None:
        number = self.random.randint(1, self.numbers[session.id])
        before = {name: list(lines) for name, lines in self.files.items()}
        begin = [e.seq for e in session.entries(kind="checkpoint") if e.when == "begin"][number - 1]
        session.rewind(begin, force=self.random.random() < 0.3)
        self.points += 2
        self.adopt(self.snapshots[session.id, number])
        if self.random.random() < 0.4:
            session.undo()
            self.points += 2
            self.adopt(before)

    def adopt(self, then: Files) -> None:
        """Whatever was put back is what it was then."""
        seen: Files = {}
        for path in self.folder.rglob("*"):
            if path.is_file():
                name = path.relative_to(self.folder).as_posix()
                lines = path.read_text().splitlines()
                texts = [text for text, _ in self.files.get(name, [])]
                seen[name] = self.files[name] if texts == lines and name in self.files else list(then[name])
                assert [text for text, _ in seen[name]] == lines
        self.files = seen

    def step(self) -> None:
        session = self.random.choice(self.sessions)
        act = self.random.random()
        if act < 0.55:
            self.edit()
        elif session.id in self.turns:
            self.end(session)
        elif act < 0.62 and self.numbers[session.id] and not self.turns:
            self.rewind(session)
        elif len(self.turns) < 2:
            self.begin(session)
        elif act > 0.97:
            session.checkpoint()
            self.points += 1

    # ── looking ───────────────────────────────────────────────────────────────────────────────────

    def expected(self, tag: object) -> object:
        if isinstance(tag, frozenset):
            return tag
        return "before" if tag == 0 else "since" if tag == self.points else "between"

    def check(self) -> int:
        count = 0
        for name, lines in self.files.items():
            found = blame(interior(self.home).store, self.folder / name).lines
            assert [(line.text, told(line)) for line in found] == [(text, self.expected(tag)) for text, tag in lines]
            count += len(found)
        return count


def told(line: BlamedLine) -> object:
    authors = line.authors or ((line.author,) if line.author is not None else ())
    return frozenset((one.session, one.turn) for one in authors) or line.why


def live(folder: Path, seed: int, steps: int) -> int:
    """A life; returns how many lines had the author that they should have."""
    life = Life(folder, seed)
    with life.home:
        life.edit()
        life.begin(life.sessions[0])
        try:
            for _ in range(steps):
                life.step()
            count = life.check()
        finally:
            for session in life.sessions:
                if session.id in life.turns:
                    life.end(session)
        return count + life.check()


@pytest.mark.parametrize("seed", range(8))
def test_every_line_has_the_author_that_the_model_says(tmp_path, seed):
    assert live(tmp_path, seed, 60) > 0

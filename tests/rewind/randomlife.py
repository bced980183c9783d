"""A random life of two people and two agents, one of them in a folder of the other's, with kills.

Whoever writes a file writes what nobody else ever wrote, so that what is there says who it was. After every rewind that
was not forced, everything that a person or the other agent wrote last is still there, but for what nobody could know.
"""

from __future__ import annotations

import random
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import turnlog
from tests.rewind.agentlab import Agent, write

PEOPLE = ("ada", "bob")
AGENTS = {"outer": "", "inner": "sub"}
NAMES = ["a.txt", "b.txt", "sub/a.txt", "sub/b.txt", "sub/deep/a.txt"]
_WEIGHTS = {
    "person": 5, "agent": 6, "begin": 3, "end": 3, "kill": 2, "named": 1, "inside": 1, "rewind": 3, "undo": 1,
    "redo": 1,
}  # fmt: skip


@dataclass
class Wrote:
    """What is at a path, who made it so, and which agents' turns were going on then."""

    text: str | None
    who: str
    during: frozenset[str] = frozenset()
    back_by: str = ""
    """The agent whose undo brought it back: its redo takes it again."""


@dataclass
class Life:
    """Lives one."""

    top: Path
    seed: int
    rng: random.Random
    last: dict[str, Wrote] = field(default_factory=dict)
    working: dict[str, Agent] = field(default_factory=dict)
    taken: dict[str, list[dict[str, Wrote]]] = field(default_factory=lambda: {name: [] for name in AGENTS})
    """What each rewind of an agent took, for its undo."""
    told: list[str] = field(default_factory=list)
    rewinds: int = 0
    kept: int = 0
    """How often something of somebody else's stayed that the plan had to decide about."""

    def live(self, steps: int) -> None:
        """So many steps; an `AssertionError` tells the whole life."""
        rng = self.rng
        self.root = self.top / "project"
        for name in NAMES:
            self.put(name, "ada")
        with ExitStack() as stack:
            self.home = stack.enter_context(turnlog.open(self.top / "home", durability="flush"))
            for name, folder in AGENTS.items():
                self.home.create(id=name, workspace=self.root / folder)
            stack.callback(lambda: [agent.kill() for agent in self.working.values()])
            try:
                for _ in range(steps):
                    self.step(rng.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0], rng.choice(list(AGENTS)))
            except AssertionError as error:
                raise AssertionError(f"seed {self.seed}: {error}\n" + "\n".join(self.told)) from None

    def step(self, what: str, name: str) -> None:
        agent = self.working.get(name)
        if what == "person":
            self.change(self.rng.choice(PEOPLE), NAMES)
        elif what == "begin" and agent is None:
            self.working[name] = Agent(self.top / "home", name)
        elif what == "agent" and agent is not None:
            self.change(name, [path for path in NAMES if path.startswith(AGENTS[name])])
        elif what == "inside" and agent is not None:
            agent.checkpoint() if self.rng.random() < 0.5 else agent.say("going on")
        elif what == "end" and agent is not None:
            agent.end()
            del self.working[name]
        elif what == "kill" and agent is not None:
            self.kill(name, agent)
        elif what in ("named", "rewind", "undo", "redo") and agent is None:
            with self.home.resume(name) as session:
                self.move(what, name, session)
            return
        else:
            return
        if what not in ("person", "agent"):
            self.told.append(f"{name}: {what}")

    def kill(self, name: str, agent: Agent) -> None:
        """It dies between two changes, or in the middle of one: then what is there is its own, whatever it is."""
        path = self.rng.choice([path for path in NAMES if path.startswith(AGENTS[name])])
        text = f"{name} {len(self.told)} {self.rng.getrandbits(32)}\n"
        agent.kill(*((self.root / path, text) if self.rng.random() < 0.5 else ()))
        del self.working[name]
        now = (self.root / path).read_text() if (self.root / path).exists() else None
        if now != self.last[path].text:
            self.last[path] = Wrote(now, name)

    # ── changes ───────────────────────────────────────────────────────────────────────────────────

    def put(self, path: str, who: str, text: str | None = "") -> None:
        """Somebody makes a file what it never was, or removes it."""
        text = None if text is None else f"{who} {len(self.told)} {self.rng.getrandbits(32)}\n"
        self.last[path] = Wrote(text, who, frozenset(self.working))
        if who in self.working:
            self.working[who].write(self.root / path, text)
        else:
            write(self.root / path, text)

    def change(self, who: str, paths: list[str]) -> None:
        path = self.rng.choice(paths)
        self.put(path, who, None if self.rng.random() < 0.15 else "")
        self.told.append(f"{who} {'removes' if self.last[path].text is None else 'writes'} {path}")

    # ── moves ─────────────────────────────────────────────────────────────────────────────────────

    def move(self, what: str, name: str, session: turnlog.Session) -> None:
        if what == "named":
            session.checkpoint("by hand")
            self.told.append(f"{name}: checkpoint {session.seq}")
            return
        targets = session.checkpoints()
        if (what == "rewind" and not targets) or (what != "rewind" and not self.moves(session, what)):
            return
        takes_all, said = False, what
        if what == "rewind":
            target = self.rng.choice(targets)
            turns = [entry.seq for entry in session.entries() if entry.turn is not None]
            takes_all = not turns or (target.when is None and target.turn is None and max(turns) < target.seq)
            said = f"rewind {target.seq}"
            plan = session.plan_rewind(to=target)
            session.rewind(to=target)
        else:
            plan = session.plan_undo() if what == "undo" else session.plan_redo()
            (session.undo if what == "undo" else session.redo)()
        self.told.append(f"{name}: {said}: {[(step.raw, step.action, step.reason) for step in plan.steps]}")
        self.rewinds += 1
        self.compare(what, name, takes_all=takes_all)

    def moves(self, session: turnlog.Session, what: str) -> bool:
        try:
            return bool(session.plan_undo() if what == "undo" else session.plan_redo())
        except turnlog.NotFound:
            return False

    def compare(self, what: str, name: str, *, takes_all: bool) -> None:
        """What somebody else wrote last is there as it was."""
        took: dict[str, Wrote] = {}
        back = self.taken[name].pop() if what == "undo" and self.taken[name] else {}
        for path, wrote in self.last.items():
            full = self.root / path
            now = full.read_text() if full.exists() else None
            if now == wrote.text:
                self.kept += wrote.who != name
                continue
            if wrote.text is not None and not (what == "redo" and wrote.back_by == name):
                self.judge(path, wrote, name, takes_all=takes_all)
            took[path] = wrote
            before = back.get(path)
            # An undo brings back what was there, and whose it was; anything else that moved is the agent's doing.
            is_back = before is not None and before.text == now
            self.last[path] = replace(before, back_by=name) if before is not None and is_back else Wrote(now, name)
        if what != "undo":
            self.taken[name].append(took)

    def judge(self, path: str, wrote: Wrote, name: str, *, takes_all: bool) -> None:
        if wrote.who == name:
            return
        if wrote.who in PEOPLE:
            # Nobody can tell a person from a turn that goes on, and whoever goes back to a checkpoint that was asked
            # for, with no turn since, means everything.
            assert takes_all or name in wrote.during, f"{name} took what {wrote.who} wrote: {path}"
            return
        raise AssertionError(f"{name} took what {wrote.who} did: {path}")


def live(top: Path, seed: int, steps: int) -> Life:
    """One life, in an empty folder."""
    life = Life(top, seed, random.Random(seed))
    life.live(steps)
    return life

"""Hooks that die: the process that takes an event is killed before its n-th change of anything on the disk."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import turnlog
from tests.workspace.hostilelab import everything, paths_in
from turnlog.live import hook, transcript
from turnlog.session import Session

CHANGES = (
    "write", "pwrite", "writev", "pwritev", "fsync", "fdatasync", "rename", "replace", "link", "symlink", "unlink",
    "mkdir", "rmdir", "ftruncate", "truncate", "fchmod", "chmod", "utime",
)  # fmt: skip
NATIVE = "93a31366-ffe9-4705-8426-f81d3cf67c6b"
NAME = f"claude-code-{NATIVE}"
EVENTS = {"begin": "UserPromptSubmit", "tool": "PostToolUse", "end": "Stop"}


class HookWorld:
    """A person's home, a project, and an agent that works in it."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.home, self.project, self.person = place / "home", place / "project", place / "person"
        self._file = self.person / f".claude/projects/-p/{NATIVE}.jsonl"
        self.agent = 0
        """Its process."""

    def make(self) -> None:
        self.project.mkdir(parents=True)
        self._file.parent.mkdir(parents=True)
        (self.project / "a.txt").write_text("one\n")
        (self.project / "b.txt").write_text("bee\n")

    def told(self, event: str, turn: str) -> bytes:
        told = {"session_id": NATIVE, "cwd": str(self.project), "transcript_path": str(self._file), "pid": self.agent}
        more = {"tool_name": "Edit", "tool_input": {"file_path": "a.txt"}} if event == "tool" else {"prompt": "go"}
        return json.dumps({**told, "prompt_id": turn, **more}).encode()

    def says(self, turn: str) -> None:
        """The agent writes down what it was asked."""
        record = {
            "parentUuid": None, "isSidechain": False, "promptId": turn, "type": "user", "sessionId": NATIVE,
            "uuid": f"00000000-0000-4000-8000-{turn:>012}", "message": {"role": "user", "content": f"prompt {turn}"},
            "timestamp": "2026-11-15T17:45:09.032Z",
        }  # fmt: skip
        with self._file.open("a") as out:
            out.write(json.dumps(record) + "\n")

    def hook(self, event: str, turn: str, at: int = 0) -> bool:
        """Take an event in a process of its own, all that goes on behind the agent's back included.

        With `at`, it is killed before that change; gives whether it came to that.
        """
        read, write = os.pipe()
        os.write(write, self.told(event, turn))
        os.close(write)
        child = os.fork()
        if child == 0:
            _take(self, event, read, at)
        os.close(read)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status) or os.waitstatus_to_exitcode(status) == 0
        return os.WIFSIGNALED(status)

    def session(self) -> Session | None:
        """As the log is now: nothing in it is damaged."""
        home = turnlog.open(self.home)
        if not home.exists(NAME):
            home.close()
            return None
        found = home.resume(NAME)
        assert not found.damage
        return found

    def files(self) -> dict[str, tuple[Any, ...]]:
        return everything(self.project)

    def errors(self) -> list[str]:
        log = self.home / "hooks.log"
        return [line for line in log.read_text().splitlines() if '"error"' in line] if log.exists() else []


def _take(world: HookWorld, event: str, read: int, at: int) -> None:
    """In a process that is nobody else's."""
    try:
        os.environ.update(TURNLOG_HOME=str(world.home), HOME=str(world.person))
        os.environ.pop("CLAUDE_CONFIG_DIR", None)
        os.dup2(read, 0)
        transcript._QUIET_S, transcript._PAUSE_S = 0.0001, 0.0
        _, unread = os.pipe()
        left = [at]
        for name in CHANGES:
            setattr(os, name, _mortal(getattr(os, name), left))
        os.open = _mortal(os.open, left, lambda given: len(given) > 1 and bool(given[1] & os.O_CREAT))
        hook._work(["claude-code", EVENTS[event]], unread, os.getppid(), time.monotonic())
    finally:
        os._exit(1)


def _mortal(call: Any, left: list[int], counts: Callable[[tuple[Any, ...]], bool] = lambda given: True) -> Any:
    def made(*given: Any, **options: Any) -> Any:
        if counts(given):
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return call(*given, **options)

    return made


class HookBase:
    """A world made once, as it is before an event, and put back to that before each death."""

    def __init__(self, folder: Path, prepare: Callable[[HookWorld], None]) -> None:
        self.world = HookWorld(folder / "world")
        self.world.make()
        with AgentProcess() as one:
            self.world.agent = one.pid
            prepare(self.world)
        self._saved = folder / "saved"
        shutil.copytree(self.world.place, self._saved, symlinks=True)

    def fresh(self) -> HookWorld:
        shutil.rmtree(self.world.place)
        shutil.copytree(self._saved, self.world.place, symlinks=True)
        return self.world


class AgentProcess:
    """A process that works in turns, until it is left."""

    def __enter__(self) -> AgentProcess:
        self._process = subprocess.Popen(["sleep", "1000"])
        self.pid = self._process.pid
        return self

    def __exit__(self, *_: object) -> None:
        self.die()

    def die(self) -> None:
        self._process.kill()
        self._process.wait()


class Scene:
    """An event in which hooks die: what was before it, and what the agent did then."""

    def __init__(self, event: str, turn: str, prepare: Callable[[HookWorld], None], change: str = "") -> None:
        self.event, self.turn, self._prepare, self._change = event, turn, prepare, change

    def live(self, folder: Path, step: int = 1, first: int = 1) -> int:
        """Every death, or every so many: looks at the world that each leaves. Gives how many there were."""
        base = HookBase(folder, self._prepare)
        count, at = 0, first
        for way in (_agent_dies, _agent_goes_on):
            at = first
            while self._dies(base, way, at):
                at += step
                count += 1
        assert at > 8, f"{self.event} changes so little"
        return count

    def _dies(self, base: HookBase, way: Callable[[HookWorld, Scene, AgentProcess], None], at: int) -> bool:
        world = base.fresh()
        before = _ids(world)
        with AgentProcess() as one:
            world.agent = one.pid
            if self._change:
                (world.project / self._change).write_text(f"changed in {self.turn}\n")
            is_dead = world.hook(self.event, self.turn, at)
            assert _ids(world)[: len(before)] == before, f"at {at}: what was acknowledged is not there any more"
            try:
                way(world, self, one)
            except Exception as problem:
                raise AssertionError(f"{way.__name__} at {at}: {problem!r}") from problem
        return is_dead


def _ids(world: HookWorld) -> list[str]:
    found = world.session()
    return [entry.id for entry in found.entries()] if found is not None else []


def _agent_dies(world: HookWorld, scene: Scene, one: AgentProcess) -> None:
    one.die()
    with AgentProcess() as another:
        world.agent = another.pid
        _next_turn_works(world)


def _agent_goes_on(world: HookWorld, scene: Scene, one: AgentProcess) -> None:
    """It does not notice."""
    if scene.event == "begin":
        (world.project / "a.txt").write_text("changed by a tool\n")
        world.hook("tool", scene.turn)
    if scene.event != "end":
        world.hook("end", scene.turn)
    _next_turn_works(world)


def _next_turn_works(world: HookWorld) -> None:
    """And nothing that a person did before it is taken by any rewind."""
    typed = {"mine.txt": "typed by a person\n", "b.txt": "bee\nand more, by a person\n"}
    for name, text in typed.items():
        (world.project / name).write_text(text)
    world.hook("begin", "next")
    (world.project / "next.txt").write_text("by the next turn\n")
    world.hook("end", "next")
    session = world.session()
    assert session is not None
    with session:
        for point in session.checkpoints():
            assert paths_in(turnlog.open(world.home), point)
        number = session.stats().turns
        assert [item.path for item in session.diff(turn=number)] == ["next.txt"]
        after = world.files()
        for _ in range(2):
            session.rewind(to=session.checkpoints()[0])
            assert "next.txt" not in world.files()
            assert {name: (world.project / name).read_text() for name in typed} == typed
            session.undo()
            assert world.files() == after
    assert world.errors() == []


def _one_turn(world: HookWorld) -> None:
    world.hook("begin", "1")
    world.says("1")
    (world.project / "a.txt").write_text("two\n")
    world.hook("tool", "1")


def _two_turns(world: HookWorld) -> None:
    _one_turn(world)
    world.hook("end", "1")
    world.hook("begin", "2")
    world.says("2")


SCENES = {
    "the first turn begins": Scene("begin", "1", lambda world: None),
    "a turn begins after one that was interrupted": Scene("begin", "2", _one_turn),
    "a tool ended": Scene("tool", "2", _two_turns, "a.txt"),
    "a turn ended": Scene("end", "2", _two_turns, "made by the shell"),
}

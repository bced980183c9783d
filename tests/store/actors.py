"""Other processes, for tests: `python -m tests.store.actors ACT FOLDER …`.

Each says `ready` when it has opened its home, does its act when it is told to, and prints what came of it.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import turnlog
from turnlog import Image, Text
from turnlog.log.entry import Message
from turnlog.session.interior import interior
from turnlog.store.files.disk import Disk
from turnlog.thread.reader import history_of

_PATIENCE_S = 90
"""Whoever hangs says where, and ends."""
ROOT = Path(__file__).resolve().parents[2]


class Actor:
    """One such process, seen from the test."""

    def __init__(self, act: str, *args: Any) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.store.actors", act, *map(str, args)],
            cwd=ROOT, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.pid = self._process.pid

    def wait_until_ready(self) -> None:
        line = self._out.readline()
        assert line == "ready\n", f"the other process said {line!r}"

    def go(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def hear(self) -> Any:
        """The next thing it says."""
        return json.loads(self._out.readline())

    @property
    def _out(self) -> Any:
        assert self._process.stdout is not None
        return self._process.stdout

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)
        if number == signal.SIGSTOP:
            os.waitid(os.P_PID, self.pid, os.WSTOPPED)  # it goes on for a moment

    def end(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()


@contextmanager
def actors(*acts: tuple[Any, ...]) -> Iterator[list[Actor]]:
    """Several processes, all ready."""
    cast = [Actor(*act) for act in acts]
    try:
        for actor in cast:
            actor.wait_until_ready()
        yield cast
    finally:
        for actor in cast:
            actor.end()


def at_once(*acts: tuple[Any, ...]) -> list[Any]:
    """What came of acts that several processes did at the same time."""
    with actors(*acts) as cast:
        for actor in cast:
            actor.go()
        return [actor.hear() for actor in cast]


# ── what they do ──────────────────────────────────────────────────────────────────────────────────


def _wait() -> None:
    print("ready", flush=True)
    sys.stdin.readline()


def _say(what: Any) -> None:
    print(json.dumps(what), flush=True)


def notes(folder: str, session_id: str, name: str, count: str) -> None:
    session = turnlog.open(folder).resume(session_id)
    _wait()
    _say([session.note(f"{name} {n} " + name[-1] * (n * 97 % 6_000)).seq for n in range(int(count))])


def nodes(folder: str, session_id: str, name: str, count: str) -> None:
    session = turnlog.open(folder).resume(session_id)
    _wait()
    done: list[int] = []
    for number in range(int(count)):
        draft = Message(role="user", blocks=[Text(f"{name} {number}")])
        done.append(session.append(draft, rebase=True).seq)
    _say(done)


def images(folder: str, session_id: str, name: str, count: str) -> None:
    session = turnlog.open(folder).resume(session_id)
    _wait()
    done: list[int] = []
    for number in range(int(count)):
        image = Image("image/png", data=f"{name} {number % 7}".encode() * 20)
        done.append(session.append(Message(role="user", blocks=[image]), rebase=True).seq)
    _say(done)


def sessions(folder: str, name: str, count: str) -> None:
    home = turnlog.open(folder)
    _wait()
    made: list[str] = []
    for number in range(int(count)):
        session = home.create(id=f"{name}-{number}")
        session.user(f"hello from {session.id}")
        made.append(session.id)
    _say(made)


def starts(folder: str, name: str, count: str) -> None:
    """Make a home, and sessions with ids of its own making, all after the signal."""
    _wait()
    home = turnlog.open(folder)
    made: list[str] = []
    for number in range(int(count)):
        session = home.create(title=f"{name} {number}")
        session.user(f"hello from {name} {number}")
        made.append(session.id)
    _say(made)


def create(folder: str, session_id: str) -> None:
    home = turnlog.open(folder)
    _wait()
    try:
        session = home.create(id=session_id)
    except turnlog.AlreadyExists:
        _say(None)
    else:
        _say(session.user(f"mine: {os.getpid()}").seq)


def hold(folder: str, session_id: str, with_child: str = "") -> None:
    """Take the writer's lock and keep it."""
    disk = Disk()
    fd = disk.open(os.path.join(folder, "sessions", f"{session_id}.jsonl"), os.O_RDWR | os.O_APPEND)
    disk.lock(fd)
    child = subprocess.Popen(["sleep", "60"]) if with_child else None
    _wait()
    _say(child.pid if child else None)
    time.sleep(60)


def hold_blobs(folder: str, how: str) -> None:
    """Keep blobs, or keep everybody else out, for a long time."""
    store = interior(turnlog.open(folder)).store
    with store._blobs.exclusive() if how == "alone" else store.keeping():
        _wait()
        time.sleep(60)


def fork_inside(folder: str, session_id: str, what: str) -> None:
    """Fork a worker while a lock is held, and say its pid. It lives on; the lock of a log is held until we die."""
    home = turnlog.open(folder)
    session = home.resume(session_id)
    reading = session.entries()
    next(reading)  # whoever reads has a second descriptor of the same lock
    _wait()
    if what == "log":
        history_of(session).log._file.locked(lambda: (_say(_sleeper()), time.sleep(60)))
    with interior(home).store._blobs.exclusive() if what == "alone" else interior(home).store.keeping():
        child = _sleeper()
    _say(child)
    time.sleep(60)


def _sleeper() -> int:
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    return child


def forks(folder: str, session_id: str, count: str) -> None:
    """Fork, and append from both sides."""
    session = turnlog.open(folder).resume(session_id)
    _wait()
    session.user("before")
    child = os.fork()
    name = "child" if child == 0 else "parent"
    for number in range(int(count)):
        session.append(Message(role="user", blocks=[Text(f"{name} {number}")]), rebase=True)
    if child == 0:
        os._exit(0)
    _say([os.getpid(), child, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])])


def forks_with_threads(folder: str, session_id: str, count: str) -> None:
    """Fork again and again while other threads are in the middle of appending; each child appends, too."""
    session = turnlog.open(folder).resume(session_id)
    _wait()
    is_over = threading.Event()

    def append() -> None:
        while not is_over.is_set():
            session.note("a thread of the parent")
            time.sleep(0.001)  # in memory nobody waits for a disk, and who comes last would never get the lock

    threads = [threading.Thread(target=append) for _ in range(4)]
    for thread in threads:
        thread.start()
    codes: list[int] = []
    for number in range(int(count)):
        child = os.fork()
        if child == 0:
            signal.alarm(5)
            session.note(f"child {number}")
            os._exit(0)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    is_over.set()
    for thread in threads:
        thread.join()
    _say(codes)


ACTS: dict[str, Callable[..., None]] = {
    act.__name__: act
    for act in (
        notes,
        nodes,
        images,
        sessions,
        starts,
        create,
        hold,
        hold_blobs,
        fork_inside,
        forks,
        forks_with_threads,
    )
}

if __name__ == "__main__":
    faulthandler.dump_traceback_later(_PATIENCE_S, exit=True)
    ACTS[sys.argv[1]](*sys.argv[2:])

"""Agents that are processes of their own, told step by step what to do, and killed."""

from __future__ import annotations

import os
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

_PROCESSES = get_context("forkserver")
_PROCESSES.set_forkserver_preload(["turnlog", "turnlog.session.session", "turnlog.rewind.rewinder", __name__])


def write(path: Path, text: str | None) -> None:
    """That content, or nothing there."""
    if text is None:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


class Agent:
    """A process that is in a turn of a session."""

    def __init__(self, home: Path, session: str) -> None:
        self._here, there = _PROCESSES.Pipe()
        self._process = _PROCESSES.Process(target=_work, args=(str(home), session, there), daemon=True)
        self._process.start()
        there.close()
        self._here.recv()

    def _ask(self, *words: Any) -> None:
        self._here.send(words)
        self._here.recv()

    def write(self, path: Path, text: str | None) -> None:
        """It changes a file."""
        self._ask("write", path, text)

    def say(self, text: str) -> None:
        """It appends a message."""
        self._ask("say", text)

    def checkpoint(self) -> None:
        """It takes a checkpoint inside its turn."""
        self._ask("checkpoint")

    def end(self) -> None:
        """Its turn ends, and so does the process."""
        self._ask("end")
        self._process.join()
        self._here.close()

    def kill(self, *change: Any) -> None:
        """With -9; in the middle of a change, if told one."""
        if change:
            self._here.send(("write", *change))
        self._process.kill()
        self._process.join()
        self._here.close()


def _work(home: str, session: str, told: Connection) -> None:
    import turnlog

    with turnlog.open(home, durability="flush") as opened:
        found = opened.resume(session)
        with found.turn():
            told.send(os.getpid())
            while True:
                what, *words = told.recv()
                if what == "end":
                    break
                if what == "write":
                    write(*words)
                elif what == "say":
                    found.user(*words)
                else:
                    found.checkpoint()
                told.send(what)
    told.send("end")

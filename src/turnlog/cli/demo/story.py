"""A story told by doing it: shell commands and Python are printed as they are typed, and really run."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

from turnlog.view.visible import clip, safe

_WIDTH = 96


class Story:
    """Runs steps and shows them. `checks` has what was looked at, and whether it was as it should be."""

    def __init__(self, folder: Path, *, is_quiet: bool) -> None:
        self.folder = folder
        self.workspace = folder
        self.names: dict[str, Any] = {}
        self.checks: list[tuple[str, bool]] = []
        self._is_quiet = is_quiet
        self._chapter = 0
        self._blank = 0

    def move_to(self, name: str) -> None:
        """Make another workspace, and work there from now on."""
        self.workspace = self.folder / name
        self.workspace.mkdir()

    def say(self, text: str = "") -> None:
        """Print a line, or several."""
        for line in [] if self._is_quiet else text.split("\n"):
            self._blank = 0 if line else self._blank + 1
            if self._blank < 3:
                print(line, flush=True)

    def chapter(self, title: str, *lines: str) -> None:
        """Print the title of a chapter, and what happens in it."""
        self._chapter += 1
        self.say(f"\n\n{self._chapter}. {title}")
        for line in lines:
            self.say(f"   {line}")
        self.say()

    def check(self, text: str, is_so: bool) -> None:
        """Record and print whether something is as it should be."""
        self.checks.append((text, is_so))
        self.say(f"   {'✓' if is_so else '✗ NOT SO:'} {text}")

    def shell(self, *words: str, expect: int = 0, show: int = 0) -> str:
        """`turnlog …` in a process of its own, as a user would run it. `show`: only the last so many lines."""
        self.say(f"   $ turnlog {' '.join(words)}")
        process = subprocess.run(
            [sys.executable, "-m", "turnlog", *words],
            cwd=self.workspace,
            env={**_surroundings(), "COLUMNS": str(_WIDTH - 4)},
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )
        lines = (process.stdout + process.stderr).rstrip("\n").split("\n")
        if len(lines) > show > 0:
            self.say("     …")
        for line in lines[-show:]:
            self.say(f"     {line}".rstrip())
        self.say()
        if process.returncode != expect:
            self.check(f"`turnlog {' '.join(words)}` exits with {expect}, not {process.returncode}", False)
        return process.stdout

    def python(self, source: str) -> Any:
        """Python, as in an interactive session: the value of the last line is shown."""
        *before, last = source.strip().split("\n")
        for number, line in enumerate([*before, last]):
            self.say(f"   {'>>>' if number == 0 or not line.startswith(' ') else '...'} {line}")
        value: Any = None
        with contextlib.redirect_stdout(io.StringIO()):
            try:
                code = compile(last, "<demo>", "eval")
            except SyntaxError:
                exec("\n".join([*before, last]), self.names)
            else:
                exec("\n".join(before), self.names)
                value = eval(code, self.names)
        if value is not None and not last.startswith("_"):
            self.say(f"   {clip(safe(repr(value)), _WIDTH - 3)}")
        return value

    @contextlib.contextmanager
    def agent(self) -> Generator[subprocess.Popen[str]]:
        """The scripted agent as a process of its own; killed at the latest when this ends."""
        words = [sys.executable, "-u", "-m", "turnlog.cli.demo.agent"]
        with subprocess.Popen(
            words, cwd=self.workspace, env=_surroundings(), stdout=subprocess.PIPE, text=True, encoding="utf-8"
        ) as process:
            try:
                yield process
            finally:
                process.kill()


def _surroundings() -> dict[str, str]:
    """What a process of ours says is read as UTF-8, whatever this machine speaks."""
    return {**os.environ, "PYTHONIOENCODING": "utf-8"}

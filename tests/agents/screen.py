"""A program on a terminal that somebody looks at: tmux shows the screen and presses the keys."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType

import pytest

_PATIENCE_S = 60
_PAUSE_S = 0.1


class Screen:
    """Runs a command in a terminal of its own; `until` waits for a text on it, `press` and `type` are the keyboard."""

    def __init__(self, folder: Path, words: list[str], environ: dict[str, str], place: Path) -> None:
        self._tmux = shutil.which("tmux") or pytest.skip("there is no tmux here: `apt-get install tmux`")
        self._socket = folder / "screen"
        environ = {**environ, "TERM": "tmux-256color", "PWD": str(place)}
        environ.pop("NO_COLOR", None)
        self._environ = environ
        self._run("-f", "/dev/null", "new-session", "-d", "-x", "110", "-y", "50", "-c", str(place), *words)

    def _run(self, *words: str) -> str:
        command = [self._tmux, "-S", str(self._socket), *words]
        return subprocess.run(command, env=self._environ, capture_output=True, text=True, check=True).stdout

    def __enter__(self) -> Screen:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        subprocess.run([self._tmux, "-S", str(self._socket), "kill-server"], capture_output=True)

    @property
    def text(self) -> str:
        return self._run("capture-pane", "-p", "-S", "-200").replace("\u00a0", " ")

    @property
    def pid(self) -> int:
        """Of the program."""
        return int(self._run("display-message", "-p", "#{pane_pid}"))

    def until(self, *wanted: str) -> str:
        """The screen, once it shows one of these."""
        end = time.monotonic() + _PATIENCE_S
        while time.monotonic() < end:
            shown = self.text
            if any(text in shown for text in wanted):
                return shown
            time.sleep(_PAUSE_S)
        raise AssertionError(f"none of {wanted} came:\n{shown}")

    def type(self, text: str) -> None:
        """Letter by letter, as a person does: what comes at once is taken for pasted."""
        self._run("send-keys", "-l", text)
        time.sleep(0.4)

    def press(self, *keys: str) -> None:
        """Keys by their names: `Enter`, `Escape`, `C-c`."""
        for key in keys:
            self._run("send-keys", key)
            time.sleep(_PAUSE_S)


def skip_welcome(home: Path, place: Path) -> None:
    """Claude Code starts without questions: what it asks a new user was answered long ago."""
    file = home / ".claude/.claude.json"
    known = json.loads(file.read_text()) if file.exists() else {}
    answered = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "bypassPermissionsModeAccepted": True,
        "customApiKeyResponses": {"approved": ["x"], "rejected": []},
        "projects": {str(place): {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}},
    }
    if not known.get("hasCompletedOnboarding"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(known | answered))

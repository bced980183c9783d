"""An agent as a process: in a home of its own, talking to a scripted provider and to nothing else."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.agents.provider import Provider
from tests.agents.script import Block

BIN = Path(os.environ.get("AGENTS_BIN") or Path(__file__).with_name("node_modules") / ".bin")
"""The versions that are pinned, or those of another installation."""
TIMEOUT_S = 180


class Failed(Exception):
    """An agent ended otherwise than it should."""


@dataclass(frozen=True)
class Done:
    """What an agent left behind when it ended."""

    status: int
    out: str
    err: str


def _environment(home: Path, provider: Provider) -> dict[str, str]:
    """Nothing of the person who runs the tests; all traffic but loopback goes to the provider, which refuses it."""
    node = shutil.which("node") or "/usr/bin/node"
    return {
        "PATH": os.pathsep.join([str(BIN), str(Path(node).parent), "/usr/local/bin", "/usr/bin", "/bin"]),
        "HOME": str(home),
        "XDG_DATA_HOME": str(home / ".local/share"),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_STATE_HOME": str(home / ".local/state"),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "TMPDIR": str(home / "tmp"),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "TERM": "dumb",
        "NO_COLOR": "1",
        "HTTP_PROXY": provider.url,
        "HTTPS_PROXY": provider.url,
        "http_proxy": provider.url,
        "https_proxy": provider.url,
        "NO_PROXY": "127.0.0.1,localhost",
        "no_proxy": "127.0.0.1,localhost",
        "GIT_CONFIG_NOSYSTEM": "1",
    }


def _kill(process: subprocess.Popen[bytes]) -> None:
    """The agent and whatever it started: it leads a process group of its own."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


class Agent:
    """One agent: its configuration, its commands, and where its sessions lie."""

    name: str
    package: str
    command: str
    model: str

    def environment(self, home: Path, provider: Provider) -> dict[str, str]:
        return {}

    def configure(self, home: Path, provider: Provider) -> None:
        """The files that point it at the provider."""

    def run(self, prompt: str) -> list[str]:
        raise NotImplementedError

    def resume(self, session: str, prompt: str) -> list[str]:
        raise NotImplementedError

    def fork(self, session: str, prompt: str) -> list[str] | None:
        """Go on in a new session that begins as the given one; None where it cannot."""
        return None

    def with_image(self, prompt: str, image: str) -> list[str] | None:
        """Run a prompt with a picture in the workspace attached; None where only a tool can look at one."""
        return None

    def shell(self, command: str) -> tuple[str, Any]:
        """Its tool for shell commands, and what the model says to use it."""
        raise NotImplementedError

    def edit(self, path: Path, old: str, new: str) -> tuple[str, Any]:
        raise NotImplementedError

    def read(self, path: Path) -> tuple[str, Any]:
        raise NotImplementedError

    def sessions(self, home: Path) -> list[Path]:
        """The session files, oldest first."""
        raise NotImplementedError

    def latest(self, home: Path) -> str:
        """The session written last, as `resume` takes it."""
        return self.id_of(self.sessions(home)[-1])

    def find(self, home: Path, session: str) -> Path:
        """The file of a session, given as `resume` takes it."""
        [path] = [path for path in self.sessions(home) if self.id_of(path) == session]
        return path

    def id_of(self, path: Path) -> str:
        """What `resume` wants for a session file in its place."""
        raise NotImplementedError

    def take_in(self, home: Path, provider: Provider, workspace: Path, path: Path) -> str:
        """Make the agent know a session file that lies in its place; gives what `resume` wants."""
        return self.id_of(path)

    def listing(self) -> list[str] | None:
        """The command that lists the sessions of a workspace; None where only a terminal shows them."""
        return None

    def is_noise(self, role: str, block: Block) -> bool:
        """What the agent says to the model on its own account, with every request."""
        return role == "system"

    def _start(
        self, home: Path, provider: Provider, workspace: Path, arguments: list[str], *, piped: bool
    ) -> subprocess.Popen[bytes]:
        if not (BIN / self.command).exists():
            pytest.skip(f"{self.name} is not in {BIN}")
        (home / "tmp").mkdir(parents=True, exist_ok=True)
        self.configure(home, provider)
        environment = _environment(home, provider) | self.environment(home, provider)
        return subprocess.Popen(
            [str(BIN / self.command), *arguments],
            cwd=workspace,
            env={**environment, "PWD": str(workspace)},
            stdin=subprocess.PIPE if piped else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def invoke(
        self,
        home: Path,
        provider: Provider,
        workspace: Path,
        arguments: list[str],
        *,
        input: bytes | None = None,
        timeout_s: float = TIMEOUT_S,
        interrupt: bool = False,
        how: int = signal.SIGINT,
        check: bool = True,
    ) -> Done:
        """Run one command to its end. With `interrupt`, stop it as Ctrl-C would once an answer is held back.

        `how` is another signal for that.
        """
        process = self._start(home, provider, workspace, arguments, piped=input is not None)
        try:
            if interrupt:
                if not provider.held.wait(timeout_s):
                    raise Failed(f"{self.name} never asked for the answer that is held back")
                os.killpg(process.pid, how)
            out, err = process.communicate(input, timeout=timeout_s)
        except subprocess.TimeoutExpired as error:
            _kill(process)
            out, err = process.communicate()
            raise Failed(f"{self.name} {arguments} did not end in {timeout_s} s\n{out!r}\n{err!r}") from error
        finally:
            _kill(process)
        done = Done(process.returncode, out.decode(errors="replace"), err.decode(errors="replace"))
        if check and not interrupt and done.status != 0:
            raise Failed(f"{self.name} {arguments} ended with {done.status}\n{done.out}\n{done.err}")
        return done

    def converse(
        self, home: Path, provider: Provider, workspace: Path, arguments: list[str], messages: list[dict[str, Any]]
    ) -> list[dict[str, Any]]:
        """Run a command that is a server on its standard input, one JSON per line; gives its replies.

        A message with an `id` is replied to before the next one is sent.
        """
        process = self._start(home, provider, workspace, arguments, piped=True)
        assert process.stdin and process.stdout and process.stderr
        watch = threading.Timer(TIMEOUT_S, process.kill)
        watch.start()
        replies: list[dict[str, Any]] = []
        try:
            for message in messages:
                process.stdin.write(json.dumps(message).encode() + b"\n")
                process.stdin.flush()
                lines = (json.loads(line) for line in process.stdout) if "id" in message else iter(())
                replies += islice((line for line in lines if line.get("id") == message["id"]), 1)
        finally:
            watch.cancel()
            _kill(process)
            for pipe in (process.stdin, process.stdout, process.stderr):
                pipe.close()
        if len(replies) != sum("id" in message for message in messages):
            raise Failed(f"{self.name} {arguments} ended before it had replied to all: {replies}")
        return replies

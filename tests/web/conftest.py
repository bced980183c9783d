"""A machine with sessions of three agents, and `turnlog web` on it, asked over real connections."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

pytest.importorskip("starlette", reason="`make venv` installs what `turnlog web` needs")
pytest.importorskip("uvicorn")

import turnlog
from tests.catalog.machine import Machine
from turnlog import Image, Message, Text, ToolCall, ToolResult, Usage

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360000002000001e221bc33"
    "0000000049454e44ae426082"
)
HOSTILE = "\"><script>alert(1)</script><img src=x onerror=alert(1)>'</title></textarea>"


class Page:
    """An answer, and what can be asked of it."""

    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self.status = answer.status
        self.headers = answer.headers
        self.body = answer.read()

    @property
    def text(self) -> str:
        return self.body.decode()

    def found(self, pattern: str) -> list[str]:
        return re.findall(pattern, self.text)

    def testids(self, name: str) -> int:
        return len(self.found(f'data-testid="{name}"'))


class Served:
    """A running server and the machine that it shows."""

    def __init__(self, machine: Machine, *options: str) -> None:
        self.machine = machine
        command = [sys.executable, "-m", "turnlog", "--home", str(machine.home), "web", "--no-open", "--print-url"]
        self.process = subprocess.Popen(
            [*command, "--port", "0", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            cwd=machine.work,
        )  # fmt: skip
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()
        assert self.url, self.process.stderr and self.process.stderr.read()
        parts = urlsplit(self.url)
        assert parts.port is not None
        self.port, self.token = parts.port, parts.query.removeprefix("token=")
        self.cookie = f"turnlog-{self.port}={self.token}"

    def ask(self, path: str, method: str = "GET", body: Any = None, **headers: str) -> Page:
        """One request; by default as a page of ours makes it."""
        given = {"Host": f"127.0.0.1:{self.port}", "Cookie": self.cookie}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
            sent = {name: value for name, value in given.items() if value != "-"}
            connection.request(method, path, data, sent)
            return Page(connection.getresponse())
        finally:
            connection.close()

    def get(self, path: str, **query: str) -> Page:
        return self.ask(path + (f"?{urlencode(query)}" if query else ""))

    def post(self, path: str, body: Any, **headers: str) -> Page:
        token = re.search('name="turnlog-token" content="([^"]+)"', self.get("/").text)
        more = {"Origin": f"http://127.0.0.1:{self.port}", "Content_Type": "application/json"}
        more["X_Turnlog_Token"] = token[1] if token else "-"
        return self.ask(path, "POST", body, **{**more, **headers})

    def stop(self) -> tuple[int, str]:
        self.process.terminate()
        _, err = self.process.communicate(timeout=10)
        return self.process.returncode, err


def furnish(machine: Machine) -> None:
    """Sessions of ours, of Claude Code and of Codex."""
    machine.claude("aaaa1111", 3)
    machine.codex("bbbb2222", 2)
    with turnlog.open(str(machine.home), durability="flush", checkpoints=False) as home:
        with home.create(id="talk-one", workspace=machine.work, title="Fix the login page") as session:
            session.set("tags", ["urgent"])
            for number in range(60):
                session.user(f"please look at case {number}")
                call = ToolCall(id=f"c{number}", name="bash", input={"command": f"grep -n case{number} log.txt"})
                usage = Usage(input_tokens=1000 + number, output_tokens=10, cost_micros=1500)
                session.append(Message(role="assistant", blocks=[Text(text="I look"), call], model="m", usage=usage))
                result = ToolResult(call=call.id, content=f"found haystack{number}\n" * 12, is_error=number == 7)
                session.append(Message(role="tool", blocks=[result]))
                session.assistant(f"answer **{number}** is `fine`")
            session.append(
                Message(role="user", blocks=[Text(text="a picture"), Image(data=PNG, media_type="image/png")])
            )
            session.append(
                Message(role="user", blocks=[Image(data=b"<svg onload=alert(1)>", media_type="image/svg+xml")])
            )
        with home.create(id="evil-one", title=HOSTILE, agent=HOSTILE, workspace=machine.work) as session:
            session.user(HOSTILE)
            said = Text(text=f"[{HOSTILE}](javascript:alert(1)) {HOSTILE}")
            call = ToolCall(id="x", name=HOSTILE, input={"command": HOSTILE})
            session.append(Message(role="assistant", blocks=[said, call], model=HOSTILE))
            session.append(Message(role="tool", blocks=[ToolResult(call="x", content=f"--- a\n+++ b\n+{HOSTILE}")]))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for all tests of a file: what they change is named after them."""
    with pytest.MonkeyPatch.context() as patch:
        machine = Machine(tmp_path_factory.mktemp("web"), patch)
        furnish(machine)
        running = Served(machine)
        for _ in range(100):
            if "sessions are read so far" not in running.get("/").text:
                break
            time.sleep(0.1)
        yield running
        code, err = running.stop()
        assert (code, "Traceback" in err) == (0, False), err


class Outline(HTMLParser):
    """The tags of a page, for who wants to know what a browser would make of it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def state_file(user: Path) -> Path:
    return Path(os.environ.get("XDG_STATE_HOME") or user / ".local" / "state") / "turnlog" / "web-token"

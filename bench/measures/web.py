"""`turnlog web`, in hellos: what a page takes beside the bare answer of Starlette, over kept connections."""

import http.client
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from bench.corpus import COMMON, RARE, make
from bench.ground import Ground
from bench.measures import Row, ratio, take_turns

TITLE = "turnlog web, in hellos of bare Starlette: 300 sessions, one of 100,000 entries"
ROUNDS, EACH = 9, 8
"""So many requests follow on each other in a round: a single hello is mostly the waking up of a process."""
SESSIONS, MB = 300, 90
BARS = {
    "the list": ("/", 40), "a rare word": (f"/?q={RARE}", 40), "a filter": ("/?q=agent:codex", 40),
    "a common word": (f"/?q={COMMON}", 120), "usage": ("/usage", 120), "a small session": ("/s/ten", 20),
    "100,000 rows, at the end": ("/s/long", 60), "100,000 rows, in the middle": ("/s/long?at=50000", 60),
}  # fmt: skip
_HELLO = """
import socket, uvicorn
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
bound.bind(("127.0.0.1", 0)); bound.listen(50)
print(f"http://127.0.0.1:{bound.getsockname()[1]}/", flush=True)
app = Starlette(routes=[Route("/", lambda request: PlainTextResponse("hello"))])
uvicorn.Server(uvicorn.Config(app, lifespan="off", log_level="critical")).run(sockets=[bound])
"""


def measure(ground: Ground) -> list[Row]:
    person = ground.folder / "web-person"
    make(person, sessions=SESSIONS, mb=MB)
    environment = {**os.environ, "HOME": str(person)}
    subprocess.run([sys.executable, "-m", "turnlog", "--home", str(ground.long), "index"], env=environment, check=True,
                   capture_output=True)  # fmt: skip
    options = ["--no-open", "--print-url", "--port", "0"]
    command = [sys.executable, "-m", "turnlog", "--home", str(ground.long), "web", *options]
    with _Server([sys.executable, "-c", _HELLO], environment) as hello, _Server(command, environment) as web:
        rows = [_start(command, environment)]
        for what, (path, bar) in BARS.items():
            jobs: dict[str, Callable[[], object]] = {what: web.asking(path, EACH), "hello": hello.asking("/", EACH)}
            for job in jobs.values():
                job()
            rows.append(ratio(f"turnlog web: {what}", take_turns(jobs, rounds=ROUNDS), what, "hello", bar=float(bar)))
        return rows


def _start(command: list[str], environment: dict[str, str]) -> Row:
    def first(words: list[str]) -> Callable[[], object]:
        def job() -> None:
            with _Server(words, environment) as made:
                made.asking("/")()

        return job

    jobs = {"turnlog web": first(command), "hello": first([sys.executable, "-c", _HELLO])}
    title = "turnlog web: start to the first answer"
    return ratio(title, take_turns(jobs, rounds=5), "turnlog web", "hello", bar=3.0)


class _Server:
    """A server that prints its address on its first line."""

    def __init__(self, words: list[str], environment: dict[str, str]) -> None:
        self._words, self._environment = words, environment

    def __enter__(self) -> "_Server":
        self._process = subprocess.Popen(
            self._words, env=self._environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            cwd=Path(self._environment["HOME"]),
        )  # fmt: skip
        assert self._process.stdout is not None
        found = urlsplit(self._process.stdout.readline().strip())
        assert found.port is not None
        self._cookie = f"turnlog-{found.port}={found.query.removeprefix('token=')}"
        self._port = found.port
        self._link = http.client.HTTPConnection("127.0.0.1", found.port)
        return self

    def asking(self, path: str, times: int = 1) -> Callable[[], object]:
        def job() -> None:
            for _ in range(times):
                self._ask(path)

        return job

    def _ask(self, path: str) -> None:
        for _ in range(100):
            try:
                self._link.request("GET", path, headers={"Cookie": self._cookie})
                break
            except ConnectionRefusedError:
                time.sleep(0.01)
        answer = self._link.getresponse()
        answer.read()
        if answer.status != 200:
            raise SystemExit(f"{path}: {answer.status}")

    def __exit__(self, *_: object) -> None:
        self._link.close()
        self._process.terminate()
        self._process.wait(10)

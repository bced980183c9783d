"""`turnlog web`, in hellos: what a page takes beside the bare answer of Starlette, over kept connections.

Also what it takes while nobody asks, how much memory, and how soon another agent's long session is there.
"""

import http.client
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from bench.corpus import COMMON, RARE, make
from bench.ground import Ground
from bench.measures import Row, ratio, take_turns
from turnlog.formats import Source, format_of

TITLE = "turnlog web, in hellos of bare Starlette: 300 sessions, one of 100,000 entries"
ROUNDS, EACH = 9, 8
"""So many requests follow on each other in a round: a single hello is mostly the waking up of a process."""
FOREIGN_MB = 75
IDLE_S = 10.0
SESSIONS, MB = 300, 90
BARS = {
    "the list": ("/", 40), "a rare word": (f"/?q={RARE}", 40), "a filter": ("/?q=agent:codex", 40),
    "a common word": (f"/?q={COMMON}", 120), "usage": ("/usage", 120), "a small session": ("/s/ten", 20),
    "100,000 rows, at the end": ("/s/long", 60), "100,000 rows, in the middle": ("/s/long?at=50000", 60),
    "a word that is nowhere": ("/?q=nowhereatall", 40), "the numbers of 100,000 rows": ("/s/long/stats", 60),
    "the tree of 100,000 rows": ("/s/long/tree", 60),
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
    with WebServer([sys.executable, "-c", _HELLO], environment) as hello, WebServer(command, environment) as web:
        rows = [_start(command, environment)]
        for what, (path, bar) in BARS.items():
            jobs: dict[str, Callable[[], object]] = {what: web.asking(path, EACH), "hello": hello.asking("/", EACH)}
            for job in jobs.values():
                job()
            rows.append(ratio(f"turnlog web: {what}", take_turns(jobs, rounds=ROUNDS), what, "hello", bar=float(bar)))
        rows += _idle(web)
    return [*rows, _foreign(ground)]


def _idle(web: "WebServer") -> list[Row]:
    """The processor while nobody asks, with and without a page, and what is held after all of that."""

    def share() -> float:
        before, began = web.processor_s(), time.monotonic()
        time.sleep(IDLE_S)
        return (web.processor_s() - before) / (time.monotonic() - began) * 100

    nobody = share()
    with web.following("/stream"), web.following("/s/long/stream"):
        time.sleep(2)  # to begin with, it looks at everything once
        page = share()
    measure, whole = "turnlog web: processor, {}", f"of one core, over {IDLE_S:.0f} s"
    peak = web.peak_mb()
    return [
        Row(measure.format("no page open"), f"{nobody:.1f} %", whole, nobody, "%", 1.0),
        Row(measure.format("a list and 100,000 rows open and idle"), f"{page:.1f} %", whole, page, "%", 6.0),
        Row("turnlog web: memory, at most", f"{peak:.0f} MB", "after all pages above", peak, "MB", 400.0),
    ]


def _foreign(ground: Ground) -> Row:
    """The first rows of another agent's session, in a server that has just been started."""
    person, home = ground.folder / "web-long-person", ground.folder / "web-long-home"
    made = make(person, sessions=1, mb=FOREIGN_MB)
    environment = {**os.environ, "HOME": str(person)}
    command = [sys.executable, "-m", "turnlog", "--home", str(home)]
    subprocess.run([*command, "index"], env=environment, check=True, capture_output=True)
    source = Source("claude-code", str(made.newest), "")
    times: dict[str, list[float]] = {"first rows": [], "bare steps": []}
    for _ in range(5):
        with WebServer([*command, "web", "--no-open", "--print-url", "--port", "0"], environment) as web:
            web.asking("/")()
            began = time.perf_counter()
            web.asking(f"/s/claude-code:{made.newest.stem}")()
            times["first rows"].append(time.perf_counter() - began)
        began = time.perf_counter()
        for _ in format_of("claude-code").read(source).steps:
            pass
        times["bare steps"].append(time.perf_counter() - began)
    title = f"turnlog web: Claude Code's session of {made.size_bytes / 1e6:.0f} MB, the first time"
    return ratio(title, times, "first rows", "bare steps", bar=3.0)


def _start(command: list[str], environment: dict[str, str]) -> Row:
    def first(words: list[str]) -> Callable[[], object]:
        def job() -> None:
            with WebServer(words, environment) as made:
                made.asking("/")()

        return job

    jobs = {"turnlog web": first(command), "hello": first([sys.executable, "-c", _HELLO])}
    title = "turnlog web: start to the first answer"
    return ratio(title, take_turns(jobs, rounds=5), "turnlog web", "hello", bar=3.0)


class WebServer:
    """A server that prints its address on its first line."""

    def __init__(self, words: list[str], environment: dict[str, str]) -> None:
        self._words, self._environment = words, environment

    def __enter__(self) -> "WebServer":
        self._process = subprocess.Popen(
            self._words, env=self._environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            cwd=Path(self._environment["HOME"]),
        )  # fmt: skip
        assert self._process.stdout is not None
        found = urlsplit(self._process.stdout.readline().strip())
        assert found.port is not None
        self.url = found.geturl()
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

    @contextmanager
    def following(self, path: str) -> Iterator[None]:
        """An open stream, as a page has one."""
        link = http.client.HTTPConnection("127.0.0.1", self._port)
        link.request("GET", path, headers={"Cookie": self._cookie})
        link.getresponse()
        try:
            yield
        finally:
            link.close()

    def processor_s(self) -> float:
        """The seconds of a core that it took so far."""
        words = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def peak_mb(self) -> float:
        """The most memory that it had."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024

    def __exit__(self, *_: object) -> None:
        self._link.close()
        self._process.terminate()
        self._process.wait(10)

"""`turnlog mcp`: until `initialize` is answered, and what a search takes once it runs, beside a bare Python's start.

The corpus is that of the catalog: 1,500 sessions of Claude Code and Codex.
"""

import json
import os
import subprocess
from typing import Any

from bench import corpus
from bench.ground import Ground
from bench.measures import Row, ratio, take_turns
from bench.measures.catalog import BARE, MB, ROUNDS, SESSIONS, Machine

TITLE = "the server for agents"
SEARCH_BYTES = 4_000


def measure(ground: Ground) -> list[Row]:
    """The rows of the start, and of searches."""
    machine = Machine(corpus.make(ground.folder / "mcp", sessions=SESSIONS, mb=MB))
    os.sync()
    machine.run("index")
    rows = [_start(machine)]
    with Server(machine) as server:
        for title, query, bar in (("rare", corpus.RARE, 1.0), ("common", corpus.COMMON, 2.0)):
            rows.append(_search(machine, server, f"search_sessions, a {title} word, warm", query, bar))
    return rows


class Server:
    """A server that runs, and its client."""

    def __init__(self, machine: Machine) -> None:
        self._process = subprocess.Popen(
            machine.command("mcp", "--all"),
            env=machine.env, cwd=machine.made.home, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        client = {"name": "bench", "version": "1"}
        self.ask("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=client)

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def ask(self, method: str, **params: Any) -> bytes:
        """One request and its answer."""
        assert self._process.stdin and self._process.stdout
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        return self._process.stdout.readline()


def _start(machine: Machine) -> Row:
    def start() -> None:
        Server(machine).__exit__()

    times = take_turns({"turnlog mcp": start, BARE: machine.bare}, rounds=ROUNDS, warm=2)
    return ratio("mcp: initialize is answered, and it ends", times, "turnlog mcp", BARE, bar=5.0)


def _search(machine: Machine, server: Server, title: str, query: str, bar: float) -> Row:
    def search() -> bytes:
        return server.ask("tools/call", name="search_sessions", arguments={"query": query})

    answer = search()
    if b'"hits":[]' in answer or len(answer) > SEARCH_BYTES:
        raise SystemExit(f"a search for {query} says nothing, or too much: {answer[:500]!r}")
    times = take_turns({title: search, BARE: machine.bare}, rounds=ROUNDS, warm=2)
    return ratio(f"mcp: {title}", times, title, BARE, bar=bar, bytes=len(answer))

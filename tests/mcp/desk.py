"""A server to talk to: in this process for what it answers, in one of its own for how it behaves."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from turnlog.mcp.protocol import Client
from turnlog.mcp.server import Server, ServerSettings


class Desk:
    """One agent at a server, in this process."""

    def __init__(self, *, client: str = "some-agent", **settings: Any) -> None:
        end, self._other = os.pipe()
        self._file = open(end, "rb")  # noqa: SIM115
        self.server = Server(
            ServerSettings(None, settings.pop("workspace", None), **settings), Client(self._file, self._other)
        )
        self.initialized = self.server.answer("initialize", {"clientInfo": {"name": client, "version": "1"}})

    def close(self) -> None:
        self.server.close()
        self._file.close()
        os.close(self._other)

    def ask(self, method: str, **params: Any) -> Any:
        return self.server.answer(method, params)

    def call(self, tool: str, /, meta: dict[str, Any] | None = None, **arguments: Any) -> dict[str, Any]:
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        return self.ask("tools/call", **params, **({} if meta is None else {"_meta": meta}))

    def data(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        done = self.call(tool, **arguments)
        assert not done.get("isError"), done
        return done["structuredContent"]

    def error(self, tool: str, /, **arguments: Any) -> str:
        done = self.call(tool, **arguments)
        assert done["isError"], done
        return done["content"][0]["text"]

    def sessions(self, query: str, **more: Any) -> list[str]:
        """The sessions of the hits, in their order."""
        return [hit["session"] for hit in self.data("search_sessions", query=query, **more)["hits"]]


def everything_of(desk: Desk, session: str) -> str:
    """What any tool, resource or prompt says of a session, as it goes over the line."""
    told: list[Any] = [
        desk.call("list_sessions"), desk.call("usage", by="session"),
        desk.call("list_changes", session=session, lines=True),
        desk.ask("resources/list"), desk.ask("resources/read", uri=f"turnlog://session/{session}"),
        desk.ask("resources/read", uri=f"turnlog://session/{session}/turn/1"),
    ]  # fmt: skip
    after: Any = 0
    while after is not None:
        page = desk.data("read_session", session=session, after=after, limit=50)
        told.append(page)
        after = page["cursor"]
        for row in page["entries"]:
            inside: Any = desk.data("read_session", session=session, around=row["entry"], limit=1)
            told.append(inside)
            while "+" in str(inside["cursor"]):
                inside = desk.data("read_session", session=session, after=inside["cursor"])
                told.append(inside)
    return json.dumps(told)


class Process:
    """A server as agents start it."""

    def __init__(self, *words: str, cwd: Path | None = None, client: str = "some-agent") -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "turnlog", "mcp", *words],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd,
        )  # fmt: skip
        self._number = 0
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": client, "version": "1"}}
        self.initialized = self.ask("initialize", **hello)["result"]

    def write(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        self.write(json.dumps({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}).encode())
        return self.read()

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return self.ask("tools/call", name=tool, arguments=arguments)["result"]

    def end(self) -> tuple[int, bytes, bytes]:
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err

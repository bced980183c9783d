"""A scripted model on loopback, for real agents to talk to.

Answers come from a script, one per request of the conversation. What an agent asks on the side (a title, a check of
its own) has no tools in it, and is answered by `aside`. Every request is kept.
"""

from __future__ import annotations

import gzip
import json
import sys
import threading
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.agents import dialect
from tests.agents.dialect import Dialect
from tests.agents.script import Conversation, Text, Turn, flat, say

LONGEST_HOLD_S = 120
_TITLE = "Do not answer the request."
"""What Codex says on a terminal when it asks for a title, with one tool."""


@dataclass(frozen=True)
class Request:
    """What an agent sent, and what it was told."""

    path: str
    dialect: Dialect
    body: dict[str, Any]
    aside: bool
    served: Turn

    @property
    def conversation(self) -> Conversation:
        return self.dialect.read(self.body)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        # An agent that is stopped, or has read enough, hangs up in the middle of an answer.
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class Provider:
    """Serves while it is entered. `play` sets what the model will say next."""

    def __init__(self, *script: Turn) -> None:
        self.requests: list[Request] = []
        self.unknown: list[str] = []
        """Paths that were asked for and that nothing is known about."""
        self.held = threading.Event()
        """Set once an answer that will never end has begun."""
        self.aside = say("A short title", input=3, output=2)
        """What the model says to a request that has no tools."""
        self._script = list(script)
        self._lasting: Turn | None = None
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Provider:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def play(self, *script: Turn) -> None:
        with self._lock:
            self._script[:] = script
            self._lasting = None
        self.held.clear()

    @property
    def left(self) -> int:
        """How many turns of the script nobody has asked for."""
        return len(self._script)

    @property
    def main(self) -> list[Request]:
        """The requests of the conversation itself."""
        return [request for request in self.requests if not request.aside]

    def _next(self, conversation: Conversation) -> Turn:
        said = [block.text for role, block in flat(conversation) if role == "user" and isinstance(block, Text)]
        for turn in self._script:
            if any(turn.to in text for text in said):
                if turn.lasting:
                    self._lasting = turn
                self._script.remove(turn)
                return replace(turn, blocks=turn.make(conversation)) if turn.make else turn
        return self._lasting or say("(the script is over)")

    def _take(self, path: str, spoken: Dialect, body: dict[str, Any]) -> tuple[Turn, str]:
        with self._lock:
            aside = not body.get("tools") or _TITLE in str(body.get("input"))
            turn = self.aside if aside else self._next(spoken.read(body))
            self.requests.append(Request(path, spoken, body, aside, turn))
            return turn, f"{len(self.requests):04}"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: Any) -> None:
                """The requests are kept; nothing is printed."""

            def whole(self, status: int, value: Any) -> None:
                data = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data)

            def do_GET(self) -> None:
                # Also the proxy for all other traffic: what an agent wants of the world is seen, and refused.
                provider.unknown.append(f"{self.command} {self.path}")
                self.whole(404, {"error": {"message": "nothing here"}})

            do_HEAD = do_CONNECT = do_GET

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers.get("content-length") or 0))
                if self.headers.get("content-encoding") == "gzip":
                    raw = gzip.decompress(raw)
                if self.path.partition("?")[0].endswith(("/count_tokens", ":countTokens")):
                    return self.whole(200, {"input_tokens": 10, "totalTokens": 10})
                spoken = dialect.of_path(self.path)
                if spoken is None:
                    provider.unknown.append(f"POST {self.path}")
                    return self.whole(404, {"error": {"message": "nothing here"}})
                body = json.loads(raw)
                turn, id = provider._take(self.path, spoken, body)
                if turn.status != 200:
                    error = {"type": "invalid_request_error", "code": turn.status, "message": turn.text}
                    return self.whole(turn.status, {"type": "error", "error": error})
                model = str(body.get("model") or self.path.rpartition("/models/")[2].partition(":")[0])
                if not body.get("stream") and "stream" not in self.path:
                    return self.whole(200, spoken.answer(turn, id, model))
                return self.events(spoken, turn, id, model)

            def events(self, spoken: Dialect, turn: Turn, id: str, model: str) -> None:
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("transfer-encoding", "chunked")
                self.end_headers()
                events = [dialect.encode(spoken, *event) for event in spoken.stream(turn, id, model)]
                for data in events[: max(1, len(events) - 3)] if turn.hold else [*events, spoken.end]:
                    if data:
                        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
                self.wfile.flush()
                if turn.hold:
                    self.close_connection = True
                    provider.held.set()
                    provider._over.wait(LONGEST_HOLD_S)
                else:
                    self.wfile.write(b"0\r\n\r\n")

        return Handler

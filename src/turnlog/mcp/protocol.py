"""JSON-RPC 2.0 over lines. Reading never waits for answering, and no input ends the server.

It imports little: the first answer is sent before most other modules are loaded.
"""

from __future__ import annotations

import json
import os
from _queue import Empty, SimpleQueue
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable
from typing import Any, BinaryIO, cast

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603
LONGEST = 4 << 20
"""A longer line is refused."""
IDLE_S, IDLE_TIMES = 2.0, 30
"""`idle` runs every IDLE_S seconds without a request, at most IDLE_TIMES times."""
Params = dict[str, Any]


class Refused(Exception):
    """A request that is answered with an error of the protocol."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data


class Cancelled(Exception):
    """The client cancelled the request."""


class Client:
    """One client. Requests are answered one after the other; a `ping` at once."""

    def __init__(self, source: BinaryIO, sink: int) -> None:
        self._source = source
        self._sink = sink
        os.set_blocking(source.fileno(), True)
        os.set_blocking(sink, True)
        self._writing = allocate_lock()
        self._requests: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
        self._open: set[str | int] = set()
        self._cancelled: set[str | int] = set()
        self._now: str | int | None = None
        """The request that is being answered."""

    def serve(self, answer: Callable[[str, Params], Any], idle: Callable[[], None]) -> None:
        """Answer until the input ends; requests that were read by then are answered.

        `idle` is called now and then for a while after an answer, because a client that asks once asks again.
        """
        start_new_thread(self._read, ())
        left = 0
        while True:
            try:
                request = self._requests.get(timeout=IDLE_S if left else None)
            except Empty:
                left -= 1
                self._attempt(idle)
                continue
            if request is None:
                return
            try:
                self._answer(request, answer)
            except BrokenPipeError:
                return  # the client is gone
            left = IDLE_TIMES

    def _attempt(self, work: Callable[[], None]) -> None:
        """Do the work; an error in it is written to stderr and does not end the server."""
        try:
            work()
        except Exception:
            from traceback import print_exc

            print_exc()

    def check(self) -> None:
        """Raise `Cancelled` if the client cancelled the request that is being answered."""
        if self._now is not None and self._now in self._cancelled:
            raise Cancelled

    # ── in ────────────────────────────────────────────────────────────────────────────────────────

    def _read(self) -> None:
        try:
            while line := self._source.readline(LONGEST):
                is_long = len(line) == LONGEST and not line.endswith(b"\n")
                while is_long and not line.endswith(b"\n") and line:
                    line = self._source.readline(LONGEST)
                self._take(None if is_long else line)
        except (OSError, ValueError):
            pass  # the input was closed
        finally:
            self._requests.put(None)

    def _take(self, line: bytes | None) -> None:
        if line is None:
            return self._fail(None, PARSE_ERROR, f"a message of more than {LONGEST:,} bytes")
        if not line.strip():
            return None
        try:
            message: Any = json.loads(line)
        except (ValueError, RecursionError) as error:
            return self._fail(None, PARSE_ERROR, f"this is no JSON: {error}")
        if not isinstance(message, dict):
            what = "batches are not taken: one message a line" if isinstance(message, list) else "no object"
            return self._fail(None, INVALID_REQUEST, what)
        return self._sort(cast("dict[str, Any]", message))

    def _sort(self, message: dict[str, Any]) -> None:
        id, method = message.get("id"), message.get("method")
        if method is None and ("result" in message or "error" in message):
            return None  # a response, but we send no requests
        is_known = type(id) in (str, int) or "id" not in message
        if not isinstance(method, str) or message.get("jsonrpc") != "2.0" or not is_known:
            what = 'a request has "jsonrpc": "2.0", a method, and an id that is a text or a whole number'
            return self._fail(id if is_known else None, INVALID_REQUEST, what)
        params = message.get("params", {})
        if not isinstance(params, dict):
            return self._fail(id, INVALID_PARAMS, "params is no object")
        if method == "notifications/cancelled":
            meant = cast("Params", params).get("requestId")
            self._cancelled |= self._open & {meant} if type(meant) in (str, int) else set()
        if "id" not in message:
            return None  # no other notification concerns us
        if method == "ping":
            return self._send({"jsonrpc": "2.0", "id": id, "result": {}})
        self._open.add(cast("str | int", id))
        return self._requests.put(message)

    # ── out ───────────────────────────────────────────────────────────────────────────────────────

    def _answer(self, request: dict[str, Any], answer: Callable[[str, Params], Any]) -> None:
        id = self._now = request["id"]
        try:
            self.check()
            result = answer(request["method"], request.get("params", {}))
            self.check()
            self._send({"jsonrpc": "2.0", "id": id, "result": result})
        except Cancelled:
            pass  # the caller cancelled: no answer is expected
        except Refused as error:
            self._fail(id, error.code, error.message, error.data)
        except BrokenPipeError:
            raise
        except Exception as error:
            from traceback import print_exc

            print_exc()
            self._fail(id, INTERNAL_ERROR, f"a fault in turnlog: {type(error).__name__}: {error}")
        finally:
            self._open.discard(id)
            self._cancelled.discard(id)
            self._now = None

    def _fail(self, id: Any, code: int, message: str, data: Any = None) -> None:
        error = {"code": code, "message": message, **({} if data is None else {"data": data})}
        try:
            self._send({"jsonrpc": "2.0", "id": id, "error": error})
        except BrokenPipeError:
            self._requests.put(None)

    def _send(self, message: dict[str, Any]) -> None:
        data = encoded(message) + b"\n"
        with self._writing:
            while data:
                data = data[os.write(self._sink, data) :]


def encoded(value: Any) -> bytes:
    """A value as JSON on one line."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # an id may be half of a character
        return json.dumps(value, separators=(",", ":")).encode()

"""Who closes the connection before the answer is there is not worked for any longer."""

import socket
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from tests.catalog.machine import Machine
from tests.catalog.test_waiter import COUNT, LONG
from turnlog.catalog.index.index import Index
from turnlog.catalog.waiter import GivenUp
from turnlog.web.leaving import LeavingVisitors
from turnlog.web.pages import broken


def test_a_question_ends_when_its_connection_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    begun, over = threading.Event(), threading.Event()
    outcome: list[object] = []

    def counted(indexes: Sequence[Index]) -> object:
        begun.set()
        return list(indexes[0].engine.rows(COUNT.format(LONG)))

    def count(request: Request) -> PlainTextResponse:
        try:
            outcome.append(catalog.ask(counted))
        except GivenUp as error:
            outcome.append(error)
            raise
        finally:
            over.set()
        return PlainTextResponse("counted")

    def hello(request: Request) -> PlainTextResponse:
        return PlainTextResponse(f"hello {len(catalog.cards())}")

    app = Starlette(routes=[Route("/count", count), Route("/", hello)], exception_handlers={GivenUp: broken.left})
    with Machine(tmp_path, monkeypatch).catalog() as catalog, socket.create_server(("127.0.0.1", 0)) as bound:
        server = uvicorn.Server(uvicorn.Config(LeavingVisitors(app), lifespan="off", log_level="critical"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        try:
            with socket.create_connection(bound.getsockname()) as visitor:
                visitor.sendall(b"GET /count HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert begun.wait(20)
            assert over.wait(60)
            assert isinstance(outcome[0], GivenUp)
            with socket.create_connection(bound.getsockname()) as visitor:
                visitor.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                assert visitor.makefile("rb").read().endswith(b"hello 0")
        finally:
            server.should_exit = True
            thread.join(10)

"""Who closes the connection before the answer is there is not worked for any longer."""

import http.client
import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

import turnlog
from tests.catalog.machine import Machine
from tests.catalog.test_waiter import COUNT, LONG
from turnlog.catalog import Card, Catalog
from turnlog.catalog.index.index import Index
from turnlog.catalog.waiter import GivenUp
from turnlog.errors import NotFound, TurnlogError
from turnlog.reader.viewing.desk import Desk
from turnlog.web import errorpage
from turnlog.web.disconnect import CancelOnDisconnect
from turnlog.web.guard import page_token_of
from turnlog.web.stream import Streams
from turnlog.web.viewer import Viewer

TOKEN = "t" * 32
SLOW_DELETION = """
import sys, time
from turnlog.session import Home
from turnlog.web import server

delete = Home.delete

def slowly(self, *args):
    print("begun", flush=True)
    time.sleep(3)
    delete(self, *args)
    print("deleted", flush=True)

Home.delete = slowly
bound = server.listen(0)
print(bound.getsockname()[1], flush=True)
server.run(sys.argv[1], bound, sys.argv[2], is_read_only=False, started=lambda: None)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_what_was_confirmed_is_carried_out_before_the_server_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
):
    machine = Machine(tmp_path, monkeypatch)
    with turnlog.open(str(machine.home), checkpoints=False) as home, home.create(id="talk-one") as session:
        session.user("hello")
    command = [sys.executable, "-c", SLOW_DELETION, str(machine.home), TOKEN]

    def heed() -> None:
        signal.signal(number, signal.SIG_DFL)  # under nohup it would be ignored

    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=machine.work, preexec_fn=heed) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        headers = {
            "Cookie": f"turnlog-{port}={TOKEN}", "Origin": f"http://127.0.0.1:{port}",
            "Content-Type": "application/json", "X-Turnlog-Token": page_token_of(TOKEN),
        }  # fmt: skip
        connection.request("POST", "/s/talk-one/delete", json.dumps({}).encode(), headers)
        assert process.stdout.readline() == "begun\n"
        process.send_signal(number)
        assert process.stdout.readline() == "deleted\n"
        assert process.wait(20) == 0
        connection.close()
    with turnlog.open(str(machine.home)) as home:
        assert not home.exists("talk-one")


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

    app = Starlette(
        routes=[Route("/count", count), Route("/", hello)], exception_handlers={GivenUp: errorpage.cancelled}
    )
    with Machine(tmp_path, monkeypatch).catalog() as catalog, socket.create_server(("127.0.0.1", 0)) as bound:
        server = uvicorn.Server(uvicorn.Config(CancelOnDisconnect(app), lifespan="off", log_level="critical"))
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


BROKEN_DESK = """
import sys
from turnlog.reader.viewing.desk import Desk
from turnlog.web import server

def broken(self):
    raise OSError("the temporary folder is gone")

Desk.close = broken
server.run(sys.argv[1], server.listen(0), "t" * 32, is_read_only=False, started=lambda: print("here", flush=True))
"""


def test_what_goes_wrong_while_the_server_ends_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    machine = Machine(tmp_path, monkeypatch)
    command = [sys.executable, "-c", BROKEN_DESK, str(machine.home)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=machine.work
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n"
        process.terminate()
        _, err = process.communicate(timeout=20)
    assert process.returncode == 1
    assert "the temporary folder is gone" in err


def test_a_wrong_address_keeps_no_other_page_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The page about a missing session asks the catalog, whose lock may be held for long."""
    asked, answered = threading.Event(), threading.Event()
    find = Catalog.find

    def waiting(self: Catalog, word: str) -> Card:
        if word == "typo":
            asked.set()
            assert answered.wait(20), "the other page had to wait"
        return find(self, word)

    def typo(request: Request) -> PlainTextResponse:
        raise NotFound("no session 'typo'")

    machine = Machine(tmp_path, monkeypatch)
    with turnlog.open(str(machine.home)) as home, machine.catalog() as catalog:
        app = Starlette(
            routes=[Route("/s/{name}", typo), Route("/", lambda request: PlainTextResponse("hello"))],
            exception_handlers={TurnlogError: errorpage.library_error},
        )
        desk = Desk(home, catalog, str(machine.home))
        app.state.viewer = Viewer(
            home=home, catalog=catalog, desk=desk, streams=Streams(desk), page_token="", is_read_only=True,
            location=None, folder="", change_executor=ThreadPoolExecutor(1), problems={},
        )  # fmt: skip
        monkeypatch.setattr(Catalog, "find", waiting)
        with socket.create_server(("127.0.0.1", 0)) as bound:
            server = uvicorn.Server(uvicorn.Config(CancelOnDisconnect(app), lifespan="off", log_level="critical"))
            thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
            thread.start()
            try:
                with socket.create_connection(bound.getsockname()) as visitor:
                    visitor.sendall(b"GET /s/typo HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                    assert asked.wait(20)
                    with socket.create_connection(bound.getsockname(), timeout=5) as other:
                        other.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                        assert other.makefile("rb").read().endswith(b"hello")
                    answered.set()
                    assert b"No such session" in visitor.makefile("rb").read()
            finally:
                answered.set()
                server.should_exit = True
                thread.join(10)

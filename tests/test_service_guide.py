"""The web service of the guide: run by a real server, with a scripted model."""

import asyncio
import json
import re
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

import pytest
import uvicorn

import turnlog

GUIDE = (Path(__file__).parents[1] / "docs/guide/service.md").read_text()
PROGRAM = re.findall(r"```python\n# service\.py\n(.*?)```", GUIDE, re.DOTALL)[0]


def streamed(id: str, *pieces: str) -> Iterator[dict[str, Any]]:
    """A response as a provider streams it."""
    about = {"id": id, "role": "assistant", "model": "m", "content": [], "usage": {"input_tokens": 3}}
    yield {"type": "message_start", "message": about}
    yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    for piece in pieces:
        yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}
    yield {"type": "message_stop"}


class Model:
    """Says two words; the second when it is told to."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.go_on = threading.Event()

    async def stream(self, **request: Any) -> AsyncIterator[dict[str, Any]]:
        self.asked.append(request)
        if "fail" in str(request["messages"][-1]):
            raise OSError("the provider is away")
        for event in streamed(f"msg_{len(self.asked)}", "Hello, ", "Ada"):
            if event.get("delta", {}).get("text") == "Ada":
                await asyncio.to_thread(self.go_on.wait, 60)
            yield event


@contextmanager
def served(home: Path, model: Model) -> Iterator[int]:
    """The guide's program on a port."""
    names: dict[str, Any] = {
        "HOME": home,
        "stream_from_model": model.stream,
        "tenant_of": lambda request: request.headers.get("x-customer", "acme"),
    }
    exec(compile(PROGRAM, "service.md", "exec"), names)
    config = uvicorn.Config(names["app"], port=0, log_level="error", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    is_up, startup = threading.Event(), server.startup

    async def tell(*args: Any, **more: Any) -> None:
        await startup(*args, **more)
        is_up.set()

    server.startup = tell  # type: ignore[method-assign]
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        assert is_up.wait(60)
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        model.go_on.set()
        thread.join(60)


def post(port: int, id: str, text: str, **headers: str) -> int:
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", f"/{id}", json.dumps({"text": text}), headers)
    status = connection.getresponse().status
    connection.close()
    return status


@contextmanager
def browser(port: int, id: str, **headers: str) -> Iterator[HTTPResponse]:
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", f"/{id}/events", headers=headers)
    response = connection.getresponse()
    yield response
    connection.sock.close() if connection.sock else None
    response.close()


def events(response: HTTPResponse) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Name, number and data of each event."""
    fields: dict[str, str] = {}
    for line in iter(response.readline, b""):
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name:
            fields[name] = value
        else:
            yield fields["event"], int(fields.get("id", 0)), json.loads(fields["data"])
            fields = {}


def said(data: dict[str, Any]) -> str:
    return "".join(block["text"] for block in data["blocks"])


def test_a_browser_sees_what_is_said_while_it_is_said_and_what_it_missed(tmp_path):
    model = Model()
    with served(tmp_path / "home", model) as port:
        assert post(port, "chat-1", "I am Ada") == 202
        with browser(port, "chat-1") as response:
            seen = events(response)
            _, number, data = next(one for one in seen if one[0] == "message")
            assert said(data) == "I am Ada"
            assert next(data["text"] for _, _, data in seen if data.get("text")) == "Hello, "
        model.go_on.set()
        with browser(port, "chat-1", **{"Last-Event-ID": str(number)}) as response:
            came = next((name, data) for name, number, data in events(response) if name == "message")
            assert (came[1]["role"], said(came[1])) == ("assistant", "Hello, Ada")
        assert post(port, "chat-1", "and who are you?") == 202
        with browser(port, "chat-1") as response:
            turns = (said(data) for name, _, data in events(response) if name == "message")
            assert [next(turns) for _ in range(4)] == ["I am Ada", "Hello, Ada", "and who are you?", "Hello, Ada"]
        assert post(port, "chat-2", "fail, please") == post(port, "chat-1", "still there?") == 202
        with browser(port, "chat-1") as response:
            turns = (said(data) for name, _, data in events(response) if name == "message")
            assert [next(turns) for _ in range(6)][4:] == ["still there?", "Hello, Ada"]
        for id, customer in (("nobody", "acme"), ("chat-1", "other")):
            with browser(port, id, **{"X-Customer": customer}) as response:
                assert response.status == 404
    assert sorted(len(one["messages"]) for one in model.asked) == [1, 1, 3, 5]
    with turnlog.open(tmp_path / "home") as whole:
        home = whole.tenant("acme", create=False)
        assert home.resume("chat-1").usage().own.output_tokens == 6
        assert [one.role for one in home.resume("chat-2").messages()] == ["user"]


@pytest.mark.parametrize("name", ["openai", "langgraph", "pydantic_ai"])
def test_the_programs_beside_it_are_there(name):
    """They run where their frameworks are, in `make test-adapters`."""
    assert f"async def answer_{name}(" in GUIDE

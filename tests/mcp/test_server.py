"""How the server behaves: nothing that comes in ends it, and nothing but answers goes out."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import turnlog
from tests.cli.machine import claude_session
from tests.mcp.desk import Desk, Process
from turnlog.catalog.index.sqlite.database import Database
from turnlog.catalog.index.sqlite.indexfile import index_path
from turnlog.mcp.protocol import INTERNAL_ERROR, LONGEST, Client, Refused, encoded
from turnlog.reader.place import place_of as target_of

ID = "0a1b2c3d-1111-4222-8333-444444444444"


@pytest.fixture
def process(person: Path) -> Iterator[Process]:
    made = Process()
    yield made
    made.process.kill()
    made.process.communicate()


NONSENSE: list[tuple[bytes, Any, int]] = [
    (b"{", None, -32700),
    (b"\xff\xfe\x00", None, -32700),
    (b"[" * 100_000, None, -32700),
    (b'{"jsonrpc":"2.0","id":' + b"9" * 5_000 + b',"method":"ping"}', None, -32700),
    (b"x" * (LONGEST + 10), None, -32700),
    (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', None, -32600),
    (b"17", None, -32600),
    (b'{"jsonrpc":"1.0","id":5,"method":"ping"}', 5, -32600),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', None, -32600),
    (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', None, -32600),
    (b'{"jsonrpc":"2.0","id":6,"method":7}', 6, -32600),
    (b'{"jsonrpc":"2.0","id":7,"method":"tools/list","params":[]}', 7, -32602),
    (b'{"jsonrpc":"2.0","id":8,"method":"tools/fly"}', 8, -32601),
    (b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"fly"}}', 9, -32602),
    (b'{"jsonrpc":"2.0","id":10,"method":"tools/call","params":{"name":"usage","arguments":[1]}}', 10, -32602),
    (b'{"jsonrpc":"2.0","id":11,"method":"resources/read","params":{"uri":"file:///etc/passwd"}}', 11, -32002),
    (b'{"jsonrpc":"2.0","id":12,"method":"prompts/get","params":{"name":"fly"}}', 12, -32602),
]


def test_nonsense_does_not_end_it(process: Process):
    for line, id, code in NONSENSE:
        process.write(line)
        told = process.read()
        assert (told["id"], told["error"]["code"]) == (id, code), line[:80]
    process.write(b"")
    process.write(b'{"jsonrpc":"2.0","method":"notifications/whatever"}')
    process.write(b'{"jsonrpc":"2.0","id":1,"result":{}}')
    process.write(b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}')
    assert process.read() == {"jsonrpc": "2.0", "id": "\ud800", "result": {}}
    assert process.ask("ping")["result"] == {}
    assert process.end() == (0, b"", b"")


def test_what_was_asked_before_the_end_is_answered(person: Path):
    lines = [{"jsonrpc": "2.0", "id": number, "method": "tools/list"} for number in range(3)]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    done = subprocess.run(
        [sys.executable, "-m", "turnlog", "mcp"], input=text.encode(), capture_output=True, timeout=60
    )
    assert done.returncode == 0
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [0, 1, 2]


@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "1999-01-01", None])
def test_older_protocols_as_asked(desk: Desk, version: str | None):
    told = desk.ask("initialize", protocolVersion=version)["protocolVersion"]
    assert told == (version if version in ("2025-06-18", "2025-03-26", "2024-11-05") else "2025-11-25")


class Line:
    """A client over pipes, whose answers wait until they are let go."""

    def __init__(self) -> None:
        source, self.to_it = os.pipe()
        self.from_it, self._sink = os.pipe()
        self.go_on, self.is_busy = threading.Event(), threading.Event()
        self._source, self._answers = os.fdopen(source, "rb"), os.fdopen(self.from_it, "rb")
        self.client = Client(self._source, self._sink)
        self._thread = threading.Thread(target=self.client.serve, args=(self.answer, lambda: None))
        self._thread.start()

    def __enter__(self) -> "Line":
        return self

    def __exit__(self, *_: object) -> None:
        self.go_on.set()
        os.close(self.to_it)
        self._thread.join(30)
        os.close(self._sink)
        self._source.close()
        self._answers.close()

    def answer(self, method: str, params: dict[str, Any]) -> str:
        self.is_busy.set()
        self.go_on.wait(30)
        self.client.check()
        return method

    def write(self, **message: Any) -> None:
        os.write(self.to_it, json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def read(self) -> dict[str, Any]:
        return json.loads(self._answers.readline())


def test_a_ping_is_answered_while_something_else_is_and_what_is_cancelled_never():
    with Line() as line:
        for id in ("slow", "next", "last"):
            line.write(id=id, method=id)
        line.is_busy.wait(30)
        line.write(id=1, method="ping")
        assert line.read()["id"] == 1
        for id in ("slow", "next", "nobody", 17, None):
            line.write(method="notifications/cancelled", params={"requestId": id})
        line.write(id=2, method="ping")
        assert line.read()["id"] == 2
        line.go_on.set()
        assert line.read() == {"jsonrpc": "2.0", "id": "last", "result": "last"}


def test_two_clients_at_once_while_a_session_is_written(person: Path):
    session = claude_session(person, str(Path.cwd()), ID, "The first voucher")
    clients = [Process(), Process()]
    with turnlog.open(checkpoints=False) as home:
        ours = home.create(workspace=".", agent="my-agent")
        for number in range(10):
            ours.user(f"one more voucher, number {number}")
            claude_session(person, str(Path.cwd()), ID, f"voucher {number} there")
            for client in clients:
                told = client.call("search_sessions", query="voucher", limit=9)["structuredContent"]
                assert {hit["session"] for hit in told["hits"]} <= {ID, ours.id}
                assert told["hits"]
    assert session.exists()
    for client in clients:
        assert client.end()[0] == 0


def test_a_catalog_that_somebody_else_writes_is_not_waited_for(person: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("turnlog.mcp.library._PATIENCE_S", 0.2)
    path = claude_session(person, str(Path.cwd()), ID, "The first voucher")
    desk = Desk()
    assert set(desk.sessions("voucher")) == {ID}
    place = index_path(os.environ["TURNLOG_HOME"], agents=True)
    assert place is not None
    with Database(place).lock():
        claude_session(person, str(Path.cwd()), ID, "What is new about the voucher")
        os.utime(path)
        desk.server.library.catalog._looked_at = None
        told = desk.data("search_sessions", query="voucher")
    assert {hit["session"] for hit in told["hits"]} == {ID}
    assert "being written by another program" in told["notes"][0]
    desk.server.library.catalog._looked_at = None
    assert "notes" not in desk.data("search_sessions", query="voucher")
    desk.close()


def test_before_the_index_is_made_it_says_so(person: Path, monkeypatch: pytest.MonkeyPatch):
    claude_session(person, str(Path.cwd()), ID, "The first voucher")
    monkeypatch.setattr("turnlog.catalog.upkeep.AT_ONCE", 10)
    monkeypatch.setattr("turnlog.catalog.background.start", lambda *_, **__: True)
    desk = Desk()
    assert "The index is being built: 1 session is not read yet" in desk.data("search_sessions", query="x")["notes"][0]
    [row] = desk.data("list_sessions")["sessions"]
    assert row["session"] == ID
    desk.close()


def test_prompts_and_resources(desk: Desk, person: Path):
    claude_session(person, str(Path.cwd()), ID, "The first voucher", "The second one")
    assert [prompt["name"] for prompt in desk.ask("prompts/list")["prompts"]] == ["recall", "handover"]
    [message] = desk.ask("prompts/get", name="recall", arguments={"topic": "{vouchers}"})["messages"]
    assert "{vouchers}" in message["content"]["text"]
    [found] = desk.ask("resources/list")["resources"]
    assert found["uri"] == f"turnlog://session/{ID}"
    [whole] = desk.ask("resources/read", uri=found["uri"])["contents"]
    assert "The first voucher" in whole["text"]
    assert "The second one" in whole["text"]
    [turn] = desk.ask("resources/read", uri=f"{found['uri']}/turn/2")["contents"]
    assert "The first voucher" not in turn["text"].partition("##")[2]
    assert "The second one" in turn["text"]
    assert len(desk.ask("resources/templates/list")["resourceTemplates"]) == 2


def turn_text(desk: Desk, session: str, number: int) -> str:
    [turn] = desk.ask("resources/read", uri=f"turnlog://session/{session}/turn/{number}")["contents"]
    return turn["text"].partition("\n## ")[2]


def test_a_turn_of_a_resource_is_that_of_a_rewind(desk: Desk):
    with turnlog.open(checkpoints=False) as home:
        session = home.create(workspace=".", agent="my-agent")
        session.user("one")
        first = session.assistant("answer one")
        session.user("two, left behind")
        session.rewind(first.seq, files=False)
        session.user("two again")
        target = target_of(session, "turn:2")
    text = turn_text(desk, session.id, 2)
    assert "two again" in text
    assert "left behind" not in text
    assert f"[{target.seq + 1}]" in text
    assert "no turn 3" in str(refused(desk, session.id, 3))


def refused(desk: Desk, session: str, number: int) -> Refused:
    with pytest.raises(Refused) as raised:
        turn_text(desk, session, number)
    return raised.value


def test_a_turn_has_its_entries_wherever_they_are(desk: Desk):
    with turnlog.open(checkpoints=False) as home:
        session = home.create(workspace=".", agent="my-agent")
        for number in (1, 2):
            with session.turn():
                session.user(f"prompt {number}")
                answer = session.assistant(f"answer {number}")
        session.rewind(before=answer.parent, files=False)
        with session.turn():
            session.user("prompt 3")
    assert "answer 2" in turn_text(desk, session.id, 2)  # it was left behind, and is turn 2 nevertheless
    assert "prompt 3" in turn_text(desk, session.id, 3)


STRANGE = [
    [],
    {},
    "\0",
    "a\0/b",
    "\ud800",
    "9" * 5_000,
    "000000000" + "9" * 30,
    "turn:" + "1" * 5_000,
    10**30,
    -1,
    None,
]


@pytest.mark.parametrize("value", STRANGE, ids=lambda value: ascii(value)[:20])
def test_no_strange_value_is_a_fault(person: Path, value: Any):
    desk = Desk(allow_rewind=True)
    with turnlog.open() as home:
        session = home.create(workspace=".", agent="my-agent")
        with session.turn():
            session.user("hi")
    requests: list[tuple[str, dict[str, Any]]] = [
        ("initialize", {"clientInfo": {"name": value}, "protocolVersion": value}),
        ("initialize", {"clientInfo": value}),
        ("resources/read", {"uri": value}),
        ("resources/read", {"uri": f"turnlog://session/{value}"}),
        ("resources/read", {"uri": f"turnlog://session/{session.id}/turn/{value}"}),
        ("prompts/get", {"name": value}),
        ("prompts/get", {"name": "recall", "arguments": {"topic": value}}),
        ("prompts/get", {"name": "recall", "arguments": value}),
        ("tools/call", {"name": value}),
        ("tools/call", {"name": "usage", "arguments": {}, "_meta": {"claudecode/toolUseId": value, "threadId": value}}),
        ("tools/call", {"name": "list_sessions", "arguments": {}, "_meta": value}),
        ("tools/call", {"name": "read_session", "arguments": {"session": session.id, "after": f"{value}+1"}}),
        ("tools/call", {"name": "read_session", "arguments": {"session": session.id, "after": f"1+{value}"}}),
    ]
    for tool in desk.ask("tools/list")["tools"]:
        names = tool["inputSchema"]["properties"]
        given = {"session": session.id} if "session" in names else {"query": "hi"} if "query" in names else {}
        for name in names:
            requests.append(("tools/call", {"name": tool["name"], "arguments": {**given, name: value}}))
            if name == "path":
                requests.append(("tools/call", {"name": tool["name"], "arguments": {name: value}}))
    for method, params in requests:
        try:
            encoded(desk.ask(method, **params))
        except Refused as error:
            assert error.code != INTERNAL_ERROR, (method, params)
    desk.close()


def test_what_somebody_prints_is_no_answer(person: Path):
    program = """
import os
from turnlog.mcp import server
class Loud(server.Server):
    def answer(self, method, params):
        print("printed"), os.write(1, b"written")
        return super().answer(method, params)
server.Server = Loud
server.serve(server.ServerSettings(None, None))
"""
    asked = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n'
    done = subprocess.run([sys.executable, "-c", program], input=asked, capture_output=True, check=True)
    assert json.loads(done.stdout)["id"] == 1
    assert b"written" in done.stderr

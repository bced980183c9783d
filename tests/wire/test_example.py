"""The example agent: runs by itself, survives kill -9, and speaks to every provider's real SDK."""

import json
import os
import runpy
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import turnlog

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
AGENT = EXAMPLES / "agent.py"


@pytest.fixture
def place(tmp_path):
    (tmp_path / "work").mkdir()
    return tmp_path


def command(place, *args):
    return [sys.executable, str(AGENT), "--folder", str(place / "work"), *args]


def surroundings(place, **more):
    return {**os.environ, "TURNLOG_HOME": str(place / "home"), **more}


def run(place, *args, **more):
    done = subprocess.run(
        command(place, *args), env=surroundings(place, **more), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def kill_at(place, word, after_s, *args):
    """Start the agent and kill it so long after it prints a line with that word; returns whether it got there."""
    with subprocess.Popen(command(place, *args), env=surroundings(place), stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if line.startswith(word):
                time.sleep(after_s)
                os.kill(process.pid, signal.SIGKILL)
                break
    return process.returncode == -signal.SIGKILL


def session(place):
    return turnlog.open(place / "home").resume(workspace=place / "work")


def test_it_is_short():
    assert len(AGENT.read_text().splitlines()) < 120


def test_it_does_its_work(place):
    out = run(place, "make a greeting")
    assert out.splitlines()[-1] == "The greeting is ready."
    assert (place / "work" / "greeting.txt").read_text() == "hello from greet.py\n"
    s = session(place)
    assert [message.role for message in s.messages()] == ["user", *["assistant", "tool"] * 3, "assistant"]
    assert s.usage().own.output_tokens == 80


@pytest.mark.parametrize(("word", "after_s"), [("write", 0), ("bash", 0), ("bash", 0.3), ("read", 0.1)])
def test_killed_and_started_again_it_continues_where_it_was(place, word, after_s):
    assert kill_at(place, word, after_s, "--pause", "0.2", "make a greeting")
    before = session(place).messages()
    out = run(place)
    assert out.splitlines()[-1] == "The greeting is ready."
    assert (place / "work" / "greeting.txt").read_text() == "hello from greet.py\n"
    s = session(place)
    assert s.messages()[: len(before)] == before, "what was there is there"
    assert (s.pending(), s.damage, len(turnlog.open(place / "home").sessions())) == ([], [], 1)
    results = [block for message in s.messages() if message.role == "tool" for block in message.blocks]
    assert [result.is_error for result in results].count(False) == 3, "every step succeeded once"
    assert [result.is_error for result in results].count(True) <= 1


def test_killed_again_and_again_it_gets_there(place):
    assert kill_at(place, "write", 0.05, "--pause", "0.1", "make a greeting")
    for word in ("write", "bash", "read"):
        kill_at(place, word, 0.12, "--pause", "0.1")
    assert run(place).splitlines()[-1] == "The greeting is ready."
    assert session(place).pending() == []


def test_the_demonstration_of_it_runs():
    done = subprocess.run([sys.executable, str(EXAMPLES / "killed.py")], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "kill -9" in done.stdout and "✓" in done.stdout


class Provider(BaseHTTPRequestHandler):
    """A provider on this machine: asks for a file to be written, then says that it is done."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.asked.append((self.path, body))
        first = len(self.server.asked) == 1
        given = {"path": "made.txt", "text": "by a provider"}
        if "generateContent" in self.path:
            part = {"functionCall": {"name": "write", "args": given}} if first else {"text": "All done."}
            candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}
            answer = {"candidates": [candidate], "responseId": "r", "usageMetadata": {"promptTokenCount": 9}}
        elif "responses" in self.path:
            call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "write"}
            said = {"type": "message", "id": "m", "role": "assistant", "status": "completed"}
            text = {"type": "output_text", "text": "All done.", "annotations": []}
            item = {**call, "arguments": json.dumps(given)} if first else {**said, "content": [text]}
            answer = {"id": "r", "object": "response", "status": "completed", "output": [item], "model": "gpt-5"}
        else:
            call = {"type": "tool_use", "id": "toolu_1", "name": "write", "input": given}
            block = call if first else {"type": "text", "text": "All done."}
            usage = {"input_tokens": 9, "output_tokens": 1}
            answer = {"id": "m", "type": "message", "role": "assistant", "content": [block], "usage": usage}
            answer |= {"model": "claude", "stop_reason": "tool_use" if first else "end_turn"}
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


@pytest.fixture
def provider():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    server.asked = []
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("name", ["anthropic", "openai", "gemini"])
def test_every_real_sdk_takes_its_requests_and_gives_it_answers(place, provider, name, monkeypatch, capsys):
    url = f"http://127.0.0.1:{provider.server_port}"
    bases = {"ANTHROPIC_BASE_URL": url, "OPENAI_BASE_URL": f"{url}/v1", "GOOGLE_GEMINI_BASE_URL": url, "NO_PROXY": "*"}
    keys = {"ANTHROPIC_API_KEY": "none", "OPENAI_API_KEY": "none", "GEMINI_API_KEY": "none"}
    for key, value in {**bases, **keys, "TURNLOG_HOME": str(place / "home")}.items():
        monkeypatch.setenv(key, value)
    monkeypatch.setattr("sys.argv", [*command(place, "--provider", name, "make a file")[1:]])
    runpy.run_path(str(AGENT), run_name="__main__")
    assert capsys.readouterr().out.splitlines()[-1] == "All done."
    assert (place / "work" / "made.txt").read_text() == "by a provider"
    assert len(provider.asked) == 2
    assert "wrote 13 characters" in json.dumps(provider.asked[1][1])

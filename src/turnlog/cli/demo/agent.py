"""The agent in `turnlog demo`: a script instead of a model, but a real process that writes a real session.

It prints every entry once it is acknowledged, and ends in the middle of a tool call: there it waits to be killed.
"""

from __future__ import annotations

import sys
import time

import turnlog
from turnlog import Entry, Text, ToolCall, Usage

_MODEL = "claude-sonnet-4-5"
_SOURCE = "\n".join(
    [
        "import pytest, threading, time",
        "",
        "@pytest.fixture",
        "def server():",
        "    thread = threading.Thread(target=serve, daemon=True)",
        "    thread.start()",
        "    time.sleep(0.05)          # usually enough",
        "    yield 'http://localhost:8099'",
        "",
        *(f"# … line {number} of the file, and so on …" for number in range(10, 60)),
    ]
)


def main() -> None:
    """Work until killed."""
    with turnlog.open() as home:
        session = home.create(workspace=".", agent="demo-agent", title="Fix the flaky test")

        def say(entry: Entry, what: str) -> None:
            print(f"{entry.seq} {entry.id} {what}", flush=True)

        say(session.system("You are a careful engineer."), "system: You are a careful engineer.")
        with session.turn():
            say(session.user("The test is flaky, fix it"), "user: The test is flaky, fix it")
            run = ToolCall(id="c1", name="bash", input={"command": "pytest -x"})
            answer = session.assistant([Text(text="Looking."), run], model=_MODEL, usage=_usage(300, 80))
            say(answer, "assistant: Looking. → bash pytest -x")
            result = session.tool_result(run, "test_login: ConnectionRefusedError\n1 failed, 41 passed", is_error=True)
            say(result, "tool: 1 failed, 41 passed")
            read = ToolCall(id="c2", name="read_file", input={"path": "tests/conftest.py"})
            answer = session.assistant(
                [Text(text="The server may not be up."), read], model=_MODEL, usage=_usage(420, 60)
            )
            say(answer, "assistant: The server may not be up. → read_file tests/conftest.py")
            say(session.tool_result(read, _SOURCE), "tool: import pytest, threading, time …")
            check = ToolCall(id="c3", name="bash", input={"command": "pytest --count 200 tests/test_login.py"})
            answer = session.assistant(
                [Text(text="It sleeps instead of waiting. Fixed; now 200 runs."), check],
                model=_MODEL,
                usage=_usage(1900, 140),
            )
            say(answer, "assistant: It sleeps instead of waiting. → bash pytest --count 200 …")
            print("calling", flush=True)
            time.sleep(60)  # the tool runs, and this process does not live to see its result
            sys.exit("the demo's agent was not killed")


def _usage(fresh: int, output: int) -> Usage:
    return Usage(input_tokens=fresh, cache_read_tokens=900, output_tokens=output)


if __name__ == "__main__":
    main()

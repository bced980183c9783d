"""What the tests of the command line share."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import turnlog
from turnlog import Text, ToolCall, Usage


@dataclass
class Done:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Cli = Callable[..., Done]


def write_session(home: turnlog.Home, **fields: Any) -> str:
    """A session of eleven entries, with a turn, a tool call, a batch of three and a changed title."""
    session = home.create(**{"workspace": ".", "agent": "my-agent", "title": "Fix the flaky test", **fields})
    with session.turn():
        session.user("The test is flaky, fix it")
        session.assistant(
            [Text("Looking."), ToolCall(id="c1", name="bash", input={"command": "pytest -x"})],
            model="claude-sonnet-4-5",
            usage=Usage(input_tokens=300, output_tokens=80, cache_read_tokens=900),
        )
        session.tool_result("c1", "1 failed", is_error=True)
    session.set("title", "The race in conftest")
    session.append(*(turnlog.Note(text=f"note {name}") for name in "abc"))
    session.user("And now?")
    time.sleep(0.002)  # the next one is newer, by a clock of milliseconds
    return session.id

"""The log of the hooks: each call, and what went wrong. It is a private file in the home, limited in size.

It has no prompts and no contents of files, only ids.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from typing import Any

NAME = "hooks.log"
_LIMIT_BYTES = 1 << 20
_KEPT_BYTES = 256 << 10
_ERROR_CHARS = 500


def note(folder: str, agent: str, event: str, session: str, began_s: float, error: str = "") -> None:
    """Add a line for one call of a hook. If that fails, nothing is raised: no agent may wait or fail for it."""
    line: dict[str, Any] = {
        "at": round(time.time(), 3),
        "agent": agent[:40],
        "event": event[:40],
        "session": session[:80],
    }
    line["ms"] = round((time.monotonic() - began_s) * 1000)
    if error:
        line["error"] = " ".join(error.split())[:_ERROR_CHARS]
    import msgspec  # the first screen asks here whether there is anything, and does without

    try:
        _write(os.path.join(folder, NAME), msgspec.json.encode(line) + b"\n")
    except OSError:
        return


def _write(path: str, line: bytes) -> None:
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = os.open(path, flags, 0o600)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        fd = os.open(path, flags, 0o600)
    try:
        os.write(fd, line)
        is_long = os.fstat(fd).st_size > _LIMIT_BYTES
    finally:
        os.close(fd)
    if is_long:
        _shorten(path)


def _shorten(path: str) -> None:
    """Keep the newest lines. Two that do it at once lose a few more."""
    with open(path, "rb") as file:
        file.seek(-_KEPT_BYTES, os.SEEK_END)
        rest = file.read().partition(b"\n")[2]
    new = f"{path}.{os.getpid()}"
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(fd, "wb") as file:
        file.write(rest)
    os.replace(new, path)


class AgentTrace:
    """What the log says of the hooks of one agent."""

    # A plain class: every hook imports this module, and defining a named tuple takes longer than all of it.
    def __init__(self) -> None:
        self.last_event = ""
        self.last_at_s = 0.0
        """The time of the last event, in seconds since 1970."""
        self.last_error: str | None = None
        self.events = Counter[str]()
        """How often each event was reported."""


def read_traces(folder: str) -> dict[str, AgentTrace]:
    """The trace of each agent in the log of that folder."""
    traces: dict[str, AgentTrace] = {}
    try:
        with open(os.path.join(folder, NAME), "rb") as file:
            lines = file.read().splitlines()
    except OSError:
        return traces
    from datetime import UTC, datetime

    import msgspec

    for text in lines:
        try:
            line = msgspec.json.decode(text)
            agent, event, at_s = str(line["agent"]), str(line["event"]), float(line["at"])
            datetime.fromtimestamp(at_s, UTC)
        except (msgspec.DecodeError, KeyError, TypeError, ValueError, OverflowError, OSError, RecursionError):
            continue  # not a line of ours, or of a time that no clock has
        trace = traces.setdefault(agent, AgentTrace())
        trace.last_event, trace.last_at_s = event, at_s
        trace.events[event] += 1
        if "error" in line:
            trace.last_error = str(line["error"])
    return traces

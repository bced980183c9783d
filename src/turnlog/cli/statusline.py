"""`turnlog statusline`: one line for Claude Code's screen, from its status on stdin and from the catalog.

The agent starts it after every answer. So it loads little, reads the index as it is, and starts a process that brings
the index up to date. If a part of the line fails, the other parts are printed, and no error.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    _Result = TypeVar("_Result")

AGENT = "claude-code"
_WAIT_S = 2.0
_MOST_BYTES = 4 << 20
_STALE_S = 60
"""The age in seconds at which the index is updated."""
_PATIENCE_S = 0.05
_SPENT = "SELECT total(cost), total(unpriced) FROM quarters WHERE quarter >= ?"
_QUARTER_S, _PICO = 900, 1e12
"""The index has a row for each quarter of an hour, with the cost in millionths of micro-dollars."""
_WINDOWS = (("five_hour", "5h"), ("seven_day", "7d"))


def run(location: str | None = None) -> None:
    """Print the line."""
    status = _read_status()
    line = _line(status, location)
    if line:
        _quietly(_print, line)
    _prepare(status, location)


def _print(line: str) -> None:
    os.write(1, (line + "\n").encode("utf-8", "replace"))


def answer(location: str | None) -> str:
    """Return the line, for a caller who prints it."""
    status = _read_status()
    _prepare(status, location)
    return _line(status, location)


def _prepare(status: dict[str, Any], location: str | None) -> None:
    """Prepare what the next line needs: limits that are kept, and an index that is up to date."""
    _quietly(_keep, status)
    _quietly(_catch_up, location)


def _line(status: dict[str, Any], location: str | None) -> str:
    parts = [_quietly(part, status) for part in (_model, _place, _context, _session)]
    parts += [_quietly(_today, location), *(_quietly(_limits, status) or [])]
    return " · ".join(filter(None, parts))


def _quietly(call: Callable[[Any], _Result], argument: Any) -> _Result | None:
    """Return the result of a call; None if it fails: the line is on the screen of another program."""
    try:
        return call(argument)
    except Exception as error:
        if os.environ.get("TURNLOG_DEBUG"):
            sys.stderr.write(f"statusline: {type(error).__name__}: {error}\n")
        return None


def _read_status() -> dict[str, Any]:
    """What the agent says on stdin; it need not close it."""
    data = bytearray()
    end = time.monotonic() + _WAIT_S
    while len(data) < _MOST_BYTES:
        try:
            ready = select.select([0], [], [], max(0.0, end - time.monotonic()))[0]
            piece = os.read(0, 1 << 16) if ready else b""
        except OSError:
            break
        if not piece:
            break
        data += piece
        if piece.rstrip().endswith(b"}") and (document := _object(data)):
            return document
    return _object(data)


def _object(data: bytearray) -> dict[str, Any]:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def _in(status: dict[str, Any], name: str) -> dict[str, Any]:
    part: Any = status.get(name)
    return part if isinstance(part, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def _model(status: dict[str, Any]) -> str:
    model = _in(status, "model")
    return _plain(model.get("display_name") or model["id"])


def _place(status: dict[str, Any]) -> str:
    folder: str = _in(status, "workspace").get("current_dir") or status["cwd"]
    return _plain(os.path.basename(folder.rstrip("/")) or folder)


def _context(status: dict[str, Any]) -> str:
    return f"context {float(status['context_window']['used_percentage']):.0f}%"


def _session(status: dict[str, Any]) -> str:
    return f"${float(status['cost']['total_cost_usd']):.2f} session"


def _limits(status: dict[str, Any]) -> list[str]:
    """Return what is left of each limit that the agent itself reports."""
    limits = _in(status, "rate_limits")
    return list(filter(None, (_quietly(_limit, (short, _in(limits, name))) for name, short in _WINDOWS)))


def _limit(window: tuple[str, dict[str, Any]]) -> str:
    name, limit = window
    now = time.time()
    if not limit or float(limit.get("resets_at") or now + 1) <= now:
        return ""
    return f"{name} {100 - float(limit['used_percentage']):.0f}% left"


def _today(location: str | None) -> str:
    """Return what was spent today, as `turnlog usage` has it. Asks the index itself: the catalog takes long to load."""
    path = _index(location)
    if not os.path.exists(path):
        return ""
    import sqlite3

    midnight = time.mktime((*time.localtime()[:3], 0, 0, 0, 0, 0, -1))
    database = sqlite3.connect(path, timeout=_PATIENCE_S)
    try:
        database.execute("PRAGMA query_only = 1")
        [(cost, unpriced)] = database.execute(_SPENT, (int(midnight) // _QUARTER_S,)).fetchall()
    finally:
        database.close()
    return f"${cost / _PICO:.2f}{'+' if unpriced else ''} today"


def _index(location: str | None) -> str:
    from turnlog.machine.environment import default_home, existing_cache
    from turnlog.machine.location import key_of

    return os.path.join(existing_cache(), f"{key_of(location or default_home())}.sqlite")


def _keep(status: dict[str, Any]) -> None:
    """Keep the reported limits for `turnlog usage blocks`."""
    limits = _in(status, "rate_limits")
    if limits:
        from turnlog.machine.limitfile import keep_limits

        keep_limits(AGENT, limits, time.time())


def _catch_up(location: str | None) -> None:
    """Start a process that brings the index up to date for the next line; at most once a minute."""
    path = _index(location)
    stamp = path.removesuffix(".sqlite") + ".shown"
    try:
        is_due = abs(time.time() - os.stat(stamp).st_mtime) > _STALE_S
    except FileNotFoundError:
        is_due = True
    if is_due:
        from turnlog.catalog.background import is_allowed, start
        from turnlog.machine.environment import default_home

        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        os.close(os.open(stamp, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        os.utime(stamp)
        if is_allowed():
            start(path, location or default_home())


def _plain(text: str) -> str:
    """Return the text without what could drive a terminal."""
    if text.isascii() and text.isprintable():
        return text
    from turnlog.view.visible import one_line

    return one_line(text)

"""What hooks were called for, and what went wrong: a private file in the home, which does not grow without end.

No prompts and nothing of what is in files; ids and folders only.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from typing import Any

NAME = "hooks.log"
_MOST = 1 << 20
_KEPT = 256 << 10
_LONG = 500


def note(folder: str, agent: str, event: str, session: str, began_s: float, error: str = "") -> None:
    """One line. Where it cannot be written, nothing is: no agent waits for this, and none fails for it."""
    line: dict[str, Any] = {
        "at": round(time.time(), 3),
        "agent": agent[:40],
        "event": event[:40],
        "session": session[:80],
    }
    line["ms"] = round((time.monotonic() - began_s) * 1000)
    if error:
        line["error"] = " ".join(error.split())[:_LONG]
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
        is_long = os.fstat(fd).st_size > _MOST
    finally:
        os.close(fd)
    if is_long:
        _shorten(path)


def _shorten(path: str) -> None:
    """Keep the newest lines. Two that do it at once lose a few more."""
    with open(path, "rb") as file:
        file.seek(-_KEPT, os.SEEK_END)
        rest = file.read().partition(b"\n")[2]
    new = f"{path}.{os.getpid()}"
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(fd, "wb") as file:
        file.write(rest)
    os.replace(new, path)


def newest(folder: str) -> dict[str, dict[str, Any]]:
    """Of each agent: `last_event`, `last_at` (seconds since 1970), `last_error`, and how often each of `events`."""
    records: dict[str, dict[str, Any]] = {}
    try:
        with open(os.path.join(folder, NAME), "rb") as file:
            lines = file.read().splitlines()
    except OSError:
        return records
    import msgspec

    for text in lines:
        try:
            line = msgspec.json.decode(text)
            one = records.setdefault(str(line["agent"]), {"last_error": None, "events": Counter[str]()})
            one.update(last_event=line["event"], last_at=line["at"])
            one["events"][str(line["event"])] += 1
            if "error" in line:
                one["last_error"] = line["error"]
        except (msgspec.DecodeError, KeyError, TypeError):
            continue
    return records

"""Where things are on this machine: the only module that reads the environment and the home directory."""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import quote_from_bytes

from turnlog.errors import Invalid


def default_home() -> str:
    """`$TURNLOG_HOME`, or `.turnlog` in the home directory."""
    chosen = os.environ.get("TURNLOG_HOME")
    if chosen:
        return chosen
    home = os.path.expanduser("~")
    if home == "~":
        raise Invalid("there is no home directory", hint="set TURNLOG_HOME")
    return os.path.join(home, ".turnlog")


def expand(path: str) -> str:
    """A path with `~` at its beginning resolved."""
    return os.path.expanduser(path)


def workspace_path(path: str | os.PathLike[str]) -> str:
    """A folder as sessions name it: absolute, links resolved; `bytes:` and %-escapes where it is not Unicode."""
    real: str = os.path.realpath(str(os.fspath(path)))
    try:
        real.encode()
    except UnicodeEncodeError:
        return "bytes:" + quote_from_bytes(os.fsencode(real))
    return real


def instructions(workspace: str | os.PathLike[str]) -> str | None:
    """The project's `AGENTS.md`, then personal instructions, joined by an empty line; None if there are none.

    Personal are `.turnlog/instructions.md` in the workspace and `instructions.md` in the home folder.
    """
    folder = os.fspath(workspace)
    places = (
        os.path.join(folder, "AGENTS.md"),
        os.path.join(folder, ".turnlog", "instructions.md"),
        os.path.join(default_home(), "instructions.md"),
    )
    texts: list[str] = []
    for place in places:
        try:
            with open(place, encoding="utf-8", errors="replace") as file:
                text = file.read().strip()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError):
            continue
        if text:
            texts.append(text)
    return "\n\n".join(texts) or None


def this_process() -> dict[str, Any]:
    """What tells this process from any other, now or later: its pid alone does not."""
    return {
        "pid": os.getpid(),
        "started": _read_word("/proc/self/stat", after=")", index=19),
        "host": os.uname().nodename,
        "boot": _read_word("/proc/sys/kernel/random/boot_id"),
    }


def _read_word(path: str, *, after: str = "", index: int = 0) -> str | None:
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except OSError:
        return None
    words = text.rpartition(after)[2].split() if after else text.split()
    return words[index] if index < len(words) else None

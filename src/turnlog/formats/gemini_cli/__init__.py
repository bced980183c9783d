"""Gemini CLI: a chat per file under `~/.gemini/tmp/<project>/chats/`, a log of patches or a document."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from turnlog.formats import Format, Places, Resuming, Retention, Setting, Source
from turnlog.formats._shared.growth import growing
from turnlog.formats._shared.key import UUIDS
from turnlog.formats._shared.transcript import written_by
from turnlog.formats.gemini_cli.chat import is_ours
from turnlog.formats.gemini_cli.reading import GeminiState, read
from turnlog.interop.folder import files_under
from turnlog.interop.records import rows
from turnlog.interop.value import fields

_CAUTION = (
    "Gemini CLI may delete a session that was resumed, unless general.sessionRetention.enabled is false in its settings"
)
"""Seen with 0.61: resuming in another minute than it began makes a second and empty file with the same id, which the
next start takes for the remains of a session and removes, and with it all files of that id."""
_NAME = "gemini-cli"
_SMALL = 1 << 20
_UNITS = {"h": 1 / 24, "d": 1, "w": 7, "m": 30}
_KEPT = ("general", "sessionRetention")


def _base(places: Places) -> str:
    return os.path.join(places.environ.get("GEMINI_CLI_HOME") or places.home, ".gemini")


def _days(setting: Any) -> float | None:
    """It removes chats after 30 days unless a setting says otherwise; a setting that it cannot read has no effect."""
    settings = fields(setting)
    if not settings.get("enabled", True):
        return None
    age = re.fullmatch(r"(\d+)([hdwm])", str(settings.get("maxAge", "30d")), re.ASCII)
    return int(age[1]) * _UNITS[age[2]] or None if age is not None else None


def _find(path: str) -> Iterator[Source]:
    seen: set[tuple[str, str]] = set()
    for file in files_under(path):
        folder, name = os.path.split(file)
        _, dash, end = name.rpartition("-")
        # Resuming makes a second and empty file with the same end: the session goes on in the first one.
        if is_ours(file) and not (dash and (folder, end) in seen and _is_empty(file)):
            yield Source(_NAME, file)
        seen.add((folder, end))


def _is_empty(path: str) -> bool:
    """Whether a file has no message; False for one that is gone, as the program removes such files when it starts."""
    try:
        is_small = path.endswith(".jsonl") and os.path.getsize(path) < _SMALL
        return is_small and not any("type" in row.data for row in rows(path, []))
    except OSError:
        return False


FORMAT = Format(
    "Gemini CLI, chats as JSON and as JSON lines",
    lambda places: [os.path.join(_base(places), "tmp")],
    _find,
    read,
    write=written_by("turnlog.formats.gemini_cli.writing"),
    resume=Resuming(command=lambda id, path, workspace: ["gemini", "--resume", id], ids=UUIDS, caution=_CAUTION),
    growth=growing(GeminiState, read),
    # At every start it removes the chats of the folder it is started in.
    retention=Retention(
        settings=lambda places: os.path.join(_base(places), "settings.json"), syntax="commented", path=_KEPT,
        days=_days, forever=(Setting((*_KEPT, "enabled"), False),),
    ),
)  # fmt: skip

"""Claude Code: one JSON line per record under `~/.claude/projects/<folder>/<session>.jsonl`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from mmap import ACCESS_READ, mmap
from typing import Any

from turnlog.formats import Format, Places, Resuming, Retention, Setting, Source, Watching
from turnlog.formats._shared.growth import growing
from turnlog.formats._shared.key import UUIDS
from turnlog.formats._shared.transcript import written_by
from turnlog.formats.claude_code.heading import CHAIN
from turnlog.formats.claude_code.reading import ClaudeState, read
from turnlog.interop.folder import at_once, files_under
from turnlog.interop.jsonline import lines
from turnlog.interop.records import first_records, record_in
from turnlog.interop.value import as_int, fields

_NAME = "claude-code"
_HEAD = 40
_DAYS = 30
_LONG = 36_500


def _base(places: Places) -> str:
    return places.environ.get("CLAUDE_CONFIG_DIR") or os.path.join(places.home, ".claude")


def _days(setting: Any) -> float | None:
    """It takes whole days from 1 on, and nothing else; earlier versions took 0 for never."""
    days = as_int(setting)
    return _DAYS if days is None or days < 0 else days or None


def _find(path: str) -> Iterator[Source]:
    for file in files_under(path):
        if file.endswith(".jsonl") and _is_ours(file):
            yield Source(_NAME, file)
            if not os.path.basename(file).startswith("agent-"):
                yield from (Source(_NAME, file, key) for key in _subagents_inside(file))


def _sidecars(source: Source) -> list[str]:
    stem = source.path.removesuffix(".jsonl")
    return [f"{stem}.meta.json"] if os.path.basename(stem).startswith("agent-") else []


def _is_ours(path: str) -> bool:
    """Whether one of the first records is of the chain, as only this program writes it."""
    for record in first_records(path, _HEAD):
        if record.get("type") in CHAIN and isinstance(record.get("sessionId"), str) and "uuid" in record:
            message = fields(record.get("message"))
            is_other = "parts" in message or "systemPayload" in record  # qwen-code's
            return not is_other and ("parentUuid" in record or "role" in message)
    return False


_SIDE = b'"isSidechain":true'


def _has(path: str, wanted: bytes) -> bool:
    """Whether a file has those bytes anywhere: a look that is much faster than at each line."""
    try:
        with open(path, "rb", opener=at_once) as file, mmap(file.fileno(), 0, access=ACCESS_READ) as view:
            return view.find(wanted) >= 0
    except (OSError, ValueError):
        return False  # gone meanwhile, or empty


def _subagents_inside(path: str) -> list[str]:
    """Early versions kept a subagent's records in the file of its parent: the first record of each."""
    records = (record_in(line.data) for line in (lines(path) if _has(path, _SIDE) else ()) if _SIDE in line.data)
    firsts = (record for record in records if record.get("isSidechain") is True and not record.get("parentUuid"))
    ids = (record.get("uuid") for record in firsts if record.get("type") in ("user", "assistant"))
    return [uuid for uuid in ids if isinstance(uuid, str)]


FORMAT = Format(
    "Claude Code 1.0 to 2.1.325, with subagents",
    lambda places: [os.path.join(_base(places), "projects")],
    _find,
    read,
    write=written_by("turnlog.formats.claude_code.writing"),
    # It looks for the id among the sessions of the folder it is started in.
    resume=Resuming(command=lambda id, path, workspace: ["claude", "--resume", id], ids=UUIDS),
    growth=growing(ClaudeState, read),
    watch=Watching(by_file=True, sidecars=_sidecars),
    # At every start it removes what was not written to for so long.
    retention=Retention(
        settings=lambda places: os.path.join(_base(places), "settings.json"),
        syntax="json",
        path=("cleanupPeriodDays",),
        days=_days,
        forever=(Setting(("cleanupPeriodDays",), _LONG),),
    ),
)

"""pi: one JSON line per entry under `~/.pi/agent/sessions/--<folder>--/<time>_<session>.jsonl`."""

from __future__ import annotations

import os
from collections.abc import Iterator

from turnlog.formats import Format, Places, Resuming, Source, Watching, Writing
from turnlog.formats._shared.json import decode, lines
from turnlog.formats._shared.records import files_under
from turnlog.formats._shared.value import fields
from turnlog.formats.pi.reading import grown, read

_NAME = "pi"


def homes(places: Places) -> list[str]:
    """See `turnlog.formats`."""
    base = places.environ.get("PI_CODING_AGENT_DIR") or os.path.join(places.home, ".pi", "agent")
    return [os.path.join(base, "sessions")]


def find(path: str) -> Iterator[Source]:
    """See `turnlog.formats`."""
    yield from (Source(_NAME, place) for place in files_under(path) if _is_ours(place))


def _is_ours(path: str) -> bool:
    """By its first line. Rho begins its files with a `session`, too, but says its time in seconds."""
    if not path.endswith(".jsonl"):
        return False
    try:
        first = next(iter(lines(path, limit=1 << 20)), None)
        header = fields(decode(first.data)) if first is not None else {}
    except (OSError, ValueError):
        return False
    stamp = header.get("timestamp")
    return header.get("type") == "session" and "id" in header and isinstance(stamp, str) and not stamp.isdigit()


def _writing() -> Writing:
    from turnlog.formats.pi.writing import WRITING  # who only reads does not load what writes

    return WRITING


FORMAT = Format(
    "pi, versions 1 to 3",
    homes,
    find,
    read,
    write=_writing,
    resume=Resuming(command=lambda id, path, workspace: ["pi", "--session", path]),
    growth=grown,
    watch=Watching(by_file=True),
)

"""pi: one JSON line per entry under `~/.pi/agent/sessions/--<folder>--/<time>_<session>.jsonl`."""

from __future__ import annotations

from typing import Any

from turnlog.formats import Format, Resuming, Watching
from turnlog.formats._shared.finding import find_files, homes_under_variable
from turnlog.formats._shared.growth import growing
from turnlog.formats._shared.transcript import written_by
from turnlog.formats.pi.reading import PiState, read
from turnlog.interop.records import first_records


def _is_ours(path: str) -> bool:
    """By its first line. Rho begins its files with a `session`, too, but says its time in seconds."""
    header = next(first_records(path, 1), dict[str, Any]()) if path.endswith(".jsonl") else {}
    stamp = header.get("timestamp")
    return header.get("type") == "session" and "id" in header and isinstance(stamp, str) and not stamp.isdigit()


FORMAT = Format(
    "pi, versions 1 to 3",
    homes_under_variable("PI_CODING_AGENT_DIR", ".pi/agent", "sessions"),
    find_files("pi", _is_ours),
    read,
    write=written_by("turnlog.formats.pi.writing"),
    resume=Resuming(command=lambda id, path, workspace: ["pi", "--session", path]),
    growth=growing(PiState, read),
    watch=Watching(by_file=True),
)

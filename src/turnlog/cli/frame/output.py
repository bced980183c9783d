"""Data for programs, on stdout: JSON, exact, in UTF-8 whatever the terminal speaks. Imports nothing heavy."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

VERSION = 1
"""Of everything that `--json` prints. It grows when a field changes its meaning or goes away."""

# What fields mean that several commands have. Each command says in its `FIELDS` what it prints, for docs/cli.md and for
# the test that compares it with what is printed: `[name]` may be missing, and every document has a `version` besides.
SESSION = "the id of the session"
DRY_RUN = "whether nothing was done"
COUNTS = "how many paths by action"
REPORT = "what was `carried` (`messages`, `tool_calls`, `tool_results`), `changed`, `lost`, and `notes`"


def print_json(data: Mapping[str, Any]) -> None:
    """A document with these fields, and the version."""
    import json

    document = {"version": VERSION, **data}
    try:
        text = json.dumps(document, indent=2, ensure_ascii=False, default=_plain).encode()
    except UnicodeEncodeError:
        text = json.dumps(document, indent=2, default=_plain).encode()
    write_json(text)


def to_json(data: Any) -> bytes:
    """JSON, on one line."""
    import msgspec

    try:
        return msgspec.json.encode(data)
    except UnicodeEncodeError:
        import json

        return json.dumps(msgspec.to_builtins(data), ensure_ascii=True).encode()


def _plain(value: Any) -> Any:
    from datetime import datetime

    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    import msgspec

    return msgspec.to_builtins(value)


def write_json(line: bytes) -> None:
    """A line of JSON; whatever could drive a terminal is escaped in it."""
    from turnlog.cli.draw.text import safe_json

    write_line(safe_json(line))


def write_line(line: bytes) -> None:
    """A line, to the byte."""
    sys.stdout.flush()
    output = getattr(sys.stdout, "buffer", None)
    if output is None:
        sys.stdout.write(line.decode() + "\n")
    else:
        output.write(line + b"\n")

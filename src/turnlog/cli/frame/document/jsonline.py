"""Lines of JSON on stdout: exact, in UTF-8 whatever the terminal speaks. Imports nothing heavy."""

from __future__ import annotations

import sys


def write_json(line: bytes) -> None:
    """Write a line of JSON; whatever could drive a terminal is escaped in it."""
    from turnlog.cli.frame.document.escaping import safe_json

    write_line(safe_json(line))


def write_line(line: bytes) -> None:
    """Write a line of bytes as it is."""
    sys.stdout.flush()
    output = getattr(sys.stdout, "buffer", None)
    if output is None:
        sys.stdout.write(line.decode() + "\n")
    else:
        output.write(line + b"\n")

"""A session to the letter: the lines of its file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from turnlog.cli.place import log_path
from turnlog.errors import Unavailable, Unsupported
from turnlog.log.codec import body_text

if TYPE_CHECKING:
    from turnlog.reader.reader import OpenedSession


def raw_lines(opened: OpenedSession) -> Iterator[bytes]:
    """The lines of the log, or of another agent's file. A database has none: then the entries as a log has them."""
    path = _file(opened)
    if path is None:
        yield from (body_text(entry).encode() for entry in opened.session.entries())
        return
    try:
        with Path(path).open("rb") as file:
            yield from (line.rstrip(b"\n") for line in file)
    except OSError as error:
        raise Unavailable(f"{path}: {error.strerror or error}") from None


def _file(opened: OpenedSession) -> str | None:
    if opened.source is None:
        try:
            return log_path(opened.home, opened.session.id)
        except Unsupported:
            return None
    path = opened.source.path
    is_text = Path(path).is_file() and path.endswith((".jsonl", ".json", ".ndjson"))
    return path if is_text and not opened.source.key else None

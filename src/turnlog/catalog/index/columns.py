"""Values of columns: what is stored for a text, a path, a time, and lists of them; and back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from turnlog.catalog.values import TokenSums

if TYPE_CHECKING:
    from collections.abc import Iterable

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)
LATEST = (1 << 43) - 1
"""The largest number of milliseconds that fits into the id of a text."""
LARGEST = (1 << 63) - 1
"""The largest number that fits into a column. What a corrupt file reports beyond that counts as this."""
MOST = 1 << 53
"""The largest number of tokens or milliseconds of one row, so that the sum of a few columns fits as well."""
_NOTHING = TokenSums()
COST = (
    "(sessions.cost + CASE sessions.subagents WHEN '' THEN 0 ELSE "
    "CAST(substr(sessions.subagents, length(rtrim(sessions.subagents, '0123456789')) + 1) AS BIGINT) END)"
)
"""In SQL: the cost of a session and its subagents, as `Card.cost_micros`."""


def clean(text: str) -> str:
    """The text without what cannot be stored: lone surrogates."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def lines(words: Iterable[str]) -> str:
    """Values for a column that holds several: a line feed before and after each, to match whole values."""
    text = "\n".join(dict.fromkeys(clean(word.replace("\n", " ")) for word in words))
    return f"\n{text}\n" if text else ""


def words(text: str) -> tuple[str, ...]:
    """The values of a column that holds several."""
    return tuple(text[1:-1].split("\n")) if text else ()


def path_column(path: str) -> str | bytes:
    """A path for a column: as text, or as bytes if it is not Unicode."""
    try:
        path.encode()
    except UnicodeEncodeError:
        import os

        return os.fsencode(path)
    return path


def path_of(value: str | bytes) -> str:
    """The path in a column."""
    if isinstance(value, bytes):
        import os

        return os.fsdecode(value)
    return value


def workspace_column(folder: object) -> str | bytes | None:
    """The folder that a session names, for a column, with links resolved; None if it is no text that can be a path."""
    if not isinstance(folder, str) or not folder:
        return None
    from turnlog.errors import Invalid
    from turnlog.machine.folder import workspace_path

    try:
        return path_column(workspace_path(folder) if folder.startswith("/") and "\0" not in folder else folder)
    except (Invalid, UnicodeEncodeError):  # half a surrogate pair, which JSON may have
        return None


def ms_of(at: datetime | None) -> int | None:
    """Milliseconds since 1970, within the limits of a column."""
    if at is None:
        return None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return min(max((at - EPOCH) // _MS, 0), LATEST)


def time_of(ms: int | None) -> datetime | None:
    """The time in a column."""
    return None if ms is None else datetime.fromtimestamp(ms / 1000, UTC)


def tokens(text: str) -> TokenSums:
    """The seven numbers in a column."""
    return TokenSums(*map(int, text.split(" "))) if text else _NOTHING

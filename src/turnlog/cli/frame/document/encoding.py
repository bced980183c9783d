"""JSON as bytes, for what commands print. Imports nothing heavy."""

from __future__ import annotations

from functools import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

VERSION = 1
"""Of what `--json` prints, unless a command has a `JSON_VERSION` of its own. It grows when a field changes its meaning
or goes away."""


def encode_json(data: Any, *, indent: int | None = None) -> bytes:
    """Encode a value as JSON; text that is no Unicode becomes escapes."""
    try:
        return _encoder(indent, False)(data).encode()
    except UnicodeEncodeError:
        return _encoder(indent, True)(data).encode()


def in_json(value: Any) -> Any:
    """Return the JSON form of a value that JSON has none for: a time, or one of our structs."""
    from datetime import datetime

    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    import msgspec

    return msgspec.to_builtins(value)


def utc(ms: int) -> str:
    """A time in milliseconds as JSON has it: `2026-11-15T14:02:09.120Z`."""
    import time

    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ms // 1000)) + f".{ms % 1000:03}Z"


@cache
def _encoder(indent: int | None, is_ascii: bool) -> Callable[[Any], str]:
    """One for all items of a list: to make one takes as long as to write a small item."""
    import json

    marks = None if indent else (",", ":")
    return json.JSONEncoder(indent=indent, separators=marks, ensure_ascii=is_ascii, default=in_json).encode

"""Data for programs, on stdout: JSON, exact, in UTF-8 whatever the terminal speaks. Imports nothing heavy."""

from __future__ import annotations

import sys
from functools import cache

from turnlog.cli.frame.shape import NOTHING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

VERSION = 1
"""Of what `--json` prints, unless a command has a `JSON_VERSION` of its own. It grows when a field changes its meaning
or goes away."""


class JsonAsked:
    """What was asked of the JSON of the command that runs: one at a time in a process."""

    module: ModuleType | None = None
    tree: dict[str, Any] | None = None
    """The fields, each with those inside of it; an empty one is meant with all that is in it."""
    max_bytes: int | None = None
    cursor: str | None = None
    can_again: bool = True
    """Whether it can be asked again for the rest, because nothing is changed."""


def want(module: str, options: dict[str, Any]) -> None:
    """Note what is asked of the JSON, and take it out of the options. Raises `Misused`, before anything is done."""
    JsonAsked.module, JsonAsked.tree = sys.modules[module], None
    fields = options.pop("fields", None)
    JsonAsked.max_bytes, JsonAsked.cursor = options.pop("max_bytes", None), options.pop("cursor", None)
    given = {"--fields": fields, "--max-bytes": JsonAsked.max_bytes, "--cursor": JsonAsked.cursor}
    flags = [flag for flag, value in given.items() if value is not None]
    JsonAsked.can_again = getattr(JsonAsked.module, "CHANGES", NOTHING) == NOTHING or _only_looks(options)
    is_json = options["as_json"] or options.get("jsonl")
    if flags and (not is_json or (JsonAsked.cursor is not None and not JsonAsked.can_again)):
        from turnlog.cli.frame.exitcode import Misused

        if not is_json:
            raise Misused(f"{flags[0]} is for --json", hint="add --json")
        raise Misused("--cursor would do it again", hint="--cursor continues only commands that change nothing")
    if fields is not None:
        from turnlog.cli.frame.selection import selected

        JsonAsked.tree = selected(fields, JsonAsked.module.FIELDS, module.rpartition(".")[2])


def json_version() -> int:
    """Of the JSON of the command that runs."""
    return getattr(JsonAsked.module, "JSON_VERSION", VERSION)


def _only_looks(options: dict[str, Any]) -> bool:
    """Whether a command that may change something is only asked how things are."""
    is_told = options.get("dry_run") or options.get("status") or options.get("action") == "status"
    is_told = is_told or options.get("words", ())[:1] == ("status",)
    return bool(is_told) or options.get("repair") is False


def dumped(data: Any, *, indent: int | None = None) -> bytes:
    """JSON; of text that is no Unicode, escapes."""
    try:
        return _encoder(indent, False)(data).encode()
    except UnicodeEncodeError:
        return _encoder(indent, True)(data).encode()


@cache
def _encoder(indent: int | None, is_ascii: bool) -> Callable[[Any], str]:
    """One for all items of a list: to make one takes as long as to write a small item."""
    import json
    from datetime import datetime

    def plain(value: Any) -> Any:
        if isinstance(value, datetime):
            return value.isoformat().replace("+00:00", "Z")
        import msgspec

        return msgspec.to_builtins(value)

    marks = None if indent else (",", ":")
    return json.JSONEncoder(indent=indent, separators=marks, ensure_ascii=is_ascii, default=plain).encode


def to_json(data: Any) -> bytes:
    """JSON, on one line."""
    from turnlog.log.text import json_bytes

    return json_bytes(data)


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

"""What the options ask of a JSON document: fields, a size, a place to continue from. Imports nothing heavy."""

from __future__ import annotations

from turnlog.cli.frame.document.encoding import VERSION
from turnlog.cli.frame.document.shape import NOTHING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from turnlog.cli.frame.command import Command


class JsonRequest:
    """What was asked of the JSON of the command that runs: one at a time in a process."""

    module: ModuleType | None = None
    fields: dict[str, Any] | None = None
    """The fields, each with those inside of it; an empty one is meant with all that is in it."""
    max_bytes: int | None = None
    cursor: str | None = None
    is_repeatable: bool = True
    """Whether it can be asked again for the rest, because nothing is changed."""


def note_request(command: Command, options: dict[str, Any]) -> None:
    """Note what is asked of the JSON, and take it out of the options. Raises `UsageError`, before anything is done."""
    JsonRequest.module, JsonRequest.fields = command.module, None
    typed = options.pop("fields", None)
    JsonRequest.max_bytes, JsonRequest.cursor = options.pop("max_bytes", None), options.pop("cursor", None)
    given = {"--fields": typed, "--max-bytes": JsonRequest.max_bytes, "--cursor": JsonRequest.cursor}
    flags = [flag for flag, value in given.items() if value is not None]
    JsonRequest.is_repeatable = getattr(command.module, "CHANGES", NOTHING) == NOTHING or command.is_read_only(options)
    is_json = options["as_json"] or options.get("jsonl")
    if flags and (not is_json or (JsonRequest.cursor is not None and not JsonRequest.is_repeatable)):
        from turnlog.cli.frame.exitcode import UsageError

        if not is_json:
            raise UsageError(f"{flags[0]} is for --json", hint="add --json")
        raise UsageError("--cursor would do it again", hint="--cursor continues only commands that change nothing")
    if typed is not None:
        from turnlog.cli.frame.document.selection import selected

        JsonRequest.fields = selected(typed, command.module.FIELDS, command.module.__name__.rpartition(".")[2])


def json_version() -> int:
    """Return the version of the JSON of the command that runs."""
    return getattr(JsonRequest.module, "JSON_VERSION", VERSION)

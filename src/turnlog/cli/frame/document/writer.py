"""Printing a document with what was asked of it. Imports nothing heavy."""

from __future__ import annotations

from turnlog.cli.frame.document.encoding import encode_json
from turnlog.cli.frame.document.jsonline import write_line
from turnlog.cli.frame.document.request import JsonRequest, json_version
from turnlog.cli.frame.document.shape import items_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def print_json(data: Mapping[str, Any]) -> None:
    """Print a document with these fields and the version. Where it is about a list, see `itemlist`."""
    document: dict[str, Any] = {"version": json_version(), **data}
    fields = getattr(JsonRequest.module, "FIELDS", {})
    name = next((name for name in items_of(fields) if name in document), None)
    if name is not None:
        from turnlog.cli.frame.document.itemlist import ItemPage, print_items

        items = document.pop(name)
        print_items(document, name, items if hasattr(items, "cursor") else ItemPage(items))
        return
    if JsonRequest.fields is not None:
        import json

        from turnlog.cli.frame.document.selection import project

        document = {"version": document["version"], **project(json.loads(encode_json(document)), JsonRequest.fields)}
    from turnlog.cli.frame.document.escaping import safe_json

    line = safe_json(encode_json(document, indent=2))
    _refuse_as_list(len(line) + 1)
    write_line(line)


def _refuse_as_list(size_bytes: int) -> None:
    """Raise `UsageError` where a document without its list is to continue one, or to be smaller than it is.

    What was done is told in any case: it cannot be asked for again.
    """
    cursor, max_bytes = JsonRequest.cursor, JsonRequest.max_bytes
    if cursor is not None:
        from turnlog.cli.frame.document.itemlist import bad_cursor

        raise bad_cursor(cursor)
    if max_bytes is not None and size_bytes > max_bytes and JsonRequest.is_repeatable:
        from turnlog.cli.frame.exitcode import UsageError

        raise UsageError(f"--max-bytes {max_bytes} has no room for the answer", hint=f"--max-bytes {size_bytes} has")

"""The answer of a command to `--json`: a document, with what was asked for of it. Imports nothing heavy."""

from __future__ import annotations

from turnlog.cli.frame.output import JsonAsked, dumped, json_version, write_json
from turnlog.cli.frame.shape import items_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def print_json(data: Mapping[str, Any]) -> None:
    """A document with these fields, and the version. Where it is about a list, see `itemlist`."""
    document: dict[str, Any] = {"version": json_version(), **data}
    fields = getattr(JsonAsked.module, "FIELDS", {})
    name = next((name for name in items_of(fields) if name in document), None)
    if name is not None:
        from turnlog.cli.frame.itemlist import PrintedList, print_items

        items = document.pop(name)
        print_items(document, name, items if isinstance(items, PrintedList) else PrintedList(items))
        return
    if JsonAsked.tree is not None:
        import json

        from turnlog.cli.frame.selection import only

        document = {"version": document["version"], **only(json.loads(dumped(document)), JsonAsked.tree)}
    write_json(dumped(document, indent=2))

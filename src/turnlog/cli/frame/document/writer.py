"""Printing a document with what was asked of it. Imports nothing heavy."""

from __future__ import annotations

from turnlog.cli.frame.document.encoding import encode_json
from turnlog.cli.frame.document.jsonline import write_json
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

        from turnlog.cli.frame.document.selection import only

        document = {"version": document["version"], **only(json.loads(encode_json(document)), JsonRequest.fields)}
    write_json(encode_json(document, indent=2))

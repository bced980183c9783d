"""The JSON Schema of what a command prints with `--json`, from its `FIELDS`."""

from __future__ import annotations

from typing import Any

from turnlog.cli.frame import shape
from turnlog.cli.frame.shape import Field, Fields, bare, items_of

_KINDS: dict[str, dict[str, Any]] = {
    "string": {"type": "string"},
    "time": {"type": "string", "format": "date-time"},
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
    "strings": {"type": "array", "items": {"type": "string"}},
    "object": {"type": "object"},
    "list": {"type": "array"},
    "any": {},
}


def schema(fields: Fields, version: int) -> dict[str, Any]:
    """Of the document: without `--fields`, which leaves out what is required here."""
    known: dict[str, Field] = {"version": shape.number("of this document")}
    known |= {name: field for name, field in fields.items() if field.role != "lines"}
    if items_of(fields):
        known["[left_out]"] = shape.number("how many items --max-bytes left out")
        known["[cursor]"] = shape.text("what --cursor takes to go on", null=True)
    found = _object(known)
    found["properties"]["version"]["const"] = version
    return found


def _object(fields: Fields) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {bare(name): _schema(field) for name, field in fields.items()},
        "required": [name for name in fields if not name.startswith("[")],
    }


def _schema(field: Field) -> dict[str, Any]:
    found = dict(_KINDS[field.kind])
    if field.fields is not None and field.kind == "object":
        found = _object(field.fields)
    elif field.kind == "list":
        found["items"] = {"type": "object"} if field.fields is None else _object(field.fields)
    if field.null:
        found["type"] = [found["type"], "null"]
    if field.meaning:
        found["description"] = field.meaning
    return found

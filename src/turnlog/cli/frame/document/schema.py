"""The JSON Schema of what a command prints with `--json`, from its `FIELDS`."""

from __future__ import annotations

from typing import Any

from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.shape import Field, Fields, bare, items_of

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
    """Return the schema of the whole document; with `--fields`, required fields may be missing."""
    documented: dict[str, Field] = {"version": shape.number("of this document")}
    documented |= {name: field for name, field in fields.items() if field.role != "lines"}
    if items_of(fields):
        documented["[left_out]"] = shape.number("how many items --max-bytes left out")
        documented["[cursor]"] = shape.text("pass it to --cursor to continue", null=True)
    document = _object(documented)
    document["properties"]["version"]["const"] = version
    return document


def _object(fields: Fields) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {bare(name): _schema(field) for name, field in fields.items()},
        "required": [name for name in fields if not name.startswith("[")],
    }


def _schema(field: Field) -> dict[str, Any]:
    described = dict(_KINDS[field.kind])
    if field.fields is not None and field.kind == "object":
        described = _object(field.fields)
    elif field.kind == "list":
        described["items"] = {"type": "object"} if field.fields is None else _object(field.fields)
    if field.null:
        described["type"] = [described["type"], "null"]
    if field.meaning:
        described["description"] = field.meaning
    return described

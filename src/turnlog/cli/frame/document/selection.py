"""Parses `--fields`, names of fields with dots for inner fields, and leaves only these in a value."""

from __future__ import annotations

from typing import Any

from turnlog.cli.frame.document.shape import Fields, bare
from turnlog.cli.frame.exitcode import UsageError

Tree = dict[str, Any]


def selected(typed: str, fields: Fields, command: str) -> Tree:
    """Return the fields that are meant. Raises `UsageError` for an unknown name, with the known names."""
    tree: Tree = {}
    allowed = selectable(fields)
    names = list(filter(None, (name.strip() for name in typed.split(","))))
    for name in names:
        _check(name, allowed, command)
        if any(name.startswith(f"{other}.") for other in names):
            continue  # the field around it is named whole
        inner = tree
        for part in name.split("."):
            inner = inner.setdefault(part, {})
    if not tree:
        raise UsageError("--fields names none", hint=f"there are {', '.join(allowed)}", candidates=tuple(allowed))
    return tree


def selectable(fields: Fields) -> dict[str, Any]:
    """Return the fields that may be named: those of an item, or of a document without items, and those aside."""
    lists = [field for field in fields.values() if field.role in ("items", "lines")]
    if not lists:
        return {bare(name): field for name, field in fields.items()}
    names = {bare(name): field for one in lists for name, field in (one.fields or {}).items()}
    return {**names, **{bare(name): field for name, field in fields.items() if field.role == "aside"}}


def _check(name: str, allowed: dict[str, Any], command: str) -> None:
    inside: dict[str, Any] | None = allowed
    where = ""
    for part in name.split("."):
        if inside is None:
            return  # an object with any names
        if part not in inside:
            there = [f"{where}{other}" for other in inside]
            listed = f"there are {', '.join(there)}" if there else f"{where.rstrip('.')} has no fields"
            raise UsageError(f"no field {name!r:.80} in `{command} --json`", hint=listed, candidates=tuple(there))
        field = inside[part]
        has_parts = field.kind in ("object", "list", "any")
        inside = {bare(inner): one for inner, one in field.fields.items()} if field.fields else None
        inside = inside if has_parts else {}
        where += f"{part}."


def project(value: Any, tree: Tree) -> Any:
    """Return the value with only these fields; of a list, each item so."""
    if isinstance(value, list):
        return [project(item, tree) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if not tree or not isinstance(value, dict):
        return value
    return {name: project(inner, tree[name]) for name, inner in value.items() if name in tree}  # pyright: ignore[reportUnknownVariableType]

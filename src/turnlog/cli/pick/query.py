"""The words that somebody typed as one query, and what may have been meant by one that finds nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from turnlog.catalog import Catalog

_WITH_BLANKS = ("title", "workspace", "file", "tag")
"""In other values there are none: what stands behind `agent:codex ` are words to look for."""


def filter_hint(catalog: Catalog, query: str) -> str:
    """Return what may have been meant where a filter has a value that no session has; else an empty text."""
    if ":" not in query:
        return ""  # what knows the values takes longer to load than the whole answer
    from difflib import get_close_matches

    from turnlog.catalog.ask.detail import known_values
    from turnlog.catalog.ask.query import parse

    for condition in parse(query).every_filter:
        if condition.name in ("agent", "model", "tag", "workspace", "branch") and not condition.negated:
            values = catalog.ask(known_values, condition.name)
            for value in condition.values:
                if not any(value.lower() in choice for choice in values):
                    parts = [part for choice in values for part in choice.split("-") if condition.name != "branch"]
                    near = get_close_matches(value.lower(), [*values, *parts], n=1)
                    return f"did you mean {condition.name}:{near[0]}?" if near else ""
    return ""


def in_folder(query: str, *, here: bool, workspace: str | None) -> str:
    """Return the query for the folder that `--here` or `--workspace` asks for; without one, the query as it is."""
    if not here and workspace is None:
        return query
    from turnlog.machine.folder import workspace_path
    from turnlog.reader.naming.here import in_folder, project

    return in_folder(query, project() if workspace is None else workspace_path(workspace))


def query_of(words: Iterable[str]) -> str:
    """Return one query of the words that a shell gave. A value with blanks needs no quotes of its own."""
    parts: list[str] = []
    for word in words:
        name, _, value = word.partition(":")
        if name.lstrip("-") in _WITH_BLANKS and " " in value and '"' not in value and ":" not in value:
            word = f'{name}:"{value}"'
        parts.append(word)
    return " ".join(parts)

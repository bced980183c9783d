"""Facts before they are appended: which names are allowed, what is masked, and what session-wide ones carry."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, cast

from msgspec.structs import replace

from turnlog.errors import Invalid, TurnlogWarning
from turnlog.log.entry import FIXED, Entry, Set, is_wide
from turnlog.machine.folder import workspace_path


def check_fact(entry: Set) -> None:
    """Refuse a fact without a name, with the name of a fixed field, or with a title or tags that are not text."""
    if not isinstance(entry.key, str) or not entry.key:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise Invalid(f"a fact needs a name, not {entry.key!r:.80}")
    if entry.key in FIXED and not entry.unset:
        hint = f"give it to home.create, or choose another name, such as my_{entry.key}"
        raise Invalid(f"{entry.key!r} is no fact: it is fixed when a session is created", hint=hint)
    if entry.unset or entry.value is None:
        return
    if entry.key == "title":
        _check_text("a title", entry.value)
    elif entry.key == "tags":
        if not isinstance(entry.value, (list, tuple)):
            raise Invalid(f"tags are a list of texts, not {_kind(entry.value)}", hint='session.set("tags", ["bug"])')
        for tag in cast("list[Any]", entry.value):
            _check_text("a tag", tag)


def _check_text(what: str, value: Any) -> None:
    if not isinstance(value, str):
        raise Invalid(f"{what} is text, not {_kind(value)}")


def _kind(value: Any) -> str:
    return f"a value of type {type(value).__name__}"


def normalized(entries: Sequence[Entry]) -> list[Entry]:
    """The entries of a caller, with each fact as it is stored: masked, and a workspace as an absolute path.

    This comes before `with_all`, which copies each fact into the ones after it.
    """
    return [_normalized(entry) if isinstance(entry, Set) else entry for entry in entries]


def _normalized(entry: Set) -> Set:
    if entry.key == "workspace" and entry.value is not None and not entry.unset:
        entry = replace(entry, value=workspace_path(entry.value))
    return masked(entry if entry.all is None else replace(entry, all=None))


def masked(entry: Set) -> Set:
    """A fact with its secrets masked, unless it is to be kept exactly."""
    if entry.exact:
        return entry
    from turnlog.log.secret import mask  # not imported by hooks, which set no facts and must start fast

    try:
        value, where = mask(entry.key, entry.value)
    except RecursionError:
        raise Invalid(f"the fact {entry.key!r:.80} is nested too deep") from None
    if not where:
        return entry
    warnings.warn(f"a secret was left out of a fact: {', '.join(where)}", TurnlogWarning, stacklevel=5)
    return replace(entry, value=value, all=None if entry.all is None else {**entry.all, entry.key: value})


def with_all(entries: Sequence[Entry], wide: Mapping[str, Any]) -> list[Entry]:
    """The entries, with all session-wide facts as of each entry put into each that sets one."""
    facts, prepared = dict(wide), list[Entry]()
    for entry in entries:
        if is_wide(entry):
            facts = {**facts, entry.key: entry.value}
            if entry.unset:
                del facts[entry.key]
            entry = replace(entry, all=facts)
        prepared.append(entry)
    return prepared

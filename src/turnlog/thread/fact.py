"""Facts on their way into a log: what may be one, what is masked, and what those of the whole session say."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from turnlog.errors import Invalid, TurnlogWarning
from turnlog.log.entry import FIXED, Entry, Set, is_wide


def check_fact(entry: Set) -> None:
    """Refuse a fact without a name, or with that of something that is said once and stays."""
    if not isinstance(entry.key, str) or not entry.key:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise Invalid(f"a fact needs a name, not {entry.key!r:.80}")
    if entry.key in FIXED and not entry.unset:
        hint = f"give it to home.create, or choose another name, such as my_{entry.key}"
        raise Invalid(f"{entry.key!r} is no fact: it is said when a session is made, and stays", hint=hint)


def masked(entry: Set) -> Set:
    """A fact without the secrets in it, unless it is to be kept as it is."""
    if entry.exact:
        return entry
    from turnlog.log.secret import mask  # a hook writes no facts, and would wait for it

    try:
        value, where = mask(entry.key, entry.value)
    except RecursionError:
        raise Invalid(f"the fact {entry.key!r:.80} is nested too deep") from None
    if not where:
        return entry
    warnings.warn(f"a secret was left out of a fact: {', '.join(where)}", TurnlogWarning, stacklevel=4)
    return replace(entry, value=value, all=None if entry.all is None else {**entry.all, entry.key: value})


def with_all(entries: Sequence[Entry], wide: Mapping[str, Any]) -> list[Entry]:
    """The entries, of which each fact of the whole session says all of them, as they are when it is appended."""
    facts, prepared = dict(wide), list[Entry]()
    for entry in entries:
        if is_wide(entry):
            facts = {**facts, entry.key: entry.value}
            if entry.unset:
                del facts[entry.key]
            entry = replace(entry, all=facts)
        prepared.append(entry)
    return prepared

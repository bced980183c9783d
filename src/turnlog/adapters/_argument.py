"""Checks of what a framework hands in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from turnlog.errors import Invalid

_V = TypeVar("_V")


def check_id(value: object, what: str) -> str:
    """Return an id that a framework gave; `Invalid` if it cannot be one."""
    if not isinstance(value, str) or not value:
        raise Invalid(f"the {what} {value!r:.80} is not a text", hint=f"give a {what} that is a text and not empty")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Invalid(f"the {what} {value!r:.80} is not Unicode", hint=f"give a {what} without surrogates") from None
    return value


def check_list(values: Iterable[_V], what: str) -> list[_V]:
    """Return what a framework gave as a list; `Invalid` if it is none."""
    given: object = values
    if type(given) is list:  # abstract classes are slow to ask
        return list(values)
    if not isinstance(values, Iterable) or isinstance(given, (str, bytes, Mapping)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise Invalid(f"the {what} {values!r:.80} are not a list", hint=f"give the {what} as a list")
    return list(values)

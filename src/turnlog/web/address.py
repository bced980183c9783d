"""Addresses of pages."""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import quote, urlencode


@lru_cache(maxsize=5_000)
def _quoted(name: str) -> str:
    return quote(name, safe="")


def address_of(name: str, page: str = "", /, **query: object) -> str:
    """The address of a session, or of a page of it."""
    address = f"/s/{_quoted(name)}" + (f"/{page}" if page else "")
    asked = {key: value for key, value in query.items() if value not in (None, "")}
    return address + (f"?{urlencode(asked)}" if asked else "")


def compare_address(a: str, b: str = "", **branches: int) -> str:
    """The address of the page that compares two sessions."""
    return f"/compare?{urlencode({'a': a, **({'b': b} if b else {}), **branches})}"

"""Which store a location is one of: by its scheme, from this package or from any other that is installed."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from turnlog.errors import Unsupported
from turnlog.store import Store

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "turnlog.stores"
"""The entry points of stores from elsewhere: the name is the scheme, the object is `connect(location, *, …)`."""
BUILT_IN = {"": "files", "memory": "memory", "postgres": "postgres", "postgresql": "postgres"}


def scheme_of(location: str) -> str:
    """The scheme of a location, for which there is a store; empty for a folder. Raises `Unsupported`."""
    scheme, colon, rest = location.partition(":")
    if not colon or "/" in scheme:
        return ""
    if scheme in BUILT_IN and (scheme != "memory" or not rest):
        return scheme
    if "//" not in rest:
        return ""
    _installed(scheme)
    return scheme


def connect(location: str, **options: Any) -> Store:
    """The store at a location."""
    scheme = scheme_of(location)
    name = BUILT_IN.get(scheme)
    made: Callable[..., Store] = _built_in(name) if name is not None else _load(_installed(scheme))
    return made(location, **options)


def _built_in(name: str) -> Callable[..., Store]:
    try:
        return import_module(f"turnlog.store.{name}").connect
    except ModuleNotFoundError as error:
        hint = f"pip install 'turnlog[{name}]'; missing: {error.name}"
        raise Unsupported(f"the {name} store is not installed", hint=hint) from None


def _installed(scheme: str) -> EntryPoint:
    """The store of another package. To look for it takes as long as a small command does: nobody else has to."""
    from importlib.metadata import entry_points

    found = entry_points(group=GROUP)
    if scheme not in found.names:
        others = ", ".join(f"{name}:" for name in sorted({*BUILT_IN, *found.names} - {""}))
        raise Unsupported(f"no store for {scheme}: locations", hint=f"a folder, or one of {others}")
    return min(found.select(name=scheme), key=lambda point: point.value)


def _load(point: EntryPoint) -> Callable[..., Store]:
    try:
        return point.load()
    except (ImportError, AttributeError) as error:
        raise Unsupported(f"the store for {point.name}: locations cannot be loaded: {error}") from error

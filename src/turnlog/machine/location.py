"""Locations of homes, and the store for each: from this package, or from another one that is installed here.

A location has the scheme of its store and a colon; without one it is a folder.
"""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from turnlog.errors import Unsupported
from turnlog.log.digest import sha256
from turnlog.machine.folder import absolute

if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.metadata import EntryPoint

    from turnlog.store import Store

_GROUP = "turnlog.stores"
"""The entry points of stores from elsewhere: the name is the scheme, the object is `connect(location, *, …)`."""
_BUILT_IN = {"": "files", "memory": "memory", "postgres": "postgres", "postgresql": "postgres"}
_PRIVATE_SCHEMES = ("", "memory")
"""The schemes of homes that no other machine can have sessions in."""


def folder_of(location: str) -> str | None:
    """The folder that a location is, from the root; None where it is none. Raises `Unsupported`, as the others do."""
    return None if _scheme_of(location) else absolute(location)


def is_shared(location: str) -> bool:
    """Whether other machines may have sessions in the home at that location, too."""
    return _scheme_of(location) not in _PRIVATE_SCHEMES


def key_of(location: str) -> str:
    """A name for a home among others: the same however its folder is written; without the password of a database."""
    folder = folder_of(location)
    if folder is not None:
        name = os.path.realpath(folder)
    else:
        scheme, mark, rest = location.partition("://")
        address, question, query = rest.partition("?")
        server, slash, database = address.partition("/")
        who, at, host = server.rpartition("@")
        kept = "&".join(part for part in query.split("&") if not part.startswith("password="))
        name = f"{scheme}{mark}{who.partition(':')[0]}{at}{host}{slash}{database}{question}{kept}"
    return sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def connect(location: str, **options: Any) -> Store:
    """The store at a location."""
    scheme = _scheme_of(location)
    opener: Callable[..., Store] = _built_in(_BUILT_IN[scheme]) if scheme in _BUILT_IN else _loaded(_installed(scheme))
    return opener(folder_of(location) or location, **options)


def _scheme_of(location: str) -> str:
    """The scheme of a location, for which there is a store; empty for a folder."""
    scheme, colon, rest = location.partition(":")
    if not colon or "/" in scheme:
        return ""
    if scheme in _BUILT_IN and (scheme != "memory" or not rest):
        return scheme
    if "//" not in rest:
        return ""
    return _installed(scheme).name


def _built_in(name: str) -> Callable[..., Store]:
    try:
        return import_module(f"turnlog.store.{name}").connect
    except ModuleNotFoundError as error:
        hint = f"pip install 'turnlog[{name}]'; missing: {error.name}"
        raise Unsupported(f"the {name} store is not installed", hint=hint) from None


@cache
def _installed(scheme: str) -> EntryPoint:
    """The store of another package. To look for it takes as long as a small command does: nobody else has to."""
    from importlib.metadata import entry_points

    points = entry_points(group=_GROUP)
    if scheme not in points.names:
        others = ", ".join(f"{name}:" for name in sorted({*_BUILT_IN, *points.names} - {""}))
        raise Unsupported(f"no store for {scheme}: locations", hint=f"a folder, or one of {others}")
    return min(points.select(name=scheme), key=lambda point: point.value)


def _loaded(point: EntryPoint) -> Callable[..., Store]:
    try:
        opener: Callable[..., Store] = point.load()
        if not callable(opener):
            raise TypeError(f"{point.value} is no function")
    except Exception as error:  # whatever another package does when it is imported
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise Unsupported(f"the store for {point.name}: locations cannot be loaded: {reason}") from error
    return opener

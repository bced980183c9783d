"""Which store a location is one of, and a name for it that is the same however it is written."""

from __future__ import annotations

import os

from turnlog.machine.folder import absolute
from turnlog.store.location import BUILT_IN, scheme_of


def kind_of(location: str) -> str:
    """Which store a location is one of: `memory`, `postgres`, `files`, or the scheme of another one."""
    scheme = scheme_of(location)
    return BUILT_IN.get(scheme, scheme)


def key_of(location: str) -> str:
    """A name for a home among others: the same however its folder is written; without the password of a database."""
    from hashlib import sha256

    if kind_of(location) == "files":
        name = os.path.realpath(absolute(location))
    else:
        scheme, mark, rest = location.partition("://")
        who, at, where = rest.rpartition("@")
        where, question, asked = where.partition("?")
        kept = "&".join(part for part in asked.split("&") if not part.startswith("password="))
        name = f"{scheme}{mark}{who.partition(':')[0]}{at}{where}{question}{kept}"
    return sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]

"""Which store a location is one of, and a name for it that is the same however it is written."""

from __future__ import annotations

import os

from turnlog.errors import Unsupported
from turnlog.machine.folder import absolute


def kind_of(location: str) -> str:
    """Which store a location is one of: `memory`, `postgres` or `files`."""
    scheme, colon, _ = location.partition(":")
    if location == "memory:":
        return "memory"
    if colon and scheme in ("postgresql", "postgres"):
        return "postgres"
    if colon and "//" in location and "/" not in scheme:
        raise Unsupported(f"no store for {scheme}: locations", hint="a folder, memory: or postgresql://…")
    return "files"


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

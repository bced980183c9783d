"""After how many days agents delete sessions. Asking loads every format, so the answer is cached.

The answer is valid as long as settings files and the variables that were read are the same.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress

from turnlog.catalog.watch.homes import RecordingEnvironment, formats_here, still_holds
from turnlog.machine.environment import environment, existing_cache, usable_cache, user_folder

_END = "\0\n"


def limits() -> dict[str, float]:
    """The agents that delete sessions by themselves, each with the days after which an unused one is deleted."""
    environ = environment()
    try:
        with open(os.path.join(existing_cache(), "limits"), encoding="utf-8", errors="surrogateescape") as file:
            remembered = _remembered(file.read(), environ)
    except (OSError, ValueError):
        remembered = None
    return _ask(environ) if remembered is None else remembered


def _remembered(text: str, environ: Mapping[str, str]) -> dict[str, float] | None:
    head, asked, *rows = text.split(_END)
    if head != _fingerprint() or not still_holds(asked, "\0", environ):
        return None
    limits: dict[str, float] = {}
    for row in filter(None, rows):
        agent, days, settings, stamp = row.split("\0")
        if _stamp_of(settings) != stamp:
            return None
        if days:
            limits[agent] = float(days)
    return limits


def _ask(environ: Mapping[str, str]) -> dict[str, float]:
    from turnlog.errors import TurnlogError
    from turnlog.exchange.keeping.retention import limit_of
    from turnlog.formats import Places, every
    from turnlog.interop.place import put_file

    asked = RecordingEnvironment(environ)
    places = Places(home=user_folder(), environ=asked)
    limits: dict[str, float] = {}
    rows: list[str] = []
    for name, form in every():
        if form.retention is None:
            continue
        settings = form.retention.settings(places)
        stamp = _stamp_of(settings)
        days = limit_of(name, form.retention).days
        rows.append(f"{name}\0{'' if days is None else days}\0{settings}\0{stamp}")
        if days is not None:
            limits[name] = days
    text = _END.join([_fingerprint(), asked.encode("\0"), *rows])
    folder = usable_cache()
    if folder is not None:
        with suppress(TurnlogError):  # then the formats are asked again next time
            put_file(os.path.join(folder, "limits"), text.encode("utf-8", "surrogateescape"), mode=0o600, force=True)
    return limits


def _fingerprint() -> str:
    return f"{formats_here()}\0{user_folder()}"


def _stamp_of(path: str) -> str:
    try:
        status = os.stat(path)
    except OSError:
        return "-"
    return f"{status.st_size}.{status.st_mtime_ns}"

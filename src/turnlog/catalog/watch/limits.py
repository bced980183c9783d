"""After how many days agents delete sessions. To ask takes loading every format, so the answer is remembered.

It holds as long as their settings look as they did, and the variables that were asked for are as they were.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from turnlog.catalog.watch.homes import Asked, formats_here
from turnlog.machine.environment import cache_folders, environment, user_folder

_END = "\0\n"


def limits() -> dict[str, float]:
    """The agents that delete sessions by themselves: days after which one goes that nobody touched."""
    path = os.path.join(next(cache_folders()), "limits")
    environ = environment()
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            remembered = _remembered(file.read(), environ)
    except (OSError, ValueError):
        remembered = None
    return _ask(path, environ) if remembered is None else remembered


def _remembered(text: str, environ: Mapping[str, str]) -> dict[str, float] | None:
    head, asked, *rows = text.split(_END)
    if head != _head() or any(not _is_so(line, environ) for line in asked.split("\0") if line):
        return None
    limits: dict[str, float] = {}
    for row in filter(None, rows):
        agent, days, settings, stamp = row.split("\0")
        if _stamp_of(settings) != stamp:
            return None
        if days:
            limits[agent] = float(days)
    return limits


def _is_so(line: str, environ: Mapping[str, str]) -> bool:
    key, equals, value = line.partition("=")
    return environ.get(key) == (value if equals else None)


def _ask(path: str, environ: Mapping[str, str]) -> dict[str, float]:
    from turnlog.errors import TurnlogError
    from turnlog.exchange.keeping import limit_of
    from turnlog.formats import Places, every, put_file

    asked = Asked(environ)
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
    variables = (key if value is None else f"{key}={value}" for key, value in asked.keys_asked.items())
    text = _END.join([_head(), "\0".join(variables), *rows])
    try:
        put_file(path, text.encode("utf-8", "surrogateescape"), mode=0o600, force=True)
    except TurnlogError:
        pass  # then they are asked again next time
    return limits


def _head() -> str:
    return f"{formats_here()}\0{user_folder()}"


def _stamp_of(path: str) -> str:
    try:
        status = os.stat(path)
    except OSError:
        return "-"
    return f"{status.st_size}.{status.st_mtime_ns}"

"""Other agents' sessions: where they keep them, how they are read into entries, how entries are written for them.

One file here or in `seeds` is one agent, and its name is its registration: a dash on the command line is an underscore
here. A format too big for one file is a folder of that name. Each has one value, `FORMAT`: see `_contract`. What
formats share is in `_shared`. Another installed package adds one by an entry point of the group `turnlog.formats`: its
name is the format's, and what it refers to is the value.

Reading never raises for what is in a file: a problem costs the record it is in, and is reported. Only a file that
cannot be opened raises. Writing is a pure function of entries; `Writing.place` is all that touches the disk.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from turnlog.errors import NotFound, TurnlogWarning, Unsupported
from turnlog.formats._contract import Forked as Forked
from turnlog.formats._contract import Format as Format
from turnlog.formats._contract import Jump as Jump
from turnlog.formats._contract import Places as Places
from turnlog.formats._contract import Reading as Reading
from turnlog.formats._contract import Record as Record
from turnlog.formats._contract import ResumePoint as ResumePoint
from turnlog.formats._contract import Resuming as Resuming
from turnlog.formats._contract import Retention as Retention
from turnlog.formats._contract import SessionHeader as SessionHeader
from turnlog.formats._contract import Setting as Setting
from turnlog.formats._contract import Source as Source
from turnlog.formats._contract import Spawn as Spawn
from turnlog.formats._contract import Step as Step
from turnlog.formats._contract import Watching as Watching
from turnlog.formats._contract import Writing as Writing
from turnlog.formats._shared.origin import unknown_type as unknown_type
from turnlog.formats._shared.transcript import Loss as Loss
from turnlog.formats._shared.transcript import LossWord as LossWord
from turnlog.formats._shared.transcript import Rendered as Rendered
from turnlog.formats._shared.transcript import TouchedFile as TouchedFile
from turnlog.formats._shared.transcript import Transcript as Transcript
from turnlog.interop.place import OutputFile as OutputFile
from turnlog.interop.problem import Problem as Problem

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


@cache
def _own() -> dict[str, str]:
    """The modules of our own formats, by their names."""
    modules: dict[str, str] = {}
    for package in ("", "seeds/"):
        folder = f"{os.path.dirname(__file__)}/{package}"
        for name in os.listdir(folder):  # not `pkgutil`: it takes longer than to read a session
            if name[0] != "_" and (name.endswith(".py") or os.path.isfile(f"{folder}{name}/__init__.py")):
                module = name.removesuffix(".py")
                modules[module.replace("_", "-")] = f"{__name__}.{package.replace('/', '.')}{module}"
    del modules["seeds"]
    return modules


@cache
def _installed() -> dict[str, EntryPoint]:
    """Formats of other packages. To ask for them takes longer than most commands: only for a name that is not ours."""
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group="turnlog.formats") if point.name not in _own()}


_added: dict[str, Format] = {}


@contextmanager
def added(name: str, form: Format) -> Generator[None]:
    """Add a format, as if its package were installed, until the block ends. For tests of formats."""
    _added[name] = form
    try:
        yield
    finally:
        del _added[name]


def names() -> list[str]:
    """Every format there is, as people type it."""
    return sorted(_own().keys() | _installed().keys() | _added.keys())


def is_known(name: str) -> bool:
    """Whether there is a format of that name."""
    return name in _own() or name in _added or name in _installed()


def format_of(name: str) -> Format:
    """The format with that name."""
    return _added.get(name) or _format_of(name)


@cache
def _format_of(name: str) -> Format:
    if name in _own():
        return import_module(_own()[name]).FORMAT
    point = _installed().get(name)
    if point is None:
        raise NotFound(f"no format {name!r:.80}", hint=f"one of {', '.join(names())}")
    from turnlog.formats._guard import error_line, guarded  # few have formats of other packages

    origin = f"the format {name!r:.80} of {point.dist.name if point.dist is not None else point.value}"
    try:
        form = point.load()
    except Exception as error:
        raise Unsupported(f"{origin} cannot be loaded: {error_line(error)}") from error
    if not isinstance(form, Format):
        raise Unsupported(f"{origin} cannot be loaded: {point.value} is no Format")
    return guarded(origin, form)


def every() -> Iterator[tuple[str, Format]]:
    """Every format with its name. One of another package that cannot be loaded is left out, with a warning."""
    for name in names():
        try:
            form = format_of(name)
        except Unsupported as error:
            warnings.warn(error.message, TurnlogWarning, stacklevel=2)
            continue
        yield name, form


def find(path: str, *, agents: Iterable[str] | None = None) -> Iterator[Source]:
    """Every session of any agent (or those named) at or under a path."""
    chosen = every() if agents is None else ((name, format_of(name)) for name in agents)
    for _, form in chosen:
        yield from form.find(path)

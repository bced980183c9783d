"""Other agents' sessions: where they keep them, how they are read into entries, how entries are written for them.

One file here is one agent, and its name is its registration: a dash on the command line is an underscore here. A
format too big for one file is a folder of that name. Each has one value, `FORMAT`, which says all that it can
do; what formats share is in `_shared`. Another installed package adds one by an entry point of the group
`turnlog.formats`: its name is the format's, and what it refers to is the value.

Reading never raises for what is in a file: a problem costs the record it is in, and is reported. Only a file that
cannot be opened raises. Writing is a pure function of entries; `Writing.place` is all that touches the disk.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Protocol

from msgspec import Struct, field

from turnlog.errors import NotFound, TurnlogWarning, Unsupported
from turnlog.formats._shared.origin import unknown_type as unknown_type
from turnlog.formats._shared.transcript import Loss as Loss
from turnlog.formats._shared.transcript import LossWord as LossWord
from turnlog.formats._shared.transcript import Rendered, Transcript
from turnlog.formats._shared.transcript import TouchedFile as TouchedFile
from turnlog.interop.copied import Copied
from turnlog.interop.place import OutputFile as OutputFile
from turnlog.interop.problem import Problem
from turnlog.log.entry import AnyEntry
from turnlog.log.usage import Usage

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class Places(Struct, frozen=True):
    """What a format may know of this machine: the home folder, a workspace, and the environment."""

    home: str
    workspace: str | None = None
    environ: Mapping[str, str] = {}


class Source(Struct, frozen=True):
    """One session of another agent, where it lies. `key` says which, where a file or folder holds several."""

    agent: str
    path: str
    key: str = ""


class Forked(Struct, frozen=True):
    """The session this one was forked from, by that agent's id; `session` is empty where it is not known."""

    session: str
    name: str | None = None
    source: Source | None = None
    """Where that one lies, if it was found beside this one: it comes first, so that nothing counts twice."""


class Spawn(Struct, frozen=True):
    """The session that started this one as a subagent, by that agent's id."""

    session: str
    call: str | None = None
    role: str | None = None


class SessionHeader(Struct, frozen=True, kw_only=True):
    """What is known of a session before its records."""

    id: str
    """Its id in that agent, as that agent would look it up."""
    identity: str = ""
    """What tells it from every other session of that agent on any machine, where its id alone does not."""
    workspace: str | None = None
    title: str | None = None
    created: datetime | None = None
    labels: dict[str, str] = {}
    git_branches: tuple[str, ...] = ()
    hidden: bool = False
    fork: Forked | None = None
    spawned: Spawn | None = None
    copied: Copied | None = None
    origin: Any = None
    """What the writer needs to write it back to the byte and entries do not say. Fixed when it is first read."""


class Record(Struct, frozen=True, kw_only=True, gc=False):
    """One entry to be.

    `key` is the record's own id in the source, where it has one that never changes; otherwise its content tells it
    from others. `names` are the fields that name other records: the name of the field, and the key of the record.
    """

    entry: AnyEntry
    """A draft, with `at` where the source says when. Its id is given on import. `origin` is for the writer."""
    key: str | None = None
    names: dict[str, str] = {}
    blobs: list[bytes] = []
    """What the entry refers to by its digest, to be kept before it."""
    turn: str | None = None
    """The agent's own id of the turn that this record is the first of, or one of, where it has one."""


class Jump(Struct, frozen=True, kw_only=True):
    """The conversation goes on after the record with that key; with an empty one, from the very beginning.

    Only in sources whose records have keys.
    """

    to: str
    key: str | None = None
    why: str = "branch"
    at: datetime | None = None
    origin: Any = None


Step = Record | Jump


class ResumePoint(Struct, frozen=True):
    """A place in a file from which `Format.growth` can read on; mostly where the newest turn or answer begins.

    What is appended to the file changes nothing before that place. In a database, `offset` is 0.
    """

    offset: int
    steps: int
    """How many steps `read` gives before that place."""
    state: Any = None
    """What the reader has to know of those steps, as small JSON; in a database also what shows if they changed."""


class Reading(Struct, kw_only=True):
    """One session as it is being read, complete when `steps` is used up; title and git branches may come late."""

    header: SessionHeader
    steps: Iterator[Step]
    problems: list[Problem] = field(default_factory=list[Problem])
    facts: dict[str, Any] = field(default_factory=dict[str, Any])
    """Facts of the session as a whole, as of now: set where they differ from those that are there."""
    totals: dict[str, Usage] = field(default_factory=dict[str, Usage])
    """Spending that no record carries, by model ("" if not known), as a running total of the session."""
    mark: ResumePoint | None = None
    """The newest resume point; None if there is none, so that all has to be read again."""


class _Placing(Protocol):
    def __call__(self, written: Rendered, folder: str, *, force: bool = False) -> str: ...


class Writing(Struct, frozen=True, kw_only=True):
    """How sessions are written for an agent."""

    render: Callable[[Transcript], Rendered]
    """Files that the agent loads, and what they could not carry."""
    place: _Placing
    """Those files laid out in one of the agent's folders as it would; gives the path of the session itself."""
    versions: Mapping[int, str] = {}
    """The versions of the format that can be written, each with the releases of the agent that open it. The lowest is
    written unless the session has a higher one already."""
    carried: frozenset[LossWord] = frozenset()
    """The common losses (`_shared.losses`) that do not count for this format, or that its writer counts itself."""


class _Command(Protocol):
    def __call__(self, id: str, path: str, workspace: str) -> list[str]: ...


class Resuming(Struct, frozen=True, kw_only=True):
    """How an agent goes on with a session."""

    command: _Command
    """The command that is run in the workspace to go on with a session; `path` is where the session was placed."""
    ids: str | None = None
    """A regular expression for the ids of the agent's sessions: no other id is put into a command line. None if the
    command names no id."""
    caution: str = ""
    """A warning for people who go on there."""
    model: Callable[[Places], str | None] | None = None
    """The model that the agent is configured with. Only for an agent that goes on with the model of the session, and
    fails if it does not know that."""


class Watching(Struct, frozen=True, kw_only=True):
    """What the catalog may rely on when it looks for sessions that are new or have changed."""

    by_file: bool = False
    """Whether `find` of a folder gives what `find` of each of its files gives."""
    apart: tuple[str, ...] = ()
    """The names of folders inside a home in which `find` need not look."""
    stamps: Callable[[str], dict[str, str]] | None = None
    """A stamp for each session of a database, by its key: it changes when the session does."""
    sidecars: Callable[[Source], list[str]] | None = None
    """The other files that a session is read from: it may have changed when one of them has."""


class Setting(Struct, frozen=True):
    """A value in a settings file, and the keys that lead to it."""

    path: tuple[str, ...]
    value: Any


class Retention(Struct, frozen=True, kw_only=True):
    """How long an agent keeps its sessions, and the settings that make it keep them for good."""

    settings: Callable[[Places], str]
    """The settings file that limits it, whether or not it exists."""
    syntax: Literal["json", "commented", "jsonc"]
    """What the agent reads there: `commented` is JSON with comments, `jsonc` may have a comma too many as well."""
    path: tuple[str, ...]
    """The keys that lead to the setting."""
    days: Callable[[Any], float | None]
    """The number of days without a change after which the agent deletes a session, for the value of the setting (None
    if it is not set); None if it deletes none."""
    forever: tuple[Setting, ...]
    """The settings with which it deletes none."""


class Format(Struct, frozen=True):
    """All that can be done with the sessions of one agent. A field is None if that cannot be done."""

    title: str
    """One line for people: which versions are read."""
    homes: Callable[[Places], list[str]]
    """The folders (or files) in which this agent keeps sessions, there or not; the first is where they are placed."""
    find: Callable[[str], Iterator[Source]]
    """The sessions at or under a file or folder, in a steady order, without reading them whole."""
    read: Callable[[Source], Reading]
    """One session: its header, its records one by one, and every problem met on the way. Raises `OSError` where it
    cannot be opened, and nothing else."""
    write: Writing | Callable[[], Writing] | None = None
    """How sessions are written; or a function that returns it, so that readers do not load the writer."""
    resume: Resuming | None = None
    growth: Callable[[Source, ResumePoint], Reading | None] | None = None
    """The steps that `read` gives behind a resume point, with the header, facts and resume point as of now. None if
    what was appended changes anything before it, so that all has to be read again."""
    watch: Watching = Watching()
    retention: Retention | None = None
    """None for an agent that deletes nothing by itself."""


@cache
def _own() -> dict[str, str]:
    """The modules of our own formats, by their names."""
    modules: dict[str, str] = {}
    folder = os.path.dirname(__file__)
    for name in os.listdir(folder):  # not `pkgutil`: it takes longer than to read a session
        if name[0] != "_" and (name.endswith(".py") or os.path.isfile(f"{folder}/{name}/__init__.py")):
            module = name.removesuffix(".py")
            modules[module.replace("_", "-")] = f"{__name__}.{module}"
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

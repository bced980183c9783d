"""Other agents' sessions: where they keep them, how they are read into entries, how entries are written for them.

One file here is one agent, and its name is its registration: a dash on the command line is an underscore here. A
format too big for one file is a folder of that name. What formats share has a name with an underscore. A format has:

    TITLE                  one line for people: which versions are read
    homes(places)          the folders where this agent keeps sessions, there or not; the first is the one for `place`
    find(path)             the sessions at or under a file or folder, in a steady order, without reading them whole
    read(source)           one session: its header, its records one by one, and every problem met on the way
    write(transcript)      files that the agent loads, and what they could not carry
    place(written, folder) those files laid out in a folder as the agent would, and the path of the session's own
    resume(id, path, folder)  the command that goes on, in its workspace, with the session of that id at that path
    ID                     with `resume`, what the ids look like that it gives to sessions, as a regular expression: no
                           other reaches its command line; one whose command names no id has none
    grown(source, mark)    what `read` gives from a mark on: the same steps, and as of now header, facts and mark;
                           None where what was appended reaches back before the mark, so that all has to be read again
    VERSIONS               the vocabularies that can be asked for, by number, and which releases of the agent open
                           each; the lowest is its first, and what is written unless a session has a newer one already
    CAUTION                what people should know before they go on there; most have nothing to say
    BY_FILE                whether a folder has just the sessions that `find` sees in each of its files; for the catalog
    APART                  names of folders inside a home in which no session begins, so that nobody looks there
    stamps(path)           of each session in a database, by its key, what differs when the session does
    sidecars(source)       the other files that a session is read from, so that the catalog sees when they change

A format without `write` and `place` is only read; one without `resume` has an agent that cannot be told to go on.
Reading never raises for what is in a file: a problem costs the record it is in, and is reported. Only a file that
cannot be opened raises. Writing is a pure function of entries; `place` is all that touches the disk.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import cache
from importlib import import_module
from typing import Any, Protocol, cast

from msgspec import Struct, field

from turnlog.errors import NotFound
from turnlog.log.context import Context
from turnlog.log.entry import AnyEntry, Start
from turnlog.log.usage import Usage, UsageReport


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


class Problem(Struct, frozen=True, omit_defaults=True):
    """Something in a source that could not be read, or had to be read otherwise than it is written."""

    what: str
    where: str = ""
    """The file, if it is not the source's own; the line or record in it."""
    offset: int | None = None
    length: int | None = None


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
    hidden: bool = False
    fork: Forked | None = None
    spawned: Spawn | None = None
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
    """A place in a file before which appending to it changes nothing; mostly where the newest turn or answer begins."""

    offset: int
    steps: int
    """How many steps `read` gives before that place."""
    state: Any = None
    """What `grown` has to know of them, as JSON, and small."""


class Reading(Struct, kw_only=True):
    """One session as it is being read. Everything but `steps` is complete when `steps` is used up.

    A title may come late; what else the header says is known from the start.
    """

    header: SessionHeader
    steps: Iterator[Step]
    problems: list[Problem] = field(default_factory=list[Problem])
    facts: dict[str, Any] = field(default_factory=dict[str, Any])
    """Facts of the session as a whole, as of now: set where they differ from those that are there."""
    totals: dict[str, Usage] = field(default_factory=dict[str, Usage])
    """Spending that no record carries, by model ("" if not known), as a running total of the session."""
    mark: ResumePoint | None = None
    """From where `grown` can go on, in formats that have it; None where it cannot, and all has to be read again."""


class TouchedFile(Struct, frozen=True):
    """A file that was changed: what was in it before and after, or None where it was not there."""

    path: str
    """Absolute."""
    before: bytes | None
    after: bytes | None
    at: datetime | None = None
    is_known: bool = True
    """False where what was in it is not kept any more."""
    is_private: bool = False
    """Whether it is ignored, and nobody asked for what is in it."""


def no_files(after: int) -> list[TouchedFile]:
    """For a session of which no files are known."""
    return []


class Transcript(Struct, frozen=True, kw_only=True):
    """A session as writers see it. Payloads are whole; times are as they were read."""

    id: str
    start: Start
    agent: str | None = None
    """The format it was read from, if it was; then `source_id` and `origin` are what its header said."""
    source_id: str = ""
    origin: Any = None
    created: datetime
    updated: datetime
    title: str | None
    workspace: str | None
    facts: dict[str, Any]
    path: list[AnyEntry]
    """The nodes that lead to the head, oldest first."""
    entries: Callable[[], Iterable[AnyEntry]]
    """Every entry in the order of the log, side branches and marks included."""
    files: Callable[[int], list[TouchedFile]] = no_files
    """The files that differ between the first checkpoint made here after that entry, and the last."""
    context: Context
    usage: UsageReport
    head: int = 0
    version: int | None = None
    """The vocabulary that was asked for, one of the format's `VERSIONS`; None for the session's own."""


class Loss(Struct, frozen=True, omit_defaults=True):
    """Something that the other format cannot say: what, how often, and what stands in its place."""

    what: str
    count: int = 1
    instead: str = ""


class OutputFile(Struct, frozen=True):
    """One file to be written; `path` is relative, with forward slashes."""

    path: str
    data: bytes
    mode: int = 0o644


class Rendered(Struct, frozen=True, kw_only=True):
    """A session in another agent's form. The first file is the session itself."""

    id: str
    """Its id in that agent."""
    files: list[OutputFile]
    lost: list[Loss] = []
    opens: str = ""
    """Which releases of the agent open it, where its first one does not."""
    about: Any = None
    """What `place` needs to know besides, such as the row of an index."""


class Format(Protocol):
    """What the module of a format offers."""

    TITLE: str

    @staticmethod
    def homes(places: Places) -> list[str]:
        """The folders where this agent keeps sessions, whether they exist or not."""
        ...

    @staticmethod
    def find(path: str) -> Iterator[Source]:
        """The sessions at or under a file or folder, in a steady order, without reading them whole."""
        ...

    @staticmethod
    def read(source: Source) -> Reading:
        """One session. Raises `OSError` where it cannot be opened, and nothing else."""
        ...

    @staticmethod
    def write(transcript: Transcript) -> Rendered:
        """Files that the agent loads, and what they could not carry."""
        ...

    @staticmethod
    def place(written: Rendered, folder: str, *, force: bool = False) -> str:
        """Those files laid out in one of the agent's folders; gives the path of the session itself."""
        ...

    @staticmethod
    def resume(id: str, path: str, workspace: str) -> list[str]:
        """The command, to be run in the workspace, that goes on with the session placed there."""
        ...


def names() -> list[str]:
    """Every format there is, as people type it."""
    found = (module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))
    return sorted(name.replace("_", "-") for name in found)


@cache
def format_of(name: str) -> Format:
    """The format with that name."""
    known = names()
    if name not in known:
        raise NotFound(f"no format {name!r:.80}", hint=f"one of {', '.join(known)}")
    return cast("Format", import_module(f"{__name__}.{name.replace('-', '_')}"))


def find(path: str, *, agents: Iterable[str] | None = None) -> Iterator[Source]:
    """Every session of any agent (or those named) at or under a path."""
    for name in agents if agents is not None else names():
        yield from format_of(name).find(path)

"""What a format is: a `Format` with functions that find, read and write the sessions of one agent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Literal, Protocol

from msgspec import Struct, field

from turnlog.formats._shared.transcript import LossWord, Rendered, Transcript
from turnlog.interop.copied import Copied
from turnlog.interop.problem import Problem
from turnlog.log.entry import AnyEntry
from turnlog.log.usage import Usage


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
    """A stamp for each session of a file, by its key: it changes when the session does. May raise `OSError`."""
    sidecars: Callable[[Source], list[str]] | None = None
    """The other files that a session is read from, whose changes count. Unless `by_file`, not those beside its file."""


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

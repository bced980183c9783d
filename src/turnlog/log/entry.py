"""Entries: what a log is made of. Pure values, one class per `type`.

A draft is an entry with `seq` 0. It has its id already; the store gives it `seq`, `at` and `parent`.
Nodes make the conversation: each has a `parent` and becomes the head. Marks are everything else.
"""

# Without `from __future__ import annotations`: to read the types of all these out of texts takes msgspec 5 ms.
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar, Literal, TypeGuard, get_args

from msgspec import Raw, Struct, field

from turnlog.log.block import AnyBlock, json_text
from turnlog.log.field import BlobRef, EntryRef, Facts, HeadJson, Json, JsonInLine, LongText, Number, StateJson
from turnlog.log.ids import new_id
from turnlog.log.part import Fork, Git, Root, Spawned
from turnlog.log.usage import Usage

FORMAT = 1
WIDE_FACTS = ("title", "workspace", "tags", "archived", "listed")  # of the session; every other fact is of the branch
FIXED = ("id", "format", "session", "agent", "labels", "resume", "hidden", "fork", "spawned")
"""What the first line says once and for all: a fact of that name would change nothing."""
if TYPE_CHECKING:
    Role = Literal["system", "user", "assistant", "tool"]
    Stop = Literal["end", "tool_use", "length", "aborted", "error"]
    TurnState = Literal["begin", "completed", "aborted", "failed"]
else:
    Role = Stop = TurnState = str  # a later version may write others, and its logs are read all the same


class Entry(
    Struct, tag_field="type", frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True,
    repr_omit_defaults=True, gc=False,
):  # fmt: skip
    """What every entry carries."""

    is_node: ClassVar[bool] = False
    is_shown: ClassVar[bool] = True
    merges: ClassVar[bool] = False
    """Whether it can be appended to whatever another copy of the session has, without a fork."""

    id: str = field(default_factory=new_id)
    seq: EntryRef = 0
    at: datetime | None = None
    clock: datetime | None = None
    """The real time, where `at` had to be held so as not to run backwards."""
    parent: EntryRef | None = None
    turn: str | None = None
    meta: Json = None
    """Any JSON of the caller's: kept, never sent to a model."""
    blob: BlobRef | None = None
    """The whole entry lies in this blob; what the line shows is a short stand-in."""
    raw: BlobRef | None = None
    """Original bytes that are not Unicode; the line shows what text can say of them."""
    blobs: list[str] = []
    """Every blob this line needs, wherever in it."""
    more: Number = 0
    batch: Number = 0
    """How many lines this batch has; `more`: how many of them are still to come."""
    sealed: Number = 0
    """So many bytes just before this line are the remains of a write that never finished."""
    again: EntryRef = 0
    """This line repeats entry N, of which its writer could not know whether it was on disk."""
    wide: Number = 0
    """Where the newest line with session-wide facts begins, if that is not line 1: a byte offset."""
    critical: bool = False
    origin: JsonInLine = None
    void: Number = 0  # not 0 where its content was erased
    unverified: bool = False
    """Never written: the line's checksum did not match, so somebody edited it."""
    unknown: dict[str, Raw] = {}
    """Fields of later versions, kept to the letter."""

    @property
    def type(self) -> str:
        """The name of this kind of entry in the log."""
        return str(self.__struct_config__.tag)

    def to_json(self) -> str:
        """The text of JSON that the log has of it, without a checksum; of a large payload the whole, if it is here."""
        return json_text(self)


class Node(Entry, frozen=True):
    """An entry of the conversation: it has a parent and becomes the head."""

    is_node = True


class Quiet(Entry, frozen=True):
    """A mark that people who read the conversation do not see."""

    is_shown = False


class Message(Node, tag="message", frozen=True):
    """Somebody said something. A tool's result always has the role `tool`."""

    role: Role
    blocks: list[AnyBlock] = []
    model: str | None = None
    agent: str | None = None
    request: str | None = None
    usage: Usage | None = None
    stop: Stop | None = None
    error: Json = None
    display: Json = None
    """What people see instead: text, or False for nothing."""
    duration_ms: Number | None = None
    first_token_ms: Number | None = None
    began_at: datetime | None = None
    """When the request was made; `provider` and `options`: of whom, and how it was asked."""
    provider: str | None = None
    options: Json = None


class Ref(Struct, tag_field="type", tag="ref", frozen=True, forbid_unknown_fields=True, gc=False):
    """Stands for an earlier entry in a replacement, so that nothing is repeated."""

    entry: EntryRef


class Compaction(Node, tag="compaction", frozen=True):
    """From here on a model sees `replacement`, then everything from entry `keep`. What it replaces stays."""

    replacement: list[Message | Ref]
    keep: EntryRef = 0
    """The first entry that stays verbatim; 0 for none."""
    trigger: str | None = None
    tokens_before: Number | None = None
    tokens_after: Number | None = None
    model: str | None = None
    request: str | None = None
    usage: Usage | None = None


class Uncompact(Node, tag="uncompact", frozen=True):
    """That compaction no longer applies on this path."""

    compaction: EntryRef


class Edit(Node, tag="edit", frozen=True):
    """For a model, entry `entry` reads as these blocks, or is left out. The original stays."""

    entry: EntryRef
    blocks: list[AnyBlock] | None = None


class Custom(Node, tag="custom", frozen=True):
    """Anything of the caller's. A model sees it only if it has `blocks`."""

    kind: str
    data: Json = None
    blocks: list[AnyBlock] = []
    role: Role = "user"


class Start(Quiet, tag="session", frozen=True):
    """The first line of a log. Its `id` tells the session from every other one that is or was called the same."""

    format: Number = FORMAT
    session: str | None = None
    """The session's id; None in logs of before, where that is the `id` of this line."""
    workspace: str | None = None
    agent: str | None = None
    title: str | None = None
    labels: dict[str, str] = {}
    resume: list[str] = []
    """The command that goes on with this session in its own agent; `{id}` stands for the session's id."""
    hidden: bool = False
    fork: Fork | None = None
    spawned: Spawned | None = None

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self.session or self.id


class Turn(Entry, tag="turn", frozen=True):
    """A turn begins or ends: `begin`, `completed`, `aborted`, `failed`. `turn` says which."""

    state: TurnState
    error: str | None = None
    native: str | None = None
    """The agent's own id of a turn that its hooks tell of: one process begins it, another one ends it."""
    within: str | None = None
    """The turn of another session that it is a part of: that of the `turnlog run` which the agent was started by."""


class Checkpoint(Quiet, tag="checkpoint", frozen=True):
    """The files as they are now: one tree per root, what was skipped, and why."""

    roots: list[Root] = []
    label: str | None = None
    when: str | None = None
    """For those taken by themselves: `begin` or `end` of a turn, a `tool` in it, `before` or `after` a rewind."""
    skipped: list[JsonInLine] = []
    gone: list[str] = []
    """Processes that were gone before this was taken, each by the word that its ids begin with."""
    git: Git | None = None
    """Where git stood in the workspace, if it is in a repository."""


class Track(Quiet, tag="track", frozen=True):
    """That file is covered from now on, even though it is ignored or outside the workspace; or that whole folder."""

    merges = True
    path: str
    is_folder: bool = False


class Changed(Quiet, tag="changed", frozen=True):
    """The caller says that it changed these files itself."""

    paths: list[str]


class Intent(Quiet, tag="intent", frozen=True):
    """Files are about to be changed. Without a head entry that names it, that was interrupted."""

    host: str | None = None
    before: EntryRef = 0
    """The checkpoint of the files as they were."""
    root: str = ""
    steps: list[JsonInLine] = []
    """Of each path: what it was and what it is to be."""
    head: HeadJson = None
    """The head entry that is to follow."""


class Head(Entry, tag="head", frozen=True):
    """The conversation continues from node `to`, with everything as it was at entry `asof`."""

    to: EntryRef
    asof: EntryRef
    why: str
    left: EntryRef = 0
    """The head before."""
    undoes: EntryRef = 0
    """For undo and redo: the rewind that is taken back or made again."""
    facts: Facts = {}
    system: dict[EntryRef, EntryRef] = {}
    """The system messages of that conversation, each with the edit (or itself) that says how it reads."""
    before: EntryRef = 0
    after: EntryRef = 0
    """The checkpoints of the files before and after, where files were moved, too."""
    intent: EntryRef = 0
    files: dict[str, Number] = {}
    """How many files were created, modified, deleted, left alone."""
    kept: list[str] = []
    """The paths that the intent names and that were left alone."""


class Set(Entry, tag="set", frozen=True):
    """A fact; nothing in an `exact` one is masked. For a session-wide one, `all` holds all of those as of this line."""

    merges = True
    key: str
    value: Json = None
    unset: bool = False
    exact: bool = False
    all: Facts | None = None


class Spent(Entry, tag="usage", frozen=True):
    """Spending without a message: titles, summaries, failed requests, imported totals."""

    merges = True
    usage: Usage
    model: str | None = None
    why: str | None = None
    request: str | None = None


class Note(Entry, tag="note", frozen=True):
    """Shown to people, never sent to a model."""

    merges = True
    text: LongText = ""
    data: Json = None


class Ask(Entry, tag="ask", frozen=True):
    """Asks a person whether tool call `call` of entry `entry` may be run."""

    merges = True
    call: str
    entry: EntryRef = 0
    text: LongText = ""
    data: Json = None


class Answer(Entry, tag="answer", frozen=True):
    """The answer to entry `ask`. The first answer counts, unless a later one names it in `over`."""

    merges = True
    ask: EntryRef
    allow: bool
    by: str | None = None
    text: LongText = ""
    data: Json = None
    over: EntryRef = 0


class Started(Quiet, tag="started", frozen=True):
    """Tool call `call` of entry `entry` is about to be run. Without a result it is unknown how far it came."""

    merges = True
    call: str
    entry: EntryRef = 0


class Child(Entry, tag="child", frozen=True):
    """A subagent's session was started from here."""

    merges = True
    session: str
    call: str | None = None
    agent: str | None = None


class Alias(Quiet, tag="alias", frozen=True):
    """The session goes on in its agent under another id, from node `head` on.

    The agent's file has `records` records before that point.
    """

    merges = True
    agent: str
    native: str
    head: EntryRef = 0
    records: Number = 0
    path: str = ""


class Writer(Quiet, tag="writer", frozen=True):
    """A process begins to append. A conflict names it; a dead one means a crash."""

    word: str
    """Starts the ids of the entries this process makes."""
    pid: Number
    started: str | None = None
    host: str | None = None
    boot: str | None = None
    namespace: str | None = None
    """Where the pid counts: a container has its own."""
    version: str | None = None


class Fold(Quiet, tag="fold", frozen=True):
    """Everything folded from the entries up to `upto`. Leaving all of these out changes no answer."""

    upto: EntryRef
    rules: Number = 1
    """Which rules it was folded by. One of others is left out: they may have counted otherwise."""
    state: StateJson = None


class Drop(Quiet, tag="drop", frozen=True):
    """These checkpoints are given up; their content may be collected."""

    merges = True
    checkpoints: list[str] = []


class Unknown(Entry, tag="?", frozen=True):
    """An entry of a kind this version does not know: its JSON text, kept to the letter."""

    kind: str
    json: str

    def to_json(self) -> str:
        """See `Entry.to_json`."""
        return self.json


# fmt: off
AnyEntry = (
    Message | Compaction | Uncompact | Edit | Custom
    | Start | Turn | Checkpoint | Track | Changed | Intent | Head | Set | Spent | Note | Ask | Answer | Started
    | Child | Alias | Writer | Fold | Drop
    | Unknown
)
# fmt: on
ENTRIES: dict[str, type[Entry]] = {str(c.__struct_config__.tag): c for c in get_args(AnyEntry) if c is not Unknown}


def is_fence(entry: Entry) -> bool:
    """Whether this entry moves the head, so that two writers may not both write one unseen."""
    return entry.parent is not None or isinstance(entry, Head)


def is_wide(entry: Entry) -> TypeGuard[Set]:
    """Whether this entry sets a fact of the whole session, of which listings show the newest."""
    return isinstance(entry, Set) and entry.key in WIDE_FACTS

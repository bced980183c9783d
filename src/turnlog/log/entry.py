"""Entries: the lines of a log as pure values, one class per `type`.

A draft is an entry with `seq` 0. It already has its id; the store assigns `seq`, `at` and `parent`.
"""

# Without `from __future__ import annotations`: msgspec needs 5 ms to evaluate annotations that are strings.
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar, Literal, TypeGuard, get_args

from msgspec import Raw, Struct, field

from turnlog.log.block import AnyBlock
from turnlog.log.field import BlobRef, EntryRef, Facts, HeadJson, Json, JsonInLine, LongText, Moment, Number, StateJson
from turnlog.log.ids import new_id
from turnlog.log.part import Fork, Git, Root, Spawned
from turnlog.log.plainjson import json_text
from turnlog.log.usage import Usage

FORMAT = 1
WIDE_FACTS = ("title", "workspace", "tags", "archived", "listed")  # every other fact belongs to the branch
FIXED = ("id", "format", "session", "agent", "labels", "resume", "hidden", "fork", "spawned")
"""Names of values that only the first line of a log can set: a fact of that name would have no effect."""
if TYPE_CHECKING:
    Role = Literal["system", "user", "assistant", "tool"]
    Stop = Literal["end", "tool_use", "length", "aborted", "error"]
    TurnState = Literal["begin", "completed", "aborted", "failed"]
else:
    Role = Stop = TurnState = str  # a later version may write other values, and its logs must stay readable


class Entry(
    Struct, tag_field="type", frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True,
    repr_omit_defaults=True, gc=False,
):  # fmt: skip
    """The fields that every entry has. An entry that is no node is a mark."""

    is_node: ClassVar[bool] = False
    is_shown: ClassVar[bool] = True
    merges: ClassVar[bool] = False
    """Whether a merge can append this entry to any other copy of the session, without a fork."""

    id: str = field(default_factory=new_id)
    seq: EntryRef = 0
    at: Moment | None = None
    clock: Moment | None = None
    """The real time, if `at` was held back because times in a log never run backwards."""
    parent: EntryRef | None = None
    turn: str | None = None
    meta: Json = None
    """Any JSON of the caller: stored, never sent to a model."""
    blob: BlobRef | None = None
    """The blob that holds the whole entry; the line then shows a short stand-in."""
    raw: BlobRef | None = None
    """The blob with the original bytes, if they are not Unicode; the line shows what can be read as text."""
    blobs: list[str] = []
    """Every blob that this line refers to, at any depth."""
    more: Number = 0
    batch: Number = 0
    """The number of lines in this batch; `more` is the number of lines that still follow."""
    sealed: Number = 0
    """The number of bytes directly before this line that are left from an incomplete write."""
    again: EntryRef = 0
    """The `seq` of the entry that this line repeats, because its writer could not know whether that was on disk."""
    wide: Number = 0
    """The byte offset of the newest line with session-wide facts, if that is not line 1."""
    critical: bool = False
    origin: JsonInLine = None
    void: Number = 0  # not 0 if the content was erased
    unverified: bool = False
    """Whether the line's checksum did not match, so the line was edited. Never written to a log."""
    unknown: dict[str, Raw] = {}
    """Fields of later versions, kept verbatim."""

    @property
    def type(self) -> str:
        """The name of this kind of entry in the log."""
        return str(self.__struct_config__.tag)

    def to_json(self) -> str:
        """Return this entry's JSON text as in the log, without a checksum. A loaded payload is included in full."""
        return json_text(self)


class Node(Entry, frozen=True):
    """An entry of the conversation: it has a parent and becomes the head."""

    is_node = True


class Quiet(Entry, frozen=True):
    """A mark that is not shown to people who read the conversation."""

    is_shown = False


class Message(Node, tag="message", frozen=True):
    """A message of one speaker. A tool result always has the role `tool`."""

    role: Role
    blocks: list[AnyBlock] = []
    model: str | None = None
    agent: str | None = None
    request: str | None = None
    usage: Usage | None = None
    stop: Stop | None = None
    error: Json = None
    display: Json = None
    """What is shown to people instead of the blocks: text, or False for nothing."""
    duration_ms: Number | None = None
    first_token_ms: Number | None = None
    began_at: datetime | None = None
    """When the request was made; `provider` and `options` say to which provider and with which options."""
    provider: str | None = None
    options: Json = None


class Ref(Struct, tag_field="type", tag="ref", frozen=True, forbid_unknown_fields=True, gc=False):
    """A reference to an earlier entry in a replacement, so that its content is not repeated."""

    entry: EntryRef


class Compaction(Node, tag="compaction", frozen=True):
    """From here on a model sees `replacement`, then everything from entry `keep`. Replaced entries stay in the log."""

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
    """The compaction with the `seq` in `compaction` no longer applies on this path."""

    compaction: EntryRef


class Edit(Node, tag="edit", frozen=True):
    """For a model, `blocks` replace the content of entry `entry`; with None it is left out. The original stays."""

    entry: EntryRef
    blocks: list[AnyBlock] | None = None


class Custom(Node, tag="custom", frozen=True):
    """An entry with any data of the caller. A model sees it only if it has `blocks`."""

    kind: str
    data: Json = None
    blocks: list[AnyBlock] = []
    role: Role = "user"


class Start(Quiet, tag="session", frozen=True):
    """The first line of a log. Its `id` is unique, even among sessions that have or had the same session id."""

    format: Number = FORMAT
    session: str | None = None
    """The session's id; None in older logs, where the `id` of this line is the session's id."""
    workspace: str | None = None
    agent: str | None = None
    title: str | None = None
    labels: dict[str, str] = {}
    resume: list[str] = []
    """The command that resumes this session in its own agent; `{id}` stands for the session's id."""
    hidden: bool = False
    fork: Fork | None = None
    spawned: Spawned | None = None

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self.session or self.id


class Turn(Entry, tag="turn", frozen=True):
    """The beginning or end of a turn: `begin`, `completed`, `aborted`, `failed`. `turn` is the id of the turn."""

    state: TurnState
    error: str | None = None
    native: str | None = None
    """The agent's own id of a turn that its hooks report: one process begins the turn, another one ends it."""
    within: str | None = None
    """The turn of another session that contains this one: the turn of the `turnlog run` that started the agent."""


class Checkpoint(Quiet, tag="checkpoint", frozen=True):
    """The state of the files: one tree per root, what was skipped, and why."""

    roots: list[Root] = []
    label: str | None = None
    when: str | None = None
    """Of an automatic checkpoint: `begin` or `end` of a turn, a `tool` in it, `before` or `after` a rewind."""
    skipped: list[JsonInLine] = []
    gone: list[str] = []
    """Processes that had ended before this checkpoint, each as the word that its entry ids begin with."""
    git: Git | None = None
    """The state of git in the workspace, if that is in a repository."""


class Track(Quiet, tag="track", frozen=True):
    """Checkpoints cover this file or folder from now on, even if it is ignored or outside the workspace."""

    merges = True
    path: str
    is_folder: bool = False


class Changed(Quiet, tag="changed", frozen=True):
    """A declaration of the caller that it changed these files itself."""

    paths: list[str]


class Intent(Quiet, tag="intent", frozen=True):
    """Files are about to be changed. If no head entry names this intent, the change was interrupted."""

    host: str | None = None
    before: EntryRef = 0
    """The checkpoint of the files as they were."""
    root: str = ""
    steps: list[JsonInLine] = []
    """For each path: its state before, and the state it is to have."""
    head: HeadJson = None
    """The head entry that is to follow."""


class Head(Entry, tag="head", frozen=True):
    """The conversation continues from node `to`, with everything as it was at entry `asof`."""

    to: EntryRef
    asof: EntryRef
    why: str
    left: EntryRef = 0
    """The previous head."""
    undoes: EntryRef = 0
    """For undo and redo: the rewind that is undone or redone."""
    facts: Facts = {}
    system: dict[EntryRef, EntryRef] = {}
    """The system messages of that conversation, each mapped to the edit that replaces its content, or to itself."""
    before: EntryRef = 0
    after: EntryRef = 0
    """The checkpoints before and after, if files were changed too."""
    intent: EntryRef = 0
    files: dict[str, Number] = {}
    """The numbers of files that were created, modified, deleted and left alone."""
    kept: list[str] = []
    """The paths that the intent names and that were left alone."""


class Set(Entry, tag="set", frozen=True):
    """A fact; an `exact` one is not masked. In a session-wide fact, `all` holds all such facts as of this line."""

    merges = True
    key: str
    value: Json = None
    unset: bool = False
    exact: bool = False
    all: Facts | None = None


class Spent(Entry, tag="usage", frozen=True):
    """Usage without a message: titles, summaries, failed requests, imported totals."""

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
    """A question to a person: may tool call `call` of entry `entry` be run?"""

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
    """Tool call `call` of entry `entry` is about to be run. Without a result, it is unknown how far it got."""

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
    """From node `head` on, the session continues in its agent under another id.

    The agent's file has `records` records before that point.
    """

    merges = True
    agent: str
    native: str
    head: EntryRef = 0
    records: Number = 0
    path: str = ""


class Writer(Quiet, tag="writer", frozen=True):
    """A process begins to append. Conflicts name the writer; if its process is dead, it crashed."""

    word: str
    """The word that the ids of this process's entries begin with."""
    pid: Number
    started: str | None = None
    host: str | None = None
    boot: str | None = None
    namespace: str | None = None
    """The pid namespace: a container has its own."""
    version: str | None = None


class Fold(Quiet, tag="fold", frozen=True):
    """The state folded from the entries up to `upto`. Without any fold entries, every answer would be the same."""

    upto: EntryRef
    rules: Number = 1
    """The version of the folding rules. A fold by other rules is ignored, because they may count differently."""
    state: StateJson = None


class Drop(Quiet, tag="drop", frozen=True):
    """These checkpoints were dropped; their content may be collected."""

    merges = True
    checkpoints: list[str] = []


class Unknown(Entry, tag="?", frozen=True):
    """An entry of a kind that this version does not know: its JSON text, kept verbatim."""

    kind: str
    json: str

    @property
    def type(self) -> str:
        """See `Entry.type`."""
        return self.kind

    def to_json(self) -> str:
        """See `Entry.to_json`."""
        return self.json


AnyEntry = (
    Message | Compaction | Uncompact | Edit | Custom
    | Start | Turn | Checkpoint | Track | Changed | Intent | Head | Set | Spent | Note | Ask | Answer | Started
    | Child | Alias | Writer | Fold | Drop
    | Unknown
)  # fmt: skip
ENTRIES: dict[str, type[Entry]] = {str(c.__struct_config__.tag): c for c in get_args(AnyEntry) if c is not Unknown}


def is_fence(entry: Entry) -> bool:
    """Whether this entry moves the head, so a writer must not append it without having seen the other writer's."""
    return entry.parent is not None or isinstance(entry, Head)


def is_wide(entry: Entry) -> TypeGuard[Set]:
    """Whether this entry sets a fact of the whole session. Listings show the newest value."""
    return isinstance(entry, Set) and entry.key in WIDE_FACTS

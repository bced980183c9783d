"""Everything a session knows, folded from its log. Pure: entries in, state out.

`State` is what a `fold` entry carries, so a session can be resumed from its tail. Leaving every fold entry
out gives the same state, except `calls`, which a reader may have filled in.
"""

# Without `from __future__ import annotations`, as in `log/entry.py`.

from datetime import datetime
from functools import cache
from typing import Any

import msgspec
from msgspec import Struct, field

from turnlog.log.block import ToolCall
from turnlog.log.entry import (
    FORMAT,
    WIDE_FACTS,
    Alias,
    Answer,
    Ask,
    Child,
    Compaction,
    Custom,
    Drop,
    Edit,
    Entry,
    Fold,
    Head,
    Intent,
    Message,
    Set,
    Spent,
    Start,
    Started,
    Track,
    Turn,
    Uncompact,
    Unknown,
    Writer,
)  # fmt: skip
from turnlog.log.fold.counts import Counts, Inherited
from turnlog.log.fold.opencall import OpenCall, with_compaction, with_edit, with_mark, with_message
from turnlog.log.ids import word_of
from turnlog.log.path import moved_along
from turnlog.log.shown.promptmessage import is_prompt
from turnlog.log.usage import Usage

_MOST_FOLDERS = 4
RULES = 3
"""Rises when the same entries fold into something else than before: a fold of other rules is left out."""
_REQUESTS = 256
"""How many request ids are remembered, so that a response split over several messages counts once."""
_WRITERS = 8


class Undoable(Struct, array_like=True):
    """A rewind, undo or redo that can be taken back: the last entry before it, and which rewind it is about."""

    back: int
    rewind: int


class State(Struct, omit_defaults=True):
    """A session as of entry `seq`."""

    seq: int = 0
    head: int = 0
    start: dict[str, Any] = {}
    """The first line's fields, so that losing that line loses little."""
    wide: dict[str, Any] = {}
    """Session-wide facts: title, workspace, tags, archived."""
    facts: dict[str, Any] = {}
    """Facts of the branch."""
    system: dict[int, int] = {}
    """The system messages the conversation begins with, and the edits (or they themselves) that say how they read."""
    opened: bool = False
    """Whether anything but a system message was said."""
    calls: list[OpenCall] | None = None
    """The calls that have no result yet; None where the entries alone do not tell, and the path has to be read."""
    models: dict[str, Usage] = {}
    requests: list[str] = []
    peak: int = 0
    counts: Counts = field(default_factory=Counts)
    turn: str | None = None
    """The turn that was begun and not ended."""
    turn_before: str | None = None
    """The one that ended last."""
    is_relayed: bool = False
    """Whether an agent's hooks tell of its turns."""
    undo: list[Undoable] = []
    redo: list[Undoable] = []
    children: list[str] = []
    aliases: dict[str, str] = {}
    """The other ids that it has in its agent, each behind the agent's name, and where the agent keeps that."""
    writers: dict[str, dict[str, Any]] = {}
    """The last few processes that wrote, by the word their entry ids begin with."""
    tracked: list[str] = []
    """Paths that checkpoints cover whatever the ignore rules say."""
    folders: list[str] = []
    """The last few folders beside the workspace that checkpoints cover."""
    dropped: list[str] = []
    """Checkpoints that were given up."""
    intent: int = 0
    """The change of files that was begun and not finished."""
    critical: list[str] = []
    """Kinds of critical entries that this version does not know."""
    first_at: datetime | None = None
    last_at: datetime | None = None
    inherited: Inherited = field(default_factory=Inherited)

    @property
    def own(self) -> Usage:
        """What this log alone spent."""
        total = Usage()
        for usage in self.models.values():
            total = total + usage
        return total


_to_json = msgspec.json.Encoder(order=None).encode


@cache
def _state_decoder() -> msgspec.json.Decoder[State]:
    """Made when it is needed: many a reader needs none."""
    return msgspec.json.Decoder(State)


def copy(state: State) -> State:
    """A state that can be folded further without touching this one."""
    return _state_decoder().decode(_to_json(state))


def from_fold(entry: Fold) -> State | None:
    """The state in a fold entry, or None if this version cannot use it."""
    if entry.unverified or entry.state is None or entry.rules != RULES:
        return None
    try:
        state = msgspec.convert(entry.state, State, str_keys=True)
    except (msgspec.ValidationError, ValueError, TypeError):
        return None
    return state if state.seq == entry.upto else None


def to_fold(state: State) -> Fold:
    """A fold entry of this state."""
    return Fold(upto=state.seq, rules=RULES, state=msgspec.json.decode(_to_json(state)))


def fork_state(state: State, seq: int) -> State:
    """What a fork at `seq` starts from: everything known, nothing spent yet."""
    child = copy(state)
    child.seq = seq
    child.inherited = Inherited(
        state.own + state.inherited.usage,
        state.counts.plus(state.inherited.counts),
        max(state.peak, state.inherited.peak),
        state.inherited.first_at or state.first_at,
    )
    child.models, child.requests, child.peak, child.counts = {}, [], 0, Counts()
    child.undo, child.redo, child.children, child.aliases, child.writers = [], [], [], {}, {}
    child.turn, child.turn_before, child.start, child.intent = None, None, {}, 0
    child.first_at = child.last_at = None
    return child


def fold(state: State, entry: Entry, *, is_repeat: bool = False) -> None:
    """Take one more entry into the state, in place. A repeat of an entry that is there counts only as its place."""
    state.seq = entry.seq
    if type(entry) is Fold:
        return  # nothing happened, not even at that time
    if is_repeat:
        if entry.parent is not None:
            state.head = entry.seq
        return
    if entry.at is not None:
        state.last_at = entry.at
        if state.first_at is None:
            state.first_at = entry.at
    if entry.parent is not None:
        state.head = entry.seq
        if state.redo and not (state.is_relayed and entry.origin is not None):  # what is brought in happened before
            state.redo = []
        if isinstance(entry, Message):
            _fold_message(state, entry)
            return
        if isinstance(entry, Compaction):
            if state.calls is not None:
                state.calls = with_compaction(state.calls, entry)
            if entry.usage is not None:
                _spend(state, entry.usage, entry.model, entry.request)
        elif isinstance(entry, Custom) and entry.blocks:
            state.opened = True
            if state.calls is not None:
                with_message(state.calls, entry)
        elif isinstance(entry, Edit):
            _fold_edit(state, entry)
        elif isinstance(entry, Uncompact):
            state.calls = None
        elif isinstance(entry, Unknown):
            _fold_unknown(state, entry)
        return
    step = _MARKS.get(type(entry))
    if step is not None:
        step(state, entry)


def _fold_message(state: State, message: Message) -> None:
    counts = state.counts
    counts.messages[message.role] = counts.messages.get(message.role, 0) + 1
    if message.duration_ms:
        counts.busy_ms += message.duration_ms
    if message.role == "system":
        if not state.opened:
            state.system[message.seq] = message.seq
        return
    state.opened = True
    if message.role != "user" and state.calls is not None:
        with_message(state.calls, message)
    if message.role == "assistant":
        for block in message.blocks:
            if type(block) is ToolCall:
                counts.tool_calls += 1
    elif message.turn is None and is_prompt(message):
        counts.turns += 1
    if message.usage is not None:
        _spend(state, message.usage, message.model, message.request)


def _fold_edit(state: State, entry: Edit) -> None:
    """A system message is looked up by number, so its edit takes its place."""
    if entry.entry in state.system:
        state.system[entry.entry] = entry.seq
    elif state.calls is not None:
        state.calls = with_edit(state.calls, entry)


def _spend(state: State, usage: Usage, model: str | None, request: str | None) -> None:
    if not note_request(state.requests, request):
        return
    name = model or ""
    spent = state.models.get(name)
    state.models[name] = usage if spent is None else spent + usage
    state.peak = max(state.peak, usage.all_input_tokens)


def note_request(requests: list[str], request: str | None) -> bool:
    """Whether what that request cost counts: once, however many entries say it. `requests` remembers the newest."""
    if request is None:
        return True
    if request in requests:
        return False
    requests.append(request)
    del requests[:-_REQUESTS]
    return True


def fold_start(state: State, start: Start) -> None:
    """Take in the first line, which a fork's first fold holds as well: losing the line loses little then."""
    for name in ("session", "workspace", "agent", "title", "labels", "resume", "hidden"):
        value = getattr(start, name)
        if value:
            state.start[name] = value
    for name in ("fork", "spawned"):
        value = getattr(start, name)
        if value is not None:
            state.start[name] = msgspec.to_builtins(value)
    state.start["id"] = start.id
    if start.format != FORMAT:
        state.start["format"] = start.format
    if start.fork is None:
        state.calls = []
    _move_tracked(state, start.workspace)
    for name in ("title", "workspace"):
        if getattr(start, name) is not None:
            state.wide[name] = getattr(start, name)


def _move_tracked(state: State, after: object) -> None:
    """What is tracked in the workspace is so wherever that lies; anything else stays where it is."""
    before = state.wide.get("workspace")
    if isinstance(before, str) and isinstance(after, str) and before != after:
        state.tracked = [moved_along(path, before, after) for path in state.tracked]
        state.folders = [moved_along(path, before, after) for path in state.folders]


def _fold_set(state: State, entry: Set) -> None:
    if entry.key == "workspace" and not entry.unset:
        _move_tracked(state, entry.value)
    facts = state.wide if entry.key in WIDE_FACTS else state.facts
    if entry.unset or entry.void:
        facts.pop(entry.key, None)
    else:
        facts[entry.key] = entry.value


def _fold_track(state: State, entry: Track) -> None:
    if entry.is_folder:
        state.folders = [*(path for path in state.folders if path != entry.path), entry.path][-_MOST_FOLDERS:]
    elif entry.path not in state.tracked:
        state.tracked.append(entry.path)


def _fold_drop(state: State, entry: Drop) -> None:
    state.dropped += [name for name in entry.checkpoints if name not in state.dropped]


def _fold_intent(state: State, entry: Intent) -> None:
    state.intent = entry.seq


def _fold_head(state: State, entry: Head) -> None:
    if entry.intent == state.intent:
        state.intent = 0
    state.head, state.calls = entry.to, None
    state.facts = dict(entry.facts)
    state.system = dict(entry.system)
    state.opened = entry.to != 0 and entry.to not in entry.system and entry.to not in entry.system.values()
    move = Undoable(entry.seq - 1, entry.undoes or entry.seq)
    if entry.why == "abort" or (state.is_relayed and entry.origin is not None):
        return  # nothing was moved, or not by us: there is nothing to take back
    if entry.why == "undo":
        state.undo = [m for m in state.undo if m.rewind != entry.undoes]
        state.redo.append(move)
    elif entry.why == "redo":
        state.redo = [m for m in state.redo if m.rewind != entry.undoes]
        state.undo.append(move)
    else:
        state.undo.append(move)
        state.redo = []


def _fold_turn(state: State, entry: Turn) -> None:
    if entry.state == "begin":
        state.counts.turns += 1
        if entry.native is not None:
            state.is_relayed, state.redo = True, []
        if entry.origin is None or not state.is_relayed or state.turn is None:  # what is brought in happened before
            state.turn = entry.turn
    elif state.turn == entry.turn:
        state.turn, state.turn_before = None, entry.turn


def _fold_spent(state: State, entry: Spent) -> None:
    peak = state.peak
    _spend(state, entry.usage, entry.model, entry.request)
    if entry.why == "import":
        state.peak = peak  # a total of many requests says nothing of the largest one


def _fold_about_call(state: State, entry: Entry) -> None:
    if state.calls is not None:
        with_mark(state.calls, entry)


def _fold_child(state: State, entry: Child) -> None:
    if entry.session not in state.children:
        state.children.append(entry.session)


def _fold_alias(state: State, entry: Alias) -> None:
    state.aliases[f"{entry.agent}\n{entry.native}"] = entry.path


def _fold_writer(state: State, entry: Writer) -> None:
    state.writers.pop(entry.word, None)
    state.writers[entry.word] = {
        "pid": entry.pid, "host": entry.host, "boot": entry.boot, "started": entry.started,
        "namespace": entry.namespace,
        "at": entry.at.isoformat() if entry.at else None,
    }  # fmt: skip
    kept = word_of(state.turn) if state.turn is not None else ""
    while len(state.writers) > _WRITERS:
        del state.writers[next(word for word in state.writers if word != kept)]


def _fold_unknown(state: State, entry: Unknown) -> None:
    if (entry.critical or entry.kind == "session") and entry.kind not in state.critical:
        state.critical.append(entry.kind)


_MARKS: dict[type[Entry], Any] = {
    Start: fold_start,
    Set: _fold_set,
    Head: _fold_head,
    Turn: _fold_turn,
    Track: _fold_track,
    Intent: _fold_intent,
    Drop: _fold_drop,
    Spent: _fold_spent,
    Ask: _fold_about_call,
    Answer: _fold_about_call,
    Started: _fold_about_call,
    Child: _fold_child,
    Alias: _fold_alias,
    Writer: _fold_writer,
    Unknown: _fold_unknown,
}

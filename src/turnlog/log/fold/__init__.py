"""The state of a session, folded from the entries of its log. Pure.

A `fold` entry holds a `State`, so a session can be resumed from its tail. Without any fold entries the state is the
same, except for `calls`, which a reader may have filled in.
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
from turnlog.log.fold.opencall import OpenCall, add_mark, add_message, after_compaction, after_edit
from turnlog.log.ids import word_of
from turnlog.log.path import moved_along
from turnlog.log.prompt.promptmessage import is_prompt
from turnlog.log.usage import Usage

MOST_FOLDERS = 4
RULES = 3
"""Increased whenever the same entries fold into a different state: folds by other rules are ignored."""
_REQUESTS = 256
"""The number of request ids that are remembered, so that a response split over several messages counts once."""
_WRITERS = 8


class Undoable(Struct, array_like=True):
    """A rewind, undo or redo that can be undone: the last entry before it, and the rewind that it concerns."""

    back: int
    rewind: int


class State(Struct, omit_defaults=True):
    """The state of a session as of entry `seq`."""

    seq: int = 0
    head: int = 0
    start: dict[str, Any] = {}
    """The fields of the first line, so that little is lost if that line is damaged."""
    wide: dict[str, Any] = {}
    """Session-wide facts: title, workspace, tags, archived."""
    facts: dict[str, Any] = {}
    """Facts of the branch."""
    system: dict[int, int] = {}
    """The system messages that the conversation begins with, each mapped to the edit that replaces it, or to itself."""
    opened: bool = False
    """Whether there was any message but system messages."""
    calls: list[OpenCall] | None = None
    """The calls without a result; None if folding cannot tell, so the path must be read."""
    models: dict[str, Usage] = {}
    requests: list[str] = []
    peak: int = 0
    counts: Counts = field(default_factory=Counts)
    turn: str | None = None
    """The turn that has begun and has not ended."""
    turn_before: str | None = None
    """The turn that ended last."""
    is_relayed: bool = False
    """Whether an agent's hooks report its turns."""
    undo: list[Undoable] = []
    redo: list[Undoable] = []
    children: list[str] = []
    aliases: dict[str, str] = {}
    """The session's other ids in its agent, as agent name, newline and id, each with the path of the agent's file."""
    writers: dict[str, dict[str, Any]] = {}
    """The last few processes that wrote, by the word their entry ids begin with."""
    tracked: list[str] = []
    """Paths that checkpoints cover whatever the ignore rules say."""
    folders: list[str] = []
    """The last few folders outside the workspace that checkpoints cover."""
    dropped: list[str] = []
    """Checkpoints that were dropped."""
    intent: int = 0
    """The `seq` of the intent whose change of files was begun and not finished; 0 for none."""
    critical: list[str] = []
    """Kinds of critical entries that this version does not know."""
    first_at: datetime | None = None
    last_at: datetime | None = None
    inherited: Inherited = field(default_factory=Inherited)

    @property
    def own(self) -> Usage:
        """The usage of this log alone."""
        total = Usage()
        for usage in self.models.values():
            total = total + usage
        return total


_to_json = msgspec.json.Encoder(order=None).encode


@cache
def _state_decoder() -> msgspec.json.Decoder[State]:
    """Built on demand: many readers need none."""
    return msgspec.json.Decoder(State)


def copy(state: State) -> State:
    """Return a copy of a state, which can be folded further without changing the original."""
    return _state_decoder().decode(_to_json(state))


def from_fold(entry: Fold) -> State | None:
    """Return the state in a fold entry, or None if this version cannot use it."""
    if entry.unverified or entry.state is None or entry.rules != RULES:
        return None
    try:
        state = msgspec.convert(entry.state, State, str_keys=True)
    except (msgspec.ValidationError, ValueError, TypeError):
        return None
    return state if state.seq == entry.upto else None


def to_fold(state: State) -> Fold:
    """Return a fold entry with this state."""
    return Fold(upto=state.seq, rules=RULES, state=msgspec.json.decode(_to_json(state)))


def fork_state(state: State, seq: int) -> State:
    """Return the state that a fork at `seq` starts from: the same facts, and no usage yet."""
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
    """Fold one more entry into the state, in place. A repeat of an entry only moves the head."""
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
                state.calls = after_compaction(state.calls, entry)
            if entry.usage is not None:
                _spend(state, entry.usage, entry.model, entry.request)
        elif isinstance(entry, Custom) and entry.blocks:
            state.opened = True
            if state.calls is not None:
                add_message(state.calls, entry)
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
        add_message(state.calls, message)
    if message.role == "assistant":
        for block in message.blocks:
            if type(block) is ToolCall:
                counts.tool_calls += 1
    elif message.turn is None and is_prompt(message):
        counts.turns += 1
    if message.usage is not None:
        _spend(state, message.usage, message.model, message.request)


def _fold_edit(state: State, entry: Edit) -> None:
    """Fold an edit. System messages are looked up by `seq`, so an edit of one replaces its number."""
    if entry.entry in state.system:
        state.system[entry.entry] = entry.seq
    elif state.calls is not None:
        state.calls = after_edit(state.calls, entry)


def _spend(state: State, usage: Usage, model: str | None, request: str | None) -> None:
    if not note_request(state.requests, request):
        return
    name = model or ""
    spent = state.models.get(name)
    state.models[name] = usage if spent is None else spent + usage
    state.peak = max(state.peak, usage.all_input_tokens)


def note_request(requests: list[str], request: str | None) -> bool:
    """Whether the usage of that request counts: only once, even if several entries report it. Updates `requests`."""
    if request is None:
        return True
    if request in requests:
        return False
    requests.append(request)
    del requests[:-_REQUESTS]
    return True


def fold_start(state: State, start: Start) -> None:
    """Fold the first line. A fork's first fold has it too, so that little is lost if the line is damaged."""
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
    """Update tracked paths in the workspace after that moved; other paths stay the same."""
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
        state.folders = [*(path for path in state.folders if path != entry.path), entry.path][-MOST_FOLDERS:]
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
        return  # nothing was moved, or not by us: there is nothing to undo
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
        state.peak = peak  # the total of many requests does not show the largest one


def _fold_about_call(state: State, entry: Entry) -> None:
    if state.calls is not None:
        add_mark(state.calls, entry)


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

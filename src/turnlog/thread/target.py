"""The target of a rewind: which node, and as of which entry. Only the conversation moves; nothing is removed."""

from __future__ import annotations

from typing import Any

from turnlog.errors import Invalid, NotFound
from turnlog.log.entry import AnyEntry, Checkpoint, Edit, Entry, Head, Message, Set, Start, Turn, Unknown
from turnlog.log.fold import State, Undoable
from turnlog.log.prompt.promptmessage import is_prompt
from turnlog.log.startup import NamedTuple
from turnlog.thread.history import History

Target = int | Entry


def seq_of(target: Target) -> int:
    """The `seq` of an entry, or the given `seq`."""
    seq = target.seq or None if isinstance(target, Entry) else target
    if type(seq) is not int:
        raise Invalid(f"{target!r:.80} is neither an entry of a log nor a seq", hint="give an entry that was appended")
    return seq


def node_at(history: History, seq: int) -> int:
    """The given `seq`, if a conversation can end there: it is that of a node, or 0."""
    if seq:
        history.get(seq)
        entry = history.at(seq)
        if entry is not None and entry.parent is None:
            raise Invalid(f"entry {seq} is a {entry.type}: no conversation ends there", hint="give a message")
    return seq


def state_as_of(history: History, seq: int) -> State:
    """The state when entry `seq` was the last one."""
    if seq:
        history.get(seq)
    return history.state_at(seq)


def rewind_to(history: History, *, to: Target | None, before: Target | None, turns: int | None) -> Head:
    """The head entry of a rewind."""
    history.renew()
    if sum(choice is not None for choice in (to, before, turns)) != 1:
        raise Invalid("a rewind needs one of to, before and turns")
    if to is not None:
        asof = seq_of(to)
        if asof != 0:
            history.get(asof)
    elif before is not None:
        asof = history.original(seq_of(before)) - 1
        history.get(asof + 1)
    else:
        asof = _start_of_turn(history, turns or 0) - 1
    return _head(history, asof, why="rewind")


def move_to(history: History, to: int) -> Head:
    """The head entry of a batch that continues from another node."""
    return _head(history, node_at(history, to), why="rewind")


def move_back(history: History, move: Undoable, why: str) -> Head:
    """The head entry of an undo or redo."""
    return _head(history, move.back, why=why, undoes=move.rewind)


def _head(history: History, asof: int, *, why: str, undoes: int = 0) -> Head:
    to, facts, system = _near_the_end(history, asof) or _restored(history.state_at(asof))
    return Head(
        to=_imported_head(history, to, asof) if history.state.is_relayed else to,
        asof=asof,
        why=why,
        undoes=undoes,
        left=history.state.head,
        facts=facts,
        system=system,
    )


class _Restored(NamedTuple):
    """What a head entry restores."""

    head: int
    facts: dict[str, Any]
    system: dict[int, int]


def _restored(state: State) -> _Restored:
    return _Restored(state.head, state.facts, state.system)


def _near_the_end(history: History, asof: int) -> _Restored | None:
    """What a head entry restores, without reading the log; None if a fact or the system prompt changed since."""
    state = history.state
    for entry in history.remembered():
        if entry.again or isinstance(entry, (Start, Unknown)):
            return None
        if entry.seq <= asof:
            if entry.parent is not None or isinstance(entry, Head):
                head = entry.to if isinstance(entry, Head) else entry.seq
                return _Restored(head, dict(state.facts), dict(state.system))
        elif isinstance(entry, (Edit, Set)) or (isinstance(entry, Message) and entry.role == "system"):
            return None
        elif isinstance(entry, Head) and entry.asof < asof:
            return None  # it restored something older than `asof`
    return None


def _imported_head(history: History, to: int, asof: int) -> int:
    """The head as of `asof` in a relayed session, whose messages are imported after the marks of their turns."""
    here = history.at(asof)
    if not isinstance(here, (Checkpoint, Turn)):
        return to
    if isinstance(here, Checkpoint) and here.when == "begin":
        first = next((node for node in history.forward(asof) if node.turn == here.turn and _is_imported(node)), None)
        if first is not None and first.parent is not None:
            return first.parent  # the agent may have rewound by itself before the turn began
    over = {entry.turn for entry in history.forward(0, asof + 1) if isinstance(entry, Turn) and entry.state != "begin"}
    behind: list[AnyEntry] = []
    for node in history.path(history.state.head):
        if node.seq <= to:
            break
        behind.append(node)
    if to and (not behind or behind[-1].parent != to):
        return to  # the path is now another branch
    for node in reversed(behind):
        at = node.clock or node.at
        is_older = node.turn is None and at is not None and here.at is not None and at <= here.at
        if node.origin is None or not (node.turn in over or is_older):
            break
        to = node.seq
    return to


def _is_imported(entry: AnyEntry) -> bool:
    return entry.is_node and entry.origin is not None


def _start_of_turn(history: History, turns: int) -> int:
    """The `seq` of the first entry of the `turns`-th turn from the end of the path."""
    if type(turns) is not int or turns < 1:
        raise Invalid(f"cannot rewind {turns} turns", hint="turns is at least 1")
    seen = 0
    first: AnyEntry | None = None
    for node in history.path(history.state.head):
        if first is not None and first.turn is not None and node.turn == first.turn:
            first = node
            continue
        if seen == turns:
            break
        if node.turn is not None or (isinstance(node, Message) and is_prompt(node)):
            first = node
            seen += 1
    if first is None or seen < turns:
        raise NotFound(f"the conversation has only {seen} turns", hint="rewind(to=0) goes to its beginning")
    return first.seq

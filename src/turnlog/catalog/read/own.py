"""Reads a session of ours from its log: all of it, or what was appended since."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

import msgspec

from turnlog.catalog.index.batch import Batch, IndexedSession
from turnlog.catalog.index.columns import clean, lines, ms_of, path_column
from turnlog.catalog.index.ending import WAITING
from turnlog.catalog.index.origin import HOOKED
from turnlog.catalog.index.sqlite.outlines import OutlineIntake
from turnlog.catalog.index.sqlite.watchlist import Stamp
from turnlog.catalog.index.totals import counts_of
from turnlog.catalog.read.counts import SessionCounts
from turnlog.catalog.read.intake import Intake, copy_of, row_of, saved_reading, shrank
from turnlog.errors import TurnlogError, TurnlogWarning
from turnlog.exchange.origin import decode_origin
from turnlog.interop.copied import Copied
from turnlog.interop.proof import proof
from turnlog.interop.value import branches_in, fields
from turnlog.log.codec import Damage
from turnlog.log.entry import Entry, Head, Message, Start
from turnlog.log.fold import State
from turnlog.log.ids import MARKS, handle_of, word_of
from turnlog.log.prompt.promptmessage import preview
from turnlog.thread.call.pending import is_waiting
from turnlog.thread.history import History
from turnlog.thread.report import is_net

if TYPE_CHECKING:
    from turnlog.catalog.index.rows import SessionRow
    from turnlog.store import Store


class _SavedReading(msgspec.Struct, array_like=True):
    seq: int
    counts: tuple[Any, ...]
    size: int
    origin: str
    before: str
    proof: bytes
    copied: Copied | None = None


def read_session(
    batch: Batch,
    store: Store,
    native: str,
    session: int,
    stamp: Stamp,
    before: IndexedSession | None,
    *,
    path: str = "",
) -> SessionRow:
    """Read a session into the batch, and return the columns of its row. `path` is its file, if it has one."""
    if native == MARKS:  # its marks are shown with the sessions that they are about
        return {"native": native, "name": native, "is_hidden": True, "size": max(stamp.size, 0)}
    log = store.open(native, read_only=True)
    history = History(store, log)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TurnlogWarning)  # a lost payload is replaced by a placeholder
            return _read(batch, history, native, path, session, stamp, before)
    finally:
        log.close()
        history.close()


def _read(
    batch: Batch, history: History, native: str, path: str, session: int, stamp: Stamp, before: IndexedSession | None
) -> SessionRow:
    history.load()
    saved = saved_reading(_SavedReading, before, stamp)
    if saved is not None and (stamp.size < saved.size or _proof(path, saved.size) != saved.proof):
        saved = None
    intake, damage = _entries(batch, history, session, saved, is_new=before is None)
    if saved is not None and damage:
        # Reading can be resumed only in an undamaged log: counting damage needs a complete pass. The second
        # reading compares with what is in the tables, so what the first one added has to be there.
        batch.write_out()
        saved = None
        intake, damage = _entries(batch, history, session, None, is_new=False)
    intake.finish()
    counts, state = intake.counts, history.state
    origin, spent = (_origin(history), _spent_before_fork(history)) if saved is None else (saved.origin, saved.before)
    mark = None
    if not damage:
        proven = _proof(path, stamp.size)
        saved = _SavedReading(state.seq, counts.freeze(), stamp.size, origin, spent, proven, intake.copied)
        mark = msgspec.msgpack.encode(saved)
    row: SessionRow = {
        **_row(native, state, counts),
        **copy_of(intake),
        **_dates(history, counts, stamp),
        "writer": "\n".join(map(_writer, _writers(history, counts))),
        "damage": damage,
        "mark": mark,
        "origin": _origins(origin, state),
        "before": spent,
        "size": max(stamp.size, 0),
        "problem": shrank(stamp, before),
    }
    if is_waiting(history):
        row["ending"] = WAITING
    return row


def _entries(
    batch: Batch, history: History, session: int, saved: _SavedReading | None, *, is_new: bool
) -> tuple[Intake, int]:
    """Take every entry after those read before. Returns the intake, and the number of damaged places."""
    start = saved.seq + 1 if saved is not None else 0
    intake = Intake(batch, session, start=start, is_new=is_new)
    if saved is not None:
        intake.counts, intake.copied = SessionCounts.thaw(saved.counts), saved.copied
    else:
        _inherit(intake.counts, history)
        first = _first(history)
        intake.copied = decode_origin(first).copied if first is not None else None
        intake.counts.git_branches = _imported_from(first) if first is not None else ()
    outline = OutlineIntake(batch, session, start)
    damage = 0
    # What is appended while this reads belongs to the next reading: the saved one continues after `state.seq`.
    for item in history.log.read(after=start - 1 if start else 0, before=history.state.seq + 1):
        if isinstance(item, Damage):
            damage += 1
            continue
        if history.is_repeat(item):
            continue
        _walk(intake.counts, item)
        whole = history.whole(item)
        intake.add(item.seq, item.id, whole)
        outline.add(whole)
    outline.finish()
    return intake, damage


def _walk(counts: SessionCounts, entry: Entry) -> None:
    """Follow the conversation: a node is added after its parent."""
    if isinstance(entry, Head):
        counts.move_to(str(entry.to) if entry.to else "")
    elif entry.parent is not None:
        counts.move_to(str(entry.parent) if entry.parent else "")
        counts.add_node(str(entry.seq))


def _inherit(counts: SessionCounts, history: History) -> None:
    """Count what a fork inherits: branches, and the first message of a person."""
    limit = history.inherited_to
    if not limit:
        return
    for entry in history.forward(0, limit + 1):
        _walk(counts, entry)
        if isinstance(entry, Message):
            if not counts.preview and entry.role == "user":
                counts.preview = clean(preview([history.whole(entry)]))
            if entry.role == "assistant" and entry.model:
                counts.model = clean(entry.model)
            counts.last_role = entry.role if entry.role != "system" else counts.last_role
    if history.fork is not None and history.at(history.fork.seq) is not None:
        counts.move_to(str(history.state_at(history.fork.seq).head or ""))


def _proof(path: str, size: int) -> bytes:
    return proof(path, size) if path else b""  # a store without files reports every change


def _first(history: History) -> Start | None:
    first = next((item for item in history.log.read() if isinstance(item, Entry)), None)
    return first if isinstance(first, Start) else None


def _origin(history: History) -> str:
    """The agent and the identity that a session was imported from."""
    first = _first(history)
    origin = first.origin if first is not None else None
    if not isinstance(origin, dict):
        return ""
    about = cast("dict[str, Any]", origin)
    agent, identity = about.get("agent"), about.get("identity") or about.get("id")
    return clean(f"{agent}\n{identity}") if isinstance(agent, str) and isinstance(identity, str) else ""


def _imported_from(first: Start) -> tuple[str, ...]:
    """The git branch on which an imported session began, according to its header."""
    about = fields(fields(first.origin).get("header"))
    return branches_in(about.get("gitBranch"), fields(about.get("git")).get("branch"))


def _origins(origin: str, state: State) -> str:
    """All ids of a session in its agent; each followed by `HOOKED` if that agent's hooks report its turns."""
    if not state.is_relayed or not origin:
        return origin
    return "".join(f"{clean(one)}{HOOKED}" for one in dict.fromkeys([origin, *state.aliases]))


def _spent_before_fork(history: History) -> str:
    """The spending before the fork, which never changes."""
    from turnlog.pricing import cost_of

    limit = history.inherited_to
    if not limit:
        return ""
    usage = history.state.inherited.usage
    try:
        micros = cost_of(history.forward(0, limit + 1)).micros
    except TurnlogError:
        micros = usage.cost_micros or 0  # the parent is gone, or there are no prices
    return " ".join(map(str, (*counts_of(usage), micros)))


def _row(native: str, state: State, counts: SessionCounts) -> SessionRow:
    totals = state.counts.plus(state.inherited.counts)
    title, workspace, tags = state.wide.get("title"), state.wide.get("workspace"), state.wide.get("tags")
    fork, spawned = state.start.get("fork"), state.start.get("spawned")
    row: SessionRow = {
        "native": native,
        "name": handle_of(native),
        "agent": state.start.get("agent"),
        "workspace": path_column(workspace) if isinstance(workspace, str) else None,
        "title": clean(title) if isinstance(title, str) else None,
        **row_of(counts),
        "messages": sum(totals.messages.values()),
        "turns": totals.turns,
        "tool_calls": totals.tool_calls,
        "fork": fork["session"] if fork else None,
        "parent": spawned["session"] if spawned else None,
        "is_hidden": bool(state.start.get("hidden")),
        "is_archived": bool(state.wide.get("archived")),
        "tags": lines(str(tag) for tag in tags) if isinstance(tags, list) else "",  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType]
        "models": lines(model for model in state.models if model),
        "git_branches": lines(counts.git_branches),
        "ending": "turn" if state.turn is not None else counts.ending,
        "is_conversation": sum(totals.messages.values()) > 0 or state.is_relayed,
        "resume": "\n".join(clean(str(word).replace("\n", " ")) for word in state.start.get("resume", ())),
    }
    if is_net(state):
        row["is_conversation"], row["preview"] = False, counts.net_preview
        if not _is_named(state):
            row["title"] = None
    return row


def _is_named(state: State) -> bool:
    """Whether a safety net has a title, and not just the name of its folder, which older versions used."""
    title, workspace = state.wide.get("title"), state.wide.get("workspace")
    return isinstance(title, str) and title != str(workspace).rstrip("/").rpartition("/")[2]


def _writers(history: History, counts: SessionCounts) -> Iterable[dict[str, Any]]:
    """The processes that may be at work in the session: if it ends in a turn, the one whose turn it is."""
    state, head = history.state, history.at(history.state.head)
    turn = state.turn_before if state.turn is None and state.is_relayed else state.turn
    whose = state.writers.get(word_of(turn)) if turn is not None else None
    if whose is None and head is not None:
        if head.origin is not None:
            return []  # the importing process does not work in the session
        if state.turn is None and counts.is_open:
            whose = state.writers.get(word_of(head.id))
    return state.writers.values() if whose is None else [whose]


def _writer(who: dict[str, Any]) -> str:
    return clean("\t".join(str(who.get(key) or "") for key in ("pid", "started", "host", "boot", "namespace")))


def _dates(history: History, counts: SessionCounts, stamp: Stamp) -> SessionRow:
    state, head = history.state, history.at(history.state.head)
    created, last = ms_of(state.first_at), ms_of(state.last_at)
    if head is not None and head.origin is not None and counts.last_spoke_ms is not None:
        last = counts.last_spoke_ms  # older imports gave added titles and sums their own time, and logs are not changed
    return {"created": created, "updated": last or created or stamp.mtime // 1_000_000}

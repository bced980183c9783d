"""A session of ours, read from its log: all of it, or what was appended since."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, cast

import msgspec

from turnlog.catalog.index.texts import clean, lines, place
from turnlog.catalog.read.digest import SessionDigest, ms_of
from turnlog.catalog.read.intake import Taking
from turnlog.catalog.watch.sweep import Stamp, proof
from turnlog.errors import TurnlogError, TurnlogWarning
from turnlog.formats import preview
from turnlog.log.codec import Damage
from turnlog.log.entry import Entry, Head, Message, Start
from turnlog.log.fold import State
from turnlog.log.ids import handle_of
from turnlog.thread.history import History

if TYPE_CHECKING:
    import sqlite3

    from turnlog.catalog.index.batch import Batch
    from turnlog.catalog.read.foreign import Before
    from turnlog.store import Store


class _Carried(msgspec.Struct, array_like=True):
    seq: int
    story: tuple[Any, ...]
    size: int
    origin: str
    before: str
    proof: bytes


def take(
    db: sqlite3.Connection,
    batch: Batch,
    store: Store,
    native: str,
    session: int,
    stamp: Stamp,
    before: Before | None,
    *,
    path: str = "",
) -> dict[str, Any]:
    """Read it into the batch; gives the columns of its row. `path` is its file, if it has one."""
    log = store.base(native)
    history = History(store, log)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TurnlogWarning)  # a payload that is lost has a stand-in
            return _take(db, batch, history, native, path, session, stamp, before)
    finally:
        log.close()
        history.close()


def _take(
    db: sqlite3.Connection,
    batch: Batch,
    history: History,
    native: str,
    path: str,
    session: int,
    stamp: Stamp,
    before: Before | None,
) -> dict[str, Any]:
    history.load()
    carried = _carried(path, before, stamp)
    taking, damage = _entries(db, batch, history, session, carried, is_new=before is None)
    if carried is not None and damage:
        # Only what is whole can be gone on with: how much is damaged is known when all of it was read.
        carried = None
        taking, damage = _entries(db, batch, history, session, None, is_new=False)
    taking.finish()
    story, state = taking.story, history.state
    if carried is None:
        origin, spent = _origin(history), _before(history)
    else:
        origin, spent = carried.origin, carried.before
    mark = None
    if not damage:
        kept = _Carried(state.seq, story.freeze(), stamp.size, origin, spent, _proof(path, stamp.size))
        mark = msgspec.msgpack.encode(kept)
    return {**_row(native, state, story), "damage": damage, "mark": mark, "origin": origin, "before": spent,
            "size": max(stamp.size, 0), "problem": _shrank(stamp, before), **_dates(state, stamp)}  # fmt: skip


def _entries(
    db: sqlite3.Connection,
    batch: Batch,
    history: History,
    session: int,
    carried: _Carried | None,
    *,
    is_new: bool,
) -> tuple[Taking, int]:
    """Everything behind what was read before; gives what came of it, and in how many places it is damaged."""
    start = carried.seq + 1 if carried is not None else 0
    taking = Taking(db, batch, session, start=start, is_new=is_new)
    if carried is not None:
        taking.story = SessionDigest.thaw(carried.story)
    else:
        _inherit(taking.story, history)
    damage = 0
    for item in history.log.read(after=start - 1 if start else 0):
        if isinstance(item, Damage):
            damage += 1
            continue
        if history.is_repeat(item):
            continue
        _walk(taking.story, item)
        taking.take(item.seq, item.id, history.whole(item))
    return taking, damage


def _walk(story: SessionDigest, entry: Entry) -> None:
    """Where the conversation stands: a node hangs on the one it names."""
    if isinstance(entry, Head):
        story.go(str(entry.to) if entry.to else "")
    elif entry.parent is not None:
        story.go(str(entry.parent) if entry.parent else "")
        story.node(str(entry.seq))


def _inherit(story: SessionDigest, history: History) -> None:
    """What a fork goes on with: its branches, and the first thing that a person said."""
    limit = history.inherited_to
    if not limit:
        return
    for entry in history.forward(0, limit + 1):
        _walk(story, entry)
        if isinstance(entry, Message):
            if not story.preview and entry.role == "user":
                story.preview = clean(preview([history.whole(entry)]))
            if entry.role == "assistant" and entry.model:
                story.model = clean(entry.model)
            story.said = entry.role if entry.role != "system" else story.said
    if history.fork is not None and history.at(history.fork.seq) is not None:
        story.go(str(history.state_at(history.fork.seq).head or ""))


def _carried(path: str, before: Before | None, stamp: Stamp) -> _Carried | None:
    if before is None or before.mark is None or before.inode != stamp.inode:
        return None
    try:
        carried = msgspec.msgpack.decode(before.mark, type=_Carried)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None
    is_longer = stamp.size >= carried.size and _proof(path, carried.size) == carried.proof
    return carried if is_longer else None


def _proof(path: str, size: int) -> bytes:
    return proof(path, size) if path else b""  # a database does not change behind its own back


def _origin(history: History) -> str:
    """The agent and identity that it was imported from."""
    first = next((item for item in history.log.read() if isinstance(item, Entry)), None)
    found = first.origin if isinstance(first, Start) else None
    if not isinstance(found, dict):
        return ""
    about = cast("dict[str, Any]", found)
    agent, identity = about.get("agent"), about.get("identity") or about.get("id")
    return clean(f"{agent}\n{identity}") if isinstance(agent, str) and isinstance(identity, str) else ""


def _before(history: History) -> str:
    """What was spent before the fork: that never changes any more."""
    from turnlog.pricing import cost_of

    limit = history.inherited_to
    if not limit:
        return ""
    usage = history.state.inherited.usage
    try:
        micros = cost_of(e for e in history.forward(0, limit + 1) if not history.is_repeat(e)).micros
    except TurnlogError:
        micros = usage.cost_micros or 0  # its parent is gone, or there are no prices
    return (
        f"{usage.input_tokens} {usage.cache_read_tokens} {usage.cache_write_tokens} {usage.cache_write_1h_tokens} "
        f"{usage.output_tokens} {usage.reasoning_tokens} {micros}"
    )


def _row(native: str, state: State, story: SessionDigest) -> dict[str, Any]:
    counts = state.counts.plus(state.inherited.counts)
    title, workspace, tags = state.wide.get("title"), state.wide.get("workspace"), state.wide.get("tags")
    fork, spawned = state.start.get("fork"), state.start.get("spawned")
    return {
        "native": native,
        "name": handle_of(native),
        "agent": state.start.get("agent"),
        "workspace": place(workspace) if isinstance(workspace, str) else None,
        "title": clean(title) if isinstance(title, str) else None,
        "preview": story.preview,
        "model": story.model,
        "messages": sum(counts.messages.values()),
        "turns": counts.turns,
        "tool_calls": counts.tool_calls,
        "branches": story.branches,
        "fork": fork["session"] if fork else None,
        "parent": spawned["session"] if spawned else None,
        "is_hidden": bool(state.start.get("hidden")),
        "is_archived": bool(state.wide.get("archived")),
        "tags": lines(str(tag) for tag in tags) if isinstance(tags, list) else "",  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType]
        "models": lines(model for model in state.models if model),
        "ending": "turn" if state.turn is not None else story.ending,
        "writer": "\n".join(_writer(who) for who in state.writers.values()),
        "resume": "\n".join(clean(str(word).replace("\n", " ")) for word in state.start.get("resume", ())),
    }


def _writer(who: dict[str, Any]) -> str:
    return clean("\t".join(str(who.get(key) or "") for key in ("pid", "started", "host", "boot", "namespace")))


def _dates(state: State, stamp: Stamp) -> dict[str, Any]:
    created = ms_of(state.first_at)
    return {"created": created, "updated": ms_of(state.last_at) or created or stamp.mtime // 1_000_000}


def _shrank(stamp: Stamp, before: Before | None) -> str:
    if before is None or before.inode != stamp.inode or stamp.size >= before.size:
        return ""
    return f"it was cut: {before.size:,} bytes before, {stamp.size:,} now"

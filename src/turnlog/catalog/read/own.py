"""A session of ours, read from its log: all of it, or what was appended since."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

import msgspec

from turnlog.catalog.index.batch import Batch, Before
from turnlog.catalog.index.cards import WAITING, ms_of
from turnlog.catalog.index.outlines import OutlineIntake
from turnlog.catalog.index.settle import TOLD
from turnlog.catalog.index.sqlite.watchlist import Stamp
from turnlog.catalog.index.texts import clean, lines, path_column
from turnlog.catalog.index.totals import counts_of
from turnlog.catalog.read.digest import SessionDigest
from turnlog.catalog.read.intake import Intake, carried, copy_of, row_of, shrank
from turnlog.errors import TurnlogError, TurnlogWarning
from turnlog.exchange.copy import copied_by
from turnlog.formats import Copied, preview
from turnlog.formats._shared.value import branches_in, fields
from turnlog.log.codec import Damage
from turnlog.log.entry import Entry, Head, Message, Start
from turnlog.log.fold import State
from turnlog.log.ids import MARKS, handle_of, word_of
from turnlog.machine.proof import proof
from turnlog.thread.call.pending import is_waiting
from turnlog.thread.history import History
from turnlog.thread.report import is_net

if TYPE_CHECKING:
    from turnlog.store import Store


class _Carried(msgspec.Struct, array_like=True):
    seq: int
    story: tuple[Any, ...]
    size: int
    origin: str
    before: str
    proof: bytes
    copied: Copied | None = None


def take(
    batch: Batch, store: Store, native: str, session: int, stamp: Stamp, before: Before | None, *, path: str = ""
) -> dict[str, Any]:
    """Read it into the batch; gives the columns of its row. `path` is its file, if it has one."""
    if native == MARKS:  # what is said there is found with the sessions that it is said of
        return {"native": native, "name": native, "is_hidden": True, "size": max(stamp.size, 0)}
    log = store.open(native, read_only=True)
    history = History(store, log)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TurnlogWarning)  # a payload that is lost has a stand-in
            return _take(batch, history, native, path, session, stamp, before)
    finally:
        log.close()
        history.close()


def _take(
    batch: Batch, history: History, native: str, path: str, session: int, stamp: Stamp, before: Before | None
) -> dict[str, Any]:
    history.load()
    kept = carried(_Carried, before, stamp)
    if kept is not None and (stamp.size < kept.size or _proof(path, kept.size) != kept.proof):
        kept = None
    taking, damage = _entries(batch, history, session, kept, is_new=before is None)
    if kept is not None and damage:
        # Only what is whole can be gone on with: how much is damaged is known when all of it was read.
        kept = None
        taking, damage = _entries(batch, history, session, None, is_new=False)
    taking.finish()
    story, state = taking.story, history.state
    origin, spent = (_origin(history), _before(history)) if kept is None else (kept.origin, kept.before)
    mark = None
    if not damage:
        proven = _proof(path, stamp.size)
        kept = _Carried(state.seq, story.freeze(), stamp.size, origin, spent, proven, taking.copied)
        mark = msgspec.msgpack.encode(kept)
    row = _row(native, state, story) | ({"ending": WAITING} if is_waiting(history) else {})
    return {**row, "writer": "\n".join(map(_writer, _writers(history, story))),
            **copy_of(taking), "damage": damage, "mark": mark, "origin": _origins(origin, state), "before": spent,
            "size": max(stamp.size, 0), "problem": shrank(stamp, before), **_dates(history, story, stamp)}  # fmt: skip


def _entries(
    batch: Batch, history: History, session: int, kept: _Carried | None, *, is_new: bool
) -> tuple[Intake, int]:
    """Everything behind what was read before; gives what came of it, and in how many places it is damaged."""
    start = kept.seq + 1 if kept is not None else 0
    taking = Intake(batch, session, start=start, is_new=is_new)
    if kept is not None:
        taking.story, taking.copied = SessionDigest.thaw(kept.story), kept.copied
    else:
        _inherit(taking.story, history)
        first = _first(history)
        taking.copied = copied_by(first) if first is not None else None
        taking.story.git_branches = _imported_from(first) if first is not None else ()
    outline = OutlineIntake(batch, session, start)
    damage = 0
    for item in history.log.read(after=start - 1 if start else 0):
        if isinstance(item, Damage):
            damage += 1
            continue
        if history.is_repeat(item):
            continue
        _walk(taking.story, item)
        whole = history.whole(item)
        taking.take(item.seq, item.id, whole)
        outline.take(whole)
    outline.finish()
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


def _proof(path: str, size: int) -> bytes:
    return proof(path, size) if path else b""  # a database does not change behind its own back


def _first(history: History) -> Start | None:
    first = next((item for item in history.log.read() if isinstance(item, Entry)), None)
    return first if isinstance(first, Start) else None


def _origin(history: History) -> str:
    """The agent and identity that it was imported from."""
    first = _first(history)
    origin = first.origin if first is not None else None
    if not isinstance(origin, dict):
        return ""
    about = cast("dict[str, Any]", origin)
    agent, identity = about.get("agent"), about.get("identity") or about.get("id")
    return clean(f"{agent}\n{identity}") if isinstance(agent, str) and isinstance(identity, str) else ""


def _imported_from(first: Start) -> tuple[str, ...]:
    """The branch of git that another agent's session was begun on, as its header says."""
    about = fields(fields(first.origin).get("header"))
    return branches_in(about.get("gitBranch"), fields(about.get("git")).get("branch"))


def _origins(origin: str, state: State) -> str:
    """All ids that it has in its agent, each with a mark behind it, where that agent's hooks tell of its turns."""
    if not state.is_relayed or not origin:
        return origin
    return "".join(f"{clean(one)}{TOLD}" for one in dict.fromkeys([origin, *state.aliases]))


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
    return " ".join(map(str, (*counts_of(usage), micros)))


def _row(native: str, state: State, story: SessionDigest) -> dict[str, Any]:
    counts = state.counts.plus(state.inherited.counts)
    title, workspace, tags = state.wide.get("title"), state.wide.get("workspace"), state.wide.get("tags")
    fork, spawned = state.start.get("fork"), state.start.get("spawned")
    return {
        "native": native,
        "name": handle_of(native),
        "agent": state.start.get("agent"),
        "workspace": path_column(workspace) if isinstance(workspace, str) else None,
        "title": clean(title) if isinstance(title, str) else None,
        **row_of(story),
        "messages": sum(counts.messages.values()),
        "turns": counts.turns,
        "tool_calls": counts.tool_calls,
        "fork": fork["session"] if fork else None,
        "parent": spawned["session"] if spawned else None,
        "is_hidden": bool(state.start.get("hidden")),
        "is_archived": bool(state.wide.get("archived")),
        "tags": lines(str(tag) for tag in tags) if isinstance(tags, list) else "",  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType]
        "models": lines(model for model in state.models if model),
        "git_branches": lines(story.git_branches),
        "ending": "turn" if state.turn is not None else story.ending,
        "is_conversation": sum(counts.messages.values()) > 0 or state.is_relayed,
        **(_net(state, story) if is_net(state) else {}),
        "resume": "\n".join(clean(str(word).replace("\n", " ")) for word in state.start.get("resume", ())),
    }


def _net(state: State, story: SessionDigest) -> dict[str, Any]:
    """What a safety net is listed by: what was done with it, and not the folder's name, which once was its title."""
    title, workspace = state.wide.get("title"), state.wide.get("workspace")
    is_named = isinstance(title, str) and title != str(workspace).rstrip("/").rpartition("/")[2]
    return {"is_conversation": False, "preview": story.net, **({} if is_named else {"title": None})}


def _writers(history: History, story: SessionDigest) -> Iterable[dict[str, Any]]:
    """The processes that may be at work in it: where it ends in a turn, the one whose turn that is."""
    state, head = history.state, history.at(history.state.head)
    turn = state.turn_before if state.turn is None and state.is_relayed else state.turn
    whose = state.writers.get(word_of(turn)) if turn is not None else None
    if whose is None and head is not None:
        if head.origin is not None:
            return []  # the importing process does not work in the session
        if state.turn is None and story.is_open:
            whose = state.writers.get(word_of(head.id))
    return state.writers.values() if whose is None else [whose]


def _writer(who: dict[str, Any]) -> str:
    return clean("\t".join(str(who.get(key) or "") for key in ("pid", "started", "host", "boot", "namespace")))


def _dates(history: History, story: SessionDigest, stamp: Stamp) -> dict[str, Any]:
    state, head = history.state, history.at(history.state.head)
    created, last = ms_of(state.first_at), ms_of(state.last_at)
    if head is not None and head.origin is not None and story.spoke is not None:
        last = (
            story.spoke
        )  # an import that added titles and sums gave them its own time once, and logs stay as they are
    return {"created": created, "updated": last or created or stamp.mtime // 1_000_000}

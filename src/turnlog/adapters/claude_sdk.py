"""A session store for the Claude Agent SDK.

    from turnlog.adapters.claude_sdk import TurnlogSessionStore

    options = ClaudeAgentOptions(session_store=TurnlogSessionStore())

A line of a transcript is an entry with the line's `uuid` as its id: sent again, it counts once. A subagent's transcript
is a spawned session.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ParamSpec, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from turnlog.adapters._shelf import AnyHome, Closing, Shelf, check_id, framework, joined, parts_of
from turnlog.errors import AlreadyExists, Conflict, Invalid, NotFound
from turnlog.exchange.transcript import transcript_of
from turnlog.formats.claude_code.mirror import (
    LINE,
    cleared,
    cleared_calls,
    drafted,
    is_elsewhere,
    is_mirrored,
    kept_line,
    usage_of,
)
from turnlog.formats.claude_code.writing import write
from turnlog.log.entry import AnyEntry, Child, Compaction, Message, Set, Spent
from turnlog.log.part import Spawned
from turnlog.log.usage import Usage
from turnlog.session import Session
from turnlog.session.interior import interior
from turnlog.session.session import hold
from turnlog.thread.report import Info

framework("claude_agent_sdk", "claude-sdk")

from anyio import to_thread  # noqa: E402
from claude_agent_sdk import (  # noqa: E402
    SessionKey,
    SessionListSubkeysKey,
    SessionStoreEntry,
    SessionStoreListEntry,
    SessionSummaryEntry,
    fold_session_summary,
)

__all__ = ["TurnlogSessionStore"]

FRAMEWORK = LINE
_SUMMARY = "summary"
_MORE = "#usage"
"""What an answer took beyond what its lines before had told is of the line with that id."""
_REACH = 64
"""So many nodes from the end are looked at before a line counts as one that points back."""
_TAILS = 256
Line = dict[str, Any]
_P = ParamSpec("_P")
_R = TypeVar("_R")


class _Near(Struct, frozen=True):
    """A node near the end of the conversation; `role` is "" for what nobody said."""

    id: str
    role: str
    request: str | None = None
    usage: Usage | None = None


class _Tail(Struct):
    """The end of a conversation, as of a head."""

    head: int
    nodes: list[_Near]

    def add(self, entry: AnyEntry) -> None:
        """One more node."""
        is_said = isinstance(entry, Message)
        # What was kept of a conversation stands behind a summary of ours, so that lines go on from before it.
        is_summary = isinstance(entry, Compaction) and is_mirrored(entry)
        role = entry.role if is_said else "user" if is_summary else ""
        spent = (entry.request, entry.usage) if is_said else (None, None)
        self.nodes = [*self.nodes[1 - _REACH :], _Near(entry.id, role, *spent)]

    def goes_on(self, line: Line, drafts: Sequence[AnyEntry]) -> bool:
        """Whether a line follows the end: or else it points back, to where a branch begins.

        Results of parallel calls hang beside each other, and so does what an answer says between them; here they
        stand in a row.
        """
        message = drafts[-1]
        parent = line.get("parentUuid")
        if (
            "parentUuid" not in line
            or not isinstance(message, Message)
            or not (parent is None or isinstance(parent, str))
        ):
            return True
        if parent is None:
            return not any(node.role for node in self.nodes)
        is_result = drafts[0].role == "tool" if isinstance(drafts[0], Message) else False
        for node in reversed(self.nodes):
            if node.id == parent:
                return True
            if node.role == "" or (is_result and node.role in ("tool", "assistant")):
                continue
            is_same = message.request is not None and node.request == message.request
            if message.role != "assistant" or not (node.role == "tool" or is_same):
                return False
        return False

    def knows(self, request: str | None) -> bool:
        """Whether a line of that API message is there."""
        return request is not None and any(node.request == request for node in self.nodes)

    def unpaid(self, line: Line) -> Usage | None:
        """What a line tells of its API message's cost that no line before it has told."""
        reported = usage_of(line)
        if reported is None:
            return None
        booked = sum((node.usage for node in self.nodes if node.request == reported[0] and node.usage), Usage())
        more = {name: getattr(reported[1], name) - getattr(booked, name) for name in Usage.__struct_fields__[:-1]}
        return Usage(**{name: max(0, value) for name, value in more.items()}) if any(more.values()) else None


class TurnlogSessionStore(Closing):
    """Keeps the transcripts of Claude Code in sessions of a home. Safe to use from many threads, tasks and processes.

    A session's id is its project and its id there, joined by `/`.
    """

    def __init__(self, home: AnyHome = None) -> None:
        self.shelf = Shelf(home, FRAMEWORK)
        self._tails: OrderedDict[str, _Tail] = OrderedDict()

    # ── the protocol ──────────────────────────────────────────────────────────────────────────────

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Append lines in their order; one whose `uuid` is there already counts once. Durable when this returns."""
        await _run(self._append, key, cast("list[Line]", entries))

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """The lines as they were given, or None. What Turnlog did to the conversation since is in them."""
        return cast("list[SessionStoreEntry] | None", await _run(self._load, key))

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """The sessions of a project; no subagents."""
        return [
            {"session_id": session_id, "mtime": _mtime(info)}
            for session_id, info in await _run(self._listed, project_key)
        ]

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        """What the SDK shows of each session of a project, without reading them."""
        return [
            {"session_id": session_id, "mtime": _mtime(info), "data": info.listed[_SUMMARY]}
            for session_id, info in await _run(self._listed, project_key)
            if isinstance(info.listed.get(_SUMMARY), dict)
        ]

    async def delete(self, key: SessionKey) -> None:
        """Erase a transcript; without a `subpath` those of its subagents, too."""
        await _run(self._delete, key)

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """The `subpath` of each subagent's transcript."""
        return [parts[2] for parts, _ in await _run(self._under, *_parts(key)[:2])]

    # ── the same, on a thread ─────────────────────────────────────────────────────────────────────

    def _append(self, key: SessionKey, entries: list[Line]) -> None:
        parts = _parts(key)
        name = joined(*parts)
        _ = self.shelf.home  # a closed one takes nothing, not even nothing
        lines = [_checked(entry) for entry in entries]
        drafts = [drafted(line, is_side=len(parts) > 2) for line in lines]
        is_fresh = False
        with self.shelf.locked(name):
            while lines:
                session = self.shelf.find(name, fresh=is_fresh)
                listed = {} if session is None else cast("dict[str, Any]", session.get("listed") or {})
                facts = [] if len(parts) > 2 else _summed(key, lines, listed)
                batch = _Batch(partial(self._make, parts, lines), session, facts, self._tail(name, session))
                is_fresh = True
                try:
                    self._write(batch, lines, drafts)
                except (Conflict, AlreadyExists):
                    continue  # others were faster: what it hangs on may be another node by now
                except NotFound:
                    self.shelf.forget(name)
                    continue
                return

    def _write(self, batch: _Batch, lines: list[Line], drafted_lines: list[list[AnyEntry]]) -> None:
        for line, drafts in zip(lines, drafted_lines, strict=True):
            if not batch.tail.goes_on(line, drafts) and not batch.branch(line.get("parentUuid"), drafts[-1].id):
                continue
            batch.put(line, drafts)
            if calls := cleared_calls(line):
                batch.clear(line, calls)
        batch.flush()
        assert batch.session is not None
        batch.tail.head = batch.session.head
        self._tails[batch.session.id] = batch.tail
        while len(self._tails) > _TAILS:
            self._tails.popitem(last=False)

    def _tail(self, name: str, session: Session | None) -> _Tail:
        """The end of that session's conversation. It is taken out: whoever fails leaves none behind."""
        tail = self._tails.pop(name, None)
        if session is None:
            return _Tail(0, [])
        if tail is None or tail.head != session.head:
            tail = _Tail(session.head, [])
            for node in session.path(last=_REACH):
                more = session.find(node.id + _MORE) if isinstance(node, Message) and not node.usage else None
                tail.add(replace(node, usage=more.usage) if isinstance(more, Spent) else node)
        return tail

    def _make(self, parts: list[str], lines: list[Line], drafts: list[AnyEntry]) -> Session:
        project, session_id, *sub = parts
        above = self.shelf.find(joined(project, session_id)) if sub else None
        labels = {"framework": FRAMEWORK, "project": project, "session_id": session_id}
        fields: dict[str, Any] = {"labels": {**labels, **({"subpath": sub[0]} if sub else {})}, "agent": FRAMEWORK}
        if above is not None:
            fields["spawned"] = Spawned(above.id)
        elif not sub:
            # The same session as the one that Claude Code keeps in its own folder: nobody counts it twice.
            fields["origin"] = {"agent": "claude-code", "id": session_id, "identity": session_id}
        workspace = next((line["cwd"] for line in lines if isinstance(line.get("cwd"), str) and line["cwd"]), None)
        home, name = self.shelf.home, joined(*parts)
        made = interior(home).creator.create(name, drafts, workspace=workspace, **fields)
        session = self.shelf.hold(hold(home, made))
        if above is not None:
            above.append(Child(session=name, agent=FRAMEWORK))
        return session

    def _load(self, key: SessionKey) -> list[Line] | None:
        session = self.shelf.find(joined(*_parts(key)))
        if session is None:
            return None
        lines: list[Line] = []
        for entry in session.entries():
            if is_elsewhere(entry):
                written = write(transcript_of(session)).files[0].data
                return [json.loads(line) for line in written.splitlines()]
            line = kept_line(entry, session.blob)
            if line is not None:
                lines.append(line)
        return lines

    def _listed(self, project: str) -> list[tuple[str, Info]]:
        return [(parts[1], info) for parts, info in self._all() if len(parts) == 2 and parts[0] == project]

    def _under(self, project: str, session_id: str) -> list[tuple[list[str], Info]]:
        return [one for one in self._all() if len(one[0]) == 3 and one[0][:2] == [project, session_id]]

    def _all(self) -> list[tuple[list[str], Info]]:
        infos = self.shelf.home.sessions(labels={"framework": FRAMEWORK})
        return [(parts_of(info.id), info) for info in infos]

    def _delete(self, key: SessionKey) -> None:
        parts = _parts(key)
        below = [info.id for _, info in self._under(*parts)] if len(parts) == 2 else []
        for name in [*below, joined(*parts)]:
            self.shelf.purge(name)


class _Batch:
    """Lines on their way into a session, which is made with the first of them if there is none."""

    def __init__(
        self, make: Callable[[list[AnyEntry]], Session], session: Session | None, facts: list[AnyEntry], tail: _Tail
    ) -> None:
        self._make = make
        self.session = session
        self.tail = tail
        self._facts = facts
        self._drafts: list[AnyEntry] = []
        self._ids: set[str] = set()
        self._to: int | None = None
        self._has_begun = False

    def put(self, line: Line, drafts: list[AnyEntry]) -> None:
        """One line, unless it was in this batch already."""
        if drafts[-1].id in self._ids:
            return
        self._ids.add(drafts[-1].id)
        message = drafts[-1]
        if isinstance(message, Message) and message.role == "assistant":
            more, is_more = self.tail.unpaid(line), self.tail.knows(message.request)
            drafts = [*drafts[:-1], replace(message, usage=None if is_more else more)]
            if more is not None and is_more:  # a request counts with the first message that names it
                self._drafts.append(Spent(id=message.id + _MORE, usage=more, model=message.model, why="late"))
            message = replace(message, usage=more)
        for draft in [*drafts[:-1], message]:
            self.tail.add(draft)
        self._drafts += drafts

    def clear(self, line: Line, calls: list[str]) -> None:
        """The results of these calls no longer go to the model."""
        self.flush()
        assert self.session is not None
        for node in self.session.path():
            if isinstance(node, Message) and (edit := cleared(node, calls, line)) is not None:
                self._drafts.append(edit)
                self.tail.add(edit)

    def branch(self, parent: str | None, id: str) -> bool:
        """What follows hangs on another node; False where the line that asks for it is there already."""
        if id in self._ids or (self.session is not None and self.session.find(id) is not None):
            return False
        if parent is not None and parent in self._ids:
            self.flush()
        target = None if parent is None or self.session is None else self.session.find(parent)
        if parent is None or (target is not None and target.is_node):
            self.flush()
            self._to = 0 if target is None else target.seq
            self.tail.nodes = []
            if target is not None:
                self.tail.add(target)
        return True

    def flush(self) -> None:
        """Write what has come so far: all of it or nothing."""
        drafts, self._drafts = [*self._facts, *self._drafts], []
        if not drafts:
            return
        if self.session is None:
            self.session = self._make(drafts)
        else:
            # Who says something of the whole session has to know what others said of it. What is written stays.
            self.session.append(*drafts, to=self._to, rebase=self._has_begun, alone=bool(self._facts))
        self._facts, self._to, self._has_begun = [], None, True


async def _run(call: Callable[_P, _R], /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
    """On a thread, with whichever loop the SDK runs on. What has begun is finished, even if nobody waits any more."""
    return await to_thread.run_sync(partial(call, *args, **kwargs), abandon_on_cancel=True)


def _parts(key: SessionKey | SessionListSubkeysKey) -> list[str]:
    """What a key says, or `Invalid`."""
    if not isinstance(key, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise Invalid(f"the key {key!r:.80} is not a mapping", hint="a project_key and a session_id")
    names = ["project_key", "session_id", *(["subpath"] if key.get("subpath") else [])]
    return [check_id(key.get(name), name) for name in names]


def _checked(entry: object) -> Line:
    if not isinstance(entry, Mapping):
        raise Invalid(f"the entry {entry!r:.80} is not a mapping", hint="an entry is a dict, as the SDK reads it")
    return dict(cast("Mapping[str, Any]", entry))


def _summed(key: SessionKey, lines: list[Line], listed: dict[str, Any]) -> list[AnyEntry]:
    """What the lines change of what is said of the whole session."""
    before = cast("dict[str, Any]", listed.get(_SUMMARY) or {})
    previous: SessionSummaryEntry = {"session_id": key["session_id"], "mtime": 0, "data": before}
    summary = fold_session_summary(previous if before else None, key, cast("list[SessionStoreEntry]", lines))["data"]
    if summary == before:
        return []
    facts: list[AnyEntry] = [Set(key="listed", value={**listed, _SUMMARY: summary}, exact=True)]
    if (title := _title(summary)) != _title(before) and title:
        facts.append(Set(key="title", value=title))
    if summary.get("tag") != before.get("tag"):
        facts.append(Set(key="tags", value=[summary["tag"]] if summary.get("tag") else []))
    return facts


def _title(data: dict[str, Any]) -> Any:
    return data.get("custom_title") or data.get("ai_title")


def _mtime(info: Info) -> int:
    return 0 if info.updated_at is None else round(info.updated_at.timestamp() * 1000)

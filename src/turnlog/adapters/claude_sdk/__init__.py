"""A session store for the Claude Agent SDK.

    from turnlog.adapters.claude_sdk import TurnlogSessionStore

    options = ClaudeAgentOptions(session_store=TurnlogSessionStore())

A line of a transcript is an entry with the line's `uuid` as its id: sent again, it counts once. A subagent's transcript
is a spawned session.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ParamSpec, TypeVar, cast

from turnlog.adapters._argument import check_id, check_list
from turnlog.adapters._compositeid import join_parts, split_parts
from turnlog.adapters._framework import import_framework
from turnlog.adapters._recent import Recent
from turnlog.adapters._sessions import AdapterSessions, AnyHome, ClosableAdapter
from turnlog.errors import AlreadyExists, Conflict, Invalid, NotFound
from turnlog.exchange.exporting.transcript import transcript_of
from turnlog.formats.claude_code.mirror import LINE, drafted, is_elsewhere, kept_line
from turnlog.formats.claude_code.writing import write
from turnlog.log.entry import AnyEntry, Child
from turnlog.log.part import Spawned
from turnlog.session import Session
from turnlog.session.interior import interior
from turnlog.session.session import open_for_writing
from turnlog.thread.report import Info

import_framework("claude_agent_sdk", "claude-sdk")

from anyio import to_thread  # noqa: E402
from claude_agent_sdk import (  # noqa: E402
    SessionKey,
    SessionListSubkeysKey,
    SessionStoreEntry,
    SessionStoreListEntry,
    SessionSummaryEntry,
)

from turnlog.adapters.claude_sdk.batch import LineBatch  # noqa: E402
from turnlog.adapters.claude_sdk.summary import summary_facts, summary_of  # noqa: E402
from turnlog.adapters.claude_sdk.tail import Line, TranscriptTail  # noqa: E402

__all__ = ["TurnlogSessionStore"]

FRAMEWORK = LINE
_TAILS = 256
_P = ParamSpec("_P")
_R = TypeVar("_R")


class TurnlogSessionStore(ClosableAdapter):
    """Keeps the transcripts of Claude Code in sessions of a home. Safe to use from many threads, tasks and processes.

    A session's id is its project and its id there, joined by `/`.
    """

    def __init__(self, home: AnyHome = None) -> None:
        self.sessions = AdapterSessions(home, FRAMEWORK)
        self._tails: Recent[str, TranscriptTail] = Recent(_TAILS)

    async def aclose(self) -> None:
        """The same as `close`, on a thread."""
        await _run(self.close)

    # ── the protocol ──────────────────────────────────────────────────────────────────────────────

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Append lines in their order; one whose `uuid` is there already counts once. Durable when this returns."""
        await _run(self._append, key, cast("list[Line]", entries))

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """The lines as they were given; None if there is no transcript.

        If the conversation was changed with Turnlog since, they are lines of the conversation as it is now.
        """
        return cast("list[SessionStoreEntry] | None", await _run(self._load, key))

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """The sessions of a project, without those of subagents."""
        return [
            {"session_id": session_id, "mtime": _mtime(info)}
            for session_id, info in await _run(self._sessions_of_project, project_key)
        ]

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        """The summary of each session of a project, from the listing alone."""
        return [
            {"session_id": session_id, "mtime": _mtime(info), "data": summary}
            for session_id, info in await _run(self._sessions_of_project, project_key)
            if (summary := summary_of(info.listed)) is not None
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
        name = join_parts(*parts)
        self.sessions.check_open()
        lines = [_checked(entry) for entry in check_list(entries, "entries")]
        drafts_of_lines = [drafted(line, is_side=len(parts) > 2) for line in lines]
        is_fresh = False
        with self.sessions.locked(name):
            while lines:
                session = self.sessions.find(name, fresh=is_fresh)
                listed = {} if session is None else cast("dict[str, Any]", session.get("listed") or {})
                facts = [] if len(parts) > 2 else summary_facts(key, lines, listed)
                batch = LineBatch(partial(self._create, parts, lines), session, facts, self._tail(name, session))
                is_fresh = True
                try:
                    for line, drafts in zip(lines, drafts_of_lines, strict=True):
                        batch.add(line, drafts)
                    session = batch.flush()
                except (Conflict, AlreadyExists):
                    continue  # others were faster: what it hangs on may be another node by now
                except NotFound:
                    self.sessions.forget(name)
                    continue
                batch.tail.head = session.head
                self._tails.put(session.id, batch.tail)
                return

    def _tail(self, name: str, session: Session | None) -> TranscriptTail:
        """The tail of a session. It is taken out of the remembered ones, so that a failed append leaves none behind."""
        tail = self._tails.pop(name)
        if session is None:
            return TranscriptTail(0, [])
        return tail if tail is not None and tail.head == session.head else TranscriptTail.of(session)

    def _create(self, parts: list[str], lines: list[Line], drafts: list[AnyEntry]) -> Session:
        project, session_id, *sub = parts
        parent = self.sessions.find(join_parts(project, session_id)) if sub else None
        labels = {"framework": FRAMEWORK, "project": project, "session_id": session_id}
        fields: dict[str, Any] = {"labels": {**labels, **({"subpath": sub[0]} if sub else {})}, "agent": FRAMEWORK}
        if parent is not None:
            fields["spawned"] = Spawned(parent.id)
        elif not sub:
            # The same session as the one that Claude Code keeps in its own folder: nobody counts it twice.
            fields["origin"] = {"agent": "claude-code", "id": session_id, "identity": session_id}
        workspace = next((line["cwd"] for line in lines if isinstance(line.get("cwd"), str) and line["cwd"]), None)
        home, name = self.sessions.home, join_parts(*parts)
        if parent is not None:  # first, so that no subagent is there that its session does not name
            parent.append(Child(id=f"{name}#child", session=name, agent=FRAMEWORK))
        create = partial(interior(home).creator.create, drafts, id=name, workspace=workspace, **fields)
        return self.sessions.hold_created(lambda: open_for_writing(home, create()))

    def _load(self, key: SessionKey) -> list[Line] | None:
        session = self.sessions.find(join_parts(*_parts(key)))
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

    def _sessions_of_project(self, project: str) -> list[tuple[str, Info]]:
        return [(parts[1], info) for parts, info in self._all() if len(parts) == 2 and parts[0] == project]

    def _under(self, project: str, session_id: str) -> list[tuple[list[str], Info]]:
        return [(parts, info) for parts, info in self._all() if len(parts) == 3 and parts[:2] == [project, session_id]]

    def _all(self) -> list[tuple[list[str], Info]]:
        return [(split_parts(info.id), info) for info in self.sessions.infos()]

    def _delete(self, key: SessionKey) -> None:
        parts = _parts(key)
        below = [info.id for _, info in self._under(*parts)] if len(parts) == 2 else []
        for name in [*below, join_parts(*parts)]:
            self.sessions.purge(name)


async def _run(call: Callable[_P, _R], /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
    """Run a call on a worker thread of whichever event loop the SDK uses. A call that has begun is finished anyway."""
    return await to_thread.run_sync(partial(call, *args, **kwargs), abandon_on_cancel=True)


def _parts(key: SessionKey | SessionListSubkeysKey) -> list[str]:
    """The project, the session and perhaps the `subpath` of a key; `Invalid` if it is none."""
    if not isinstance(key, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise Invalid(f"the key {key!r:.80} is not a mapping", hint="a project_key and a session_id")
    names = ["project_key", "session_id", *(["subpath"] if key.get("subpath") else [])]
    return [check_id(key.get(name), name) for name in names]


def _checked(entry: object) -> Line:
    if not isinstance(entry, Mapping):
        raise Invalid(f"the entry {entry!r:.80} is not a mapping", hint="an entry is a dict, as the SDK reads it")
    return dict(cast("Mapping[str, Any]", entry))


def _mtime(info: Info) -> int:
    return 0 if info.updated_at is None else round(info.updated_at.timestamp() * 1000)

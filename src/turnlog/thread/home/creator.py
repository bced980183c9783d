"""New sessions: their ids, their first lines, and what a fork or a subagent takes over."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from datetime import datetime
from typing import TYPE_CHECKING, Any, Unpack

from msgspec.structs import replace

from turnlog.errors import Invalid
from turnlog.log.draft import MAX_ID, Draft, prepare, to_text
from turnlog.log.entry import AnyEntry, Entry, Start
from turnlog.log.fold import fold_start, fork_state, to_fold
from turnlog.log.ids import new_session_id
from turnlog.log.part import Fork, Spawned
from turnlog.log.secret import mask
from turnlog.machine.folder import workspace_path
from turnlog.store import Clock, Store
from turnlog.thread.batch import keep_blobs, refuse_equal_ids
from turnlog.thread.fact import normalized, with_all
from turnlog.thread.history import History, loaded
from turnlog.thread.home.createdhere import CreatedHere
from turnlog.thread.report import text_fact

if TYPE_CHECKING:
    from turnlog.thread.home.newsession import NewSession, SessionFields


class Creator:
    """Creates the sessions of one home. Each is returned as the history of a log that is open for writing."""

    def __init__(self, store: Store, created_here: CreatedHere, clock: Clock | None) -> None:
        self.store = store
        self.created_here = created_here
        self._clock = clock

    def create(self, drafts: Sequence[AnyEntry] = (), **fields: Unpack[NewSession]) -> History:
        """Create a session; see `Home.create` for the fields."""
        start = self._start(**fields)
        if not drafts:
            return self.begin([start])
        from turnlog.thread.appender import batch_of  # readers do not load the writing side

        facts = {name: value for name in ("title", "workspace") if (value := getattr(start, name)) is not None}
        entries = normalized(batch_of(drafts, None))
        with self.store.keeping():
            return self.begin([start, *with_all(entries, facts)])

    def begin(self, entries: list[Entry], *, seq: int = 1, parent: Fork | None = None, is_own: bool = True) -> History:
        """Create a log with these first entries.

        `is_own`: the command in them was given here, and is not from another log.
        """
        drafts: list[Draft] = []
        blobs: dict[str, bytes] = {}
        for entry in entries:
            draft, new = prepare(entry)
            drafts.append(draft)
            blobs |= new
        refuse_equal_ids(drafts)
        start = entries[0]
        assert isinstance(start, Start)
        is_referring = any(draft.blobs for draft in drafts)
        with self.store.keeping() if is_referring else nullcontext():  # no collection must come in between
            keep_blobs(self.store, drafts, blobs)
            log = self.store.create(start.session_id, drafts, seq=seq, parent=parent)
        if is_own:
            self.created_here.note(start)
        return loaded(self.store, log)

    def fork(self, history: History, at: int, name: str | None, fields: NewSession) -> History:
        """Create a session that continues another one from entry `at`; nothing is copied."""
        entry = history.get(at)
        state = fork_state(history.state_at(at), at)
        owner = history.owner_of(at)
        if owner is history:
            history.log.sync(at)  # another process may have appended it and crashed before its sync
        own: NewSession = {
            "workspace": text_fact(state.wide, "workspace"),
            "title": text_fact(state.wide, "title"),
            "agent": history.state.start.get("agent"),
            "resume": history.state.start.get("resume", ()),
            **fields,
        }
        workspace = own.pop("workspace", None)
        start = self._start(**own)
        if "workspace" in fields and workspace is not None:
            workspace = workspace_path(workspace)
        first = owner.first if owner.first != owner.log.id else None
        fork = Fork(owner.log.id, at, entry.id, (name or "").strip() or None, first=first)
        start = replace(start, workspace=workspace, fork=fork)
        fold_start(state, start)
        is_own = self.created_here.fork_is_created_here(history, fields)
        return self.begin([start, replace(to_fold(state), at=start.at)], seq=at + 1, parent=fork, is_own=is_own)

    def spawn(self, spawned: Spawned, workspace: str | None, fields: SessionFields) -> History:
        """Create a subagent's session, in the parent's workspace unless the fields name another."""
        start = self._start(**fields)
        return self.begin([replace(start, workspace=start.workspace or workspace, spawned=spawned)])

    def _id(self, chosen: str | None) -> str:
        """The id for a new session: the caller's, or one that sorts by time."""
        if chosen is not None:
            if not isinstance(chosen, str) or not 0 < len(chosen) <= MAX_ID:  # pyright: ignore[reportUnnecessaryIsInstance]
                text = f"the session id {chosen!r:.80} is not a text of 1 to {MAX_ID} characters"
                raise Invalid(text, hint="choose a shorter id, or none")
            return chosen
        now = self._clock() if self._clock is not None else time.time_ns() // 1_000_000
        stamp = to_text(now)
        return new_session_id(f"{stamp[:10].replace('-', '')}-{stamp[11:19].replace(':', '')}")

    def _start(
        self,
        *,
        id: str | None = None,
        workspace: str | os.PathLike[str] | None = None,
        agent: str | None = None,
        title: str | None = None,
        labels: Mapping[str, str] | None = None,
        resume: Sequence[str] = (),
        hidden: bool = False,
        origin: Any = None,
        at: datetime | None = None,
        spawned: Spawned | None = None,
    ) -> Start:
        if isinstance(resume, str) or not all(isinstance(word, str) for word in resume):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise Invalid(f"the command to resume is a list of words, not {resume!r:.80}", hint='["my-agent", "{id}"]')
        return Start(
            session=self._id(id),
            workspace=None if workspace is None else workspace_path(workspace),
            agent=agent,
            title=title,
            labels=_masked_labels(labels),
            resume=list(resume),
            hidden=hidden,
            origin=origin,
            at=at,
            spawned=spawned,
        )


def _masked_labels(labels: Mapping[str, str] | None) -> dict[str, str]:
    """The labels, checked, with their secrets masked."""
    if labels is not None and not isinstance(labels, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise Invalid(f"labels are pairs of texts, not {labels!r:.80}")
    pairs = dict(labels or {})
    for key, value in pairs.items():
        if not isinstance(key, str) or not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise Invalid(f"the label {key!r}: {value!r} is not a pair of texts")
        pairs[key] = mask(key, value)[0]
    return pairs

"""New sessions: their ids, their first lines, and what a fork or a subagent takes over."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from turnlog.errors import Invalid, NotFound
from turnlog.log.draft import MAX_ID, Draft, prepare, to_text
from turnlog.log.entry import AnyEntry, Entry, Fork, Set, Spawned, Start
from turnlog.log.fold import fold_start, fork_state, to_fold
from turnlog.log.ids import new_session_id
from turnlog.log.secret import mask
from turnlog.machine.folder import workspace_path
from turnlog.store import Clock, Store, derived
from turnlog.thread.fact import masked, with_all
from turnlog.thread.history import History, loaded
from turnlog.thread.made import CreatedHere


class Creator:
    """Makes the sessions of one home. Each is given back as the history of a log that is open for writing."""

    def __init__(self, store: Store, made: CreatedHere, clock: Clock | None) -> None:
        self.store = store
        self.made = made
        self._clock = clock

    def create(self, id: str | None, drafts: Sequence[AnyEntry] = (), **fields: Any) -> History:
        """A new session; see `Home.create` for the fields."""
        start = self._start(id, **fields)
        if not drafts:
            return self.begin([start])
        from turnlog.thread.appender import batch_of  # readers do not load the writing side

        facts = {name: value for name in ("title", "workspace") if (value := getattr(start, name)) is not None}
        entries = [masked(entry) if isinstance(entry, Set) else entry for entry in batch_of(drafts, None)]
        with self.store.keeping():
            return self.begin([start, *with_all(entries, facts)])

    def begin(self, entries: list[Entry], *, seq: int = 1, parent: Fork | None = None, is_own: bool = True) -> History:
        """A log that begins with these entries. `is_own`: the command in them is from here, not from another log."""
        drafts: list[Draft] = []
        for entry in entries:
            draft, blobs = prepare(entry)
            if blobs:
                derived.put(self.store, blobs)
            drafts.append(draft)
        start = entries[0]
        assert isinstance(start, Start)
        log = self.store.create(start.session_id, drafts, seq=seq, parent=parent)
        if is_own:
            self.made.note(start)
        return loaded(self.store, log)

    def fork(self, history: History, at: int, name: str | None, fields: Mapping[str, Any]) -> History:
        """A session that continues another one from entry `at`; nothing is copied."""
        entry = history.at(at)
        if entry is None:
            raise NotFound(f"no entry {at} in session {history.id}", hint="`turnlog log` shows what there is")
        state = fork_state(history.state_at(at), at)
        owner = history.owner_of(at)
        if owner is history:
            history.log.sync(at)  # others may have written it, and died; a fold of ours waits for the next sync
        own: dict[str, Any] = {
            "workspace": state.wide.get("workspace"),
            "title": state.wide.get("title"),
            "agent": history.state.start.get("agent"),
            "resume": history.state.start.get("resume", ()),
            **fields,
        }
        workspace = own.pop("workspace")
        start = self._start(own.pop("id", None), **own)
        if "workspace" in fields and workspace is not None:
            workspace = workspace_path(workspace)
        first = owner.first if owner.first != owner.log.id else None
        fork = Fork(owner.log.id, at, entry.id, (name or "").strip() or None, first=first)
        start = replace(start, workspace=workspace, fork=fork)
        fold_start(state, start)
        is_own = self.made.passes_on(history, fields)
        return self.begin([start, replace(to_fold(state), at=start.at)], seq=at + 1, parent=fork, is_own=is_own)

    def spawn(self, session_id: str, spawned: Spawned, workspace: str | None, fields: dict[str, Any]) -> History:
        """A subagent's session, in the workspace of the one that started it if the fields name no other."""
        own = fields.pop("workspace", None)
        place = workspace if own is None else workspace_path(own)
        return self.begin([replace(self._start(session_id, **fields), workspace=place, spawned=spawned)])

    def new_id(self, chosen: str | None) -> str:
        """The id for a new session: the caller's, or one that sorts by time."""
        if chosen is not None:
            if not isinstance(chosen, str) or not 0 < len(chosen) <= MAX_ID:  # pyright: ignore[reportUnnecessaryIsInstance]
                raise Invalid(f"the session id {chosen!r:.80} is not a text of 1 to {MAX_ID} characters")
            return chosen
        now = self._clock() if self._clock is not None else time.time_ns() // 1_000_000
        stamp = to_text(now)
        return new_session_id(f"{stamp[:10].replace('-', '')}-{stamp[11:19].replace(':', '')}")

    def _start(
        self,
        id: str | None,
        *,
        workspace: str | os.PathLike[str] | None = None,
        labels: Mapping[str, str] | None = None,
        resume: Sequence[str] = (),
        **fields: Any,
    ) -> Start:
        if labels is not None and not isinstance(labels, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise Invalid(f"labels are pairs of texts, not {labels!r:.80}")
        pairs = dict(labels or {})
        for key, value in pairs.items():
            if not isinstance(key, str) or not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise Invalid(f"the label {key!r}: {value!r} is not a pair of texts")
            pairs[key] = mask(key, value)[0]
        if isinstance(resume, str) or not all(isinstance(word, str) for word in resume):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise Invalid(f"the command to resume is a list of words, not {resume!r:.80}", hint='["my-agent", "{id}"]')
        place = None if workspace is None else workspace_path(workspace)
        return Start(session=self.new_id(id), workspace=place, labels=pairs, resume=list(resume), **fields)

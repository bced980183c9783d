"""The place that holds sessions: create them, find them, list them, remove them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from msgspec.structs import replace

from turnlog.errors import Invalid, NotFound, Unsupported
from turnlog.log.draft import MAX_ID, Draft, prepare, to_text
from turnlog.log.entry import Drop, Entry, Fork, Spawned, Start
from turnlog.log.fold import fold_start, fork_state, to_fold
from turnlog.log.ids import new_session_id
from turnlog.log.payload import digest
from turnlog.log.secret import mask
from turnlog.log.usage import Usage
from turnlog.machine import default_home, expand, kind_of, workspace_path
from turnlog.session.lookup import Lookup
from turnlog.session.made import Made
from turnlog.session.moving import Moving
from turnlog.session.session import Session
from turnlog.store import Clock, Store
from turnlog.thread.history import History
from turnlog.thread.report import Settings

if TYPE_CHECKING:
    from turnlog.exchange.source import Imported, Progress
    from turnlog.session.garbage import Collected, Kept

DURABILITIES = ("fsync", "flush")


def open_home(
    location: str | os.PathLike[str] | None = None,
    *,
    durability: str = "fsync",
    clock: Clock | None = None,
    checkpoints: bool = True,
    max_file_bytes: int = Settings().max_file_bytes,
    quota_bytes: int | None = None,
    covers_ignored: bool = True,
) -> Home:
    """The home at a location: None (`$TURNLOG_HOME` or `~/.turnlog`), a folder, `memory:` or `postgresql://…`.

    `durability="flush"` leaves syncing to the operating system: what is acknowledged survives the death of the
    process, not a power cut. Turns take a checkpoint of the workspace at each end, unless `checkpoints=False`; files
    larger than `max_file_bytes` are skipped, and one that needs more than `quota_bytes` of blobs is refused. Small
    files that git would ignore are covered, too, unless `covers_ignored=False`; what is in them stays in this home.
    """
    if durability not in DURABILITIES:
        raise Invalid(f"the durability {durability!r}", hint=f"one of {', '.join(DURABILITIES)}")
    place = os.fspath(location) if location is not None else default_home()
    options: dict[str, Any] = {"durability": durability}
    if clock is not None:
        options["clock"] = clock
    kind = kind_of(place)
    if kind == "files":
        place = expand(place)
    try:
        module = import_module(f"turnlog.store.{kind}")
    except ModuleNotFoundError as error:
        hint = f"pip install 'turnlog[{kind}]'; missing: {error.name}"
        raise Unsupported(f"the {kind} store is not installed", hint=hint) from None
    settings = Settings(checkpoints, max_file_bytes, quota_bytes, covers_ignored)
    return Home(module.connect(place, **options), clock=clock, settings=settings, made=Made(place))


class Home(Lookup, Moving):
    """Sessions and blobs in one place. Safe to use from many threads."""

    def __init__(
        self, store: Store, *, clock: Clock | None = None, settings: Settings | None = None, made: Made | None = None
    ) -> None:
        super().__init__(store)
        self.made = made or Made(None)
        self.settings = settings or Settings()
        self._clock = clock
        self._sessions: WeakSet[Session] = WeakSet()

    @property
    def backend(self) -> str:
        """The kind of store behind it."""
        return self.store.backend

    def __enter__(self) -> Home:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of files and connections. Nothing is left to be written."""
        for session in list(self._sessions):
            session.close()
        self.store.close()

    def health(self) -> dict[str, Any]:
        """Whether the store works, and what a monitor wants to know; `ok` says it in one word."""
        return self.store.health()

    # ── making sessions ───────────────────────────────────────────────────────────────────────────

    def create(
        self,
        *,
        workspace: str | os.PathLike[str] | None = None,
        agent: str | None = None,
        title: str | None = None,
        id: str | None = None,
        labels: Mapping[str, str] | None = None,
        resume: Sequence[str] = (),
        hidden: bool = False,
    ) -> Session:
        """A new session. `labels` are fixed; title and workspace can be changed later.

        `resume` is the command with which your agent goes on with it, `{id}` in it being the session's id:
        `turnlog resume` runs it.
        """
        start = self._start(
            id, workspace=workspace, agent=agent, title=title, labels=labels, resume=resume, hidden=hidden
        )
        return self._make([start])

    def new_id(self, chosen: str | None) -> str:
        """The id for a new session: the caller's, or one that sorts by time."""
        if chosen is not None:
            if not isinstance(chosen, str) or not 0 < len(chosen) <= MAX_ID:  # pyright: ignore[reportUnnecessaryIsInstance]
                raise Invalid(f"the session id {chosen!r:.80} is not a text of 1 to {MAX_ID} characters")
            return chosen
        stamp = to_text(self._now())
        return new_session_id(f"{stamp[:10].replace('-', '')}-{stamp[11:19].replace(':', '')}")

    def _now(self) -> int:
        return self._clock() if self._clock is not None else time.time_ns() // 1_000_000

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

    def _make(self, entries: list[Entry], *, seq: int = 1, parent: Fork | None = None, is_own: bool = True) -> Session:
        drafts: list[Draft] = []
        for entry in entries:
            draft, blobs = prepare(entry)
            if blobs:
                self.store.put(blobs)
            drafts.append(draft)
        start = entries[0]
        assert isinstance(start, Start)
        log = self.store.create(start.session_id, drafts, seq=seq, parent=parent)
        if is_own:
            self.made.note(start)
        history = History(self.store, log)
        history.load()
        return self._keep(Session(self, history))

    def _keep(self, session: Session) -> Session:
        self._sessions.add(session)
        return session

    def fork(self, history: History, at: int, name: str | None, fields: dict[str, Any]) -> Session:
        """See `Session.fork`."""
        entry = history.at(at)
        if entry is None:
            raise NotFound(f"no entry {at} in session {history.log.id}", hint="`turnlog log` shows what there is")
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
        start = self._start(own.pop("id", None), workspace=None, **own)
        if "workspace" in fields and workspace is not None:
            workspace = workspace_path(workspace)
        first = owner.first if owner.first != owner.log.id else None
        fork = Fork(owner.log.id, at, entry.id, (name or "").strip() or None, first=first)
        start = replace(start, workspace=workspace, fork=fork)
        fold_start(state, start)
        is_own = self.made.passes_on(history, fields)
        return self._make([start, to_fold(state)], seq=at + 1, parent=fork, is_own=is_own)

    def spawn(
        self,
        session_id: str,
        parent: Session,
        agent: str | None,
        call: str | None,
        role: str | None,
        fields: dict[str, Any],
    ) -> Session:
        """See `Session.spawn`."""
        workspace = fields.pop("workspace", None)
        start = self._start(session_id, workspace=None, agent=agent, **fields)
        place = parent.workspace if workspace is None else workspace_path(workspace)
        return self._make([replace(start, workspace=place, spawned=Spawned(parent.id, call, role))])

    # ── finding sessions ──────────────────────────────────────────────────────────────────────────

    def resume(self, session: str | None = None, *, workspace: str | os.PathLike[str] | None = None) -> Session:
        """A session to go on with: the one with that id and no other; without an id the newest, of a workspace if told.

        `find` gives the id for a beginning of one.
        """
        if session is None:
            session = self._newest_id(workspace)
        elif workspace is not None:
            raise Invalid(f"the id {session!r:.80} says which session it is", hint="leave out the id, or the workspace")
        history = History(self.store, self._log_of(session))
        history.load()
        return self._keep(Session(self, history))

    def import_sessions(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        agent: str | None = None,
        workspace: str | None = None,
        progress: Progress | None = None,
    ) -> list[Imported]:
        """Bring in other agents' sessions from a file or folder, or from where those agents keep them.

        What is here already is only brought up to date.
        """
        from turnlog.exchange.source import bring_all, sources

        return list(bring_all(self, sources(path, agent=agent, workspace=workspace), progress))

    def subagents_usage(self, ids: Iterable[str], seen: set[str]) -> Usage:
        """What these subagents spent, and theirs."""
        total = Usage()
        for session_id in ids:
            if session_id in seen:
                continue
            seen.add(session_id)
            try:
                log = self.store.base(session_id)
            except NotFound:
                continue
            history = History(self.store, log)
            history.load()
            log.close()
            total = total + history.state.own + self.subagents_usage(history.state.children, seen)
        return total

    # ── disk ──────────────────────────────────────────────────────────────────────────────────────

    def gc(self, *, quota_bytes: int | None = None, dry_run: bool = False) -> Collected:
        """Give back what no session needs. Safe beside running agents; damage never makes it remove more.

        With a quota, automatic checkpoints are given up, the oldest first, until the rest fits. A home that has a
        quota itself makes room for as much again: it goes down to half of that.
        """
        from turnlog.session.garbage import collect, estimate

        if quota_bytes is None and self.settings.quota_bytes is not None:
            quota_bytes = self.settings.quota_bytes // 2
        if dry_run:
            return estimate(self.store, quota_bytes=quota_bytes)
        return collect(self.store, quota_bytes=quota_bytes, drop=self._drop)

    def _drop(self, given_up: list[Kept]) -> None:
        """Written into their sessions. Forks, which have them, too, see it by what is there."""
        for session_id in {kept.session: None for kept in given_up}:
            with self.resume(session_id) as session:
                session.append(Drop(checkpoints=[kept.id for kept in given_up if kept.session == session_id]))

    def disk(self) -> dict[str, int]:
        """How many bytes logs, deleted logs and blobs take."""
        return self.store.disk()

    # ── blobs ─────────────────────────────────────────────────────────────────────────────────────

    def put_blob(self, data: bytes) -> str:
        """Keep bytes; returns their digest, which is their name."""
        if not isinstance(data, (bytes, bytearray, memoryview)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise Invalid(f"a blob is bytes, not {data!r:.80}")
        name = digest(data)
        self.store.put({name: bytes(data)})
        return name

    def get_blob(self, digest: str) -> bytes:
        """The bytes with that digest, verified."""
        return self.store.get(digest)

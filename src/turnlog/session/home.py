"""The place that holds sessions: create them, find them, list them, remove them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Unpack
from weakref import WeakSet

from turnlog.errors import Invalid, NotFound
from turnlog.log.entry import AnyEntry
from turnlog.log.payload import digest
from turnlog.session.disposal import Disposal
from turnlog.session.interior import Interior, interior
from turnlog.session.lookup import find_id, log_to_read, log_to_write, matching, newest_id, rows
from turnlog.session.readonly import ReadOnlySession
from turnlog.store import Clock, Store, derived
from turnlog.thread.history import loaded
from turnlog.thread.made import CreatedHere
from turnlog.thread.report import Info
from turnlog.thread.settings import Settings

if TYPE_CHECKING:
    from turnlog.blame.authorship import Blame
    from turnlog.blame.commit import CommitBlame
    from turnlog.exchange.source import Imported, Progress
    from turnlog.session.comparison import Comparison
    from turnlog.session.session import Session
    from turnlog.store.capability import Following
    from turnlog.store.tenant import DroppedTenant, HoldTenants
    from turnlog.thread.garbage import Collected, KeptCheckpoint
    from turnlog.transfer.mover import Tell
    from turnlog.transfer.report import TransferOptions, Transferred


class Home(Disposal):
    """Sessions and blobs in one place. Safe to use from many threads."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock | None = None,
        settings: Settings | None = None,
        made: CreatedHere | None = None,
        tenant: str | None = None,
    ) -> None:
        super().__init__(Interior(store, clock, settings or Settings(), made or CreatedHere(None)))
        self._tenant = tenant
        self._guests: WeakSet[Home] = WeakSet()

    @property
    def backend(self) -> str:
        """The kind of store behind it."""
        return self._interior.backend

    def __enter__(self) -> Home:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of files and connections; close its sessions, and its tenants' homes. Nothing is left to be written.

        Whatever needs the store afterwards is `Invalid`; what a session knows already can still be asked.
        """
        for one in list(self._guests):
            one.close()
        self._interior.close()

    def health(self) -> dict[str, Any]:
        """Whether the store works, and what a monitor wants to know; `ok` says it in one word."""
        return derived.health(self._store)

    @property
    def tenant_name(self) -> str | None:
        """Whose home it is, where it came from `tenant`."""
        return self._tenant

    @property
    def following(self) -> Following:
        """How who follows a session learns of news: `told` at once, or by `asking` again and again.

        Only PostgreSQL tells, and not through a pooler in transaction mode.
        """
        return derived.following(self._store)

    # ── tenants ───────────────────────────────────────────────────────────────────────────────────

    def tenant(self, name: str, *, create: bool = True) -> Home:
        """The home of one tenant: its sessions, blobs and ids are nothing to any other, nor to this home.

        It shares what this home has open, so there may be thousands, and is closed with it. Without `create`, one that
        is not there is `NotFound`. A tenant has no tenants.
        """
        if not isinstance(name, str) or not name or not name.isprintable():  # pyright: ignore[reportUnnecessaryIsInstance]
            raise Invalid(f"the name of a tenant is a line of text, not {name!r:.80}", hint='home.tenant("acme")')
        keeps = self._keeper
        store = keeps.tenant(name, create=create)
        made = CreatedHere(keeps.tenant_location(name))
        inner = self._interior
        home = Home(store, clock=inner.clock, settings=inner.settings, made=made, tenant=name)
        self._guests.add(home)
        return home

    @property
    def _keeper(self) -> HoldTenants:
        from turnlog.store.tenant import tenants_of

        return tenants_of(self._store)

    def tenants(self) -> list[str]:
        """The names of all tenants, in order."""
        return self._keeper.tenants()

    def drop_tenant(self, name: str) -> DroppedTenant:
        """Erase a tenant with everything it has, for good, and say what went. Nobody is asked.

        Who has a session of it open gets `NotFound` with the next call; nothing of it comes back. If this is
        interrupted, nobody sees the tenant any more, and doing it again erases the rest.
        """
        return self._keeper.drop_tenant(name)

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
        drafts: Sequence[AnyEntry] = (),
    ) -> Session:
        """A new session. `labels` are fixed; title and workspace can be changed later.

        `resume` is the command with which your agent goes on with it, `{id}` in it being the session's id:
        `turnlog resume` runs it. `drafts` are its first entries: it is there with all of them, or not at all.
        """
        fields = {"workspace": workspace, "agent": agent, "title": title, "labels": labels, "hidden": hidden}
        from turnlog.session.session import hold  # readers do not load the writing side

        return hold(self, self._interior.creator.create(id, drafts, resume=resume, **fields))

    # ── finding sessions ──────────────────────────────────────────────────────────────────────────

    def resume(self, session: str | None = None, *, workspace: str | os.PathLike[str] | None = None) -> Session:
        """A session to go on with: the one with that id and no other; without an id the newest, of a workspace if told.

        `find` gives the id for a beginning of one.
        """
        from turnlog.session.session import hold

        return hold(self, loaded(self._store, log_to_write(self._store, self._one(session, workspace))))

    def read(self, session: str | None = None, *, workspace: str | os.PathLike[str] | None = None) -> ReadOnlySession:
        """A session to look at, chosen as `resume` does it; one in the trash can be read by its id, too.

        Nothing is locked, settled or written, whoever writes to it meanwhile; a disk that cannot be written will do.
        """
        log = log_to_read(self._store, self._one(session, workspace))
        read_only = ReadOnlySession(self, loaded(self._store, log))
        self._interior.sessions.add(read_only)
        return read_only

    def _one(self, session: str | None, workspace: str | os.PathLike[str] | None) -> str:
        if session is None:
            return newest_id(self._store, workspace)
        if workspace is not None:
            raise Invalid(f"the id {session!r:.80} says which session it is", hint="leave out the id, or the workspace")
        return session

    def exists(self, session: str) -> bool:
        """Whether there is a session with that id; one in the trash is not there."""
        try:
            log_to_write(self._store, session).close()
        except NotFound:
            return False
        return True

    def find(self, text: str, workspace: str | os.PathLike[str] | None = None, *, deleted: bool = False) -> str:
        """The id of the one session that is called so: an id, a unique beginning of one or of a handle, or `latest`.

        With a workspace only its sessions count. Nothing is opened.
        """
        return find_id(self._store, text, workspace, deleted=deleted)

    def sessions(
        self,
        *,
        workspace: str | os.PathLike[str] | None = None,
        labels: Mapping[str, str] | None = None,
        parent: str | None = None,
        deleted: bool = False,
        limit: int | None = None,
        after: str | None = None,
    ) -> list[Info]:
        """Sessions, the one with the newest entry first. `after` is the `cursor` of the last one of the page before.

        No session is listed twice; none that is unchanged is skipped, whatever becomes of the one at the cursor; one
        that grows meanwhile is at the top of a new listing. An id will do, as long as that session is there.
        """
        if limit is not None and limit < 0:
            raise Invalid(f"a limit of {limit}", hint="how many sessions at most, or None for all")
        listing = rows(self._store, deleted=deleted, is_paged=limit is not None, after=after)
        return list(islice(matching(listing, workspace, labels, parent), limit))

    def session_of(self, entry_id: str) -> str | None:
        """The id of the session whose own log has that entry; None if no session has it.

        Forks read what they continue where it lies: an entry that they inherit is its first session's. A home in files
        goes through all of them for it.
        """
        return derived.holder_of(self._store, entry_id)

    def compare(self, a: str, b: str, *, branch_a: int | None = None, branch_b: int | None = None) -> Comparison:
        """Two sessions side by side, by their ids: what both begin with, then what each did, turn by turn.

        A branch is told by its last entry; both may be of one session.
        """
        from turnlog.session.comparison import comparable, compare

        with self.read(a) as one, self.read(b) as other:
            return compare(
                comparable(one, self._store, branch=branch_a), comparable(other, self._store, branch=branch_b)
            )

    # ── other agents, other homes ─────────────────────────────────────────────────────────────────

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

        return list(bring_all(self._interior.creator, sources(path, agent=agent, workspace=workspace), progress))

    def push(
        self, other: Home, ids: Iterable[str] | None = None, **options: Unpack[TransferOptions]
    ) -> list[Transferred]:
        """Bring sessions to another home (all of them, without `ids`): only what is missing, verified, and in such an
        order that it can be interrupted anywhere and done again.

        A session that went on there, too, becomes a fork of theirs. What it builds on and its subagents come with it.
        What is in ignored files that checkpoints cover stays here, unless `include_ignored=True`. `dry_run=True` writes
        nothing; `progress` is called with a number, how many there are, and an id.
        """
        return _transfer(self, other, ids, **options)

    def pull(
        self, other: Home, ids: Iterable[str] | None = None, **options: Unpack[TransferOptions]
    ) -> list[Transferred]:
        """The same as `push`, from another home to this one."""
        return _transfer(other, self, ids, **options)

    def sync(
        self, other: Home, ids: Iterable[str] | None = None, **options: Unpack[TransferOptions]
    ) -> tuple[list[Transferred], list[Transferred]]:
        """Push, then pull. Ids may be of sessions that only one side has."""
        from turnlog.transfer.mover import sides

        here, there = (None, None) if ids is None else sides(self._store, other._store, ids)
        return _transfer(self, other, here, **options), _transfer(other, self, there, **options)

    # ── who wrote it ──────────────────────────────────────────────────────────────────────────────

    def blame(self, path: str | os.PathLike[str], *, lines: tuple[int, int] | None = None) -> Blame:
        """Which turn of which session wrote each line of a file as it is now, or why none did.

        The checkpoints of all sessions of its folder tell. `lines` are the first and the last, counted from 1.
        """
        from turnlog.blame.authorship import blame

        return blame(self._store, path, lines=lines)

    def blame_commit(self, revision: str, path: str | os.PathLike[str] | None = None) -> CommitBlame:
        """Which turns wrote the lines that a git commit added, and what those turns cost; with `path`, in one file.

        The repository is the one that the file, or else the current folder, is in.
        """
        from turnlog.blame.commit import blame_commit

        return blame_commit(self._store, revision, path)

    # ── disk ──────────────────────────────────────────────────────────────────────────────────────

    def gc(self, *, quota_bytes: int | None = None, dry_run: bool = False) -> Collected:
        """Give back what no session needs. Safe beside running agents; damage never makes it remove more.

        With a quota, automatic checkpoints are given up, the oldest first, and those of tools before those of turns,
        until the rest fits. A home that has a quota itself makes room for as much again: it goes down to half of that.
        """
        from turnlog.thread.garbage import collect, estimate

        quota = self._interior.settings.quota_bytes
        if quota_bytes is None and quota is not None:
            quota_bytes = quota // 2
        if dry_run:
            return estimate(self._store, quota_bytes=quota_bytes)
        self._interior.finish_erasing(again=True)
        self._expire_trash()
        return collect(self._store, quota_bytes=quota_bytes, drop=self._drop)

    def _drop(self, given_up: list[KeptCheckpoint]) -> None:
        from turnlog.thread.garbage import drop

        drop(self._store, given_up)

    def disk(self) -> dict[str, int]:
        """How many bytes logs, deleted logs and blobs take."""
        return derived.disk(self._store)

    # ── blobs ─────────────────────────────────────────────────────────────────────────────────────

    def put_blob(self, data: bytes) -> str:
        """Keep bytes; returns their digest, which is their name."""
        if not isinstance(data, (bytes, bytearray, memoryview)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise Invalid(f"a blob is bytes, not {data!r:.80}")
        derived.put(self._store, {(name := digest(data)): bytes(data)})
        return name

    def get_blob(self, digest: str) -> bytes:
        """The bytes with that digest, verified."""
        return self._store.get(digest)


def _transfer(
    source: Home,
    target: Home,
    ids: Iterable[str] | None,
    *,
    dry_run: bool = False,
    include_ignored: bool = False,
    progress: Tell | None = None,
) -> list[Transferred]:
    from turnlog.transfer.mover import Mover

    wanted = None if ids is None else list(ids)
    for name in wanted or ():
        if not source.exists(name):
            raise NotFound(f"no session {name!r:.80}", hint="home.find gives the id for a beginning of one")
    mover = Mover(interior(source).store, interior(target).store, dry_run=dry_run, include_ignored=include_ignored)
    return list(mover.run(wanted, progress))

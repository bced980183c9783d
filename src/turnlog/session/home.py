"""A home: creating, finding, listing and removing sessions."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from typing import TYPE_CHECKING, Any, Unpack

from turnlog.errors import Invalid, NotFound
from turnlog.log.entry import AnyEntry
from turnlog.log.payload import digest
from turnlog.machine.liveobjects import LiveObjects
from turnlog.session.disposal import Disposal
from turnlog.session.interior import Interior, interior
from turnlog.session.lookup import find_id, is_session, log_to_read, log_to_write, matching, newest_id, rows
from turnlog.session.message.content import as_list
from turnlog.session.readonly import ReadOnlySession
from turnlog.store import Clock, Store, derived
from turnlog.thread.history import loaded
from turnlog.thread.home.createdhere import CreatedHere
from turnlog.thread.home.settings import Settings
from turnlog.thread.report import Info

if TYPE_CHECKING:
    from turnlog.blame.authorship import Blame
    from turnlog.blame.commit import CommitBlame
    from turnlog.exchange.importing.run import Progress
    from turnlog.exchange.importing.sessionimport import Imported
    from turnlog.session.comparison import Comparison
    from turnlog.session.session import Session
    from turnlog.store.capability import Following
    from turnlog.store.tenant import DroppedTenant, HoldTenants
    from turnlog.thread.space.garbage import Collected, KeptCheckpoint
    from turnlog.transfer.mover import Tell
    from turnlog.transfer.report import TransferOptions, Transferred


class Home(Disposal):
    """A home: sessions and blobs in one place. Thread-safe."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock | None = None,
        settings: Settings | None = None,
        created_here: CreatedHere | None = None,
        tenant: str | None = None,
    ) -> None:
        super().__init__(Interior(store, clock, settings or Settings(), created_here or CreatedHere(None)))
        self._tenant = tenant
        self._tenant_homes: LiveObjects[Home] = LiveObjects()

    @property
    def backend(self) -> str:
        """The kind of store."""
        return self._interior.backend

    def __enter__(self) -> Home:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close files, connections, sessions, and the homes of tenants. Everything is already written.

        Afterwards every call that needs the store raises `Invalid`; what a session has in memory can still be read.
        """
        with ExitStack() as closing:
            closing.callback(self._interior.close)
            for home in self._tenant_homes:
                closing.callback(home.close)

    def health(self) -> dict[str, Any]:
        """The health of the store, for a monitor; `ok` is the overall result."""
        return derived.health(self._store)

    @property
    def tenant_name(self) -> str | None:
        """The name of the tenant, if this home came from `tenant`."""
        return self._tenant

    @property
    def following(self) -> Following:
        """How followers of a session learn of new entries: `told` by the store, or by `asking` it repeatedly.

        Only PostgreSQL notifies followers, and not through a pooler in transaction mode.
        """
        return derived.following(self._store)

    # ── tenants ───────────────────────────────────────────────────────────────────────────────────

    def tenant(self, name: str, *, create: bool = True) -> Home:
        """The home of one tenant. Its sessions, blobs and ids are isolated from other tenants and from this home.

        It shares the connections of this home and is closed with it, so there may be thousands. Without `create`, an
        unknown tenant is `NotFound`. A tenant has no tenants.
        """
        if not isinstance(name, str) or not name or not name.isprintable():  # pyright: ignore[reportUnnecessaryIsInstance]
            raise Invalid(f"the name of a tenant is a line of text, not {name!r:.80}", hint='home.tenant("acme")')
        tenants, inner = self._tenant_store, self._interior
        store = tenants.tenant(name, create=create)
        created_here = CreatedHere(tenants.tenant_location(name))
        home = Home(store, clock=inner.clock, settings=inner.settings, created_here=created_here, tenant=name)
        self._tenant_homes.add(home)
        return home

    @property
    def _tenant_store(self) -> HoldTenants:
        from turnlog.store.tenant import tenants_of

        return tenants_of(self._store)

    def tenants(self) -> list[str]:
        """The names of all tenants, in order."""
        return self._tenant_store.tenants()

    def drop_tenant(self, name: str) -> DroppedTenant:
        """Erase a tenant and everything it has, for good and without confirmation. Returns what was removed.

        Open sessions of it raise `NotFound` at their next call. After an interruption the tenant is no longer visible,
        and calling this again erases the rest.
        """
        return self._tenant_store.drop_tenant(name)

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
        """Create a session. `labels` are fixed; title and workspace can be changed later.

        `resume` is the command with which your agent continues the session; `{id}` in it stands for the session's id,
        and `turnlog resume` runs it. `drafts` are the first entries: the session is created with all of them, or not at
        all.
        """
        from turnlog.session.session import open_for_writing  # readers do not load the writing side

        creator = self._interior.creator
        history = creator.create(
            drafts, id=id, workspace=workspace, agent=agent, title=title, labels=labels, resume=resume, hidden=hidden
        )
        return open_for_writing(self, history)

    # ── finding sessions ──────────────────────────────────────────────────────────────────────────

    def resume(self, session: str | None = None, *, workspace: str | os.PathLike[str] | None = None) -> Session:
        """Open a session for writing: the one with exactly this id, or else the newest, of `workspace` if given.

        `find` returns the id for the beginning of one.
        """
        from turnlog.session.session import open_for_writing

        return open_for_writing(self, loaded(self._store, log_to_write(self._store, self._id_of(session, workspace))))

    def read(self, session: str | None = None, *, workspace: str | os.PathLike[str] | None = None) -> ReadOnlySession:
        """Open a session for reading, chosen as in `resume`; a deleted one can be read by its id, too.

        Reading takes no lock, repairs nothing and writes nothing, so it works beside a writer and on a read-only disk.
        """
        log = log_to_read(self._store, self._id_of(session, workspace))
        read_only = ReadOnlySession(self, loaded(self._store, log))
        self._interior.sessions.add(read_only)
        return read_only

    def _id_of(self, session: str | None, workspace: str | os.PathLike[str] | None) -> str:
        if session is None:
            return newest_id(self._store, workspace)
        if workspace is not None:
            raise Invalid(f"the id {session!r:.80} and a workspace were both given", hint="leave out one of them")
        return session

    def exists(self, session: str) -> bool:
        """Whether there is a session with this id; deleted sessions do not count."""
        return is_session(self._store, session)

    def find(self, text: str, workspace: str | os.PathLike[str] | None = None, *, deleted: bool = False) -> str:
        """The id of the one session that `text` names: an id, a unique beginning of one or of a handle, or `latest`.

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
        """The sessions, the one with the newest entry first. `after` is the `cursor` of the last one before this page.

        No session is listed twice, and no unchanged one is skipped, even if the session of the cursor is removed. A
        session that grows during paging is at the top of a new listing. `after` may also be the id of a session that
        exists.
        """
        if limit is not None and limit < 0:
            raise Invalid(f"the limit is {limit}", hint="how many sessions at most, or None for all")
        listing = rows(self._store, deleted=deleted, is_paged=limit is not None, after=after)
        return list(islice(matching(listing, workspace, labels, parent), limit))

    def session_of(self, entry_id: str) -> str | None:
        """The id of the session whose own log has this entry; None if there is none.

        An inherited entry belongs to the session that it is inherited from, not to its forks. A home in files reads all
        logs for this.
        """
        return derived.holder_of(self._store, entry_id)

    def compare(self, a: str, b: str, *, branch_a: int | None = None, branch_b: int | None = None) -> Comparison:
        """Compare two sessions by their ids: what both begin with, then what each did, turn by turn.

        A branch is given by its last entry. Both may be of one session.
        """
        from turnlog.session.comparison.sidebyside import comparable, compare

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
        """Import other agents' sessions from a file or folder, or from where those agents keep them.

        Sessions that were imported before are only updated.
        """
        from turnlog.exchange.importing.run import import_all
        from turnlog.exchange.source import sources

        return list(import_all(self._interior.creator, sources(path, agent=agent, workspace=workspace), progress))

    def push(
        self, other: Home, ids: Iterable[str] | None = None, **options: Unpack[TransferOptions]
    ) -> list[Transferred]:
        """Copy sessions to another home: all of them, or those with these `ids`.

        Only what is missing is copied, verified, and in an order that can be interrupted anywhere and repeated. A
        session that also continued there becomes a fork of theirs. The sessions that it was forked from and its
        subagents come with it. The content of ignored files that checkpoints cover stays here, unless
        `include_ignored=True`. `dry_run=True` writes nothing; `progress` is called with a number, the total, and an id.
        """
        return _transfer(self, other, ids, **options)

    def pull(
        self, other: Home, ids: Iterable[str] | None = None, **options: Unpack[TransferOptions]
    ) -> list[Transferred]:
        """Copy sessions from another home to this one; see `push`."""
        return _transfer(other, self, ids, **options)

    def sync(
        self, other: Home, ids: Iterable[str] | None = None, **options: Unpack[TransferOptions]
    ) -> tuple[list[Transferred], list[Transferred]]:
        """Push, then pull. The ids may be of sessions that only one side has."""
        from turnlog.transfer.mover import sides

        here, there = (None, None) if ids is None else sides(self._store, interior(other).store, as_list(ids))
        return _transfer(self, other, here, **options), _transfer(other, self, there, **options)

    # ── who wrote it ──────────────────────────────────────────────────────────────────────────────

    def blame(self, path: str | os.PathLike[str], *, lines: tuple[int, int] | None = None) -> Blame:
        """The turn and session that wrote each line of a file as it is now, or the reason why none did.

        This is derived from the checkpoints of all sessions of its folder. `lines` are the first and the last line,
        from 1.
        """
        from turnlog.blame.authorship import blame

        return blame(self._store, path, lines=lines)

    def blame_commit(self, revision: str, path: str | os.PathLike[str] | None = None) -> CommitBlame:
        """The turns that wrote the lines added by a git commit, and their cost; with `path`, in one file.

        The repository is the one that contains the file, or else the current folder.
        """
        from turnlog.blame.commit import blame_commit

        return blame_commit(self._store, revision, path)

    # ── disk ──────────────────────────────────────────────────────────────────────────────────────

    def gc(self, *, quota_bytes: int | None = None, dry_run: bool = False) -> Collected:
        """Remove what no session needs. Safe beside running agents; damage never makes it remove more.

        With a quota, automatic checkpoints are given up until the rest fits: oldest first, and those of tools before
        those of turns. For a home that has a quota of its own, the default is half of it, to leave room.
        """
        from turnlog.thread.space.garbage import collect, estimate

        quota = self._interior.settings.quota_bytes
        if quota_bytes is None and quota is not None:
            quota_bytes = quota // 2
        if dry_run:
            return estimate(self._store, quota_bytes=quota_bytes)
        self._interior.finish_erasing(again=True)
        self._expire_trash()
        return collect(self._store, quota_bytes=quota_bytes, drop=self._drop)

    def _drop(self, given_up: list[KeptCheckpoint]) -> None:
        from turnlog.thread.space.garbage import drop

        drop(self._store, given_up)

    def disk(self) -> dict[str, int]:
        """The size of logs, deleted logs and blobs, in bytes."""
        return derived.disk(self._store)

    # ── blobs ─────────────────────────────────────────────────────────────────────────────────────

    def put_blob(self, data: bytes) -> str:
        """Store bytes; returns their digest, which is their name."""
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

    wanted = None if ids is None else as_list(ids)
    for name in wanted or ():
        if not source.exists(name):
            raise NotFound(f"no session {name!r:.80}", hint="home.find gives the id for a beginning of one")
    mover = Mover(interior(source).store, interior(target).store, dry_run=dry_run, include_ignored=include_ignored)
    return list(mover.run(wanted, progress))

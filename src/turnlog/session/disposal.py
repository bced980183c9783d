"""How a home removes sessions: into the trash and back, for good, and when they have expired."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta
from typing import TYPE_CHECKING

from turnlog.errors import Invalid
from turnlog.log.ids import MARKS
from turnlog.session.interior import Interior
from turnlog.session.lookup import log_to_read, with_exact_id
from turnlog.store import Store
from turnlog.thread.history import History
from turnlog.thread.home.alias import invalidate_aliases, invalidate_cached_aliases
from turnlog.thread.report import Info, info_of
from turnlog.thread.target import Target, seq_of

if TYPE_CHECKING:
    from turnlog.thread.removal.expiry import Keep
    from turnlog.thread.removal.purging import Purged


class Disposal:
    """The operations of a home that delete, restore, purge and expire sessions."""

    def __init__(self, interior: Interior) -> None:
        self._interior = interior

    @property
    def _store(self) -> Store:
        return self._interior.store

    def delete(self, session: str, *, after: Target | None = None) -> None:
        """Put the session with this id into the trash. `restore` brings it back; forks of it keep working.

        `after` is the last entry that the caller has seen, such as `session.seq`; anything else is a `Conflict`.
        """
        store, last = self._store, None if after is None else seq_of(after)
        _refuse_marks(session)
        with_exact_id(lambda name: store.delete(name, after=last), session)
        self._expire_trash()

    def expire(
        self, older_than: timedelta, *, keep: Keep = (), only_deleted: bool = False, dry_run: bool = False
    ) -> Purged:
        """Remove for good the sessions without activity for that long, and those that were deleted before that.

        `keep` are ids of sessions that stay, or a function that decides for an `Info`. A session goes together with
        its forks and subagents, when the last of them has expired. With `only_deleted`, only the trash is emptied.
        """
        from turnlog.thread.removal.expiry import expire

        if not dry_run:
            self._interior.finish_erasing()
        now = self._interior.now()
        purged = expire(self._store, older_than, now=now, keep=keep, only_deleted=only_deleted, dry_run=dry_run)
        if purged.removed and not dry_run:
            invalidate_cached_aliases(self._store)
        return purged

    def _expire_trash(self) -> Purged | None:
        stays = self._interior.settings.trash_for
        return None if stays is None else self.expire(stays, only_deleted=True)

    def restore(self, session: str, *, as_: str | None = None) -> None:
        """Restore the session with this id from the trash. If its id is in use again, give it another one as `as_`.

        Under another id it becomes another session with the same content; forks of the old one keep what they need.
        """
        if as_ is None or as_ == session:
            with_exact_id(self._store.restore, session)
            invalidate_aliases(self._store)
            return
        from turnlog.transfer.renaming import restore_as

        store = self._store
        with_exact_id(lambda name: restore_as(store, name, as_), session)
        invalidate_aliases(store)

    def purge(
        self,
        session: str,
        *,
        deleted: bool | None = None,
        subagents: bool = False,
        forks: bool = False,
        after: Target | None = None,
    ) -> Purged:
        """Remove the session with this id for good, deleted or not, and those of its blobs that nothing else needs.

        With `subagents` and `forks`, those go with it, and theirs. Otherwise they stay, what forks need is kept aside
        for them, and the receipt names them. If both a session and a deleted one have the id, `deleted` says which is
        meant. `after` is the same as in `delete`.
        """
        from turnlog.thread.removal.purging import purge

        store, last, now = self._store, None if after is None else seq_of(after), self._interior.now()
        _refuse_marks(session)
        self._interior.finish_erasing()
        purged = with_exact_id(
            lambda name: purge(store, name, now=now, deleted=deleted, subagents=subagents, forks=forks, after=last),
            session,
        )
        invalidate_cached_aliases(store)
        return purged

    def forks(self, session: str, *, deleted: bool = False) -> list[Info]:
        """The forks of the session with this id, newest first; with `deleted`, those in the trash."""
        from turnlog.thread.removal.purging import PlacedLog, forks_of

        with closing(log_to_read(self._store, session)) as log:
            first = History(self._store, log).first
        place = "deleted" if deleted else "live"
        forks = forks_of((PlacedLog(place, row) for row in self._store.listing(place)), first)
        return [info_of(placed.row) for placed in sorted(forks, key=lambda placed: placed.row.order, reverse=True)]


def _refuse_marks(session: str) -> None:
    if session == MARKS:
        raise Invalid(
            f"{MARKS} cannot be deleted or purged: it holds the titles, tags and notes of other agents' sessions",
            hint=f"`turnlog log {MARKS}` shows it, `turnlog erase -s {MARKS} N` takes a part of it out for good",
        )

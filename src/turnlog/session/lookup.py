"""Which sessions there are, which one is meant, and removing one: by its id and nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice

from turnlog.errors import Ambiguous, Invalid, NotFound
from turnlog.log.ids import handle_of
from turnlog.machine import workspace_path
from turnlog.store import Listed, Log, Store, behind
from turnlog.thread.report import Info, info_of

_FIND = "`turnlog ls` shows the sessions there are; home.find gives the id for a beginning of one"


class Lookup:
    """The half of a home that finds sessions. What changes one takes its id: a beginning of another never will do."""

    def __init__(self, store: Store) -> None:
        self.store = store

    # ── finding ───────────────────────────────────────────────────────────────────────────────────

    def exists(self, session: str) -> bool:
        """Whether there is a session with that id; one in the trash is not there."""
        try:
            self._log_of(session).close()
        except NotFound:
            return False
        return True

    def _log_of(self, session: str) -> Log:
        """The log of exactly that session."""
        _refuse_no_text(session)
        try:
            return self.store.open(session)
        except Invalid:  # no session can be called that
            raise _unknown(session) from None
        except NotFound as error:
            raise NotFound(error.message, hint=error.hint if "deleted" in (error.hint or "") else _FIND) from None

    def find(self, text: str, workspace: str | os.PathLike[str] | None = None, *, deleted: bool = False) -> str:
        """The id of the one session that is called so: an id, a unique beginning of one or of a handle, or `latest`.

        With a workspace only its sessions count. Nothing is opened.
        """
        _refuse_no_text(text)
        ids = list(self.store.ids(like=text, deleted=deleted)) if text else []
        if ids and workspace is not None:
            ids = [row.id for row in _chosen(self.store.sessions(deleted=deleted, ids=set(ids)), workspace)]
        if text in ids:
            return text
        return self._newest_id(workspace) if text == "latest" and not deleted else _match(text, ids)

    def _newest_id(self, workspace: str | os.PathLike[str] | None = None) -> str:
        """The id of the newest session, of a workspace if told: neither a hidden one nor a subagent."""
        rows = (row for row in _chosen(self.store.newest(), workspace) if not row.hidden and row.parent is None)
        first = next(rows, None)
        if first is None:
            where = f" for {workspace_path(workspace)}" if workspace is not None else ""
            raise NotFound(f"there is no session{where} yet", hint="home.create makes one")
        # A session that was made just now and has nothing in it yet is not what one wants to go on with.
        return first.id if first.seq > 1 else next((row for row in rows if row.seq > 1), first).id

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
        """Sessions, the one with the newest entry first. `after` is the last id of the page before."""
        if limit is None:
            # Every one of them, whatever grows meanwhile; only then in their order.
            found = sorted(self.store.sessions(deleted=deleted), key=lambda found: found.order, reverse=True)
            rows = behind(iter(found), after)
        else:
            rows = self.store.newest(deleted=deleted, after=after)
        return list(islice(_chosen(rows, workspace, labels, parent), limit))

    def infos(self, ids: Iterable[str]) -> list[Info]:
        """The rows of these sessions, in this order; those that are gone are left out."""
        rows = {found.id: info_of(found) for found in self.store.sessions(ids=set(ids))}
        return [rows[session_id] for session_id in ids if session_id in rows]

    # ── removing ──────────────────────────────────────────────────────────────────────────────────

    def delete(self, session: str) -> None:
        """Put a session into the trash: the one with that id. `restore` brings it back; forks of it keep working."""
        self._exactly(self.store.delete, session)

    def restore(self, session: str, *, as_: str | None = None) -> None:
        """Bring the session with that id back from the trash. Where another is called so by now, it needs another id.

        Under another id it is another session, with all that was in it; forks of the old one keep what they need.
        """
        if as_ is None or as_ == session:
            self._exactly(self.store.restore, session)
            return
        from turnlog.session.renaming import restore_as

        self._exactly(lambda name: restore_as(self.store, name, as_), session)

    def purge(self, session: str, *, deleted: bool | None = None) -> None:
        """Remove the session with that id for good, deleted or not. What forks of it need is kept.

        Where there is one and a deleted one, `deleted` says which.
        """
        self._exactly(lambda name: self.store.purge(name, deleted=deleted), session)

    def _exactly(self, change: Callable[[str], None], session: str) -> None:
        """Do it to the session with that id, or say that there is none."""
        _refuse_no_text(session)
        try:
            change(session)
        except Invalid:  # no session can be called that
            raise _unknown(session) from None
        except Ambiguous:
            raise
        except NotFound as error:
            raise NotFound(error.message, hint=_FIND) from None


def _refuse_no_text(name: object) -> None:
    if not isinstance(name, str):
        raise Invalid(f"the name of a session is text, not {name!r:.80}")


def _unknown(session: str) -> NotFound:
    return NotFound(f"no session {session!r:.80}", hint=_FIND)


def _match(name: str, ids: list[str]) -> str:
    """The one id that begins like this, or whose handle does."""
    found = [i for i in ids if handle_of(i) == name] or [
        i for i in ids if name and (i.startswith(name) or handle_of(i).startswith(name))
    ]
    if len(found) == 1:
        return found[0]
    if not found:
        raise NotFound(f"no session {name!r}", hint="`turnlog ls` shows the sessions there are")
    some = ", ".join(sorted(found)[:5]) + (" …" if len(found) > 5 else "")
    raise Ambiguous(f"{name!r} fits {len(found)} sessions: {some}", hint="give more of the id")


def _chosen(
    found: Iterable[Listed],
    workspace: str | os.PathLike[str] | None,
    labels: Mapping[str, str] | None = None,
    parent: str | None = None,
) -> Iterator[Info]:
    place = None if workspace is None else workspace_path(workspace)
    wanted = (labels or {}).items()
    for row in map(info_of, found):
        is_here = (place is None or row.workspace == place) and (parent is None or row.parent == parent)
        if is_here and wanted <= row.labels.items():
            yield row

"""Finding sessions: by exact id where one is opened or changed, otherwise also by the beginning of an id."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import TypeVar

from turnlog.errors import Ambiguous, Invalid, NotFound
from turnlog.log.ids import MARKS, handle_of
from turnlog.machine.folder import workspace_path
from turnlog.store import Listed, Log, Store, derived
from turnlog.store.listing import ListingCursor, rest_after
from turnlog.thread.history import opened
from turnlog.thread.report import SAFETY_NET_AGENT, Info, info_of, is_net

_FIND = "`turnlog ls` shows the sessions there are; home.find gives the id for a beginning of one"
_R = TypeVar("_R")


def with_exact_id(call: Callable[[str], _R], session: str) -> _R:
    """Call with an exact id; `NotFound` if there is no such session, even if another id begins like this."""
    check_text(session)
    try:
        return call(session)
    except Invalid:
        if _can_be_id(session):
            raise  # about something else
        raise _unknown(session) from None
    except Ambiguous:
        raise
    except NotFound as error:
        raise NotFound(error.message, hint=_FIND) from None


def is_session(store: Store, session: str) -> bool:
    """Whether there is a session with exactly this id; deleted sessions do not count."""
    check_text(session)
    return derived.exists(store, session)


def log_to_write(store: Store, session: str) -> Log:
    """The log of the session with exactly this id."""
    try:
        return with_exact_id(store.open, session)
    except NotFound as error:
        if derived.exists(store, session, deleted=True):
            raise NotFound(error.message, hint="it was deleted; home.restore brings it back") from None
        raise


def log_to_read(store: Store, session: str) -> Log:
    """The log of the session with exactly this id, deleted or not.

    A purged session that is kept for forks is `NotFound`.
    """
    check_text(session)
    if not any(derived.exists(store, session, deleted=deleted) for deleted in (False, True)):
        raise _unknown(session)
    return with_exact_id(partial(store.open, read_only=True), session)


def find_id(store: Store, text: str, workspace: str | os.PathLike[str] | None, *, deleted: bool) -> str:
    """The id of the one session that `text` names: an id, a unique beginning of one or of a handle, or `latest`."""
    check_text(text)
    ids = list(derived.ids(store, like=text, deleted=deleted)) if text else []
    if ids and workspace is not None:
        ids = [row.id for row in matching(derived.sessions(store, deleted=deleted, ids=set(ids)), workspace)]
    if text in ids:
        return text
    return newest_id(store, workspace) if text == "latest" and not deleted else _match(text, ids)


def newest_id(store: Store, workspace: str | os.PathLike[str] | None) -> str:
    """The id of the newest conversation, of a workspace if given; neither a hidden session nor a subagent."""
    conversations = (row for row in matching(derived.newest(store), workspace) if not row.hidden and row.parent is None)
    first = next(conversations, None)
    if first is None:
        where = f" for {workspace_path(workspace)}" if workspace is not None else ""
        raise NotFound(f"there is no session{where} yet", hint="`turnlog run -- COMMAND` or home.create makes one")
    # A session that was just created and is still empty is not the one to continue.
    begun = (row for row in chain([first], conversations) if row.seq > 1 and not is_net_in(store, row))
    return next(begun, first).id


def is_net_in(store: Store, row: Info) -> bool:
    """Whether a session of this store is a net."""
    if row.agent != SAFETY_NET_AGENT:
        return False
    with opened(store, store.open(row.id, read_only=True)) as history:
        return is_net(history.state)


def rows(store: Store, *, deleted: bool, is_paged: bool, after: str | None) -> Iterator[Listed]:
    """The rows of sessions, by their newest entry, newest first, after the cursor `after`."""
    cursor = None if after is None else _cursor_at(store, after, deleted)
    if is_paged:
        return derived.newest(store, deleted=deleted, after=cursor)
    # A full listing reads all sessions before sorting, so that one that grows during it is not missed.
    return rest_after(
        iter(sorted(derived.sessions(store, deleted=deleted), key=lambda row: row.order, reverse=True)), cursor
    )


def _cursor_at(store: Store, after: str, deleted: bool) -> ListingCursor:
    """The position of a cursor, or of a session by its id, as long as that session exists."""
    check_text(after)
    named = (row.order for row in derived.sessions(store, deleted=deleted, ids=[after]))
    cursor = ListingCursor.of(after) or next(named, None)
    if cursor is None:
        hint = "use the `cursor` of the last row, or start without `after`"
        raise NotFound(f"no session {after!r:.80} in this listing", hint=hint)
    return cursor


def check_text(name: object) -> None:
    """Refuse a name of a session that is not text."""
    if not isinstance(name, str):
        raise Invalid(f"the name of a session is text, not {name!r:.80}")


def _can_be_id(session: str) -> bool:
    from turnlog.log.draft import MAX_ID

    try:
        return 0 < len(session) <= MAX_ID and bool(session.encode())
    except UnicodeEncodeError:
        return False


def _unknown(session: str) -> NotFound:
    return NotFound(f"no session {session!r:.80}", hint=_FIND)


def _match(name: str, ids: list[str]) -> str:
    """The one id that begins like this, or whose handle does."""
    chosen = [id for id in ids if handle_of(id) == name] or [
        id for id in ids if name and (id.startswith(name) or handle_of(id).startswith(name))
    ]
    if len(chosen) == 1:
        return chosen[0]
    if not chosen:
        raise NotFound(f"no session {name!r}", hint="`turnlog ls` shows the sessions there are")
    some = ", ".join(sorted(chosen)[:5]) + (" …" if len(chosen) > 5 else "")
    raise Ambiguous(f"{name!r} fits {len(chosen)} sessions: {some}", hint="give more of the id")


def matching(
    listing: Iterable[Listed],
    workspace: str | os.PathLike[str] | None,
    labels: Mapping[str, str] | None = None,
    parent: str | None = None,
) -> Iterator[Info]:
    """The sessions of a workspace, with all these labels, spawned by `parent`; never the session of marks."""
    folder = None if workspace is None else workspace_path(workspace)
    wanted = (labels or {}).items()
    for row in map(info_of, listing):
        is_here = (folder is None or row.workspace == folder) and (parent is None or row.parent == parent)
        if is_here and wanted <= row.labels.items() and row.id != MARKS:
            yield row

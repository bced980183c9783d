"""Which sessions there are, and which one is meant: by its id and nothing else where one is opened or changed."""

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
from turnlog.store.listing import ListingCursor, behind
from turnlog.thread.history import opened
from turnlog.thread.report import SAFETY_NET_AGENT, Info, info_of, is_net

_FIND = "`turnlog ls` shows the sessions there are; home.find gives the id for a beginning of one"
_R = TypeVar("_R")


def with_exact_id(call: Callable[[str], _R], session: str) -> _R:
    """Do it with the session that has that id, or say that there is none: a beginning of another will not do."""
    _refuse_no_text(session)
    try:
        return call(session)
    except Invalid:  # no session can be called that
        raise _unknown(session) from None
    except Ambiguous:
        raise
    except NotFound as error:
        raise NotFound(error.message, hint=_FIND) from None


def log_to_write(store: Store, session: str) -> Log:
    """The log of exactly that session."""
    try:
        return with_exact_id(store.open, session)
    except NotFound as error:
        if session in derived.ids(store, like=session, deleted=True):
            raise NotFound(error.message, hint="it was deleted; home.restore brings it back") from None
        raise


def log_to_read(store: Store, session: str) -> Log:
    """The log of exactly that session, deleted or not. Of one that was purged, nobody reads what its forks need."""
    _refuse_no_text(session)
    if not any(session in derived.ids(store, like=session, deleted=deleted) for deleted in (False, True)):
        raise _unknown(session)
    return with_exact_id(partial(store.open, read_only=True), session)


def find_id(store: Store, text: str, workspace: str | os.PathLike[str] | None, *, deleted: bool) -> str:
    """The id of the one session that is called so: an id, a unique beginning of one or of a handle, or `latest`."""
    _refuse_no_text(text)
    ids = list(derived.ids(store, like=text, deleted=deleted)) if text else []
    if ids and workspace is not None:
        ids = [row.id for row in matching(derived.sessions(store, deleted=deleted, ids=set(ids)), workspace)]
    if text in ids:
        return text
    return newest_id(store, workspace) if text == "latest" and not deleted else _match(text, ids)


def newest_id(store: Store, workspace: str | os.PathLike[str] | None) -> str:
    """The id of the newest conversation, of a workspace if told: neither a hidden one nor a subagent."""
    rows = (row for row in matching(derived.newest(store), workspace) if not row.hidden and row.parent is None)
    first = next(rows, None)
    if first is None:
        where = f" for {workspace_path(workspace)}" if workspace is not None else ""
        raise NotFound(f"there is no session{where} yet", hint="`turnlog run -- COMMAND` makes one, and home.create")
    # One that was made just now and has nothing in it yet is not what one wants to go on with.
    talks = (row for row in chain([first], rows) if row.seq > 1 and not is_net_in(store, row))
    return next(talks, first).id


def is_net_in(store: Store, row: Info) -> bool:
    """Whether a session of that store is a safety net."""
    if row.agent != SAFETY_NET_AGENT:
        return False
    with opened(store, store.open(row.id, read_only=True)) as history:
        return is_net(history.state)


def rows(store: Store, *, deleted: bool, is_paged: bool, after: str | None) -> Iterator[Listed]:
    """Sessions, the one with the newest entry first, behind `after`."""
    cursor = None if after is None else _place(store, after, deleted)
    if is_paged:
        return derived.newest(store, deleted=deleted, after=cursor)
    # Every one of them, whatever grows meanwhile; only then in their order.
    return behind(
        iter(sorted(derived.sessions(store, deleted=deleted), key=lambda row: row.order, reverse=True)), cursor
    )


def _place(store: Store, after: str, deleted: bool) -> ListingCursor:
    """That of a cursor; or of a session by its id, as long as it is there."""
    _refuse_no_text(after)
    named = (row.order for row in derived.sessions(store, deleted=deleted, ids=[after]))
    cursor = ListingCursor.of(after) or next(named, None)
    if cursor is None:
        raise NotFound(f"no session {after!r:.80} in this listing", hint="go on with `cursor` of the last row, or anew")
    return cursor


def _refuse_no_text(name: object) -> None:
    if not isinstance(name, str):
        raise Invalid(f"the name of a session is text, not {name!r:.80}")


def _unknown(session: str) -> NotFound:
    return NotFound(f"no session {session!r:.80}", hint=_FIND)


def _match(name: str, ids: list[str]) -> str:
    """The one id that begins like this, or whose handle does."""
    matching = [i for i in ids if handle_of(i) == name] or [
        i for i in ids if name and (i.startswith(name) or handle_of(i).startswith(name))
    ]
    if len(matching) == 1:
        return matching[0]
    if not matching:
        raise NotFound(f"no session {name!r}", hint="`turnlog ls` shows the sessions there are")
    some = ", ".join(sorted(matching)[:5]) + (" …" if len(matching) > 5 else "")
    raise Ambiguous(f"{name!r} fits {len(matching)} sessions: {some}", hint="give more of the id")


def matching(
    rows: Iterable[Listed],
    workspace: str | os.PathLike[str] | None,
    labels: Mapping[str, str] | None = None,
    parent: str | None = None,
) -> Iterator[Info]:
    """Those of a workspace, with all these labels, started by that session; never what was said of other agents'."""
    folder = None if workspace is None else workspace_path(workspace)
    wanted = (labels or {}).items()
    for row in map(info_of, rows):
        is_here = (folder is None or row.workspace == folder) and (parent is None or row.parent == parent)
        if is_here and wanted <= row.labels.items() and row.id != MARKS:
            yield row

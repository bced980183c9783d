"""Under which other ids a session goes on in its agent: which session is meant by one of them.

The logs say it. What is kept beside them only saves looking into all of them: it holds until aliases change,
whichever process makes it, and until other logs are brought in.
"""

from __future__ import annotations

import os

import msgspec
from msgspec import Struct

from turnlog.errors import Invalid, NotFound
from turnlog.log.entry import Alias
from turnlog.log.ids import imported_id
from turnlog.store import Store, derived
from turnlog.thread.history import opened

_NAME = "aliases"
_CHANGE = "aliases-change"


class _Aliases(Struct, array_like=True):
    """The session of each agent and id, as of one change."""

    change: bytes
    sessions: dict[str, str]


_decode = msgspec.msgpack.Decoder(_Aliases).decode
_encode = msgspec.msgpack.Encoder().encode


def session_under(store: Store, agent: str, native: str, *, remember: bool = True) -> str | None:
    """The session that goes on under that id of its agent. Without `remember`, nothing is written."""
    return _known(store, remember=remember).get(f"{agent}\n{native}")


def session_of(store: Store, agent: str, native: str, *, remember: bool = True) -> str | None:
    """The session here that another agent's is: imported under its id, or gone on under it."""
    name = imported_id(agent, native)
    try:
        store.open(name).close()
    except (NotFound, Invalid):  # not here, in the trash, or no id at all
        return session_under(store, agent, native, remember=remember)
    return name


def is_relayed(store: Store, session: str) -> bool:
    """Whether hooks of its agent tell of the turns of a session."""
    with opened(store, store.open(session, read_only=True)) as history:
        return history.state.is_relayed


def go_on_under(store: Store, session: str, alias: Alias) -> None:
    """From now on, what that agent says under that id is said in the session."""
    from turnlog.thread.appender import appending  # readers do not load the writing side

    with appending(store, store.open(session)) as appender:
        if f"{alias.agent}\n{alias.native}" not in appender.state.aliases:
            appender.append([alias])
    aliases_changed(store)
    _known(store, remember=True)  # the agent's first hook does not wait for that


def aliases_changed(store: Store) -> None:
    """Logs have other aliases, or there are other logs: they are looked into again when somebody asks."""
    derived.save(store, _CHANGE, os.urandom(16))


def _known(store: Store, *, remember: bool) -> dict[str, str]:
    change = derived.load(store, _CHANGE)  # before the logs: one that comes meanwhile is of the next change
    try:
        known = _decode(derived.load(store, _NAME))
        if known.change == change:
            return known.sessions
    except msgspec.DecodeError:
        pass  # never looked, or as an earlier version kept it
    aliases, is_empty = _looked(store)
    if remember and not is_empty:  # a question creates no home
        derived.save(store, _NAME, _encode(_Aliases(change, aliases)))
    return aliases


def _looked(store: Store) -> tuple[dict[str, str], bool]:
    """All there are, and whether there is no session."""
    aliases: dict[str, str] = {}
    is_empty = True
    for row in store.listing():
        is_empty = False
        if row.start is None or row.start.agent is None or row.start.origin is None:
            continue  # one that was made here goes on here
        try:
            with opened(store, store.open(row.id, read_only=True)) as history:
                aliases.update({name: row.id for name in history.state.aliases})
        except NotFound:
            continue  # it was removed meanwhile
    return aliases, is_empty

"""Aliases: the other ids under which an agent continues a session, and the session that each of them means.

The logs are the source. The cached table only saves reading all of them: it is valid until any process changes an alias
or brings in other logs.
"""

from __future__ import annotations

import os

import msgspec
from msgspec import Struct

from turnlog.errors import NotFound, Unsupported
from turnlog.log.codec import BAD_JSON
from turnlog.log.entry import Alias
from turnlog.log.ids import imported_id
from turnlog.store import Store, derived
from turnlog.thread.history import opened

_NAME = "aliases"
_CHANGE = "aliases-change"


class _Aliases(Struct, array_like=True):
    """The cached table: the session of each agent and id, valid for one change id."""

    change: bytes
    sessions: dict[str, str]


_decode = msgspec.msgpack.Decoder(_Aliases).decode
_encode = msgspec.msgpack.Encoder().encode


def session_of_alias(store: Store, agent: str, native: str, *, remember: bool = True) -> str | None:
    """The session that an agent continues under the id `native`. Without `remember`, nothing is written."""
    return _table(store, remember=remember).get(f"{agent}\n{native}")


def session_of(store: Store, agent: str, native: str, *, remember: bool = True) -> str | None:
    """The session in this home for an agent's id: imported under that id, or continued under it as an alias."""
    name = imported_id(agent, native)
    return name if derived.exists(store, name) else session_of_alias(store, agent, native, remember=remember)


def is_relayed(store: Store, session: str) -> bool:
    """Whether the agent's hooks report the turns of a session."""
    with opened(store, store.open(session, read_only=True)) as history:
        return history.state.is_relayed


def append_alias(store: Store, session: str, alias: Alias) -> None:
    """Append an alias: what the agent says under that id belongs to this session from now on."""
    from turnlog.thread.appender import appending  # readers do not load the writing side

    with appending(store, store.open(session)) as appender:
        if f"{alias.agent}\n{alias.native}" not in appender.state.aliases:
            appender.append([alias])
    invalidate_aliases(store)
    _table(store, remember=True)  # so that the agent's first hook does not have to rebuild the table


def invalidate_aliases(store: Store) -> None:
    """Invalidate the cached table, because aliases changed or logs were added. The next lookup rebuilds it."""
    derived.save(store, _CHANGE, os.urandom(16))


def invalidate_cached_aliases(store: Store) -> None:
    """Invalidate the cached table, if there is one: an id that it names may become that of another session."""
    if derived.load(store, _NAME):
        invalidate_aliases(store)


def _table(store: Store, *, remember: bool) -> dict[str, str]:
    # before the logs are read: an alias that is appended meanwhile belongs to the next change
    change = derived.load(store, _CHANGE)
    try:
        kept = _decode(derived.load(store, _NAME))
        if kept.change == change:
            return kept.sessions
    except BAD_JSON:
        pass  # no table yet, or one of an earlier version
    aliases, is_empty = _read_all(store)
    if remember and not is_empty:  # a lookup creates no home
        derived.save(store, _NAME, _encode(_Aliases(change, aliases)))
    return aliases


def _read_all(store: Store) -> tuple[dict[str, str], bool]:
    """Read the aliases from all logs; also returns whether the store has no sessions."""
    aliases: dict[str, str] = {}
    is_empty = True
    for row in store.listing():
        is_empty = False
        if row.start is None or row.start.agent is None or row.start.origin is None:
            continue  # a session that was created here has no other id
        try:
            with opened(store, store.open(row.id, read_only=True)) as history:
                aliases.update({name: row.id for name in history.state.aliases})
        except (NotFound, Unsupported):
            continue  # it was removed concurrently, or is of a later version, whose aliases are not known here
    return aliases, is_empty

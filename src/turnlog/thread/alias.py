"""Under which other ids a session goes on in its agent: which session is meant by one of them.

The log of each session says it. What is kept beside the logs only saves looking into all of them.
"""

from __future__ import annotations

import msgspec

from turnlog.errors import NotFound
from turnlog.log.entry import Alias
from turnlog.store import Store, derived
from turnlog.thread.history import opened

_NAME = "aliases"
_decode = msgspec.msgpack.Decoder(dict[str, str]).decode


def session_under(store: Store, agent: str, native: str) -> str | None:
    """The session that goes on under that id of its agent."""
    return _known(store).get(f"{agent}\n{native}")


def is_relayed(store: Store, session: str) -> bool:
    """Whether hooks of its agent tell of the turns of a session."""
    with opened(store, store.open(session, read_only=True)) as history:
        return history.state.is_relayed


def go_on_under(store: Store, session: str, alias: Alias) -> None:
    """From now on, what that agent says under that id is said in the session."""
    from turnlog.thread.appender import appending  # readers do not load the writing side

    name = f"{alias.agent}\n{alias.native}"
    aliases = _known(store)
    with appending(store, store.open(session)) as appender:
        if name not in appender.state.aliases:
            appender.append([alias])
    derived.save(store, _NAME, msgspec.msgpack.encode({**aliases, name: session}))


def _known(store: Store) -> dict[str, str]:
    data = derived.load(store, _NAME)
    try:
        return _decode(data)
    except msgspec.DecodeError:
        aliases, is_empty = _looked(store)
        if not is_empty:  # a question creates no home
            derived.save(store, _NAME, msgspec.msgpack.encode(aliases))
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

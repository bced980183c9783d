"""The session here that belongs to a source: imported from it before, or the one that it was written from."""

from __future__ import annotations

from msgspec.structs import replace

from turnlog.errors import Corrupt, Invalid, NotFound
from turnlog.exchange.origin import decode_origin, start_of
from turnlog.formats import Record, SessionHeader, Source, format_of
from turnlog.log.digest import sha256
from turnlog.log.entry import Message
from turnlog.log.ids import imported_id
from turnlog.store import Store
from turnlog.thread.history import History, loaded
from turnlog.thread.home.alias import session_of_alias
from turnlog.thread.home.creator import Creator
from turnlog.thread.home.handedover import HandedOver


def imported_as(store: Store, source: Source) -> str | None:
    """The id of the session that a source was imported as, or written from; None if there is none."""
    header = format_of(source.agent).read(source).header
    try:
        session_id, history = find_session(store, source, header)
    except Corrupt:
        return None  # the source itself can be read
    if history is None:
        return repeated_session(store, source, header)
    history.close()
    return session_id


def find_session(store: Store, source: Source, header: SessionHeader) -> tuple[str, History | None]:
    """The id that the session of a source has or will have, and the session if it exists.

    Raises `Corrupt` if nobody can tell of which source a session is: what is imported must not come twice.
    """
    identity = header.identity or header.id
    chosen = imported_id(source.agent, header.id)
    other = f"{chosen}-{sha256(identity.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
    for session_id in (chosen, other):
        history = open_session(store, session_id)
        if history is None:
            alias = session_of_alias(store, source.agent, header.id)
            return (session_id, None) if alias is None else (alias, open_session(store, alias))
        start = start_of(history)
        if start is None:
            history.close()
            hint = f"look with `turnlog doctor {session_id}`"
            raise Corrupt(f"the first line of session {session_id} cannot be read", hint=hint)
        origin = decode_origin(start)
        if (origin.agent, origin.identity) == (source.agent, identity):
            return session_id, history
        history.close()
    raise Invalid(f"the ids {chosen} and {other} belong to other sessions")


def repeated_session(store: Store, source: Source, header: SessionHeader) -> str | None:
    """The session here that a source is a copy of, if nothing was added to the copy."""
    copied = header.copied
    original = open_session(store, copied.of[0].session) if copied is not None else None
    if copied is None or original is None:
        return None
    original.close()
    messages = 0
    for step in format_of(source.agent).read(source).steps:
        if isinstance(step, Record) and isinstance(step.entry, Message):
            messages += 1
            at = step.entry.at
            if messages > copied.messages or (at is not None and at.timestamp() * 1000 >= copied.until + 1):
                return None
    return copied.of[0].session


def with_known_copy(creator: Creator, source: Source, header: SessionHeader) -> SessionHeader:
    """Return a header with what is known here of the copy, if the format has no place for that."""
    if header.copied is not None:
        return header
    return replace(header, copied=HandedOver(creator.created_here.location).all().get((source.agent, header.id)))


def open_session(store: Store, session_id: str) -> History | None:
    """Open a session here; None if it does not exist."""
    try:
        log = store.open(session_id)
    except NotFound:
        return None
    return loaded(store, log)


def is_here(store: Store, agent: str, native: str) -> bool:
    """Whether a session of an agent was imported. Nothing of it is read."""
    try:
        store.open(imported_id(agent, native), read_only=True).close()
    except NotFound:
        return False
    return True

"""Restoring a deleted session under another id, because its own is in use again."""

from __future__ import annotations

from contextlib import closing

from turnlog.errors import Corrupt, Invalid, NotFound
from turnlog.log.codec import Damage
from turnlog.log.draft import MAX_ID
from turnlog.store import Store, derived
from turnlog.thread.removal.erasing import erase_there
from turnlog.transfer.outgoing import outgoing_of


def restore_as(store: Store, session: str, name: str) -> None:
    """Restore a deleted session as another one: the same lines after a new first line."""
    if not isinstance(name, str) or not 0 < len(name) <= MAX_ID:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise Invalid(f"the session id {name!r:.80} is not a text of 1 to {MAX_ID} characters")
    listed = next(iter(derived.sessions(store, deleted=True, ids={session})), None)
    if listed is None:
        raise NotFound(f"no deleted session {session!r}")
    with closing(store.open(session, read_only=True, first=listed.first)) as log:
        outgoing = outgoing_of(store, log).renamed(name)
        lines: list[bytes] = []
        with store.keeping():
            for item in outgoing.lines():
                if isinstance(item, Damage):
                    raise Corrupt(
                        f"session {session} is damaged at byte {item.offset}, and cannot be copied whole",
                        hint=f"repair it first: `turnlog doctor --repair {session}`",
                    )
                if item.blobs:
                    derived.put(store, item.blobs)
                lines.append(item.line)
            store.adopt(name, lines, after=0, parent=outgoing.start.fork)
        if erased := derived.erasures(store, listed.first).get(listed.first):
            erase_there(
                store, name, outgoing.first, [one for one in erased if not one.part and one.seq > outgoing.since]
            )
    store.purge(session, deleted=True)

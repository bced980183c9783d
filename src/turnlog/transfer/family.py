"""Sessions that are transferred together: those with their subagents, and families of forks."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from turnlog.errors import TurnlogError, Unavailable
from turnlog.store import Listed, Place, Store
from turnlog.thread.history import opened
from turnlog.transfer.outgoing import SessionKey

_ELSEWHERE: tuple[Place, ...] = ("deleted", "aside")


def with_subagents(store: Store, live: Iterable[SessionKey], ids: Iterable[str]) -> list[SessionKey]:
    """Return the sessions with these ids, and their subagents among the `live` sessions."""
    chosen: dict[SessionKey, None] = {}
    by_id = {key.id: key for key in live}
    waiting = [by_id.get(session_id, SessionKey(session_id, session_id)) for session_id in ids]
    while waiting:
        key = waiting.pop(0)
        if key in chosen:
            continue
        chosen[key] = None
        try:
            with opened(store, store.open(key.id, read_only=True, first=key.first)) as history:
                waiting += [by_id[child] for child in history.state.children if child in by_id]
        except Unavailable:
            raise
        except TurnlogError:
            continue  # the same error is reported when its turn comes
    return list(chosen)


def families_of(store: Store, live: Collection[Listed], chosen: Iterable[SessionKey]) -> list[list[SessionKey]]:
    """Return the chosen sessions by family: forks of each other, or of the same session.

    To transfer one session may transfer others of its family, and none of another one.
    """
    parents = _parents(live)
    if not {row.first for row in live}.issuperset(parents.values()):
        for place in _ELSEWHERE:
            parents |= _parents(store.listing(place))
    families: dict[str, list[SessionKey]] = {}
    for key in chosen:
        families.setdefault(_root(key.first, parents), []).append(key)
    return list(families.values())


def _parents(rows: Iterable[Listed]) -> dict[str, str]:
    """Return the parents of the forks among these sessions, all by the ids of their first entries."""
    return {row.first: row.start.fork.base for row in rows if row.start is not None and row.start.fork is not None}


def _root(first: str, parents: dict[str, str]) -> str:
    """Return the session from which the family comes; of damaged ones that are forks of each other, always the same."""
    seen: set[str] = set()
    while first in parents and first not in seen:
        seen.add(first)
        first = parents[first]
    return min(seen) if first in seen else first

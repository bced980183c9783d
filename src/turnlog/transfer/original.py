"""Sessions and forks that a transfer made before: an unchanged copy of a session of the target is not sent back."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import ExitStack, closing

from turnlog.errors import Corrupt, NotFound, Unsupported
from turnlog.log.part import Fork
from turnlog.store import Listed, Store
from turnlog.transfer.agreement import are_same
from turnlog.transfer.outgoing import Outgoing, OutgoingLine, SessionKey, outgoing_of


def original_at_target(target: Store, rows: Collection[Listed], source: Store, outgoing: Outgoing) -> SessionKey | None:
    """Return the session at the target that this one is an unchanged copy of; None if there is none.

    `rows` are the sessions of the target.
    """
    with ExitStack() as logs:
        try:
            original = _Search(target, rows, source, logs).original_of(outgoing)
            return original.source if original is not None and _begins_like(original, outgoing) else None
        except (NotFound, Corrupt, Unsupported):
            return None  # an unreadable session is no reason to skip this one


class _Search:
    """The search for an original. `logs` closes the logs that it opens."""

    def __init__(self, target: Store, rows: Collection[Listed], source: Store, logs: ExitStack) -> None:
        self._target = target
        self._rows = rows
        self._source = source
        self._logs = logs

    def _open(self, store: Store, session_id: str, first: str) -> Outgoing:
        log = store.open(session_id, read_only=True, first=first)
        return outgoing_of(store, self._logs.enter_context(closing(log)))

    def original_of(self, outgoing: Outgoing) -> Outgoing | None:
        """Return the target's session that this one was made from, as this home would get it."""
        fork = outgoing.start.fork
        if fork is None:
            return None
        # It is a fork because its session went on here as well.
        try:
            original = self._open(self._target, fork.session, fork.base).fork_with_id(
                outgoing.id, fork.seq, second_of(outgoing)
            )
        except NotFound:
            original = None
        if original is not None:
            return original
        # Or it is a fork of a session that became such a fork.
        parent = self.original_of(self._open(self._source, fork.session, fork.base))
        return None if parent is None else self._moved_with(parent, fork, outgoing.id)

    def _moved_with(self, parent: Outgoing, fork: Fork, wanted_id: str) -> Outgoing | None:
        """Return the target's fork that got `wanted_id` here, because its parent became another session here."""
        for row in self._rows:
            if row.start is not None and row.start.fork is not None:
                original = self._open(self._target, row.id, row.first)
                moved = original.moved(fork.session, fork.base, parent.cuts)
                if moved.id == wanted_id:
                    return moved
        return None


def existing_fork_id(
    target: Store, rows: Iterable[Listed], outgoing: Outgoing, common: OutgoingLine, first: OutgoingLine
) -> str | None:
    """Return the id of the fork at the target whose first entry was erased since it was sent; None if there is none."""
    if not first.entry.void:
        return None
    for row in rows:
        fork = row.start.fork if row.start is not None else None
        if fork is None or (fork.base, fork.seq, fork.id) != (outgoing.first, common.entry.seq, common.entry.id):
            continue
        with closing(target.open(row.id, read_only=True, first=row.first)) as log:
            if second_of(outgoing_of(target, log)) == first.entry.id:
                return row.first
    return None


def _begins_like(whole: Outgoing, beginning: Outgoing) -> bool:
    """Whether every line of `beginning` is the next line of `whole`."""
    lines = (item for item in whole.lines() if isinstance(item, OutgoingLine))
    for item in beginning.lines():
        if isinstance(item, OutgoingLine) and ((other := next(lines, None)) is None or not are_same(item, other)):
            return False
    return True


def second_of(outgoing: Outgoing) -> str:
    """Return the id of the entry after the first line, with which a fork's own content begins; "" if there is none."""
    lines = (item.entry.id for item in outgoing.lines() if isinstance(item, OutgoingLine))
    next(lines, None)
    return next(lines, "")

"""What other sessions did in the same workspace, so that a rewind does not take it back."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from turnlog.log.entry import Checkpoint
from turnlog.log.fold import State
from turnlog.log.ids import word_of
from turnlog.session.content import given_up
from turnlog.session.history import History
from turnlog.session.places import is_alive
from turnlog.session.span import Span, spans

if TYPE_CHECKING:
    from turnlog.session.home import Home


def work_of_others(home: Home, session_id: str, workspace: str | None, since: Checkpoint) -> list[Span]:
    """Turns of other sessions in that workspace that ended, or may still run, after that checkpoint."""
    found: list[Span] = []
    for row in home.sessions():
        if row.id == session_id or row.workspace != workspace or since.at is None:
            continue
        log = home.store.base(row.id)
        history = History(home.store, log)
        try:
            history.load()
            if row.updated_at is not None and row.updated_at < since.at and not _may_run(history.state):
                continue
            gone = partial(given_up, home.store, dropped=history.state.dropped)
            for span in spans(history.forward(), whole=history.whole, given_up=gone):
                ended = span.end.at if span.end is not None else None
                if ended is None or ended >= since.at:
                    found.append(Span(span.begin, span.end, f"session {row.handle}, {span.what},", span.paths))
        finally:
            log.close()
            history.close()
    return found


def _may_run(state: State) -> bool:
    """Whether a turn has begun, and the process that began it is still there: a command may take hours."""
    who = state.writers.get(word_of(state.turn)) if state.turn is not None else None
    return who is not None and is_alive(who)

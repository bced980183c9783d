"""A turn that begins and ends: completed, aborted or failed."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

from turnlog.errors import Invalid
from turnlog.log.entry import Turn
from turnlog.log.ids import new_id
from turnlog.session.messagefields import cause_of
from turnlog.thread.appender import Appender


@contextmanager
def bracketed(appender: Appender, append_end: Callable[[Turn, str], None]) -> Generator[str]:
    """A turn for the duration of the block; an exception marks it failed, an interrupt aborted."""
    turn = new_id()
    try:
        with appender.history.mutex:
            if appender.turn is not None:
                raise Invalid("a turn has begun already and not ended", hint="turns do not nest")
            appender.turn = turn
        append_end(Turn(state="begin", turn=turn), "begin")
    except BaseException:
        if appender.turn == turn:
            appender.turn = None
        raise
    state, error = "completed", None
    try:
        yield turn
    except Exception as reason:
        state, error = "failed", cause_of(reason)
        raise
    except BaseException:
        state = "aborted"
        raise
    finally:
        try:
            append_end(Turn(state=state, error=error, turn=turn), "end")
        finally:
            appender.turn = None

"""Turns: from their beginning to their end as completed, aborted or failed."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Literal, cast

from turnlog.errors import Invalid
from turnlog.log.entry import Turn, TurnState
from turnlog.log.ids import new_id
from turnlog.thread.appender import Appender

When = Literal["begin", "end"]


@contextmanager
def bracketed(appender: Appender, append_mark: Callable[[Turn, When], None]) -> Generator[str]:
    """A turn for the duration of the block; an exception marks it failed, an interrupt aborted."""
    turn = new_id()
    try:
        with appender.history.mutex:
            if appender.turn is not None:
                raise Invalid("a turn has begun already and not ended", hint="turns do not nest")
            appender.turn = turn
        append_mark(Turn(state="begin", turn=turn), "begin")
    except BaseException:
        if appender.turn == turn:
            appender.turn = None
        raise
    state: TurnState = "completed"
    error: str | None = None
    try:
        yield turn
    except Exception as reason:
        state, error = "failed", _cause_of(reason)
        raise
    except BaseException:
        state = "aborted"
        raise
    finally:
        try:
            append_mark(Turn(state=state, error=error, turn=turn), "end")
        finally:
            appender.turn = None


def _cause_of(error: BaseException) -> str:
    """An error on one line; for a group of errors, each of them."""
    if isinstance(error, BaseExceptionGroup):
        causes = (_cause_of(part) for part in cast("BaseExceptionGroup[BaseException]", error).exceptions)
        return "; ".join(dict.fromkeys(causes))[:1000]
    return f"{type(error).__name__}: {error}"[:1000]

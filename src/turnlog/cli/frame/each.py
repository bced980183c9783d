"""Several sessions, one after the other: what was done before an error is told before the error."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from turnlog.errors import TurnlogError
from turnlog.view.number import count


def act_on_each(ids: Sequence[str], act: Callable[[str], object]) -> tuple[list[str], TurnlogError | None]:
    """Act on each of these sessions up to the first error; gives those that are done, and the error.

    An error before anything was done is raised. Any other one is to be raised after telling what was done.
    """
    done: list[str] = []
    for session_id in ids:
        try:
            act(session_id)
        except TurnlogError as error:
            if not done:
                raise
            left = len(ids) - len(done)
            error.message = f"session {session_id}: {error.message}; {count(left, 'session')} not done"
            return done, error
        done.append(session_id)
    return done, None

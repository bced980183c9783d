"""Acting on several sessions, one after the other, up to the first error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from turnlog.errors import TurnlogError
from turnlog.view.number import count


class EachOutcome(NamedTuple):
    """The sessions that are done, and the error that stopped it: print the sessions, then call `raise_error`."""

    done: list[str]
    error: TurnlogError | None

    def raise_error(self) -> None:
        """Raise the error, if there was one."""
        if self.error is not None:
            raise self.error


def act_on_each(ids: Sequence[str], act: Callable[[str], object]) -> EachOutcome:
    """Act on each of these sessions, up to the first error. An error before anything was done is raised."""
    done: list[str] = []
    for session_id in ids:
        try:
            act(session_id)
        except TurnlogError as error:
            if not done:
                raise
            left = len(ids) - len(done)
            error.message = f"session {session_id}: {error.message}; {count(left, 'session')} not done"
            return EachOutcome(done, error)
        done.append(session_id)
    return EachOutcome(done, None)

"""Queries of the catalog: one thread at a time, each after a refresh, until nobody waits for the answer."""

from __future__ import annotations

import sqlite3
from functools import wraps
from typing import TYPE_CHECKING

from turnlog.catalog.waiter import GivenUp, waiter_now

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Concatenate, ParamSpec, Protocol, TypeVar

    _T = TypeVar("_T")
    _P = ParamSpec("_P")

    class Answering(Protocol):
        """A catalog, as far as the decorator knows it."""

        def _answer(self, work: Callable[[], _T]) -> _T: ...

    _C = TypeVar("_C", bound=Answering)


def serialized(query: Callable[Concatenate[_C, _P], _T]) -> Callable[Concatenate[_C, _P], _T]:
    """Serialize queries, refresh the catalog before each, and repeat one after a damaged index was rebuilt.

    Cancelling interrupts only the answer: what the refresh reads into the catalog is of use to later queries.
    """

    @wraps(query)
    def answer(catalog: _C, *args: _P.args, **more: _P.kwargs) -> _T:
        return catalog._answer(lambda: query(catalog, *args, **more))  # pyright: ignore[reportPrivateUsage]

    return answer


def unless_cancelled(work: Callable[[], _T], set_check: Callable[[Callable[[], bool] | None], None]) -> _T:
    """Call `work`, and interrupt its SQL once the current waiter has left; `set_check` sets the check for that."""
    waiter = waiter_now()
    if waiter is None:
        return work()
    if waiter.has_left():
        raise GivenUp
    set_check(waiter.has_left)
    try:
        return work()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
            raise
        raise GivenUp from None
    finally:
        set_check(None)

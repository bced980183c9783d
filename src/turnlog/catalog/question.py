"""How the catalog is asked: by one thread at a time, of what is on the disk."""

from __future__ import annotations

import sqlite3
from functools import wraps
from typing import TYPE_CHECKING, cast

from turnlog.catalog.index.sqlite.database import is_damage
from turnlog.catalog.waiter import GivenUp, waiter_now

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from typing import Concatenate, ParamSpec, Protocol, TypeVar

    class Asked(Protocol):
        """What can be asked."""

        _mutex: AbstractContextManager[object]

        def refresh(self) -> None:
            """Look what has changed."""
            ...

        def rebuild(self) -> object:
            """Throw it away, and read everything again."""
            ...

        def _heed(self, has_left: Callable[[], bool] | None) -> None:
            """Give up what is being asked as soon as this says so."""
            ...

    _A = TypeVar("_A")
    _P = ParamSpec("_P")
    _T = TypeVar("_T")


def question(ask: Callable[Concatenate[_A, _P], _T]) -> Callable[Concatenate[_A, _P], _T]:
    """Asked by one thread at a time, of what is on the disk; and once more, should the catalog be damaged.

    Only the answer is given up when nobody waits for it: what is read into the catalog on the way is of use to others.
    """

    def answer(catalog: _A, *args: _P.args, **more: _P.kwargs) -> _T:
        waiter = waiter_now()
        if waiter is None:
            return ask(catalog, *args, **more)
        if waiter.has_left():
            raise GivenUp
        whole = cast("Asked", catalog)
        whole._heed(waiter.has_left)  # pyright: ignore[reportPrivateUsage]
        try:
            return ask(catalog, *args, **more)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
                raise
            raise GivenUp from None
        finally:
            whole._heed(None)  # pyright: ignore[reportPrivateUsage]

    @wraps(ask)
    def asked(catalog: _A, *args: _P.args, **more: _P.kwargs) -> _T:
        whole = cast("Asked", catalog)
        with whole._mutex:  # pyright: ignore[reportPrivateUsage]
            try:
                whole.refresh()
                return answer(catalog, *args, **more)
            except sqlite3.DatabaseError as error:
                if not is_damage(error):
                    raise
                whole.rebuild()
                return answer(catalog, *args, **more)

    return asked

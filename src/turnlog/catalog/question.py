"""How the catalog is asked: by one thread at a time, of what is on the disk."""

from __future__ import annotations

import sqlite3
from functools import wraps
from typing import TYPE_CHECKING, cast

from turnlog.catalog.index.sqlite.database import is_damage

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from typing import Concatenate, ParamSpec, Protocol, TypeVar

    class Asked(Protocol):
        """What can be asked."""

        mutex: AbstractContextManager[object]

        def refresh(self) -> None:
            """Look what has changed."""
            ...

        def rebuild(self) -> object:
            """Throw it away, and read everything again."""
            ...

    _A = TypeVar("_A")
    _P = ParamSpec("_P")
    _T = TypeVar("_T")


def question(ask: Callable[Concatenate[_A, _P], _T]) -> Callable[Concatenate[_A, _P], _T]:
    """Asked by one thread at a time, of what is on the disk; and once more, should the catalog be damaged."""

    @wraps(ask)
    def asked(catalog: _A, *args: _P.args, **more: _P.kwargs) -> _T:
        whole = cast("Asked", catalog)
        with whole.mutex:
            try:
                whole.refresh()
                return ask(catalog, *args, **more)
            except sqlite3.DatabaseError as error:
                if not is_damage(error):
                    raise
                whole.rebuild()
                return ask(catalog, *args, **more)

    return asked

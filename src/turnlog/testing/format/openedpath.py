"""Which files are opened while a format reads."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from typing import Any

_listeners: list[set[str]] = []


def _record_open(event: str, args: tuple[Any, ...]) -> None:
    if _listeners and event in ("open", "sqlite3.connect") and isinstance(args[0], (str, bytes)):
        _listeners[-1].add(os.fsdecode(args[0]).removeprefix("file:").partition("?")[0])


@cache
def _install_audit_hook() -> None:
    sys.addaudithook(_record_open)  # Python has no way to take one away again


@contextmanager
def opened_paths() -> Generator[set[str]]:
    """Yield a set to which every path is added that is opened inside the block."""
    _install_audit_hook()
    _listeners.append(paths := set[str]())
    try:
        yield paths
    finally:
        _listeners.pop()

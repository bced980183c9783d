"""The lock of a session whose turns are reported by hooks: one process at a time imports it, or moves its files."""

from __future__ import annotations

from contextlib import AbstractContextManager

from turnlog.layout import DERIVED
from turnlog.log.digest import blake2b
from turnlog.machine.detached import in_turn
from turnlog.machine.environment import state_folder
from turnlog.store import Store
from turnlog.store.capability import KeepFiles, ability

_WAIT_S = 10.0


def one_at_a_time(store: Store, session_id: str) -> AbstractContextManager[None]:
    """Hold the lock of a session. Raises `Unavailable` if another process holds it for too long."""
    files = ability(store, KeepFiles)
    folder = files.folder if files is not None else state_folder()
    return in_turn(f"{folder}/{DERIVED}/follow-{blake2b(session_id.encode(), digest_size=16).hexdigest()}", _WAIT_S)

"""What was said in a session whose turns are told by hooks, brought in from where its agent keeps it.

No hook can rely on that: it may not be there yet when a turn begins, and its last word may come after the turn ended.
So it is brought in behind the agent's back, and whenever somebody looks. It costs what is new.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager

from turnlog.errors import Unavailable
from turnlog.exchange.carry import is_up_to_date
from turnlog.exchange.source import bring, source_of
from turnlog.exchange.sourceindex import origin_of
from turnlog.formats import Source, format_of, is_known
from turnlog.hooks import agent
from turnlog.layout import DERIVED
from turnlog.live.interruption import was_interrupted
from turnlog.log.digest import blake2b
from turnlog.machine.detached import in_turn
from turnlog.machine.environment import state_folder
from turnlog.rewind.coverage import Coverage
from turnlog.rewind.relay import TurnRelay, native_of
from turnlog.store import Store
from turnlog.store.capability import KeepFiles, ability
from turnlog.thread.appender import appending
from turnlog.thread.creator import Creator
from turnlog.thread.history import History, opened
from turnlog.thread.made import CreatedHere
from turnlog.thread.settings import Settings

_PAUSE_S = 0.25
_QUIET_S = 1.0
_MOST_S = 5.0
_WAIT_S = 10.0


def catch_up(store: Store, name: str, path: str = "", native: str = "") -> int:
    """Bring in what is new of a session, wherever its agent keeps it; gives how much that was."""
    with one_at_a_time(store, name):
        return _import_new(store, name, path, native)


def one_at_a_time(store: Store, name: str) -> AbstractContextManager[None]:
    """Imports and moves of the conversation are exclusive: each leaves it in a consistent state."""
    files = ability(store, KeepFiles)
    folder = files.folder if files is not None else state_folder()
    return in_turn(f"{folder}/{DERIVED}/follow-{blake2b(name.encode(), digest_size=16).hexdigest()}", _WAIT_S)


def _import_new(store: Store, name: str, path: str, native: str) -> int:
    added = 0
    with opened(store, store.open(name, read_only=True)) as history:
        if not history.state.is_relayed:
            return 0
        places, turn = list(_sources(history, path, native)), native_of(history.state.turn)
        grown = [source for source in places if not is_up_to_date(store, history, source)]
    if turn is not None and any(was_interrupted(agent(source.agent), turn, source.path) for source in places):
        with appending(store, store.open(name)) as appender:
            appender.is_guest = True
            TurnRelay(store, appender, Coverage(store, appender.history, Settings())).cut(turn)
    for source in grown:
        try:
            reading = format_of(source.agent).read(source)
        except OSError:
            continue  # it is not there yet
        added += bring(Creator(store, CreatedHere(None), None), source, reading).added
    return added


def follow(store: Store, name: str, path: str, native: str) -> None:
    """The same for a turn that has just ended, until nothing comes any more: a last word may come late."""
    began = quiet = time.monotonic()
    seen: list[tuple[int, int]] = []
    while time.monotonic() - quiet < _QUIET_S and time.monotonic() - began < _MOST_S:
        stamps = _stamps(store, name, path, native)
        try:
            if stamps != seen and catch_up(store, name, path, native):
                quiet = time.monotonic()
            seen = stamps
        except Unavailable:
            return  # somebody has much to do; it is brought in when somebody looks
        time.sleep(_PAUSE_S)


def _stamps(store: Store, name: str, path: str, native: str) -> list[tuple[int, int]]:
    """What differs when there may be more: some agents keep all sessions together, where all would be read again."""
    stamps: list[tuple[int, int]] = []
    with opened(store, store.open(name, read_only=True)) as history:
        for source in _sources(history, path, native):
            for file in (source.path, f"{source.path}-wal"):
                if os.path.isfile(file):
                    status = os.stat(file)
                    stamps.append((status.st_size, status.st_mtime_ns))
    return stamps


def _sources(history: History, path: str, native: str) -> Iterator[Source]:
    """Where it lies: under the id that it had first, and under those that it went on with."""
    origin = origin_of(history)
    whose = str(origin.get("agent") or "")
    if not is_known(whose):
        return
    places = {str(origin.get("id") or ""): str(origin.get("path") or "")}
    for alias, where in history.state.aliases.items():
        its_agent, _, its_native = alias.partition("\n")
        if its_agent == whose:
            places[its_native] = where
    if native in places and path:
        places[native] = path
    for one, where in places.items():
        source = source_of(whose, one, where)
        if source is not None:
            yield source

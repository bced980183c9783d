"""What was said in a session whose turns are told by hooks, brought in from where its agent keeps it.

No hook can rely on that: it may not be there yet when a turn begins, and its last word may come after the turn ended.
So it is brought in behind the agent's back, and whenever somebody looks. It costs what is new.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from turnlog.exchange.carry import is_up_to_date
from turnlog.exchange.source import bring, origin_of, source_of
from turnlog.formats import Source, format_of, is_known
from turnlog.store import Store
from turnlog.thread.creator import Creator
from turnlog.thread.history import History, opened
from turnlog.thread.made import Made

_PAUSE_S = 0.25
_QUIET_S = 1.0
_MOST_S = 5.0


def catch_up(store: Store, name: str, path: str = "", native: str = "") -> int:
    """Bring in what is new of a session, wherever its agent keeps it; gives how much that was."""
    added = 0
    with opened(store, store.open(name, read_only=True)) as history:
        if not history.state.is_relayed:
            return 0
        found = [source for source in _sources(history, path, native) if not is_up_to_date(store, history, source)]
    for source in found:
        try:
            reading = format_of(source.agent).read(source)
        except OSError:
            continue  # it is not there yet
        added += bring(Creator(store, Made(None), None), source, reading).added
    return added


def follow(store: Store, name: str, path: str, native: str) -> None:
    """The same for a turn that has just ended, until nothing comes any more: a last word may come late."""
    began = quiet = time.monotonic()
    seen: list[tuple[int, int]] = []
    while time.monotonic() - quiet < _QUIET_S and time.monotonic() - began < _MOST_S:
        stamps = _stamps(store, name, path, native)
        if stamps != seen and catch_up(store, name, path, native):
            quiet = time.monotonic()
        seen = stamps
        time.sleep(_PAUSE_S)


def _stamps(store: Store, name: str, path: str, native: str) -> list[tuple[int, int]]:
    """What differs when there may be more: some agents keep all sessions together, where all would be read again."""
    found: list[tuple[int, int]] = []
    with opened(store, store.open(name, read_only=True)) as history:
        for source in _sources(history, path, native):
            for file in (source.path, f"{source.path}-wal"):
                if os.path.isfile(file):
                    status = os.stat(file)
                    found.append((status.st_size, status.st_mtime_ns))
    return found


def _sources(history: History, path: str, native: str) -> Iterator[Source]:
    """Where it lies: under the id that it had first, and under those that it went on with."""
    origin = origin_of(history)
    agent = str(origin.get("agent") or "")
    if not is_known(agent):
        return
    places = {str(origin.get("id") or ""): str(origin.get("path") or "")}
    for alias, where in history.state.aliases.items():
        its_agent, _, its_native = alias.partition("\n")
        if its_agent == agent:
            places[its_native] = where
    if native in places and path:
        places[native] = path
    for one, where in places.items():
        source = source_of(agent, one, where)
        if source is not None:
            yield source

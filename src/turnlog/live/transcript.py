"""Import what an agent keeps of a session whose turns its hooks report.

A hook cannot import it in time: the agent may write after it reports a turn's beginning, and write its last word after
the turn's end. So it is imported in the background, and whenever somebody looks. The cost is that of the new entries.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from turnlog.errors import TurnlogError, Unavailable
from turnlog.exchange.importing.resumestate import is_up_to_date
from turnlog.exchange.importing.sessionimport import import_source
from turnlog.exchange.origin import origin_of
from turnlog.exchange.source import source_of
from turnlog.exchange.turnlock import one_at_a_time
from turnlog.formats import Source, format_of, is_known
from turnlog.hooks import hooked_agent
from turnlog.live.interruption import was_interrupted
from turnlog.live.payload import NativeSession
from turnlog.rewind.coverage import Coverage
from turnlog.rewind.relay import TurnRelay, native_of
from turnlog.store import Store
from turnlog.thread.appender import appending
from turnlog.thread.history import History, opened
from turnlog.thread.home.createdhere import CreatedHere
from turnlog.thread.home.creator import Creator
from turnlog.thread.home.settings import Settings

_PAUSE_S = 0.25
_QUIET_S = 1.0
_MOST_S = 5.0


def import_new(store: Store, session: str, native: NativeSession | None = None) -> int:
    """Import what is new of a session, wherever its agent keeps it. Returns the number of new entries.

    `native` is what the agent reported of the session: it may know the path better than the log does.
    """
    with one_at_a_time(store, session):
        return _import_new(store, session, native)


def import_until_quiet(store: Store, session: str, native: NativeSession) -> None:
    """Import what is new of a session whose turn just ended, until nothing more comes for a while."""
    began = last_news_at = time.monotonic()
    before: list[tuple[int, int]] = []
    while time.monotonic() - last_news_at < _QUIET_S and time.monotonic() - began < _MOST_S:
        stamps = _stamps(store, session, native)
        try:
            if stamps != before and import_new(store, session, native):
                last_news_at = time.monotonic()
            before = stamps
        except Unavailable:
            return  # another process is importing; the rest is imported when somebody looks
        time.sleep(_PAUSE_S)


def _import_new(store: Store, session: str, native: NativeSession | None) -> int:
    with opened(store, store.open(session, read_only=True)) as history:
        if not history.state.is_relayed:
            return 0
        sources, turn = list(_sources(history, native)), native_of(history.state.turn)
        grown = [source for source in sources if not is_up_to_date(store, history, source)]
    if turn is not None and any(was_interrupted(hooked_agent(source.agent), turn, source.path) for source in sources):
        _cut(store, session, turn)
    return _import_each(store, grown)


def _cut(store: Store, session: str, turn: str) -> None:
    """End a turn that was interrupted."""
    with appending(store, store.open(session)) as appender:
        appender.writes_no_writer_entry = True
        TurnRelay(store, appender, Coverage(store, appender.history, Settings())).abort(turn)


def _import_each(store: Store, sources: list[Source]) -> int:
    """Import all sources, and raise the first error after that."""
    added = 0
    first_error: TurnlogError | None = None
    for source in sources:
        try:
            reading = format_of(source.agent).read(source)
            added += import_source(Creator(store, CreatedHere(None), None), source, reading, is_locked=True).added
        except OSError:
            continue  # the file does not exist yet
        except TurnlogError as error:
            first_error = first_error or error
    if first_error is not None:
        raise first_error
    return added


def _stamps(store: Store, session: str, native: NativeSession) -> list[tuple[int, int]]:
    """Return sizes and times of the agent's files: to read those that hold all of its sessions takes long."""
    stamps: list[tuple[int, int]] = []
    with opened(store, store.open(session, read_only=True)) as history:
        for source in _sources(history, native):
            for file in (source.path, f"{source.path}-wal"):
                if os.path.isfile(file):
                    status = os.stat(file)
                    stamps.append((status.st_size, status.st_mtime_ns))
    return stamps


def _sources(history: History, native: NativeSession | None) -> Iterator[Source]:
    """Yield the session under its first id and under its aliases, as far as the agent keeps them."""
    origin = origin_of(history)
    agent_name = origin.agent or ""
    if not is_known(agent_name):
        return
    paths = {origin.id or "": origin.path or ""}
    for alias, path in history.state.aliases.items():
        alias_agent, _, alias_id = alias.partition("\n")
        if alias_agent == agent_name:
            paths[alias_id] = path
    if native is not None and native.id in paths and native.path:
        paths[native.id] = native.path
    for native_id, path in paths.items():
        source = source_of(agent_name, native_id, path)
        if source is not None:
            yield source

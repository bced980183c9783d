"""Import what was said before an agent was hooked, so that its turns have the numbers that follow."""

from __future__ import annotations

import os
from itertools import takewhile

from turnlog.exchange.importing.sessionimport import import_source
from turnlog.exchange.source import source_of
from turnlog.formats import Record, Step, format_of
from turnlog.live.payload import NativeSession
from turnlog.store import Store
from turnlog.thread.home.createdhere import CreatedHere
from turnlog.thread.home.creator import Creator

_MOST_BYTES = 8 << 20
"""A larger file takes longer than an agent should wait: it is imported later, and its turns are counted later."""


def import_earlier(store: Store, agent: str, native: NativeSession, *, before: str) -> None:
    """Import what the agent's file has before its turn `before`; everything if that is ""."""
    source = source_of(agent, native.id, native.path)
    try:
        if source is None or os.stat(source.path).st_size > _MOST_BYTES:
            return
        reading = format_of(agent).read(source)
    except OSError:
        return  # there is no file yet, so nothing was said

    def is_before(step: Step) -> bool:
        return not isinstance(step, Record) or not before or before not in (step.turn, step.entry.turn)

    reading.steps = takewhile(is_before, reading.steps)
    import_source(Creator(store, CreatedHere(None), None), source, reading)

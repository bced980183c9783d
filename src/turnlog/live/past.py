"""What was said before an agent was hooked, brought in before its first turn: numbers follow the conversation."""

from __future__ import annotations

import os
from itertools import takewhile

from turnlog.exchange.source import bring, source_of
from turnlog.formats import Record, Step, format_of
from turnlog.store import Store
from turnlog.thread.creator import Creator
from turnlog.thread.made import CreatedHere

_MOST_BYTES = 8 << 20
"""More than that takes longer than an agent should wait: it is brought in later, and its turns are counted later."""


def bring_past(store: Store, agent: str, native: str, path: str, turn: str) -> None:
    """All that its file has before that turn of the agent's."""
    source = source_of(agent, native, path)
    try:
        if source is None or os.stat(source.path).st_size > _MOST_BYTES:
            return
        reading = format_of(agent).read(source)
    except OSError:
        return  # it is not there yet: so nothing was said

    def is_before(step: Step) -> bool:
        return not isinstance(step, Record) or not turn or turn not in (step.turn, step.entry.turn)

    reading.steps = takewhile(is_before, reading.steps)
    bring(Creator(store, CreatedHere(None), None), source, reading)

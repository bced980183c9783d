"""Turns that are told of across processes."""

from __future__ import annotations

from typing import Any

from turnlog.rewind.coverage import Coverage
from turnlog.rewind.relay import TurnRelay, worker_of
from turnlog.session.interior import interior
from turnlog.thread.appender import appending


class Hook:
    """Each call is a process of its own, as far as the log can tell."""

    def __init__(self, home: Any, session: Any, who: dict[str, Any]) -> None:
        self._home, self._session, self._who = home, session, who

    def __call__(self, event: str, *given: Any, refused: str = "") -> bool:
        store = interior(self._home).store
        with appending(store, store.open(self._session.id)) as appender:
            appender.writes_no_writer_entry = True
            relay = TurnRelay(store, appender, Coverage(store, appender.history, interior(self._home).settings))
            if event == "begin":
                given = (*given, worker_of(self._who), refused)
            done = getattr(relay, event)(*given)
        self._session.refresh()
        return done

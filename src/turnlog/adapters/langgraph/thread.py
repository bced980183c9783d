"""The threads that are known: what is in their logs, and which objects of theirs were handed out."""

from __future__ import annotations

from turnlog.adapters._recent import Recent
from turnlog.adapters._sessions import AdapterSessions
from turnlog.adapters.langgraph.handedout import HandedOut
from turnlog.adapters.langgraph.index import ThreadIndex
from turnlog.errors import NotFound
from turnlog.session import Session
from turnlog.thread.reader import refuse_purged

_THREADS = 64
"""A thread of 200 steps takes 1.5 MB."""


class KnownThread:
    """What is known of one thread. Whoever uses it holds the lock of that thread."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.index = ThreadIndex(session)
        self.handed_out = HandedOut(self.index)


class KnownThreads:
    """What is known of the threads that were used last."""

    def __init__(self, sessions: AdapterSessions) -> None:
        self._sessions = sessions
        self._recent: Recent[str, KnownThread] = Recent(_THREADS)

    def find(self, thread_id: str, *, fresh: bool = True) -> KnownThread | None:
        """A thread, with what others have written since if `fresh`; None if there is none. Its lock is held."""
        session = self._sessions.find(thread_id, fresh=fresh)
        thread = self._recent.pop(thread_id)
        if session is None:
            return None
        if thread is None or thread.session is not session:
            thread = KnownThread(session)
        self._recent.put(thread_id, thread)
        thread.index.catch_up()
        return thread

    def is_there(self, thread: KnownThread) -> bool:
        """Whether a thread that was found before was not erased since. It is not read again. Its lock is held."""
        self._sessions.check_open()
        if self._recent.get(thread.session.id) is not thread:
            try:
                refuse_purged(thread.session, ("live",))
            except NotFound:
                return False
        return True

    def forget(self, thread_id: str) -> None:
        """Forget what is known of a thread."""
        self._recent.pop(thread_id)

"""What a store promises of following a log, where it can: notifications, live text, and stamps that change."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from turnlog.store import Log, Store
from turnlog.store.broadcast import LiveText, Texts
from turnlog.store.capability import CarryLiveText, Inbox, NotifyNewEntries, StampLog, ability
from turnlog.testing.build import note
from turnlog.testing.store.fixture import StoreTests

_DEADLINE_S = 60.0
_PAUSE_S = 0.05


def wait_until(is_over: Callable[[], bool]) -> None:
    """Return when `is_over` returns True. Fails if that takes too long."""
    deadline = time.monotonic() + _DEADLINE_S
    while not is_over():
        assert time.monotonic() < deadline
        time.sleep(_PAUSE_S)


class Listener:
    """The text that one inbox got, put together as a follower does it."""

    def __init__(self, inbox: Inbox) -> None:
        self.text = ""
        self.is_over = False
        self._inbox = inbox

    def has(self, text: str) -> bool:
        """Take what has arrived. Returns whether it is this text."""
        for delta in self._inbox.take():
            assert delta.id == "m1"
            self.is_over = self.is_over or delta.is_over
            if delta.text:
                assert delta.at <= len(self.text), "no gaps"
                self.text = self.text[: delta.at] + delta.text
        return self.text == text


class Following(StoreTests):
    """Following a log, for stores that can do more than be asked."""

    def test_a_subscriber_learns_of_entries_whoever_wrote_them(self, store: Store, log: Log) -> None:
        notifying = ability(log, NotifyNewEntries)
        if notifying is None:
            pytest.skip("this store does not notify")
        notified = threading.Event()
        stop = notifying.subscribe(notified.set)
        writer = store.open("s")

        def is_told() -> bool:
            writer.append([note()], after=0, head=0)  # a call may be missing, so it writes more than once
            return notified.wait(0.2)

        wait_until(is_told)
        stop()
        stop()
        writer.append([note()], after=0, head=0)

    def test_a_stamp_changes_when_the_log_does(self, store: Store, log: Log) -> None:
        stamping = ability(log, StampLog)
        if stamping is None:
            pytest.skip("this store has no stamps")
        stamps = [stamping.stamp()]
        assert stamping.stamp() == stamps[0]
        for writer in (log, store.open("s")):
            writer.append([note()], after=0, head=0)
            assert stamping.stamp() not in stamps
            stamps.append(stamping.stamp())

    def test_live_text_reaches_those_who_listen_and_those_who_come_late(self, store: Store, log: Log) -> None:
        speaker, follower = ability(log, CarryLiveText), ability(store.open("s"), CarryLiveText)
        inbox = follower.open_inbox() if follower is not None else None
        if speaker is None or follower is None or inbox is None:
            pytest.skip("this store carries no live text")
        texts: Texts = [("text", "Hel")]
        live = LiveText("m1", lambda: texts)
        stop = speaker.publish(live)
        early = Listener(inbox)
        wait_until(lambda: early.has("Hel"))
        texts = [("text", "Hello, wörld 🎈")]
        wait_until(lambda: early.has("Hello, wörld 🎈"))
        second = follower.open_inbox()
        assert second is not None
        late = Listener(second)
        wait_until(lambda: late.has("Hello, wörld 🎈"))
        assert not early.is_over and not late.is_over
        stop()
        inbox.close()
        second.close()
        assert [entry.seq for entry in log.read()] == [1], "it is in no log"  # pyright: ignore[reportAttributeAccessIssue]

"""What `Log.read` and `wait` promise, and what is found by reading."""

from __future__ import annotations

import threading
import time

import pytest

from turnlog.log.entry import Unknown
from turnlog.store import Log, Store
from turnlog.store.derived import find
from turnlog.testing.build import draft, message_draft, note, seqs, undamaged_entries
from turnlog.testing.store.fixture import StoreTests

_LONG_S = 0.7
"""Much longer than a wait of a few hundredths of a second takes on a busy machine."""
_DEADLINE_S = 60.0
FROM_LATER = '{"type":"later","id":"u","level":1e400,"deep":{"b":1,"a":[1.50]},"critical":true}'
"""An entry of a version to come, with what a careless reader would change: order, digits, numbers too big."""


class Reading(StoreTests):
    """What `Log.read` and its sisters promise."""

    @pytest.fixture
    def ten(self, log: Log) -> Log:
        """A log of ten entries, in batches of three."""
        for _ in range(3):
            log.append([note(), note(), note()], after=0, head=0)
        return log

    @pytest.mark.parametrize("after", [0, 1, 4, 5, 9, 10, 99])
    @pytest.mark.parametrize("before", [None, 0, 1, 2, 5, 7, 10, 11, 99])
    def test_after_and_before_bound_what_is_read_both_ways(self, ten: Log, after: int, before: int | None) -> None:
        wanted = [seq for seq in range(1, 11) if seq > after and (before is None or seq < before)]
        assert seqs(undamaged_entries(ten, after=after, before=before)) == wanted
        assert seqs(undamaged_entries(ten, after=after, before=before, reverse=True)) == wanted[::-1]

    def test_backwards_gives_the_same_entries(self, ten: Log) -> None:
        assert undamaged_entries(ten, reverse=True) == undamaged_entries(ten)[::-1]

    def test_a_reader_that_has_begun_is_not_disturbed_by_a_writer(self, ten: Log) -> None:
        source = ten.read()
        first = next(source)
        ten.append([note("new")], after=0, head=0)
        rest = [first, *source]
        assert rest[:10] == undamaged_entries(ten)[:10]
        backwards = ten.read(reverse=True)
        newest = next(backwards)
        ten.append([note("newer")], after=0, head=0)
        assert [newest, *backwards] == undamaged_entries(ten)[-2::-1]

    def test_another_handle_sees_what_this_one_appended(self, store: Store, log: Log) -> None:
        other = store.open("s")
        [appended] = log.append([note()], after=0, head=0)
        assert undamaged_entries(other)[-1] == appended
        [reply] = other.append([note()], after=0, head=0)
        assert undamaged_entries(log)[-1] == reply

    def test_an_entry_is_found_by_its_id(self, ten: Log) -> None:
        [appended] = ten.append([message_draft("x", id="Äpfel/☃ ")], after=10, head=0)
        ten.append([note()], after=0, head=0)
        assert find(ten, "Äpfel/☃ ") == appended
        assert find(ten, undamaged_entries(ten)[4].id) == undamaged_entries(ten)[4]
        assert find(ten, "nobody's") is None

    def test_growth_is_noticed_whoever_wrote(self, store: Store, log: Log) -> None:
        [appended] = log.append([note()], after=0, head=0)
        assert not log.wait(appended.seq)
        assert log.wait(appended.seq - 1)
        [other] = store.open("s").append([note()], after=0, head=0)
        assert log.wait(appended.seq)
        assert [entry.seq for entry in undamaged_entries(log, after=appended.seq)] == [other.seq]

    def test_a_wait_takes_no_longer_than_it_was_told(self, log: Log) -> None:
        log.wait(1, seconds=0.01)
        began = time.monotonic()
        assert not log.wait(1, seconds=0.05)
        assert time.monotonic() - began < _LONG_S

    def test_whoever_waits_learns_of_an_entry(self, store: Store, log: Log) -> None:
        writer = threading.Timer(0.05, lambda: store.open("s").append([note()], after=0, head=0))
        writer.start()
        deadline = time.monotonic() + _DEADLINE_S
        while not log.wait(1, seconds=0.2):
            assert time.monotonic() < deadline
        writer.join()
        assert seqs(undamaged_entries(log, after=1)) == [2]

    def test_a_closed_log_may_be_used_again(self, log: Log) -> None:
        log.append([note()], after=0, head=0)
        log.close()
        assert seqs(undamaged_entries(log)) == [1, 2]
        log.close()
        assert log.append([note()], after=0, head=0)[0].seq == 3

    def test_an_entry_of_a_later_version_is_kept_to_the_letter(self, store: Store, log: Log) -> None:
        log.append([draft(Unknown(kind="later", json=FROM_LATER, id="u"))], after=0, head=0)
        for handle in (log, store.open("s")):
            entry = undamaged_entries(handle)[-1]
            assert isinstance(entry, Unknown)
            assert (entry.kind, entry.id, entry.seq, entry.critical) == ("later", "u", 2, True)
            assert '"level":1e400,"deep":{"b":1,"a":[1.50]}' in entry.json

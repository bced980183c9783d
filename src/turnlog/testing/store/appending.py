"""What `Log.append` promises: order, batches, fences, retries, time."""

from __future__ import annotations

import pytest

from turnlog.errors import AlreadyExists, Conflict, Invalid
from turnlog.log.block import Text
from turnlog.log.entry import Custom, Head, Message, Note, Set
from turnlog.store import Log, Store, derived
from turnlog.testing.build import (
    START_MS,
    ManualClock,
    draft,
    message_draft,
    moment,
    note,
    seqs,
    start,
    undamaged_entries,
)
from turnlog.testing.store.fixture import StoreTests, run_together


class Appending(StoreTests):
    """What `Log.append` promises."""

    # ── order and batches ─────────────────────────────────────────────────────────────────────────

    def test_entries_come_back_in_the_order_they_were_appended(self, log: Log) -> None:
        appended = [log.append([note(str(index))], after=0, head=0)[0] for index in range(20)]
        assert undamaged_entries(log)[1:] == appended
        assert [entry.text for entry in appended if isinstance(entry, Note)] == [str(index) for index in range(20)]

    def test_seq_begins_at_one_and_grows_by_one(self, log: Log) -> None:
        log.append([note(), note()], after=0, head=0)
        log.append([note()], after=0, head=0)
        assert seqs(undamaged_entries(log)) == [1, 2, 3, 4]

    def test_seq_begins_where_a_fork_says(self, store: Store) -> None:
        log = store.create("later", [start("later"), note()], seq=101)
        log.append([note()], after=0, head=0)
        assert seqs(undamaged_entries(log)) == [101, 102, 103]
        assert seqs(undamaged_entries(store.open("later"))) == [101, 102, 103]

    def test_what_append_returns_is_what_everybody_reads(self, store: Store, log: Log) -> None:
        appended = log.append(
            [message_draft("a"), note("b"), draft(Custom(kind="x.y", data={"k": [1, None]}))], after=1, head=0
        )
        assert undamaged_entries(log)[1:] == appended
        assert undamaged_entries(store.open("s"))[1:] == appended

    def test_a_batch_is_numbered_without_a_gap_and_says_how_long_it_is(self, log: Log) -> None:
        appended = log.append([note(), note(), note()], after=0, head=0)
        assert seqs(appended) == [2, 3, 4]
        assert [(entry.more, entry.batch) for entry in appended] == [(2, 3), (1, 3), (0, 3)]

    def test_a_single_entry_is_no_batch(self, log: Log) -> None:
        [appended] = log.append([note()], after=0, head=0)
        assert (appended.more, appended.batch) == (0, 0)

    def test_the_first_node_hangs_on_the_head_and_each_further_one_on_the_one_before(self, log: Log) -> None:
        [first] = log.append([message_draft("a")], after=1, head=0)
        appended = log.append([message_draft("b"), note(), message_draft("c")], after=first.seq, head=first.seq)
        assert first.parent == 0
        assert [entry.parent for entry in appended] == [first.seq, None, appended[0].seq]

    @pytest.mark.parametrize("alone", [False, True])
    def test_a_batch_without_entries_changes_nothing(self, log: Log, alone: bool) -> None:
        assert log.append([], after=1, head=0, alone=alone) == []
        assert seqs(undamaged_entries(log)) == [1]

    def test_a_draft_that_cannot_be_read_back_is_refused_whole(self, log: Log) -> None:
        bad = draft(Note(text=7))  # type: ignore[arg-type]
        with pytest.raises(Invalid):
            log.append([note("good"), bad], after=0, head=0)
        assert seqs(undamaged_entries(log)) == [1]
        assert log.append([note()], after=0, head=0)[0].seq == 2

    def test_what_is_not_synced_at_once_is_there_and_can_be_synced(self, store: Store, log: Log) -> None:
        [appended] = log.append([note()], after=0, head=0)
        assert undamaged_entries(store.open("s"))[-1] == appended
        log.sync(appended.seq)
        assert undamaged_entries(log)[-1] == appended

    # ── fences ────────────────────────────────────────────────────────────────────────────────────

    @pytest.mark.parametrize("fence", ["message", "head"])
    def test_a_node_or_head_that_somebody_appended_unseen_is_a_conflict(self, store: Store, fence: str) -> None:
        mine = store.create("s", [start("s")])
        theirs = store.open("s")
        unseen = message_draft("theirs") if fence == "message" else draft(Head(to=0, asof=0, why="rewind"))
        theirs.append([unseen], after=1, head=0)
        for late in (message_draft("mine"), draft(Head(to=0, asof=0, why="rewind"))):
            with pytest.raises(Conflict):
                mine.append([late], after=1, head=0)
            with pytest.raises(Conflict):
                mine.append([note(), late], after=1, head=0)
        assert seqs(undamaged_entries(mine)) == [1, 2]

    def test_after_a_conflict_the_caller_who_has_looked_succeeds(self, store: Store, log: Log) -> None:
        [theirs] = store.open("s").append([message_draft("theirs")], after=1, head=0)
        with pytest.raises(Conflict):
            log.append([message_draft("mine")], after=1, head=0)
        [mine] = log.append([message_draft("mine")], after=theirs.seq, head=theirs.seq)
        assert mine.parent == theirs.seq

    def test_marks_follow_whatever_came_before(self, store: Store, log: Log) -> None:
        store.open("s").append([message_draft("theirs")], after=1, head=0)
        log.append([note("mine"), draft(Set(key="k", value=1))], after=1, head=0)
        assert seqs(undamaged_entries(log)) == [1, 2, 3, 4]

    def test_a_mark_that_came_unseen_is_no_conflict_for_a_node(self, store: Store, log: Log) -> None:
        store.open("s").append([note("theirs")], after=1, head=0)
        [mine] = log.append([message_draft("mine")], after=1, head=0)
        assert mine.seq == 3

    def test_a_mark_of_ones_own_does_not_mean_that_one_has_seen_what_came_before_it(
        self, store: Store, log: Log
    ) -> None:
        store.open("s").append([message_draft("theirs")], after=1, head=0)
        log.append([note("mine")], after=1, head=0)
        with pytest.raises(Conflict):
            log.append([message_draft("mine")], after=1, head=0)
        assert seqs(undamaged_entries(log)) == [1, 2, 3]

    def test_alone_means_that_nothing_at_all_came_later(self, store: Store, log: Log) -> None:
        store.open("s").append([note("theirs")], after=1, head=0)
        with pytest.raises(Conflict):
            log.append([note("mine")], after=1, head=0, alone=True)
        assert log.append([note("mine")], after=2, head=0, alone=True)[0].seq == 3

    def test_an_id_that_somebody_vouched_for_counts_once_all_the_same(self, store: Store, log: Log) -> None:
        store.open("s").append([draft(Note(id="theirs", text="x"))], after=1, head=0)
        derived.vouch(log, ["mine"])
        [first] = log.append([draft(Note(id="mine", text="x"))], after=2, head=0, alone=True)
        [again] = log.append([draft(Note(id="mine", text="x"))], after=3, head=0, alone=True)
        assert first == again
        with pytest.raises(Conflict):
            log.append([draft(Note(id="other", text="x"))], after=2, head=0, alone=True)
        [theirs] = log.append([draft(Note(id="theirs", text="x"))], after=3, head=0, alone=True)
        assert (theirs.seq, seqs(undamaged_entries(log))) == (2, [1, 2, 3])

    # ── retries ───────────────────────────────────────────────────────────────────────────────────

    @pytest.mark.parametrize("reopened", [False, True])
    def test_a_retry_with_the_same_ids_is_answered_with_what_is_there(
        self, store: Store, log: Log, reopened: bool
    ) -> None:
        batch = [message_draft("a", id="caller's own"), note("b")]
        appended = log.append(batch, after=1, head=0)
        log.append([message_draft("c")], after=3, head=2)
        again = (store.open("s") if reopened else log).append(batch, after=1, head=0)
        assert again == appended
        assert seqs(undamaged_entries(log)) == [1, 2, 3, 4]

    def test_each_draft_is_answered_with_its_entry_even_if_two_have_the_same_id(self, log: Log) -> None:
        [there] = log.append([message_draft("there", id="there")], after=1, head=0)
        assert log.append([message_draft("there", id="there")] * 2, after=2, head=0) == [there, there]

    @pytest.mark.parametrize("reopened", [False, True])
    def test_of_a_batch_of_which_a_part_is_there_the_rest_is_appended(
        self, store: Store, log: Log, reopened: bool
    ) -> None:
        [there] = log.append([message_draft("there", id="there")], after=1, head=0)
        handle = store.open("s") if reopened else log
        batch = [message_draft("a"), message_draft("there", id="there"), message_draft("b"), message_draft("c")]
        appended = handle.append(batch, after=there.seq, head=there.seq)
        assert seqs(appended) == [3, 2, 4, 5]
        assert [(entry.parent, entry.batch) for entry in appended] == [(2, 3), (0, 0), (3, 3), (4, 3)]
        assert seqs(undamaged_entries(log)) == [1, 2, 3, 4, 5]
        assert handle.append(batch, after=1, head=0) == appended

    def test_the_rest_of_a_batch_may_not_follow_what_its_writer_has_not_seen(self, store: Store, log: Log) -> None:
        store.open("s").append([message_draft("there", id="there")], after=1, head=0)
        with pytest.raises(Conflict):
            log.append([message_draft("there", id="there"), message_draft("new")], after=1, head=0)
        assert seqs(undamaged_entries(log)) == [1, 2]

    def test_once_refuses_an_id_that_is_anywhere_in_the_log(self, store: Store, log: Log) -> None:
        first = message_draft("a", id="mine")
        log.append([first], after=1, head=0, once=True)
        for _ in range(5):
            log.append([note()], after=0, head=0)
        for handle in (log, store.open("s")):
            with pytest.raises(AlreadyExists):
                handle.append([first], after=7, head=2, once=True)
        assert len(undamaged_entries(log)) == 7

    def test_the_same_id_may_be_in_two_logs(self, store: Store, log: Log) -> None:
        other = store.create("other", [start("other")])
        both = message_draft("a", id="mine")
        [here] = log.append([both], after=1, head=0, once=True)
        [there] = other.append([both], after=1, head=0, once=True)
        assert here.id == there.id
        assert (len(undamaged_entries(log)), len(undamaged_entries(other))) == (2, 2)

    # ── time ──────────────────────────────────────────────────────────────────────────────────────

    def test_every_entry_carries_the_time_it_was_appended(self, log: Log, clock: ManualClock) -> None:
        clock.tick(1234)
        [appended] = log.append([note()], after=0, head=0)
        assert appended.at == moment(START_MS + 1234)
        assert appended.clock is None

    def test_time_never_runs_backwards_and_the_real_time_is_kept(
        self, store: Store, log: Log, clock: ManualClock
    ) -> None:
        clock.tick(-5000)
        [held] = log.append([note()], after=0, head=0)
        [also] = store.open("s").append([note()], after=0, head=0)
        assert (held.at, held.clock) == (moment(START_MS), moment(START_MS - 5000))
        assert (also.at, also.clock) == (moment(START_MS), moment(START_MS - 5000))
        clock.tick(6000)
        [free] = log.append([note()], after=0, head=0)
        assert (free.at, free.clock) == (moment(START_MS + 1000), None)

    def test_a_draft_may_say_when_it_happened(self, log: Log) -> None:
        early = Message(role="user", at=moment(START_MS - 1000))
        late = Message(role="user", at=moment(START_MS + 1000))
        appended = log.append([draft(early), draft(late), message_draft("now")], after=1, head=0)
        assert [entry.at for entry in appended] == [moment(START_MS), moment(START_MS + 1000), moment(START_MS + 1000)]
        assert [entry.clock for entry in appended] == [moment(START_MS - 1000), None, moment(START_MS)]

    # ── threads ───────────────────────────────────────────────────────────────────────────────────

    def test_many_threads_on_one_log_lose_and_mix_nothing(self, store: Store, log: Log) -> None:
        def write(index: int) -> None:
            handle = log if index % 2 else store.open("s")
            for number in range(12):
                handle.append([note(f"{index}:{number}"), note(f"{index}:{number}+")], after=0, head=0)

        run_together(4, write)
        appended = undamaged_entries(log)
        assert seqs(appended) == list(range(1, 2 + 4 * 24))
        texts = [entry.text for entry in appended if isinstance(entry, Note)]
        for index in range(4):
            mine = [text for text in texts if text.startswith(f"{index}:")]
            assert mine == [f"{index}:{number}{plus}" for number in range(12) for plus in ("", "+")]
        assert all(second == first + "+" for first, second in zip(texts[::2], texts[1::2], strict=True))

    def test_of_many_nodes_on_one_head_exactly_one_gets_in(self, store: Store, log: Log) -> None:
        won: list[int] = []

        def write(index: int) -> None:
            handle = log if index % 2 else store.open("s")
            try:
                handle.append([message_draft(str(index))], after=1, head=0)
            except Conflict:
                return
            won.append(index)

        run_together(4, write)
        assert len(won) == 1
        [_, node] = undamaged_entries(log)
        assert isinstance(node, Message)
        assert node.blocks == [Text(text=str(won[0]))]

    def test_of_many_retries_at_once_exactly_one_is_written(self, log: Log) -> None:
        same = [message_draft("a", id="same"), note("b")]
        answers: list[list[int]] = []

        def write(_: int) -> None:
            answers.append(seqs(log.append(same, after=1, head=0)))

        run_together(4, write)
        assert answers == [[2, 3]] * 4
        assert seqs(undamaged_entries(log)) == [1, 2, 3]

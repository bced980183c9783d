"""What a store promises of removing sessions: deleting, restoring and purging them."""

from __future__ import annotations

from functools import partial

import pytest
from msgspec.structs import replace

from turnlog.errors import AlreadyExists, Ambiguous, Conflict, NotFound
from turnlog.log.entry import Note
from turnlog.log.part import Fork
from turnlog.store import Listed, Log, Store, derived
from turnlog.store.derived import find
from turnlog.testing.build import fork, message_draft, note, seqs, start, undamaged_entries
from turnlog.testing.store.copying import bare_lines
from turnlog.testing.store.fixture import StoreTests


class Removing(StoreTests):
    """Deleting, restoring and purging."""

    @pytest.fixture
    def five(self, log: Log) -> Log:
        """A log of five entries."""
        for index in range(4):
            log.append([message_draft(str(index))], after=99, head=0)
        return log

    def ids(self, store: Store, *, deleted: bool = False) -> list[str]:
        """Return the sorted ids of all sessions, or of all deleted ones."""
        return sorted(row.id for row in derived.sessions(store, deleted=deleted))

    def test_a_deleted_session_is_out_of_sight(self, store: Store, five: Log) -> None:
        store.delete("s")
        assert list(derived.ids(store)) == []
        assert self.ids(store) == []
        with pytest.raises(NotFound):
            store.open("s")

    def test_a_deleted_session_is_in_the_trash_as_it_was(self, store: Store, five: Log) -> None:
        before: Listed = next(iter(store.listing()))
        entries = undamaged_entries(five)
        store.delete("s")
        assert [replace(row, deleted_at=None) for row in store.listing("deleted")] == [before]
        assert undamaged_entries(store.open("s", read_only=True)) == entries

    def test_a_deleted_session_takes_no_more_entries(self, store: Store, five: Log) -> None:
        store.delete("s")
        with pytest.raises((NotFound, Conflict)):
            five.append([note()], after=0, head=0)
        store.restore("s")
        assert seqs(undamaged_entries(store.open("s"))) == [1, 2, 3, 4, 5]

    def test_a_restored_session_is_as_it_was(self, store: Store, five: Log) -> None:
        entries = undamaged_entries(five)
        store.delete("s")
        store.restore("s")
        assert self.ids(store) == ["s"]
        assert self.ids(store, deleted=True) == []
        log = store.open("s")
        assert undamaged_entries(log) == entries
        assert log.append([note()], after=0, head=0)[0].seq == 6

    def test_a_deleted_session_is_not_made_again(self, store: Store, five: Log) -> None:
        store.delete("s")
        with pytest.raises(AlreadyExists):
            store.create("s", [start("s")])
        store.restore("s")
        assert len(undamaged_entries(store.open("s"))) == 5

    def test_the_id_of_a_deleted_session_may_be_used_again(self, store: Store, five: Log) -> None:
        entries = undamaged_entries(five)
        store.delete("s")
        store.create("s", [start("s", first="another"), note()])
        assert self.ids(store) == self.ids(store, deleted=True) == ["s"]
        assert [row.first for row in store.listing()] == ["another"]
        assert [row.first for row in store.listing("deleted")] == ["s"]
        assert (
            len(undamaged_entries(store.open("s", read_only=True)))
            == len(undamaged_entries(store.open("s", read_only=True, first="another")))
            == 2
        )
        assert undamaged_entries(store.open("s", read_only=True, first="s")) == entries
        with pytest.raises(AlreadyExists):
            store.restore("s")
        with pytest.raises(AlreadyExists):
            store.delete("s")
        with pytest.raises(Ambiguous):
            store.purge("s")
        assert len(undamaged_entries(store.open("s"))) == 2
        store.purge("s", deleted=False)
        store.restore("s")
        assert undamaged_entries(store.open("s")) == entries
        for deleted in (False, True):
            if deleted:
                store.delete("s")
            with pytest.raises(NotFound):
                store.purge("s", deleted=not deleted)
        store.purge("s", deleted=True)
        with pytest.raises(NotFound):
            store.open("s", read_only=True)

    def test_a_session_is_opened_only_by_the_id_of_its_own_first_entry(self, store: Store, five: Log) -> None:
        assert undamaged_entries(store.open("s", first="s")) == undamaged_entries(five)
        with pytest.raises(NotFound):
            store.open("s", first="another")

    def test_only_a_deleted_session_can_be_restored_and_only_a_live_one_deleted(self, store: Store, five: Log) -> None:
        with pytest.raises(NotFound):
            store.restore("s")
        store.delete("s")
        with pytest.raises(NotFound):
            store.delete("s")
        assert self.ids(store, deleted=True) == ["s"]

    @pytest.mark.parametrize("deleted_first", [False, True])
    def test_a_purged_session_is_gone_and_its_id_is_free(self, store: Store, five: Log, deleted_first: bool) -> None:
        if deleted_first:
            store.delete("s")
        store.purge("s")
        assert self.ids(store) == self.ids(store, deleted=True) == []
        for look in (store.open, partial(store.open, read_only=True), store.restore, store.purge):
            with pytest.raises(NotFound):
                look("s")
        with pytest.raises((NotFound, Conflict)):
            five.append([note()], after=0, head=0)
        log = store.create("s", [start("s")])
        assert seqs(undamaged_entries(log)) == [1]

    @pytest.mark.parametrize("how", ["delete", "purge"])
    def test_a_session_that_has_grown_is_not_removed_by_those_who_have_not_seen_it(
        self, store: Store, five: Log, how: str
    ) -> None:
        remove = store.delete if how == "delete" else store.purge
        for after in (0, 4, 6):
            with pytest.raises(Conflict):
                remove("s", after=after)
        assert seqs(undamaged_entries(store.open("s"))) == [1, 2, 3, 4, 5]
        with pytest.raises(NotFound):
            remove("nobody", after=5)
        remove("s", after=5)
        assert self.ids(store) == []

    def test_purging_one_session_leaves_the_others(self, store: Store, five: Log) -> None:
        store.create("other", [start("other"), note()])
        store.purge("s")
        assert self.ids(store) == ["other"]
        assert len(undamaged_entries(store.open("other"))) == 2

    # ── forks ─────────────────────────────────────────────────────────────────────────────────────

    def test_a_fork_needs_a_parent_that_is_there(self, store: Store) -> None:
        with pytest.raises(NotFound):
            fork = Fork("nobody", 3, "x")
            store.create("child", [start("child", fork=fork)], seq=4, parent=fork)
        assert list(derived.ids(store)) == []

    @pytest.mark.parametrize("deleted_first", [False, True])
    def test_purging_a_parent_keeps_what_its_forks_need(self, store: Store, five: Log, deleted_first: bool) -> None:
        entries = undamaged_entries(five)
        fork(store, "s", entries[1], "early")
        fork(store, "s", entries[2], "late")
        if deleted_first:
            store.delete("s")
        store.purge("s")
        assert self.ids(store) == ["early", "late"]
        base = store.open("s", read_only=True)
        assert undamaged_entries(base) == entries[:3]
        assert undamaged_entries(base, reverse=True) == entries[2::-1]
        assert find(base, entries[2].id) == entries[2]
        with pytest.raises(NotFound):
            store.open("s")

    def test_the_id_of_a_purged_parent_is_taken_until_nobody_needs_it(self, store: Store, five: Log) -> None:
        fork(store, "s", undamaged_entries(five)[2], "child")
        store.purge("s")
        with pytest.raises(AlreadyExists):
            store.create("s", [start("s")])
        store.purge("child")
        with pytest.raises(NotFound):
            store.open("s", read_only=True)
        assert seqs(undamaged_entries(store.create("s", [start("s")]))) == [1]

    def test_a_purged_id_may_be_used_again_and_forks_find_what_they_build_on(self, store: Store) -> None:
        """As often as one likes: what is kept aside lies under the id of its first entry."""
        wanted: dict[str, list[str]] = {}
        for number in range(3):
            first = f"first {number}"
            log = store.create("s", [start("s", first=first)])
            for each in (message_draft(f"said {number}"), note()):
                log.append([each], after=99, head=0)
            fork(store, "s", undamaged_entries(log)[1], f"child {number}", first=first)
            wanted[first] = [entry.id for entry in undamaged_entries(log)[:2]]
            if number == 1:
                store.delete("s")
            store.purge("s")
        assert {
            first: [entry.id for entry in undamaged_entries(store.open("s", read_only=True, first=first))]
            for first in wanted
        } == wanted
        assert sorted(log.id for log in derived.all_logs(store)) == ["child 0", "child 1", "child 2", "s", "s", "s"]
        with pytest.raises(NotFound):
            store.open("s", read_only=True)
        with pytest.raises(AlreadyExists):
            store.create("s", [start("s", first="first 1")])
        store.create("s", [start("s", first="first 3")])
        assert [entry.id for entry in undamaged_entries(store.open("s", read_only=True))] == ["first 3"]
        with pytest.raises(NotFound):
            fork(store, "s", Note(text="", seq=1, id="x"), "wrong", first="first 9")
        fork(store, "s", Note(text="", seq=2, id="x"), "grandchild", first="first 0")
        for number in range(3):
            store.purge(f"child {number}")
        assert undamaged_entries(store.open("s", read_only=True, first="first 0"))
        for first in ("first 1", "first 2"):
            with pytest.raises(NotFound):
                store.open("s", read_only=True, first=first)

    def test_a_batch_in_which_a_fork_begins_is_kept_whole(self, store: Store, log: Log) -> None:
        """Without its rest, the batch would count in no copy of the log."""
        batch = log.append([note("one"), message_draft("two"), note("three")], after=1, head=0)
        log.append([note("after")], after=4, head=0)
        kept = undamaged_entries(log)[:4]
        fork(store, "s", batch[1], "child")
        store.purge("s")
        base = store.open("s", read_only=True)
        assert undamaged_entries(base) == undamaged_entries(base, reverse=True)[::-1] == kept
        lines = bare_lines(base)
        store.purge("child")
        store.adopt("s", lines, after=0)
        assert undamaged_entries(store.open("s")) == kept

    def test_a_fork_needs_an_entry_that_is_still_there(self, store: Store, five: Log) -> None:
        entries = undamaged_entries(five)
        fork(store, "s", entries[1], "child")
        store.purge("s")
        with pytest.raises(NotFound):
            fork(store, "s", entries[3], "late")
        assert self.ids(store) == ["child"]
        fork(store, "s", entries[1], "twin")
        assert self.ids(store) == ["child", "twin"]

    def test_a_fork_in_the_trash_still_needs_its_parent(self, store: Store, five: Log) -> None:
        fork(store, "s", undamaged_entries(five)[2], "child")
        store.delete("child")
        store.purge("s")
        assert seqs(undamaged_entries(store.open("s", read_only=True))) == [1, 2, 3]
        store.restore("child")
        assert self.ids(store) == ["child"]

    def test_forks_of_forks_keep_the_whole_chain(self, store: Store, five: Log) -> None:
        child = fork(store, "s", undamaged_entries(five)[3], "child")
        [own] = child.append([message_draft("own")], after=5, head=4)
        fork(store, "child", own, "grandchild")
        store.purge("s")
        store.purge("child")
        assert seqs(undamaged_entries(store.open("s", read_only=True))) == [1, 2, 3, 4]
        assert seqs(undamaged_entries(store.open("child", read_only=True))) == [5, 6]
        store.purge("grandchild")
        for gone in ("s", "child", "grandchild"):
            with pytest.raises(NotFound):
                store.open(gone, read_only=True)

    def test_a_deleted_parent_can_be_read_and_forked_by_those_who_build_on_it(self, store: Store, five: Log) -> None:
        fork(store, "s", undamaged_entries(five)[2], "child")
        entries = undamaged_entries(five)
        store.delete("s")
        assert undamaged_entries(store.open("s", read_only=True), before=4) == entries[:3]
        fork(store, "s", entries[4], "another")
        store.purge("s")
        assert undamaged_entries(store.open("s", read_only=True)) == entries

"""What a store promises of its sessions: making them, listing them, removing them."""

from __future__ import annotations

import pytest

from turnlog.errors import AlreadyExists, Ambiguous, Conflict, NotFound
from turnlog.log.entry import Entry, Fork, Note, Set
from turnlog.log.ids import handle_of
from turnlog.store import Listed, Log, Store
from turnlog.store.question import find
from turnlog.testing.appending import Connected, moment, note, together
from turnlog.testing.build import NOON, ManualClock, draft, read, said, seqs, start

ODD_IDS = [
    "a/b", "../../up", "..", ".", ".hidden", "a\0b", "a\nb", "A", "a", "Ä", "A\u0308", "ﬁ", "fi", "CON", "con.jsonl",
    "~x", "=41", "-", " ", "🦉" * 40, "long" * 200, "long" * 200 + "er", "%2e%2e", "a:b", "a\\b",
]  # fmt: skip


def title(text: str) -> Set:
    """The session-wide fact that listings show."""
    return Set(key="title", value=text, all={"title": text})


def fork(store: Store, parent: str, at: Entry, child: str, *, first: str | None = None) -> Log:
    """A log that continues another one."""
    made = Fork(parent, at.seq, at.id, first=first)
    return store.create(child, [start(child, fork=made)], seq=at.seq + 1, parent=made)


class Sessions(Connected):
    """Making and listing sessions."""

    def test_an_empty_store_has_no_sessions(self, store: Store) -> None:
        assert list(store.ids()) == []
        assert list(store.sessions()) == []
        assert list(store.sessions(deleted=True)) == []

    def test_a_new_log_has_its_first_entries_and_can_be_opened(self, store: Store) -> None:
        log = store.create("s", [start("s"), note("second")])
        assert log.id == "s"
        assert read(store.open("s")) == read(log)
        assert [entry.type for entry in read(log)] == ["session", "note"]

    def test_an_id_that_is_taken_is_refused_and_the_session_untouched(self, store: Store) -> None:
        log = store.create("s", [start("s"), note()])
        with pytest.raises(AlreadyExists):
            store.create("s", [start("s")])
        assert len(read(log)) == 2

    def test_a_session_that_is_not_there_is_not_found(self, store: Store) -> None:
        for look in (store.open, store.base, store.delete, store.restore, store.purge):
            with pytest.raises(NotFound):
                look("nobody")
        assert list(store.ids()) == []

    def test_no_two_ids_share_a_log(self, store: Store) -> None:
        for index, session_id in enumerate(ODD_IDS):
            store.create(session_id, [start(session_id), note(str(index))]).close()
        assert sorted(store.ids()) == sorted(ODD_IDS)
        assert sorted(found.id for found in store.sessions()) == sorted(ODD_IDS)
        for index, session_id in enumerate(ODD_IDS):
            entry = read(store.open(session_id))[1]
            assert isinstance(entry, Note)
            assert entry.text == str(index)

    def test_of_many_threads_that_create_one_id_exactly_one_succeeds(self, store: Store) -> None:
        won: list[int] = []

        def create(index: int) -> None:
            try:
                store.create("s", [start("s"), note(str(index))])
            except AlreadyExists:
                return
            won.append(index)

        together(4, create)
        assert len(won) == 1
        entry = read(store.open("s"))[1]
        assert isinstance(entry, Note)
        assert entry.text == str(won[0])

    def test_a_listing_shows_the_first_line_the_newest_wide_facts_and_the_last_line(
        self, store: Store, clock: ManualClock
    ) -> None:
        log = store.create("s", [start("s", title="first")])
        log.append([draft(title("second"))], after=0, head=0)
        [newest] = log.append([draft(title("third"))], after=0, head=0)
        for _ in range(50):
            log.append([said("x" * 1000)], after=99, head=0)
        clock.tick(7000)
        [last] = log.append([note()], after=0, head=0)
        [found] = store.sessions()
        assert found.id == "s"
        assert found.start is not None
        assert (found.start.id, found.start.title, found.start.at) == ("s", "first", moment(NOON))
        assert found.wide == newest
        assert found.last == last
        assert found.last is not None
        assert found.last.at == moment(NOON + 7000)

    def test_a_listing_is_right_when_the_wide_facts_are_the_last_line(self, store: Store, log: Log) -> None:
        [newest] = log.append([draft(title("only"))], after=0, head=0)
        [found] = store.sessions()
        assert found.wide == newest
        assert found.last == newest

    def test_wide_facts_written_by_another_handle_are_not_forgotten(self, store: Store, log: Log) -> None:
        [newest] = store.open("s").append([draft(title("theirs"))], after=0, head=0)
        log.append([note("mine")], after=0, head=0)
        [found] = store.sessions()
        assert found.wide == newest

    def test_a_session_without_wide_facts_has_none(self, store: Store, log: Log) -> None:
        log.append([draft(Set(key="mood", value="good"))], after=0, head=0)
        [found] = store.sessions()
        assert found.wide is None

    def test_the_newest_come_first_and_one_can_go_on_behind_any_of_them(self, store: Store, clock: ManualClock) -> None:
        """Within a minute, over many, and where the clock stood still: there the id decides."""
        steps = [0, 1, 999, 0, 59_000, 1, 60_000, 0, 7_200_000, 0, 0, 5]
        logs: dict[str, Log] = {}
        for index, step in enumerate(steps):
            clock.tick(step)
            name = f"s{index * 7 % 12:02}"
            logs[name] = store.create(name, [start(name), note()])
        for name, step in (("s07", 3), ("s00", 0), ("s03", 61_000)):
            clock.tick(step)
            logs[name].append([note("again")], after=0, head=0)
        expected = sorted(store.sessions(), key=lambda found: found.order, reverse=True)
        assert list(store.newest()) == expected
        assert expected[0].id == "s03"
        for index, found in enumerate(expected):
            assert next(iter(store.newest())) == expected[0]
            assert list(store.newest(after=found.id)) == expected[index + 1 :]
        store.delete("s03")
        store.delete("s00")
        assert list(store.newest()) == [found for found in expected if found.id not in ("s03", "s00")]
        assert [found.id for found in store.newest(deleted=True)] == ["s03", "s00"]
        assert [found.id for found in store.newest(deleted=True, after="s03")] == ["s00"]
        for after in ("s03", "nobody"):
            with pytest.raises(NotFound):
                list(store.newest(after=after))

    def test_some_sessions_are_found_by_their_ids(self, store: Store) -> None:
        for session_id in ODD_IDS:
            store.create(session_id, [start(session_id)]).close()
        wanted = [*ODD_IDS[::3], "nobody"]
        assert sorted(found.id for found in store.sessions(ids=wanted)) == sorted(ODD_IDS[::3])
        assert list(store.sessions(ids=[])) == []
        assert list(store.sessions(ids=wanted, deleted=True)) == []

    def test_sessions_are_found_by_how_their_ids_or_handles_begin(self, store: Store) -> None:
        ids = [
            *ODD_IDS,
            "20261115-070012-k3f9q2m7",
            "20261115-070013-k3aaaaaa",
            "k3f",
            "#",
            "#" * 40,
            "x" * 63,
            "x" * 64,
        ]
        ids += ["20261115-07001Ä-k3f9q2m7", "k3f9-extra", "Ä" * 40 + "-" + "b" * 6 + "-k3f9q2m7"]
        for session_id in ids:
            store.create(session_id, [start(session_id)]).close()
        for like in [
            "",
            "k3",
            "k3f9q2m7",
            "20261115-07",
            "a",
            "A",
            "Ä",
            "long",
            "long" * 199,
            "x" * 63,
            "#",
            "🦉",
            "\0",
            "no",
        ]:
            found = [one for one in ids if one.startswith(like) or handle_of(one).startswith(like)]
            assert sorted(store.ids(like=like)) == sorted(found), like
            assert list(store.ids(like=like, deleted=True)) == []
        store.delete("k3f")
        assert list(store.ids(like="k3f", deleted=True)) == ["k3f"]
        assert "k3f" not in store.ids(like="k3f")

    def test_a_store_says_that_it_works_and_what_it_is(self, store: Store, log: Log) -> None:
        health = store.health()
        assert health["ok"] is True
        assert health["backend"] == store.backend
        assert health["location"]
        assert health["sessions"] == 1


class Removing(Connected):
    """Deleting, restoring and purging."""

    @pytest.fixture
    def five(self, log: Log) -> Log:
        """A log of five entries."""
        for index in range(4):
            log.append([said(str(index))], after=99, head=0)
        return log

    def ids(self, store: Store, *, deleted: bool = False) -> list[str]:
        """What a listing shows."""
        return sorted(found.id for found in store.sessions(deleted=deleted))

    def test_a_deleted_session_is_out_of_sight(self, store: Store, five: Log) -> None:
        store.delete("s")
        assert list(store.ids()) == []
        assert self.ids(store) == []
        with pytest.raises(NotFound):
            store.open("s")

    def test_a_deleted_session_is_in_the_trash_as_it_was(self, store: Store, five: Log) -> None:
        before: Listed = next(iter(store.sessions()))
        entries = read(five)
        store.delete("s")
        assert list(store.sessions(deleted=True)) == [before]
        assert read(store.base("s")) == entries

    def test_a_deleted_session_takes_no_more_entries(self, store: Store, five: Log) -> None:
        store.delete("s")
        with pytest.raises((NotFound, Conflict)):
            five.append([note()], after=0, head=0)
        store.restore("s")
        assert seqs(read(store.open("s"))) == [1, 2, 3, 4, 5]

    def test_a_restored_session_is_as_it_was(self, store: Store, five: Log) -> None:
        entries = read(five)
        store.delete("s")
        store.restore("s")
        assert self.ids(store) == ["s"]
        assert self.ids(store, deleted=True) == []
        log = store.open("s")
        assert read(log) == entries
        assert log.append([note()], after=0, head=0)[0].seq == 6

    def test_a_deleted_session_is_not_made_again(self, store: Store, five: Log) -> None:
        store.delete("s")
        with pytest.raises(AlreadyExists):
            store.create("s", [start("s")])
        store.restore("s")
        assert len(read(store.open("s"))) == 5

    def test_the_id_of_a_deleted_session_may_be_used_again(self, store: Store, five: Log) -> None:
        entries = read(five)
        store.delete("s")
        store.create("s", [start("s", first="another"), note()])
        assert self.ids(store) == self.ids(store, deleted=True) == ["s"]
        assert [found.first for found in store.sessions()] == ["another"]
        assert [found.first for found in store.sessions(deleted=True)] == ["s"]
        assert len(read(store.base("s"))) == len(read(store.base("s", "another"))) == 2
        assert read(store.base("s", "s")) == entries
        with pytest.raises(AlreadyExists):
            store.restore("s")
        with pytest.raises(AlreadyExists):
            store.delete("s")
        with pytest.raises(Ambiguous):
            store.purge("s")
        assert len(read(store.open("s"))) == 2
        store.purge("s", deleted=False)
        store.restore("s")
        assert read(store.open("s")) == entries
        for deleted in (False, True):
            if deleted:
                store.delete("s")
            with pytest.raises(NotFound):
                store.purge("s", deleted=not deleted)
        store.purge("s", deleted=True)
        with pytest.raises(NotFound):
            store.base("s")

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
        for look in (store.open, store.base, store.restore, store.purge):
            with pytest.raises(NotFound):
                look("s")
        with pytest.raises((NotFound, Conflict)):
            five.append([note()], after=0, head=0)
        log = store.create("s", [start("s")])
        assert seqs(read(log)) == [1]

    def test_purging_one_session_leaves_the_others(self, store: Store, five: Log) -> None:
        store.create("other", [start("other"), note()])
        store.purge("s")
        assert self.ids(store) == ["other"]
        assert len(read(store.open("other"))) == 2

    # ── forks ─────────────────────────────────────────────────────────────────────────────────────

    def test_a_fork_needs_a_parent_that_is_there(self, store: Store) -> None:
        with pytest.raises(NotFound):
            made = Fork("nobody", 3, "x")
            store.create("child", [start("child", fork=made)], seq=4, parent=made)
        assert list(store.ids()) == []

    @pytest.mark.parametrize("deleted_first", [False, True])
    def test_purging_a_parent_keeps_what_its_forks_need(self, store: Store, five: Log, deleted_first: bool) -> None:
        entries = read(five)
        fork(store, "s", entries[1], "early")
        fork(store, "s", entries[2], "late")
        if deleted_first:
            store.delete("s")
        store.purge("s")
        assert self.ids(store) == ["early", "late"]
        base = store.base("s")
        assert read(base) == entries[:3]
        assert read(base, reverse=True) == entries[2::-1]
        assert find(base, entries[2].id) == entries[2]
        with pytest.raises(NotFound):
            store.open("s")

    def test_the_id_of_a_purged_parent_is_taken_until_nobody_needs_it(self, store: Store, five: Log) -> None:
        fork(store, "s", read(five)[2], "child")
        store.purge("s")
        with pytest.raises(AlreadyExists):
            store.create("s", [start("s")])
        store.purge("child")
        with pytest.raises(NotFound):
            store.base("s")
        assert seqs(read(store.create("s", [start("s")]))) == [1]

    def test_a_purged_id_may_be_used_again_and_forks_find_what_they_build_on(self, store: Store) -> None:
        """As often as one likes: what is kept aside lies under the id of its first entry."""
        wanted: dict[str, list[str]] = {}
        for number in range(3):
            first = f"first {number}"
            log = store.create("s", [start("s", first=first), said(f"said {number}"), note()])
            fork(store, "s", read(log)[1], f"child {number}", first=first)
            wanted[first] = [entry.id for entry in read(log)[:2]]
            if number == 1:
                store.delete("s")
            store.purge("s")
        assert {first: [entry.id for entry in read(store.base("s", first))] for first in wanted} == wanted
        assert sorted(log.id for log in store.all_logs()) == ["child 0", "child 1", "child 2", "s", "s", "s"]
        with pytest.raises(NotFound):
            store.base("s")
        with pytest.raises(AlreadyExists):
            store.create("s", [start("s", first="first 1")])
        store.create("s", [start("s", first="first 3")])
        assert [entry.id for entry in read(store.base("s"))] == ["first 3"]
        with pytest.raises(NotFound):
            fork(store, "s", Note(text="", seq=1, id="x"), "wrong", first="first 9")
        fork(store, "s", Note(text="", seq=2, id="x"), "grandchild", first="first 0")
        for number in range(3):
            store.purge(f"child {number}")
        assert read(store.base("s", "first 0"))
        for first in ("first 1", "first 2"):
            with pytest.raises(NotFound):
                store.base("s", first)

    def test_a_fork_in_the_trash_still_needs_its_parent(self, store: Store, five: Log) -> None:
        fork(store, "s", read(five)[2], "child")
        store.delete("child")
        store.purge("s")
        assert seqs(read(store.base("s"))) == [1, 2, 3]
        store.restore("child")
        assert self.ids(store) == ["child"]

    def test_forks_of_forks_keep_the_whole_chain(self, store: Store, five: Log) -> None:
        child = fork(store, "s", read(five)[3], "child")
        [own] = child.append([said("own")], after=5, head=4)
        fork(store, "child", own, "grandchild")
        store.purge("s")
        store.purge("child")
        assert seqs(read(store.base("s"))) == [1, 2, 3, 4]
        assert seqs(read(store.base("child"))) == [5, 6]
        store.purge("grandchild")
        for gone in ("s", "child", "grandchild"):
            with pytest.raises(NotFound):
                store.base(gone)

    def test_a_deleted_parent_can_be_read_and_forked_by_those_who_build_on_it(self, store: Store, five: Log) -> None:
        fork(store, "s", read(five)[2], "child")
        entries = read(five)
        store.delete("s")
        assert read(store.base("s"), before=4) == entries[:3]
        fork(store, "s", entries[4], "another")
        store.purge("s")
        assert read(store.base("s")) == entries

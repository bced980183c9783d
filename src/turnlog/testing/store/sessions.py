"""What a store promises of its sessions: making them, and listing them."""

from __future__ import annotations

from functools import partial
from itertools import islice

import pytest

from turnlog.errors import AlreadyExists, NotFound
from turnlog.log.entry import Note, Set
from turnlog.log.ids import handle_of
from turnlog.store import Log, Place, Store, derived
from turnlog.store.listing import ListingCursor
from turnlog.testing.build import (
    START_MS,
    ManualClock,
    draft,
    message_draft,
    moment,
    note,
    start,
    title,
    undamaged_entries,
)
from turnlog.testing.store.fixture import StoreTests, run_together

ODD_IDS = [
    "a/b", "../../up", "..", ".", ".hidden", "a\0b", "a\nb", "A", "a", "Ä", "A\u0308", "ﬁ", "fi", "CON", "con.jsonl",
    "~x", "=41", "-", " ", "🦉" * 40, "long" * 200, "long" * 200 + "er", "%2e%2e", "a:b", "a\\b",
]  # fmt: skip


class Sessions(StoreTests):
    """Making and listing sessions."""

    def test_an_empty_store_has_no_sessions(self, store: Store) -> None:
        assert list(derived.ids(store)) == []
        assert list(store.listing()) == []
        assert list(store.listing("deleted")) == []

    def test_a_new_log_has_its_first_entries_and_can_be_opened(self, store: Store) -> None:
        log = store.create("s", [start("s"), note("second")])
        assert log.id == "s"
        assert undamaged_entries(store.open("s")) == undamaged_entries(log)
        assert [entry.type for entry in undamaged_entries(log)] == ["session", "note"]

    def test_an_id_that_is_taken_is_refused_and_the_session_untouched(self, store: Store) -> None:
        log = store.create("s", [start("s"), note()])
        with pytest.raises(AlreadyExists):
            store.create("s", [start("s")])
        assert len(undamaged_entries(log)) == 2

    def test_a_session_that_is_not_there_is_not_found(self, store: Store) -> None:
        for look in (store.open, partial(store.open, read_only=True), store.delete, store.restore, store.purge):
            with pytest.raises(NotFound):
                look("nobody")
        assert list(derived.ids(store)) == []

    def test_no_two_ids_share_a_log(self, store: Store) -> None:
        for index, session_id in enumerate(ODD_IDS):
            store.create(session_id, [start(session_id), note(str(index))]).close()
        assert sorted(derived.ids(store)) == sorted(ODD_IDS)
        assert sorted(row.id for row in store.listing()) == sorted(ODD_IDS)
        for index, session_id in enumerate(ODD_IDS):
            entry = undamaged_entries(store.open(session_id))[1]
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

        run_together(4, create)
        assert len(won) == 1
        entry = undamaged_entries(store.open("s"))[1]
        assert isinstance(entry, Note)
        assert entry.text == str(won[0])

    def test_a_listing_shows_the_first_line_the_newest_wide_facts_and_the_last_line(
        self, store: Store, clock: ManualClock
    ) -> None:
        log = store.create("s", [start("s", title="first")])
        log.append([draft(title("second"))], after=0, head=0)
        [newest] = log.append([draft(title("third"))], after=0, head=0)
        for _ in range(50):
            log.append([message_draft("x" * 1000)], after=99, head=0)
        clock.tick(7000)
        [last] = log.append([note()], after=0, head=0)
        [row] = store.listing()
        assert row.id == "s"
        assert row.start is not None
        assert (row.start.id, row.start.title, row.start.at) == ("s", "first", moment(START_MS))
        assert row.wide == newest
        assert row.last == last
        assert row.last is not None
        assert row.last.at == moment(START_MS + 7000)

    def test_a_listing_is_right_when_the_wide_facts_are_the_last_line(self, store: Store, log: Log) -> None:
        [newest] = log.append([draft(title("only"))], after=0, head=0)
        [row] = store.listing()
        assert row.wide == newest
        assert row.last == newest

    def test_wide_facts_written_by_another_handle_are_not_forgotten(self, store: Store, log: Log) -> None:
        [newest] = store.open("s").append([draft(title("theirs"))], after=0, head=0)
        log.append([note("mine")], after=0, head=0)
        [row] = store.listing()
        assert row.wide == newest

    def test_a_session_without_wide_facts_has_none(self, store: Store, log: Log) -> None:
        log.append([draft(Set(key="mood", value="good"))], after=0, head=0)
        [row] = store.listing()
        assert row.wide is None

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
        expected = sorted(store.listing(), key=lambda row: row.order, reverse=True)
        assert list(derived.newest(store)) == expected
        assert expected[0].id == "s03"
        for index, row in enumerate(expected):
            assert next(iter(derived.newest(store))) == expected[0]
            assert list(derived.newest(store, after=row.order)) == expected[index + 1 :]
        store.delete("s03")
        store.delete("s00")
        assert list(derived.newest(store)) == [row for row in expected if row.id not in ("s03", "s00")]
        assert [row.id for row in derived.newest(store, deleted=True)] == ["s03", "s00"]
        assert [row.id for row in derived.newest(store, deleted=True, after=expected[0].order)] == ["s00"]

    @pytest.mark.parametrize("what", ["grows", "is deleted", "is purged"])
    def test_pages_go_on_where_they_were_whatever_becomes_of_the_session_there(
        self, store: Store, clock: ManualClock, what: str
    ) -> None:
        """Three at a time, several of one moment; no session comes twice, and none that stayed as it was is missed."""
        for index in range(14):
            clock.tick(index % 3 * 700)
            store.create(f"s{index:02}", [start(f"s{index:02}"), note()]).close()
        seen: list[str] = []
        after: ListingCursor | None = None
        while page := list(islice(derived.newest(store, after=after), 3)):
            seen += [row.id for row in page]
            after = page[-1].order
            clock.tick(5)
            if what == "grows":
                store.open(after.id).append([note("more")], after=0, head=0)
            elif what == "is deleted":
                store.delete(after.id)
            else:
                store.purge(after.id)
            assert ListingCursor.of(str(after)) == after
        assert sorted(seen) == [f"s{index:02}" for index in range(14)]

    def test_some_sessions_are_found_by_their_ids(self, store: Store) -> None:
        for session_id in ODD_IDS:
            store.create(session_id, [start(session_id)]).close()
        wanted = [*ODD_IDS[::3], "nobody"]
        assert sorted(row.id for row in store.listing(ids=wanted)) == sorted(ODD_IDS[::3])
        assert list(store.listing(ids=[])) == []
        assert list(derived.sessions(store, ids=wanted, deleted=True)) == []

    @pytest.mark.parametrize("is_deleted", [False, True])
    def test_every_way_to_list_shows_the_same_rows(self, store: Store, clock: ManualClock, is_deleted: bool) -> None:
        for session_id in ("one", "two", "three"):
            clock.tick()
            store.create(session_id, [start(session_id, title="first"), note()]).close()
            if is_deleted:
                store.delete(session_id)
        place: Place = "deleted" if is_deleted else "live"
        rows = {row.id: row for row in store.listing(place)}
        assert sorted(rows) == ["one", "three", "two"]
        assert all((row.deleted_at is not None) == is_deleted for row in rows.values())
        assert {row.id: row for row in store.listing(place, ids=["one", "three", "nobody"])} == {
            name: rows[name] for name in ("one", "three")
        }
        assert list(store.listing(place, ids=["two", "two"])) == [rows["two"]]
        assert list(derived.newest(store, deleted=is_deleted)) == [rows["three"], rows["two"], rows["one"]]
        assert derived.exists(store, "one", deleted=is_deleted)
        assert not derived.exists(store, "one", deleted=not is_deleted)

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
            expected = [one for one in ids if one.startswith(like) or handle_of(one).startswith(like)]
            assert sorted(derived.ids(store, like=like)) == sorted(expected), like
            assert list(derived.ids(store, like=like, deleted=True)) == []
        store.delete("k3f")
        assert list(derived.ids(store, like="k3f", deleted=True)) == ["k3f"]
        assert "k3f" not in derived.ids(store, like="k3f")

    def test_the_session_of_an_entry_is_found_by_the_id_of_the_entry(self, store: Store) -> None:
        for name in ("one", "two"):
            log = store.create(name, [start(name)])
            log.append([message_draft("x", id=f"in {name}")], after=1, head=0)
        assert derived.holder_of(store, "in two") == "two"
        assert derived.holder_of(store, "in on") is None
        store.delete("two")
        assert derived.holder_of(store, "in two") is None
        assert derived.holder_of(store, "in one") == "one"
        assert derived.holder_of(store, "\udcff") is None

    def test_a_store_says_that_it_works_and_what_it_is(self, store: Store, log: Log) -> None:
        health = derived.health(store)
        assert health["ok"] is True
        assert health["backend"] == store.backend
        assert health["location"]
        assert health["sessions"] == 1

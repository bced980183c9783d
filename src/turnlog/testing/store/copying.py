"""What a store promises of copies: giving out lines, and taking over those of another store."""

from __future__ import annotations

import pytest

from turnlog.errors import AlreadyExists, Conflict, Invalid, NotFound
from turnlog.log.codec import Damage
from turnlog.log.entry import Entry, Note, Start, Unknown
from turnlog.log.payload import digest
from turnlog.log.written import WrittenLine
from turnlog.store import Log, Store, derived, memory
from turnlog.store.derived import find
from turnlog.testing.build import ManualClock, draft, fork, message_draft, note, seqs, start, title, undamaged_entries
from turnlog.testing.store.fixture import StoreTests, run_together


def bare_lines(log: Log, *, after: int = 0) -> list[bytes]:
    """The lines of a log, which must not be damaged."""
    items = list(log.lines(after=after))
    assert not [item for item in items if isinstance(item, Damage)]
    return [item.line for item in items if isinstance(item, WrittenLine)]


class Copying(StoreTests):
    """`Log.lines`, `Logs.adopt` and `derived.lacking`."""

    @pytest.fixture
    def other(self, clock: ManualClock) -> Store:
        """A store with a session `s`, to copy from."""
        store = memory.connect(clock=clock)
        log = store.create("s", [start("s", title="first")])
        log.append([message_draft("one"), note("a batch of two")], after=1, head=0)
        log.append([draft(title("second"))], after=0, head=0)
        log.append([draft(Unknown(kind="later", json='{"type":"later","level":1e400}'))], after=0, head=0)
        clock.tick(5000)
        log.append([message_draft("two")], after=5, head=2)
        return store

    def test_lines_and_entries_are_the_same_thing(self, store: Store, log: Log) -> None:
        log.append([draft(title("x")), note()], after=0, head=0)
        log.append([message_draft("y")], after=3, head=0)
        for after in (0, 2, 4):
            items = [item for item in log.lines(after=after) if isinstance(item, WrittenLine)]
            assert seqs([item.entry for item in items]) == seqs(undamaged_entries(log, after=after))
        assert all(b'"wide"' not in line for line in bare_lines(log))

    def test_a_copy_has_the_same_lines_to_the_byte(self, store: Store, other: Store) -> None:
        lines = bare_lines(other.open("s"))
        store.adopt("s", lines[:1], after=0)
        store.adopt("s", lines[1:4], after=1)
        store.adopt("s", lines[4:], after=4)
        copy = store.open("s")
        assert bare_lines(copy) == lines
        assert bare_lines(copy, after=3) == lines[3:]
        assert [(e.seq, e.id, e.at, e.parent, e.batch) for e in undamaged_entries(copy)] == [
            (e.seq, e.id, e.at, e.parent, e.batch) for e in undamaged_entries(other.open("s"))
        ]

    def test_a_copy_is_listed_like_the_original(self, store: Store, other: Store) -> None:
        store.adopt("s", bare_lines(other.open("s")), after=0)
        [row], [original] = store.listing(), other.listing()
        assert row.start == original.start
        assert (row.wide and row.wide.value) == "second"
        assert (row.last and row.last.id) == (original.last and original.last.id)

    def test_a_copy_goes_on_like_any_log(self, store: Store, other: Store, clock: ManualClock) -> None:
        store.adopt("s", bare_lines(other.open("s")), after=0)
        copy = store.open("s")
        clock.tick(-10_000)
        with pytest.raises(Conflict):
            copy.append([message_draft("unseen")], after=2, head=2)
        [new] = copy.append([message_draft("three")], after=6, head=6)
        assert (new.seq, new.parent) == (7, 6)
        assert new.at == undamaged_entries(copy)[5].at
        assert len(bare_lines(copy)) == 7
        assert find(copy, new.id) == new
        [again] = copy.append([message_draft("one", id=undamaged_entries(copy)[1].id)], after=7, head=7)
        assert again.seq == 2

    def test_a_handle_that_was_open_before_sees_what_was_taken_over(self, store: Store, other: Store) -> None:
        lines = bare_lines(other.open("s"))
        store.adopt("s", lines[:1], after=0)
        log = store.open("s")
        assert seqs(undamaged_entries(log)) == [1]
        store.adopt("s", lines[1:], after=1)
        assert log.wait(1)
        assert seqs(undamaged_entries(log)) == [1, 2, 3, 4, 5, 6]
        [new] = log.append([note()], after=0, head=0)
        assert new.seq == 7

    def test_only_the_end_that_the_caller_knows_is_continued(self, store: Store, other: Store) -> None:
        lines = bare_lines(other.open("s"))
        store.adopt("s", lines[:3], after=0)
        for after, some in ((2, lines[3:4]), (4, lines[4:5]), (1, lines[1:3])):
            with pytest.raises(Conflict):
                store.adopt("s", some, after=after)
        with pytest.raises(AlreadyExists):
            store.adopt("s", lines, after=0)
        with pytest.raises(NotFound):
            store.adopt("nobody", lines[1:], after=1)
        assert bare_lines(store.open("s")) == lines[:3]

    @pytest.mark.parametrize("bad", [b"", b"{}", b"not a line", b'{"type":"note","seq":2'])
    def test_what_is_not_a_line_is_refused_whole(self, store: Store, other: Store, bad: bytes) -> None:
        lines = bare_lines(other.open("s"))
        store.adopt("s", lines[:1], after=0)
        for wrong in ([lines[1], bad], [lines[1] + b"\n" + lines[2]], [lines[2], lines[1]], []):
            with pytest.raises(Invalid):
                store.adopt("s", wrong, after=1)
            with pytest.raises(Invalid):
                store.adopt("t", wrong, after=0)
        assert bare_lines(store.open("s")) == lines[:1]
        assert list(derived.ids(store)) == ["s"]

    def test_an_edited_line_stays_one(self, store: Store, other: Store) -> None:
        lines = bare_lines(other.open("s"))
        lines[1] = lines[1].replace(b"one", b"ONE")
        store.adopt("s", lines[:3], after=0)
        store.adopt("s", lines[3:], after=3)
        items = list(store.open("s").read())
        assert [item.kind for item in items if isinstance(item, Damage)] == ["edited"]
        assert [item.seq for item in items if isinstance(item, Entry) and item.unverified] == [2]
        assert [item.line for item in store.open("s").lines() if isinstance(item, WrittenLine)] == lines

    def test_a_fork_comes_after_what_it_builds_on(self, store: Store, other: Store) -> None:
        child = fork(other, "s", undamaged_entries(other.open("s"))[2], "child")
        child.append([message_draft("other")], after=4, head=2)
        lines = bare_lines(child)
        [first, *_] = undamaged_entries(child)
        parent = first.fork if isinstance(first, Start) else None
        with pytest.raises(NotFound):
            store.adopt("child", lines, after=0, parent=parent)
        store.adopt("s", bare_lines(other.open("s"))[:3], after=0)
        store.adopt("child", lines[:1], after=0, parent=parent)
        store.adopt("child", lines[1:], after=4, parent=parent)
        assert bare_lines(store.open("child")) == lines
        store.purge("s")
        assert seqs(undamaged_entries(store.open("s", read_only=True))) == [1, 2, 3]

    def test_a_deleted_session_grows_and_stays_deleted(self, store: Store, other: Store) -> None:
        lines = bare_lines(other.open("s"))
        store.adopt("s", lines[:3], after=0, deleted=True)
        assert list(derived.ids(store)) == []
        assert [row.id for row in store.listing("deleted")] == ["s"]
        with pytest.raises(AlreadyExists):
            store.adopt("s", lines, after=0)
        store.adopt("s", lines[3:], after=3)
        assert list(derived.ids(store)) == []
        assert bare_lines(store.open("s", read_only=True)) == lines
        store.restore("s")
        assert bare_lines(store.open("s")) == lines

    def test_what_is_kept_of_a_purged_session_becomes_one_again(self, store: Store, other: Store) -> None:
        lines = bare_lines(other.open("s"))
        store.adopt("s", lines, after=0)
        fork(store, "s", undamaged_entries(store.open("s"))[2], "child")
        store.purge("s")
        assert bare_lines(store.open("s", read_only=True)) == lines[:3]
        with pytest.raises(Conflict):
            store.adopt("s", lines[4:], after=4)
        assert list(derived.ids(store)) == ["child"]
        store.adopt("s", lines[3:4], after=3, deleted=True)
        assert list(derived.ids(store)) == ["child"]
        store.adopt("s", lines[4:], after=4)
        assert sorted(derived.ids(store)) == ["child", "s"]
        log = store.open("s")
        assert bare_lines(log) == lines
        assert log.append([message_draft("more")], after=6, head=6)[0].seq == 7

    def test_lines_go_to_the_log_with_that_first_entry(self, store: Store, clock: ManualClock) -> None:
        """A session, a deleted one and one kept aside that are called the same do not get each other's lines."""
        given: dict[str, list[bytes]] = {}
        for first in ("live", "deleted", "aside"):
            other = memory.connect(clock=clock)
            log = other.create("s", [start("s", first=first)])
            log.append([message_draft(first)], after=1, head=0)
            log.append([message_draft("more")], after=2, head=2)
            given[first] = bare_lines(log)
        store.adopt("s", given["aside"][:2], after=0)
        fork(store, "s", undamaged_entries(store.open("s"))[1], "child", first="aside")
        store.purge("s")
        store.adopt("s", given["deleted"][:1], after=0, deleted=True)
        store.adopt("s", given["live"][:1], after=0)
        for first in ("live", "deleted"):
            store.adopt("s", given[first][1:], after=1, first=first)
        with pytest.raises(AlreadyExists):
            store.adopt("s", given["aside"][2:], after=2, first="aside")
        store.adopt("s", given["aside"][2:], after=2, first="aside", deleted=True)
        for first, lines in given.items():
            assert bare_lines(store.open("s", read_only=True, first=first)) == lines
        assert [row.first for row in store.listing() if row.id == "s"] == ["live"]
        assert [row.first for row in store.listing("deleted")] == ["deleted"]

    def test_a_deleted_copy_beside_a_deleted_session_is_kept_aside(self, store: Store, other: Store) -> None:
        store.create("s", [start("s", first="another")])
        store.delete("s")
        lines = bare_lines(other.open("s"))
        store.adopt("s", lines, after=0, deleted=True)
        assert [row.first for row in store.listing("deleted")] == ["another"]
        assert bare_lines(store.open("s", read_only=True, first="s")) == lines

    def test_of_many_that_take_over_the_same_lines_exactly_one_does(self, store: Store, other: Store) -> None:
        lines = bare_lines(other.open("s"))
        store.adopt("s", lines[:1], after=0)
        winners: list[str] = []

        def take(index: int) -> None:
            try:
                if index % 2:
                    store.adopt("s", lines[1:], after=1)
                else:
                    store.open("s").append([note()], after=1, head=0, alone=True)
            except Conflict:
                return
            winners.append("adopted" if index % 2 else "appended")

        run_together(4, take)
        assert len(winners) == 1
        assert len(bare_lines(store.open("s"))) == (6 if winners == ["adopted"] else 2)

    def test_a_repeated_id_is_taken_over_as_it_is(self, store: Store, clock: ManualClock) -> None:
        first = memory.connect(clock=clock).create("s", [start("s"), draft(Note(id="same", text="a"))])
        again = memory.connect(clock=clock).create("s", [draft(Note(id="same", text="a")), note()], seq=3)
        lines = [*bare_lines(first), *bare_lines(again)]
        store.adopt("s", lines[:2], after=0)
        store.adopt("s", lines[2:], after=2)
        assert bare_lines(store.open("s")) == lines
        entry = find(store.open("s"), "same")
        assert entry is not None

    def test_a_store_says_which_blobs_it_lacks(self, store: Store) -> None:
        one, two, three = (digest(data) for data in (b"one", b"two", b"three"))
        derived.put(store, {one: b"one"})
        assert derived.lacking(store, [one, two, three, two]) == {two, three}
        assert derived.lacking(store, []) == set()
        with pytest.raises(Invalid):
            derived.lacking(store, ["two"])

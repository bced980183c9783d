"""What a store promises of erasing: what an entry said is gone wherever the store has it, and the rest stays."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from turnlog.log.block import Text
from turnlog.log.entry import Head, Message, Note, Set
from turnlog.log.erasure.content import ErasedLog, ErasingPlan, Erasure
from turnlog.log.written import WrittenLine
from turnlog.store import Log, Store
from turnlog.store.capability import EraseEntries, ability
from turnlog.store.derived import find, version
from turnlog.testing.build import draft, fork, message_draft, undamaged_entries
from turnlog.testing.store.fixture import StoreTests

AT = datetime(2026, 11, 18, tzinfo=UTC)


def erasing_plan(first: str, *erasures: Erasure, blobs: list[str] | None = None) -> ErasingPlan:
    """Return a plan that erases these entries of the log that begins with entry `first`."""
    return ErasingPlan([ErasedLog("s", first, list(erasures))], blobs or [])


def erasure(seq: int, id: str, part: str = "") -> Erasure:
    """Return the erasure of one entry, or of a part of it."""
    return Erasure(seq=seq, id=id, at=AT, by="ada", why="asked for", part=part)


class Erasing(StoreTests):
    """Erasing entries, for stores that can."""

    @pytest.fixture
    def eraser(self, store: Store) -> EraseEntries:
        """The store as one that erases."""
        eraser = ability(store, EraseEntries)
        if eraser is None:
            pytest.skip("this store does not erase")
        return eraser

    @pytest.fixture
    def three(self, log: Log) -> Log:
        """A log in which something was said."""
        for index, text in enumerate(("the first", "the secret", "the last")):
            log.append([message_draft(text, id=f"m{index}")], after=99, head=index + 1 if index else 0)
        log.sync(4)
        return log

    def test_the_content_is_gone_and_the_place_stays(self, eraser: EraseEntries, store: Store, three: Log) -> None:
        before = undamaged_entries(three)
        seen = version(three)
        eraser.erase(erasing_plan("s", erasure(3, "m1")))
        for log in (three, store.open("s"), store.open("s", read_only=True)):
            after = undamaged_entries(log)
            assert "the secret" not in str(after)
            assert [(e.seq, e.id, e.at, e.parent, e.type) for e in after] == [
                (e.seq, e.id, e.at, e.parent, e.type) for e in before
            ]
            assert [entry for entry in after if entry.seq != 3] == [entry for entry in before if entry.seq != 3]
            assert find(log, "m1") == after[2]
            assert after[2].void
        assert version(three) != seen or seen is None

    def test_backwards_and_in_a_stretch_it_is_the_same(self, eraser: EraseEntries, three: Log) -> None:
        eraser.erase(erasing_plan("s", erasure(3, "m1")))
        assert undamaged_entries(three, reverse=True) == undamaged_entries(three)[::-1]
        [entry] = undamaged_entries(three, after=2, before=4)
        assert entry.void and isinstance(entry, Message) and entry.blocks == [Text(text="[erased]")]

    def test_who_did_it_when_and_why_is_known(self, eraser: EraseEntries, three: Log) -> None:
        assert eraser.erasures() == {}
        eraser.erase(erasing_plan("s", erasure(3, "m1")))
        again = Erasure(seq=3, id="m1", at=AT, by="bob", why="again")
        eraser.erase(erasing_plan("s", again, erasure(4, "m2")))
        assert eraser.erasures() == {"s": [erasure(3, "m1"), erasure(4, "m2")]}
        assert eraser.erasures("s")["s"][0].by == "ada", "the first one did it"
        assert eraser.erasures("another") == {}

    def test_appending_goes_on(self, eraser: EraseEntries, store: Store, three: Log) -> None:
        """The last line may be the one that was erased."""
        eraser.erase(erasing_plan("s", erasure(4, "m2")))
        [after] = three.append([message_draft("and on")], after=4, head=4)
        three.sync(after.seq)
        other = store.open("s")
        [more] = other.append([draft(Note(text="and on"))], after=after.seq, head=0)
        other.sync(more.seq)
        assert [entry.seq for entry in undamaged_entries(three)] == [1, 2, 3, 4, after.seq, more.seq]
        assert "the last" not in str(undamaged_entries(three))

    def test_a_retry_is_answered_with_what_is_left(self, eraser: EraseEntries, three: Log) -> None:
        eraser.erase(erasing_plan("s", erasure(3, "m1")))
        [there] = three.append([message_draft("the secret", id="m1")], after=4, head=4)
        assert there.void and "the secret" not in str(undamaged_entries(three))

    def test_in_the_trash_and_aside(self, eraser: EraseEntries, store: Store, three: Log) -> None:
        child = fork(store, "s", undamaged_entries(three)[3], "child")
        store.delete("s")
        eraser.erase(erasing_plan("s", erasure(3, "m1")))
        assert "the secret" not in str(undamaged_entries(store.open("s", read_only=True)))
        store.purge("s")
        eraser.erase(erasing_plan("s", erasure(2, "m0")))
        aside = store.open("s", read_only=True, first="s")
        assert "the first" not in str(undamaged_entries(aside)) and "the last" in str(undamaged_entries(aside))
        assert set(eraser.erasures()) == {"s"}
        child.close()

    def test_a_part_that_repeats_a_fact(self, eraser: EraseEntries, log: Log) -> None:
        facts = {"pin": "the secret", "mode": "plan"}
        log.append([draft(Set(key="pin", value="the secret", id="set"))], after=99, head=0)
        log.append([draft(Head(to=0, asof=1, why="rewind", facts=facts, id="head"))], after=99, head=0)
        eraser.erase(erasing_plan("s", erasure(2, "set"), erasure(3, "head", "fact:pin")))
        _, fact, head = undamaged_entries(log)
        assert isinstance(head, Head) and head.facts == {"mode": "plan"}
        assert isinstance(fact, Set) and fact.key == "pin" and fact.value is None

    def test_copies_of_an_erased_log_are_the_same(self, eraser: EraseEntries, store: Store, three: Log) -> None:
        eraser.erase(erasing_plan("s", erasure(3, "m1")))
        lines = [item.line for item in three.lines() if isinstance(item, WrittenLine)]
        store.purge("s")
        store.adopt("s", lines, after=0)
        log = store.open("s")
        assert [item.line for item in log.lines() if isinstance(item, WrittenLine)] == lines
        eraser.erase(erasing_plan("s", erasure(4, "m2")))
        assert [bool(entry.void) for entry in undamaged_entries(log)] == [False, False, True, True]

    def test_it_is_unsettled_until_its_blobs_are_gone(self, eraser: EraseEntries, three: Log) -> None:
        wanted = erasing_plan("s", erasure(3, "m1"), blobs=["sha256:" + "0" * 64])
        name = eraser.erase(wanted)
        assert eraser.unsettled() == {name: wanted}
        eraser.settle(name)
        eraser.settle(name)
        assert eraser.unsettled() == {}

    def test_what_is_not_there_is_no_error(self, eraser: EraseEntries, store: Store, three: Log) -> None:
        """It may have been purged meanwhile; the record stays, so that it does not come back either."""
        store.purge("s")
        eraser.erase(erasing_plan("s", erasure(3, "m1")))
        assert set(eraser.erasures()) == {"s"}

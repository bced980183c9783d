"""What a store promises of its blobs."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from turnlog.errors import Corrupt, Invalid, NotFound
from turnlog.log.payload import digest
from turnlog.store import OpenFile, Store, derived
from turnlog.store.capability import CacheData, MeasureDisk, ability
from turnlog.testing.store.fixture import DEADLOCK_S, StoreTests, run_together

MALFORMED = ["", "sha256:", "sha256:12", "md5:" + "0" * 64, "0" * 64, "sha256:" + "g" * 64, "../" + "0" * 64]


class Blobs(StoreTests):
    """Putting and getting blobs."""

    @pytest.mark.parametrize(
        "data", [b"", b"\0", b"text", bytes(range(256)) * 5000], ids=["none", "nul", "text", "big"]
    )
    def test_what_was_put_comes_back(self, store: Store, data: bytes) -> None:
        name = digest(data)
        assert not store.has(name)
        derived.put(store, {name: data})
        assert store.has(name)
        assert store.get(name) == data

    def test_several_blobs_are_put_at_once(self, store: Store) -> None:
        blobs = {digest(data): data for data in (b"one", b"two", b"three")}
        derived.put(store, blobs)
        assert {name: store.get(name) for name in blobs} == blobs

    def test_putting_a_blob_again_changes_nothing(self, store: Store) -> None:
        one, two = b"one" * 1000, b"two"
        derived.put(store, {digest(one): one})
        derived.put(store, {digest(one): one})
        derived.put(store, {digest(one): one, digest(two): two})
        assert (store.get(digest(one)), store.get(digest(two))) == (one, two)

    def test_putting_nothing_is_fine(self, store: Store) -> None:
        derived.put(store, {})
        assert not store.has(digest(b""))

    def test_a_blob_that_is_not_there_is_not_found(self, store: Store) -> None:
        derived.put(store, {digest(b"one"): b"one"})
        assert not store.has(digest(b"two"))
        with pytest.raises(NotFound):
            store.get(digest(b"two"))

    @pytest.mark.parametrize("name", MALFORMED)
    def test_what_is_not_a_digest_is_refused(self, store: Store, name: str) -> None:
        with pytest.raises(Invalid):
            store.get(name)
        with pytest.raises(Invalid):
            store.has(name)
        with pytest.raises(Invalid):
            derived.put(store, {name: b""})

    def test_content_that_is_not_what_its_digest_says_never_comes_back(self, store: Store) -> None:
        name = digest(b"right")
        with pytest.raises((Corrupt, Invalid, NotFound)):
            derived.put(store, {name: b"wrong"})
            store.get(name)

    def test_a_batch_takes_many_blobs_and_files_at_once(self, store: Store, tmp_path: Path) -> None:
        big = bytes(range(256)) * 20_000
        (tmp_path / "file").write_bytes(big)
        fd = os.open(tmp_path / "file", os.O_RDONLY)
        sizes: list[int] = []
        with store.add(progress=sizes.append) as add:
            assert add(b"one") == digest(b"one")
            assert add(b"one") == digest(b"one")
            assert add(OpenFile(fd, len(big))) == digest(big)
            assert add(b"two") == digest(b"two")
        assert sizes == sorted(sizes)
        assert len(sizes) == 4
        os.close(fd)
        assert [store.get(digest(data)) for data in (b"one", b"two", big)] == [b"one", b"two", big]
        assert b"".join(store.stream(digest(big))) == big

    def test_a_batch_that_was_not_finished_leaves_nothing(self, store: Store) -> None:
        with pytest.raises(ZeroDivisionError), store.add() as add:
            add(b"one")
            raise ZeroDivisionError
        assert not store.has(digest(b"one"))

    def test_a_stream_is_the_blob(self, store: Store) -> None:
        data = b"0123456789" * 300_000
        derived.put(store, {digest(data): data, digest(b""): b""})
        assert b"".join(store.stream(digest(data))) == data
        assert b"".join(store.stream(digest(b""))) == b""
        with pytest.raises(NotFound):
            list(store.stream(digest(b"other")))
        with pytest.raises(Invalid):
            list(store.stream("other"))

    def test_collecting_removes_what_is_not_needed_and_nothing_else(self, store: Store) -> None:
        blobs = {digest(data): data for data in (b"one", b"two", b"three", b"four" * 1000)}
        for name, data in blobs.items():
            derived.put(store, {name: data})
        needed = {digest(b"one"), digest(b"four" * 1000)}
        if ability(store, MeasureDisk) is not None:
            assert derived.unneeded(store, needed).blobs == 2
        assert all(map(store.has, blobs))
        freed = store.collect(lambda: needed, expected=needed)
        assert freed.blobs == 2
        assert {name for name in blobs if store.has(name)} == needed
        assert all(store.get(name) == blobs[name] for name in needed)
        with store.keeping():
            derived.put(store, {digest(b"two"): b"two"})
        assert store.get(digest(b"two")) == b"two"

    def test_collecting_strictly_removes_every_blob_that_is_not_needed_and_no_other(self, store: Store) -> None:
        blobs = {digest(data): data for data in (b"one", b"two", b"three", b"four" * 1000)}
        derived.put(store, blobs)
        derived.put(store, {digest(b"five"): b"five"})
        before = derived.packs(store)
        gone = {digest(b"one"), digest(b"five"), digest(b"nobody has it")}
        kept = set(blobs) - gone
        for _ in range(2):
            store.collect(lambda: kept, strictly=True)
            assert derived.lacking(store, [*blobs, *gone]) == gone
        assert derived.packs(store) != before
        assert {name for name in blobs if store.has(name)} == set(blobs) - gone
        assert all(store.get(name) == data for name, data in blobs.items() if name not in gone)
        derived.put(store, {digest(b"one"): b"one"})
        assert store.get(digest(b"one")) == b"one"

    def test_nothing_is_collected_while_blobs_are_kept(self, store: Store) -> None:
        name = digest(b"one")
        derived.put(store, {name: b"one"})
        is_over = threading.Event()

        def collect() -> None:
            store.collect(set)
            is_over.set()

        collection = threading.Thread(target=collect, daemon=True)
        with store.keeping():
            collection.start()
            assert not is_over.wait(0.2)
            assert store.has(name)
        assert is_over.wait(DEADLOCK_S)
        assert not store.has(name)

    def test_a_collection_may_look_for_what_is_needed_as_anybody_does(self, store: Store) -> None:
        """It holds the lock exclusively, and its own thread may keep blobs meanwhile."""
        one, two = digest(b"one"), digest(b"two")
        derived.put(store, {one: b"one", two: b"two"})

        def find() -> set[str]:
            with store.keeping():
                return {name for name in (one, two) if store.has(name)} - {two}

        assert store.collect(find, strictly=True).blobs == 1
        assert (store.has(one), store.has(two)) == (True, False)

    def test_what_can_be_made_again_is_kept_as_long_as_it_is(self, store: Store) -> None:
        assert derived.load(store, "index") == b""
        derived.save(store, "index", b"first")
        derived.save(store, "index", b"second")
        assert derived.load(store, "index") == (b"" if ability(store, CacheData) is None else b"second")
        assert derived.load(store, "other") == b""

    def test_many_threads_put_the_same_blobs(self, store: Store) -> None:
        blobs = {digest(data): data for data in (bytes([index]) * 1000 for index in range(20))}

        def put(index: int) -> None:
            for name, data in list(blobs.items())[index:]:
                derived.put(store, {name: data})

        run_together(4, put)
        assert all(store.get(name) == data for name, data in blobs.items())

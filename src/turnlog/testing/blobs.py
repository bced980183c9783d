"""What a store promises of its blobs."""

from __future__ import annotations

import pytest

from turnlog.errors import Corrupt, Invalid, NotFound
from turnlog.log.payload import digest
from turnlog.store import Store
from turnlog.testing.appending import Connected, together

MALFORMED = ["", "sha256:", "sha256:12", "md5:" + "0" * 64, "0" * 64, "sha256:" + "g" * 64, "../" + "0" * 64]


class Blobs(Connected):
    """Putting and getting blobs."""

    @pytest.mark.parametrize(
        "data", [b"", b"\0", b"text", bytes(range(256)) * 5000], ids=["none", "nul", "text", "big"]
    )
    def test_what_was_put_comes_back(self, store: Store, data: bytes) -> None:
        name = digest(data)
        assert not store.has(name)
        store.put({name: data})
        assert store.has(name)
        assert store.get(name) == data

    def test_several_blobs_are_put_at_once(self, store: Store) -> None:
        blobs = {digest(data): data for data in (b"one", b"two", b"three")}
        store.put(blobs)
        assert {name: store.get(name) for name in blobs} == blobs

    def test_putting_a_blob_again_changes_nothing(self, store: Store) -> None:
        one, two = b"one" * 1000, b"two"
        store.put({digest(one): one})
        store.put({digest(one): one})
        store.put({digest(one): one, digest(two): two})
        assert (store.get(digest(one)), store.get(digest(two))) == (one, two)

    def test_putting_nothing_is_fine(self, store: Store) -> None:
        store.put({})
        assert not store.has(digest(b""))

    def test_a_blob_that_is_not_there_is_not_found(self, store: Store) -> None:
        store.put({digest(b"one"): b"one"})
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
            store.put({name: b""})

    def test_content_that_is_not_what_its_digest_says_never_comes_back(self, store: Store) -> None:
        name = digest(b"right")
        with pytest.raises((Corrupt, Invalid, NotFound)):
            store.put({name: b"wrong"})
            store.get(name)

    def test_many_threads_put_the_same_blobs(self, store: Store) -> None:
        blobs = {digest(data): data for data in (bytes([index]) * 1000 for index in range(20))}

        def put(index: int) -> None:
            for name, data in list(blobs.items())[index:]:
                store.put({name: data})

        together(4, put)
        assert all(store.get(name) == data for name, data in blobs.items())

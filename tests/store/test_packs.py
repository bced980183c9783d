"""Packs: found by name, by index or by their objects; damage is noticed, stays local, and never harms a reader."""

import hashlib
import os
import random

import pytest

from turnlog import Corrupt, NotFound, TurnlogError
from turnlog.log.payload import digest
from turnlog.store import derived, files
from turnlog.store.files.disk import Disk
from turnlog.store.files.packformat import MAGIC, pack_name

NOISE = random.Random(1).randbytes(3000)
BLOBS = {digest(data): data for data in (b"", b"small", b"text " * 500, NOISE)}
MORE = BLOBS | {digest(b"large " * 11_000): b"large " * 11_000}
"""Small ones are in a block; the large one stands alone."""


@pytest.fixture
def store(tmp_path):
    return files.connect(str(tmp_path))


def again(store):
    """The store as another process sees it."""
    return files.connect(store.folder)


def packs(store):
    return sorted(name for name in os.listdir(os.path.join(store.folder, "blobs")) if name.endswith(".pack"))


def only_pack(store):
    [name] = packs(store)
    return os.path.join(store.folder, "blobs", name)


def outcome(store, name):
    """What a reader gets: the blob, or a typed error."""
    try:
        return store.get(name)
    except TurnlogError as error:
        return type(error)


def test_what_is_put_at_once_is_one_pack_named_by_what_is_in_it(store):
    derived.put(store, BLOBS)
    assert packs(store) == [pack_name([bytes.fromhex(name[7:]) for name in BLOBS])]
    assert {name: again(store).get(name) for name in BLOBS} == BLOBS
    with open(only_pack(store), "rb") as file:
        assert file.read(len(MAGIC)) == MAGIC


def test_who_adds_names_every_pack_that_holds_what_was_added(store):
    derived.put(store, BLOBS)
    with store.keeping(), store.add() as add:
        assert sorted(add.packs()) == packs(store)
        with store.add() as other:  # another thread
            other(b"theirs")
        add(b"theirs")
        add(b"ours")
    assert len(packs(store)) == 3
    assert sorted(add.packs()) == packs(store)


def test_who_adds_looks_once_which_packs_there_are(store, monkeypatch):
    derived.put(store, BLOBS)
    listed = []
    real = Disk.listdir
    monkeypatch.setattr(Disk, "listdir", staticmethod(lambda folder: (listed.append(folder), real(folder))[1]))
    with store.keeping(), store.add() as add:
        add.packs()
        add(b"new")
    assert sorted(add.packs()) == packs(store)
    assert listed.count(os.path.join(store.folder, "blobs")) == 1


def test_a_blob_alone_is_found_without_looking_into_other_packs(store, monkeypatch):
    for index in range(5):
        derived.put(store, {digest(bytes([index])): bytes([index])})
    opened = []
    real = Disk.open

    def watch(self, path, flags, **options):
        opened.append(os.path.basename(path))
        return real(self, path, flags, **options)

    monkeypatch.setattr(Disk, "open", watch)
    fresh = again(store)
    opened.clear()
    assert fresh.get(digest(b"\x03")) == b"\x03"
    assert {name for name in opened if name.endswith(".pack")} == {pack_name([hashlib.sha256(b"\x03").digest()])}


def test_nothing_is_written_for_what_is_there_already(store):
    derived.put(store, BLOBS)
    before = packs(store)
    derived.put(again(store), BLOBS)
    derived.put(again(store), {digest(b"small"): b"small"})
    assert packs(store) == before
    derived.put(again(store), {**BLOBS, digest(b"new"): b"new"})
    [new] = set(packs(store)) - set(before)
    assert os.path.getsize(os.path.join(store.folder, "blobs", new)) < 300


def test_another_process_sees_a_pack_at_once(store):
    other = again(store)
    assert not other.has(digest(b"small"))
    derived.put(store, BLOBS)
    assert other.has(digest(b"small"))
    assert other.get(digest(NOISE)) == NOISE


def test_what_does_not_shrink_is_stored_as_it_is(store):
    derived.put(store, {digest(NOISE): NOISE})
    with open(only_pack(store), "rb") as file:
        assert NOISE in file.read()


def test_an_index_that_is_lost_is_not_needed(store):
    derived.put(store, BLOBS)
    path = only_pack(store)
    with open(path, "rb") as file:
        data = file.read()
    for cut in (1, 20, 28, 100):
        with open(path, "wb") as file:
            file.write(data[:-cut])
        assert {name: outcome(again(store), name) for name in BLOBS} == BLOBS


@pytest.mark.parametrize("bit", [0, 7])
def test_any_bit_that_flips_gives_the_blob_or_a_typed_error(store, bit):
    derived.put(store, MORE)
    path = only_pack(store)
    with open(path, "rb") as file:
        data = file.read()
    places = [*range(400), *range(400, len(data) - 250, 37), *range(len(data) - 250, len(data))]
    for place in places:
        with open(path, "wb") as file:
            file.write(data[:place] + bytes([data[place] ^ (1 << bit)]) + data[place + 1 :])
        found = [outcome(again(store), name) for name in MORE]
        for got, wanted in zip(found, MORE.values(), strict=True):
            assert got in (wanted, Corrupt, NotFound), place
        assert sum(got in (Corrupt, NotFound) for got in found) <= len(MORE)
        assert sum(isinstance(got, bytes) for got in found) >= 1 or place < len(MAGIC) + 60


def test_a_flip_in_one_blob_leaves_the_others_and_is_listed(store):
    derived.put(store, BLOBS)
    path = only_pack(store)
    with open(path, "r+b") as file:
        data = file.read()
        place = data.index(NOISE) + 1500
        file.seek(place)
        file.write(bytes([data[place] ^ 1]))
    fresh = again(store)
    assert outcome(fresh, digest(NOISE)) is Corrupt
    assert [outcome(fresh, name) for name in BLOBS if name != digest(NOISE)] == [b"", b"small", b"text " * 500]
    assert list(fresh.damaged_blobs()) == [digest(NOISE)]


@pytest.mark.parametrize("content", [b"", MAGIC, b"\0" * 5000, b"not a pack", NOISE, MAGIC + b"OBJ1" + b"\xff" * 60])
def test_a_pack_that_is_none_harms_nobody(store, content):
    derived.put(store, {digest(b"small"): b"small"})
    with open(os.path.join(store.folder, "blobs", "f" * 64 + ".pack"), "wb") as file:
        file.write(content)
    fresh = again(store)
    assert fresh.get(digest(b"small")) == b"small"
    assert outcome(fresh, digest(b"other")) is NotFound
    derived.put(fresh, {digest(b"other"): b"other"})
    assert again(store).get(digest(b"other")) == b"other"


def test_half_a_pack_has_no_name(store, monkeypatch):
    class Full(Disk):
        def sync(self, fd):
            raise OSError(28, "No space left on device")

    full = files.connect(store.folder, disk=Full())
    derived.put(store, {digest(b"small"): b"small"})
    before = packs(store)
    with pytest.raises(TurnlogError):
        derived.put(full, BLOBS)
    assert packs(store) == before
    assert os.listdir(os.path.join(store.folder, "blobs")) == before


def test_many_blobs_and_big_ones(store):
    many = {digest(data): data for data in (f"{index} ".encode() * (index % 50) for index in range(2000))}
    big = os.urandom(5_000_000)
    derived.put(store, {**many, digest(big): big})
    fresh = again(store)
    assert fresh.get(digest(big)) == big
    assert all(fresh.get(name) == data for name, data in list(many.items())[::97])


def test_a_pack_that_is_collected_while_packs_are_looked_at_costs_nothing(store):
    """Between listing the packs and opening them somebody collects: what is needed is in another pack then."""

    class CollectedMeanwhile(Disk):
        left = 1

        def open(self, path, *args, **options):
            if self.left and path.endswith(".pack"):
                self.left -= 1
                other = again(store)
                other.collect(lambda: {digest(b"needed")})
            return super().open(path, *args, **options)

    derived.put(store, {digest(data): data for data in (b"needed", b"not needed")})
    before = packs(store)
    looking = files.connect(store.folder, disk=CollectedMeanwhile())
    assert looking.has(digest(b"needed"))
    assert packs(store) != before
    assert looking.get(digest(b"needed")) == b"needed"

    derived.put(again(store), {digest(data): data for data in (b"needed", b"another")})
    listing = files.connect(store.folder, disk=CollectedMeanwhile())
    assert derived.lacking(listing, {digest(b"needed"), digest(b"another")}) == {digest(b"another")}

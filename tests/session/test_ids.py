"""Any string may name a session: no two share a file, and none escapes the folder."""

import os
import stat
import unicodedata

import pytest

import turnlog
from turnlog import AlreadyExists, Corrupt
from turnlog.store.files.names import file_name, session_id_of

ODD = [
    "a/b", "/etc/passwd", "../up", "..", ".", ".hidden", "", "a\0b", "a\nb", "tab\t", "A", "a", "Straße", "STRASSE",
    "É", "E\u0301", "ﬁ", "CON", "nul.jsonl", "~", "=", "=41", "-rf", " ", "a ", "🦉", "🦉" * 100, "x" * 1000,
    "x" * 999 + "y", "%2e%2e", "a:b", "a\\b", "$(id)", "`id`", "*", "latest", "\u202e", "\ufeff",
]  # fmt: skip


def test_any_string_names_a_session(home, place):
    ids = [odd for odd in ODD if odd]
    for odd in ids:
        session = home.create(id=odd, title=repr(odd))
        session.user(odd)
        assert session.id == odd
    fresh = place.open()
    assert sorted(info.id for info in fresh.sessions()) == sorted(ids)
    for odd in ids:
        session = fresh.resume(odd)
        assert (session.id, session.title) == (odd, repr(odd))
        assert [message.blocks[0].text for message in session.messages()] == [odd]
        with pytest.raises(AlreadyExists):
            fresh.create(id=odd)


def test_odd_sessions_can_be_forked_deleted_restored_and_purged(home, place):
    ids = [odd for odd in ODD if odd][:24]
    for odd in ids:
        session = home.create(id=odd)
        session.user(odd)
        session.fork(id=odd + " fork")
    for odd in ids:
        home.delete(odd)
    assert sorted(info.id for info in home.sessions(deleted=True)) == sorted(ids)
    for odd in ids[::2]:
        home.restore(odd)
    for odd in ids:
        home.purge(odd)
    for odd in ids:
        session = place.open().resume(odd + " fork")
        assert [message.blocks[0].text for message in session.messages()] == [odd]


def test_nothing_is_written_outside_the_folder(tmp_path):
    place = tmp_path / "deep" / "home"
    with turnlog.open(place) as home:
        for odd in ODD:
            if odd:
                home.create(id=odd).user("x")
                home.create(id=odd + "!").fork(id=odd + "?")
                home.delete(odd)
    found = [os.path.join(folder, name) for folder, _, names in os.walk(tmp_path) for name in names]
    assert found
    assert all(path.startswith(str(place)) for path in found)
    assert sorted(os.listdir(tmp_path)) == ["deep"]
    assert sorted(os.listdir(tmp_path / "deep")) == ["home"]


def test_file_names_stay_apart_where_case_is_folded_and_names_are_normalised():
    names = [file_name(odd) for odd in ODD if odd]
    for fold in (str.casefold, str.upper, lambda name: unicodedata.normalize("NFKD", name)):
        assert len({fold(name) for name in names}) == len(names)
    assert all(name.isascii() and len(name) < 250 and "/" not in name for name in names)
    assert all(not name.startswith((".", "-r")) for name in names if name != file_name("-rf"))


@pytest.mark.parametrize("odd", [odd for odd in ODD if odd])
def test_a_file_name_gives_back_its_id_or_is_a_hash(odd):
    name = file_name(odd)
    assert session_id_of(name) == (None if name.startswith("~") else odd)


@pytest.mark.parametrize(
    "name", ["x", "x.txt", "=zz.jsonl", "=4.jsonl", "A.jsonl", ".jsonl", "=ff.jsonl", "a=41=.jsonl", ".new-x"]
)
def test_a_foreign_file_is_no_session(name, files):
    assert session_id_of(name) is None
    with files.open() as home:
        home.create(id="mine")
        (files.folder / "sessions" / name).write_text("foreign\n")
        assert [info.id for info in home.sessions()] == ["mine"]
        assert (files.folder / "sessions" / name).read_text() == "foreign\n"


def test_a_file_that_holds_another_session_is_noticed(files):
    with files.open() as home:
        session = home.create(id="one")
        session.user("x")
        files.path(session).rename(files.folder / "sessions" / "two.jsonl")
        with pytest.raises(Corrupt, match="one"):
            home.resume("two")


# ── modes ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("mask", [0, 0o022, 0o777])
def test_everything_is_private_whatever_the_umask(tmp_path, mask):
    old = os.umask(mask)
    try:
        with turnlog.open(tmp_path / "a" / "home") as home:
            session = home.create()
            session.user("x" * 100_000)
            session.fork(id="fork").user("y")
            session.fork(id="other")
            home.delete("other")
            home.purge(session.id)
            home.put_blob(b"blob")
            assert home.health()["ok"]
            assert home.resume("fork").messages()
    finally:
        os.umask(old)
    paths = [tmp_path / "a"]
    for folder, folders, names in os.walk(tmp_path / "a"):
        paths += [os.path.join(folder, name) for name in folders + names]
    modes = {stat.S_IMODE(os.stat(path).st_mode) for path in paths if os.path.isfile(path)}
    assert modes == {0o600}
    modes = {stat.S_IMODE(os.stat(path).st_mode) for path in paths if os.path.isdir(path)}
    assert modes == {0o700}

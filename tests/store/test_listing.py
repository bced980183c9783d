"""Listings: right whatever a log's first, last and telling lines look like, and never in anybody's way."""

import os
import re
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import pytest

import turnlog
from turnlog import Message, Note, Set, Text
from turnlog.log.codec import CHECKSUM, with_checksum
from turnlog.session.interior import interior
from turnlog.store import derived, files
from turnlog.store.files.disk import Disk
from turnlog.testing import ManualClock
from turnlog.testing.build import start


@pytest.fixture
def home(tmp_path):
    with turnlog.open(tmp_path / "home", durability="flush") as home:
        yield home


def path_of(home, name="s"):
    return os.path.join(interior(home).store.folder, "sessions", f"{name}.jsonl")


def row(home):
    with turnlog.open(interior(home).store.folder) as fresh:
        [info] = fresh.sessions()
        return info


@pytest.mark.parametrize("size", [10, 3000, 5000, 20_000, 60_000])
@pytest.mark.parametrize("count", [0, 1, 30])
def test_the_title_is_found_whatever_was_said_before_and_after_it(home, size, count):
    session = home.create(id="s", title="first")
    for _ in range(count):
        session.user("x" * size)
    session.set("title", "second")
    for _ in range(count):
        session.user("y" * size)
    last = session.note("end")
    info = row(home)
    assert (info.title, info.seq, info.updated_at) == ("second", last.seq, last.at)


@pytest.mark.parametrize("size", [100, 5000, 50_000])
def test_a_long_first_line_is_read(home, size):
    home.create(id="s", title="t", labels={"l": "x" * size})
    info = row(home)
    assert (info.title, len(info.labels["l"]), info.is_readable) == ("t", size, True)


@pytest.mark.parametrize("size", [100, 15_000, 17_000, 60_000])
def test_a_long_last_line_is_read(home, size):
    session = home.create(id="s", title="t")
    session.set("tags", ["a"])
    last = session.user("x" * size)
    assert (row(home).seq, row(home).tags) == (last.seq, ["a"])


def test_a_title_that_was_never_acknowledged_is_not_shown(home):
    session = home.create(id="s", title="first")
    last = session.user("x")
    session.append(Set(key="title", value="never", all={"title": "never"}), Note(text="n"), Note(text="cut"))
    session.close()
    with open(path_of(home), "r+b") as file:
        file.truncate(os.path.getsize(path_of(home)) - 30)
    info = row(home)
    assert (info.title, info.seq) == ("first", last.seq)


def test_a_title_in_a_batch_is_shown(home):
    session = home.create(id="s", title="first")
    session.append(Set(key="title", value="second", all={"title": "second"}), Message(role="user"), Note(text="n"))
    assert row(home).title == "second"


def test_a_last_line_that_is_damaged_does_not_hide_the_others(home):
    session = home.create(id="s", title="first")
    session.set("title", "second")
    two = session.user("two")
    session.user("three")
    with open(path_of(home), "r+b") as file:
        file.seek(-20, os.SEEK_END)
        file.write(b"\0" * 20)
    info = row(home)
    assert (info.title, info.seq) == ("second", two.seq)


def test_lines_that_somebody_moved_do_not_hide_the_title(home):
    """The offset that a line holds is only a hint."""
    session = home.create(id="s", title="first")
    session.set("title", "second")
    session.user("two")
    session.close()
    with open(path_of(home), "rb") as file:
        data = file.read()
    with open(path_of(home), "wb") as file:
        file.write(b"\n" * 500 + data)
    assert row(home).title == "second"


@pytest.mark.parametrize("is_sealed", [True, False])
@pytest.mark.parametrize(
    ("pattern", "edited"),
    [
        (rb'"wide":\d+', b'"wide":-5'),
        (rb'"wide":\d+', b'"wide":9223372036854775808'),
        (rb'"wide":\d+,', b""),
        (rb'Z"', b'"'),
        (rb'"at":"[^"]*"', b'"at":"9999-12-31T23:59:59-14:00"'),
    ],
)
def test_a_last_line_with_odd_stamps_hides_no_session_and_no_title(home, pattern, edited, is_sealed):
    home.create(id="other")
    session = home.create(id="s", title="first")
    session.set("title", "second")
    session.user("two")
    session.close()
    path = Path(path_of(home))
    *lines, last, _ = path.read_bytes().split(b"\n")
    last = re.sub(pattern, edited, last, count=1)
    path.write_bytes(b"\n".join([*lines, with_checksum(last[:-CHECKSUM]) if is_sealed else last, b""]))
    for text in ("three", "four"):
        with turnlog.open(interior(home).store.folder) as fresh:
            titles = {info.id: info.title for info in fresh.sessions()}
            assert titles.keys() == {"other", "s"}
            if is_sealed:
                return  # a checksum that matches was made on purpose: what it says of the title may be wrong
            assert titles["s"] == "second"
            assert fresh.resume("s").user(text).at <= datetime.now(UTC)


def test_links_pipes_and_folders_in_the_folder_are_not_followed(home, tmp_path):
    session = home.create(id="s")
    session.user("x")
    secret = tmp_path / "secret"
    secret.write_bytes(Path(path_of(home)).read_bytes().replace(b'"id":"s"', b'"id":"l"'))
    folder = os.path.dirname(path_of(home))
    os.symlink(secret, os.path.join(folder, "link.jsonl"))
    os.mkfifo(os.path.join(folder, "pipe.jsonl"))
    os.mkdir(os.path.join(folder, "folder.jsonl"))
    with turnlog.open(interior(home).store.folder) as fresh:
        rows = {info.id: info for info in fresh.sessions()}
        assert rows["s"].is_readable
        assert not any(info.is_readable for name, info in rows.items() if name != "s")
        assert fresh.resume().id == "s"
        for name in ("link", "pipe", "folder"):
            with pytest.raises(turnlog.TurnlogError):
                fresh.resume(name)


def test_a_session_that_vanishes_while_we_look_is_left_out(home):
    for name in ("a", "b", "c"):
        home.create(id=name)
    rows = interior(home).store.listing()
    seen = {next(rows).id}
    for name in {"a", "b", "c"} - seen:
        os.unlink(path_of(home, name))
    seen |= {found.id for found in rows}
    assert len(seen) <= 3
    assert len(home.sessions()) == 1


def test_listing_leaves_every_byte_and_time_as_it_was(home):
    session = home.create(id="s")
    session.user("x")
    session.close()
    with open(path_of(home), "ab") as file:
        file.write(b'{"type":"mess')
    before = os.stat(path_of(home))
    home.sessions()
    after = os.stat(path_of(home))
    assert (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns)


def test_many_sessions_are_listed_newest_first(home):
    for index in range(120):
        home.create(id=f"s{index:03}", title=str(index)).append(Message(role="user", blocks=[Text(text="x")]))
    titles = [info.title for info in home.sessions()]
    assert sorted(titles, key=int) == [str(index) for index in range(120)]
    updated = [info.updated_at for info in home.sessions()]
    assert updated == sorted(updated, reverse=True)


# ── the newest first ──────────────────────────────────────────────────────────────────────────────


class Looks(Disk):
    """Counts the files that are opened."""

    def __init__(self) -> None:
        self.count = 0

    def open(self, path, flags, *, create=False):
        self.count += 1
        return super().open(path, flags, create=create)


LONG_AGO = 1_600_000_000_000
HOUR = 3_600_000


@pytest.fixture
def many(tmp_path):
    """A store with forty sessions, each of which grew an hour after the one before; their files say so."""
    clock, disk = ManualClock(LONG_AGO), Looks()
    store = files.connect(str(tmp_path / "many"), clock=clock, disk=disk)
    for number in range(40):
        name = f"s{number * 7 % 40:02}"
        clock.tick(HOUR)
        log = store.create(name, [start(name)])
        log.close()
        touch(store, name, clock.now)
    return store


def touch(store, name, ms):
    os.utime(os.path.join(store.folder, "sessions", f"{name}.jsonl"), (ms / 1000, ms / 1000))


def in_order(store):
    return [found.id for found in sorted(store.listing(), key=lambda found: found.order, reverse=True)]


def test_who_wants_the_newest_few_looks_into_no_more_files(many):
    expected = in_order(many)
    many._disk.count = 0
    assert [found.id for found in islice(many.newest(), 5)] == expected[:5]
    assert many._disk.count <= 6
    assert [found.id for found in many.newest()] == expected


def test_a_file_that_was_touched_later_does_not_come_first(many):
    """As when somebody copied it."""
    expected = in_order(many)
    for name in expected[20:25]:
        touch(many, name, LONG_AGO + 1000 * HOUR)
    many._disk.count = 0
    assert [found.id for found in islice(many.newest(), 5)] == expected[:5]
    assert many._disk.count <= 11
    assert [found.id for found in many.newest()] == expected


def test_where_a_clock_was_wrong_all_files_are_looked_into(many):
    """The files say that they are older than what is in them, all of the same age."""
    expected = in_order(many)
    for name in expected:
        touch(many, name, LONG_AGO - HOUR)
    assert [found.id for found in many.newest()] == expected


@pytest.mark.parametrize("how", ["delete", "restore"])
def test_a_session_whose_move_a_crash_interrupted_is_live_whichever_way_it_is_listed(tmp_path: Path, how: str):
    """The file has both names: the new one came before the old one went."""
    store = files.connect(str(tmp_path))
    store.create("s", [start("s")]).close()
    store.create("other", [start("other")]).close()
    store.delete("other")
    if how == "delete":
        os.link(tmp_path / "sessions/s.jsonl", tmp_path / "trash/s.jsonl")
    else:
        store.delete("s")
        os.link(tmp_path / "trash/s.jsonl", tmp_path / "sessions/s.jsonl")
    for ids in (None, ["s", "other"]):
        assert [row.id for row in store.listing(ids=ids)] == ["s"]
        assert [row.id for row in store.listing("deleted", ids=ids)] == ["other"]
    assert [row.id for row in store.newest(deleted=True)] == list(store.ids(deleted=True)) == ["other"]
    assert not derived.exists(store, "s", deleted=True)

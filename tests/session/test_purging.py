"""Removing sessions for good: what goes, what stays and why, and what the receipt says of it."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import sleep

import pytest

import turnlog
from tests.store.crashlab import home_at
from turnlog.errors import Ambiguous, Invalid, NotFound
from turnlog.session.interior import interior
from turnlog.store.files.disk import Disk
from turnlog.thread.removal import expiry, purging
from turnlog.thread.removal.purging import PlacedLog

SECRET = "the launch code is " + "7" * 70_000


@pytest.fixture(params=["memory", "files"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> turnlog.Home:
    return turnlog.open("memory:" if request.param == "memory" else tmp_path / "home")


def family(home: turnlog.Home) -> tuple[turnlog.Session, turnlog.Session, turnlog.Session, turnlog.Session]:
    session = home.create(id="top")
    session.user(SECRET)
    fork = session.fork(id="fork")
    again = fork.fork(id="fork of the fork")
    child = session.spawn(agent="helper", id="child")
    child.user("look for it")
    return session, fork, again, child


def test_forks_of_a_session_are_listed(home: turnlog.Home):
    _, fork, again, _ = family(home)
    assert [row.id for row in home.forks("top")] == ["fork"]
    assert [row.id for row in home.forks(fork.id)] == [again.id]
    home.delete("fork")
    assert home.forks("top") == []
    assert [row.id for row in home.forks("top", deleted=True)] == ["fork"]
    with pytest.raises(NotFound):
        home.forks("nobody")


def test_what_stays_is_named_with_the_reason(home: turnlog.Home):
    session, fork, *_ = family(home)
    receipt = home.purge("top")
    assert [(one.id, one.kind, one.entries) for one in receipt.removed] == [("top", "session", session.seq)]
    assert {(one.id, one.kind) for one in receipt.left} == {("fork", "fork"), ("child", "subagent")}
    assert "entries up to" in next(one.why for one in receipt.left if one.kind == "fork")
    assert receipt.blobs == 0
    assert SECRET in fork.context()[0].blocks[0].text


def test_with_its_forks_and_subagents_nothing_is_left(home: turnlog.Home):
    *_, child = family(home)
    home.delete("fork")
    grandchild = child.spawn(agent="helper", id="grandchild")
    grandchild.fork(id="fork of the grandchild")
    digests = [digest for entry in home.read("top").entries() for digest in entry.blobs]
    receipt = home.purge("top", subagents=True, forks=True)
    kinds = {one.id: one.kind for one in receipt.removed}
    assert kinds == {
        "top": "session", "fork": "fork", "fork of the fork": "fork", "child": "subagent", "grandchild": "subagent",
        "fork of the grandchild": "fork",
    }  # fmt: skip
    assert receipt.left == []
    assert receipt.blobs == len(digests) == 1
    assert [list(interior(home).store.listing(place)) for place in ("live", "deleted", "aside")] == [[], [], []]
    with pytest.raises(NotFound):
        home.get_blob(digests[0])


def test_a_blob_that_another_session_needs_stays(home: turnlog.Home):
    for name in ("one", "two"):
        home.create(id=name).user(SECRET)
    assert home.purge("one").blobs == 0
    assert home.read("two").messages()[0].blocks[0].text == SECRET
    assert home.purge("two").blobs == 1


def test_a_session_and_a_deleted_one_of_the_same_name(home: turnlog.Home):
    home.create(id="s")
    home.delete("s")
    home.create(id="s")
    with pytest.raises(Ambiguous):
        home.purge("s")
    assert [one.id for one in home.purge("s", deleted=True).removed] == ["s"]
    assert home.exists("s")
    with pytest.raises(NotFound):
        home.purge("nobody")


def test_subagents_of_another_session_with_the_id_stay(home: turnlog.Home):
    """Ids are used again, and a subagent only names the id of the session that started it."""
    home.create(id="main").spawn(agent="helper", id="early")
    home.purge("main")
    sleep(0.002)
    now = home.create(id="main")
    now.spawn(agent="helper", id="late")
    receipt = home.purge("main", subagents=True)
    assert {one.id for one in receipt.removed} == {"main", "late"}
    assert home.exists("early")


def test_which_of_two_sessions_started_a_subagent_is_asked(home: turnlog.Home):
    home.create(id="main").spawn(agent="helper", id="early")
    home.delete("main")
    sleep(0.002)
    home.create(id="main").spawn(agent="helper", id="late")
    with pytest.raises(Ambiguous, match="either may have started"):
        home.purge("main", deleted=True, subagents=True)
    with pytest.raises(Ambiguous, match="either may have started"):
        home.purge("main", deleted=False, subagents=True)
    receipt = home.purge("main", deleted=True)
    assert [(one.id, one.kind) for one in receipt.left] == [("early", "subagent")]
    assert home.exists("main")
    assert home.exists("late")
    assert next(one.id for one in home.purge("main", subagents=True).removed) == "main"
    assert home.exists("early")


def test_no_byte_of_it_is_left_in_the_folder(tmp_path: Path):
    with turnlog.open(tmp_path / "home") as home:
        session = home.create(id="top")
        for index in range(40):
            session.user(f"{index} " + "x" * 70_000)
        session.user("only-here")
        session.user("only-in-a-blob " * 9_000)
        session.fork(id="fork")
        home.create(id="other").user("1 " + "x" * 70_000)
        home.purge("top", forks=True)
        files = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
        assert not any(b"only-here" in path.read_bytes() for path in files)
        assert {path.name for path in files if path.suffix == ".jsonl"} == {"other.jsonl"}
        assert home.gc(dry_run=True).blobs == 0


def test_a_log_that_no_single_read_returns_is_kept_whole_for_its_forks(tmp_path: Path):
    """Linux reads at most 2 GiB at once."""

    class Limited(Disk):
        def pread(self, fd: int, length: int, offset: int) -> bytes:
            return os.pread(fd, min(length, 1 << 20), offset)

    with home_at(str(tmp_path / "home"), Limited()) as home:
        session = home.create(id="top")
        for index in range(60):
            session.user(f"{index} " + "x" * 60_000)
        fork = session.fork(id="fork")
        before = fork.messages()
        home.purge("top")
        assert home.read("fork").messages() == before


def test_purging_reads_every_log_once_or_twice_however_much_was_kept_aside(tmp_path: Path):
    opened: list[str] = []

    class Counting(Disk):
        def open(self, path: str, flags: int, *, create: bool = False) -> int:
            opened.append(path)
            return super().open(path, flags, create=create)

    with home_at(str(tmp_path / "home"), Counting()) as home:
        session = home.create(id="0")
        for number in range(1, 12):
            session.user("more")
            session = session.fork(id=f"{number}")
        for number in range(11):
            home.purge(f"{number}")
        opened.clear()
        home.purge("11")
        assert len(opened) < 80
        assert [list(interior(home).store.listing(place)) for place in ("live", "deleted", "aside")] == [[], [], []]


DAY = 86_400_000


class Calendar:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 1_800_000_000_000

    def __call__(self) -> int:
        return self.now


def test_what_nothing_happened_in_for_long_goes_and_the_rest_stays():
    clock = Calendar()
    home = turnlog.open("memory:", clock=clock)
    for name in ("old", "pinned", "deleted before", "deleted now"):
        home.create(id=name).user("long ago")
    home.delete("deleted before")
    clock.now += 100 * DAY
    home.create(id="new").user("today")
    home.delete("deleted now")
    ninety = timedelta(days=90)
    told = home.expire(ninety, keep={"pinned"}, dry_run=True)
    assert sorted(one.id for one in told.removed) == ["deleted before", "old"]
    assert home.exists("old")
    assert [one.id for one in home.expire(ninety, keep={"pinned"}, only_deleted=True).removed] == ["deleted before"]
    done = home.expire(ninety, keep=lambda info: info.id == "pinned")
    assert [one.id for one in done.removed] == ["old"]
    assert {row.id for row in home.sessions()} == {"pinned", "new"}
    assert [row.id for row in home.sessions(deleted=True)] == ["deleted now"]
    for wrong in (90, timedelta(days=-1)):
        with pytest.raises(Invalid):
            home.expire(wrong)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("stay", [timedelta(days=800_000), timedelta.max])
def test_longer_than_there_are_dates_is_for_ever(tmp_path: Path, stay: timedelta):
    with turnlog.open(tmp_path, trash_for=stay) as home:
        for name in ("a", "b"):
            home.create(id=name).user("one")
        home.delete("a")
        assert home.expire(stay).removed == []
        assert [info.id for info in home.sessions(deleted=True)] == ["a"]


@pytest.mark.parametrize("stay", [timedelta(days=-1), 30])
def test_a_trash_that_keeps_for_no_time_is_refused_before_anything_goes_there(tmp_path: Path, stay: timedelta):
    with pytest.raises(Invalid, match="is not a duration"):
        turnlog.open(tmp_path, trash_for=stay)


def test_the_sessions_that_are_meant_are_a_list(home: turnlog.Home):
    home.create(id="a").user("one")
    with pytest.raises(Invalid, match="list"):
        home.expire(timedelta(0), keep="abc")
    for call in (home.push, home.pull, home.sync):
        with pytest.raises(Invalid, match="list"):
            call(turnlog.open("memory:"), "a")


def test_forks_and_subagents_go_with_what_they_were_made_of_or_not_at_all():
    clock = Calendar()
    home = turnlog.open("memory:", clock=clock)
    for name in ("young", "aged"):
        session = home.create(id=name)
        session.user("long ago")
        session.fork(id=f"{name} fork").fork(id=f"{name} fork of the fork")
        session.spawn(agent="helper", id=f"{name} child")
    home.purge("young fork")
    clock.now += 100 * DAY
    home.resume("young fork of the fork").user("still at it")
    done = home.expire(timedelta(days=90))
    assert {one.id for one in done.removed} == {"aged", "aged fork", "aged fork of the fork", "aged child"}
    assert {one.id for one in done.left} == {"young", "young child"}
    assert "is newer" in done.left[0].why
    assert home.read("young fork of the fork").messages()[0].blocks[0].text == "long ago"


def test_what_is_kept_of_a_purged_session_hides_no_other_with_its_id():
    clock = Calendar()
    home = turnlog.open("memory:", clock=clock)
    home.create(id="main").fork(id="fork")
    home.purge("main")
    clock.now += DAY
    main = home.create(id="main")
    main.spawn(agent="helper", id="child")
    clock.now += 100 * DAY
    main.user("still at it")
    home.resume("fork").user("this one as well")
    done = home.expire(timedelta(days=90))
    assert done.removed == []
    assert [one.why for one in done.left if one.id == "child" and "kept with main" in one.why]


@pytest.mark.parametrize("when", ["while it is read", "at the last moment"])
def test_what_is_used_meanwhile_stays_with_its_family(home: turnlog.Home, monkeypatch: pytest.MonkeyPatch, when: str):
    """What takes long is to read everything; what was acknowledged then must not go."""
    aged = home.create(id="aged")
    aged.user("long ago")
    aged.fork(id="aged fork")
    home.create(id="other").user("long ago")
    users = home.resume("aged")

    look, take = expiry.Removal.note_blobs_of, expiry.Removal.remove

    def use_before(step: Callable[..., None]) -> Callable[..., None]:
        def stepped(removal: expiry.Removal, one: PlacedLog, *args: object, **fields: object) -> None:
            if one.row.id == "aged fork":
                users.user("just now")
            step(removal, one, *args, **fields)

        return stepped

    if when == "while it is read":
        monkeypatch.setattr(expiry.Removal, "note_blobs_of", use_before(look))
    else:
        monkeypatch.setattr(expiry.Removal, "remove", use_before(take))
    done = expiry.expire(interior(home).store, timedelta(0), now=datetime.now(UTC) + timedelta(days=1))
    assert home.read("aged").messages()[-1].blocks[0].text == "just now"
    assert ("aged", "aged was used meanwhile") in [(one.id, one.why) for one in done.left]
    assert {one.id for one in done.removed} == ({"other"} if when == "while it is read" else {"other", "aged fork"})


def test_what_another_process_removed_meanwhile_is_left_out(home: turnlog.Home):
    """The sessions are listed first; whatever happens to one of them, the others go, and there is a receipt."""
    for name in ("one", "two", "three"):
        home.create(id=name).user(SECRET + name)
    home.resume("two").fork(id="fork").user("more")

    def keep(_: turnlog.Info) -> bool:
        for name in ("fork", "one"):
            if home.exists(name):
                home.purge(name)
        return False

    done = expiry.expire(interior(home).store, timedelta(0), now=datetime.now(UTC) + timedelta(days=1), keep=keep)
    assert {one.id for one in done.removed} == {"two", "three"}
    assert (done.left, done.blobs) == ([], 2)
    assert home.sessions() == []


def test_a_fork_that_another_process_removes_meanwhile_stops_no_purge(home: turnlog.Home, monkeypatch):
    family(home)
    look = purging.Removal.note_blobs_of

    def remove_before(removal: purging.Removal, one: PlacedLog) -> None:
        if one.row.id == "fork of the fork":
            interior(home).store.purge("fork of the fork")
        look(removal, one)

    monkeypatch.setattr(purging.Removal, "note_blobs_of", remove_before)
    assert {one.id for one in home.purge("top", forks=True, subagents=True).removed} == {"top", "fork", "child"}


def test_two_homes_that_empty_the_same_trash(tmp_path: Path):
    homes = [turnlog.open(tmp_path, trash_for=timedelta(0)) for _ in range(2)]
    for number in range(20):
        for index, home in enumerate(homes):
            home.create(id=f"s{number}-{index}").user("x")

    def delete_all(index: int) -> None:
        for number in range(20):
            homes[index].delete(f"s{number}-{index}")

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(delete_all, range(2))) == [None, None]
    homes[0].gc()
    assert homes[0].sessions() == homes[0].sessions(deleted=True) == []


def test_what_stays_because_of_damage_has_the_reason_and_no_id(tmp_path: Path):
    home = turnlog.open(tmp_path)
    home.create(id="good").user(SECRET)
    home.create(id="bad").user("x")
    home.close()
    with next(tmp_path.rglob("*bad*")).open("ab") as file:
        file.write(b"garbage\n")
    receipt = turnlog.open(tmp_path).purge("good")
    assert [(one.id, one.kind) for one in receipt.left] == [("", "blobs")]
    assert "damaged" in receipt.left[0].why


def test_a_trash_that_empties_itself():
    clock = Calendar()
    home = turnlog.open("memory:", clock=clock, trash_for=timedelta(days=30))
    for name in ("first", "second", "third"):
        home.create(id=name).user("x")
    home.delete("first")
    clock.now += 31 * DAY
    home.delete("second")
    assert [row.id for row in home.sessions(deleted=True)] == ["second"]
    clock.now += 31 * DAY
    home.gc()
    assert home.sessions(deleted=True) == []
    assert home.exists("third")

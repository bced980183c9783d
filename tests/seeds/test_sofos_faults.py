"""What breaks sofos does not break Turnlog."""

import os
import stat

import pytest

import turnlog
from tests.seeds.scene import everything_below, log_of, texts, work
from tests.store.actors import at_once
from turnlog import Home, Image, Text, Usage
from turnlog.store.files import connect
from turnlog.store.files.disk import Disk


class CountingDisk(Disk):
    """Notes what is synced, and how often something is written."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def write_once(self, fd: int, data: bytes) -> int:
        self.done.append("write")
        return super().write_once(fd, data)

    def sync(self, fd: int) -> None:
        super().sync(fd)
        self.done.append("sync")

    def sync_folder(self, path: str) -> None:
        super().sync_folder(path)
        self.done.append("sync folder")


def test_a_turn_costs_the_same_whatever_came_before(s, folder):
    """sofos writes the whole file anew for every turn, and parses the old one before that."""
    s.user("the same words")
    path = log_of(folder, s)
    first = path.read_bytes()
    s.user("the same words")
    second = path.read_bytes()
    for _ in range(100):
        s.user("the same words")
    before = path.read_bytes()
    s.user("the same words")
    after = path.read_bytes()
    assert second.startswith(first)
    assert after.startswith(before)
    assert len(after) - len(before) <= len(second) - len(first) + 16  # only the numbers have more digits


def test_nothing_is_stored_twice(s, folder):
    """sofos stores the conversation twice, and pictures as text inside it, every time they occur."""
    picture = os.urandom(50_000)
    s.user([Text("a sentence that occurs once"), Image("image/png", data=picture)])
    s.user([Image("image/png", data=picture)])
    stored = everything_below(folder)
    assert stored.count(b"a sentence that occurs once") == 1
    assert stored.count(picture[:1000]) == 1
    assert len(stored) < 60_000


def test_what_was_saved_is_synced_before_it_counts_as_saved(folder):
    """sofos renames without a sync: after a power cut the file may be empty."""
    disk = CountingDisk()
    with Home(connect(str(folder), disk=disk)) as home:
        session = home.create()
        assert "sync" in disk.done
        assert "sync folder" in disk.done
        disk.done.clear()
        session.user("one")
        assert disk.done[-1] == "sync"
        assert "write" in disk.done


def test_eight_processes_that_start_at_once_lose_nothing(folder):
    """sofos makes its index before it takes the lock: of 60 starts 7 lost entries and 4 failed."""
    told = at_once(*(("starts", folder, f"p{number}", 3) for number in range(8)))
    made = [session_id for ids in told for session_id in ids]
    assert len(set(made)) == 24
    with turnlog.open(folder) as home:
        assert {row.id for row in home.sessions()} == set(made)
        assert {row.title for row in home.sessions()} == {f"p{p} {n}" for p in range(8) for n in range(3)}


@pytest.mark.parametrize("rubbish", [b"", b"{", b"\x00" * 500, b'{"sessions": "none"}'])
def test_no_file_beside_a_session_can_keep_it_from_being_saved_or_listed(home, s, folder, rubbish):
    """A corrupt index makes sofos fail to save and to list; rebuilt, it holds one session only. There is none here."""
    other = home.create()
    other.user("other")
    (folder / "index.json").write_bytes(rubbish)
    (folder / "sessions/index.json").write_bytes(rubbish)
    log_of(folder, "damaged").write_bytes(rubbish)
    s.user("one")
    with turnlog.open(folder) as again:
        assert {s.id, other.id} <= {row.id for row in again.sessions()}
        assert texts(again.resume(s.id).messages()) == ["one"]


def test_a_listing_is_never_older_than_the_session(home, s, clock):
    """sofos writes session and index one after the other: a crash in between leaves a stale list."""
    for number in range(5):
        clock.tick(1000)
        s.set("title", f"title {number}")
        entry = s.user("more")
        (row,) = home.sessions()
        assert (row.title, row.updated_at, row.seq) == (f"title {number}", entry.at, entry.seq)


@pytest.mark.parametrize("name", ["../../esc", "/tmp/esc", "..", "a/b", "a\\b", ".hidden", "x\0y", "-rf"])
def test_no_id_leads_out_of_the_folder(home, folder, name, tmp_path):
    """sofos joins the id to the path unchecked: `../../esc` is written outside the sessions folder."""
    before = {path for path in tmp_path.rglob("*") if folder not in path.parents and path != folder}
    session = home.create(id=name)
    session.user("inside")
    assert texts(home.resume(name).messages()) == ["inside"]
    assert [row.id for row in home.sessions()] == [name]
    assert {path for path in tmp_path.rglob("*") if folder not in path.parents and path != folder} == before


def test_sessions_made_in_the_same_millisecond_are_two(home):
    """Ids of sofos are milliseconds: two in the same one overwrite each other."""
    made = {home.create().id for _ in range(200)}
    assert len(made) == 200
    assert len(home.sessions()) == 200


def test_counters_do_not_overflow(home, s):
    """sofos counts in 32 bits, which wrap or panic."""
    for _ in range(3):
        s.assistant("a", usage=Usage(input_tokens=2**32 - 1, output_tokens=2**40), model="claude-haiku-4-5")
    usage = home.resume(s.id).usage()
    assert usage.own == Usage(input_tokens=3 * (2**32 - 1), output_tokens=3 * 2**40)
    assert s.cost().own.micros == 3 * (2**32 - 1) + 15 * 2**40


def test_a_failed_tool_is_known_to_have_failed(home, s):
    """sofos stores no error flag: a failed tool is only its text."""
    work(s, "c1", "boom", is_error=True)
    work(s, "c2", "fine")
    results = [m.blocks[0] for m in home.resume(s.id).messages() if m.role == "tool"]
    assert [result.is_error for result in results] == [True, False]


def test_a_long_history_is_never_trimmed(home, s):
    """sofos drops messages above 500, even while loading, and saves what is left over."""
    for number in range(620):
        s.append(turnlog.Message(role="user", blocks=[Text(f"message {number}")]))
    again = home.resume(s.id)
    again.user("one more")
    assert len(home.resume(s.id).messages()) == 621
    assert len(home.resume(s.id).context()) == 621
    again.compact("so far", keep=20)
    assert len(home.resume(s.id).context()) == 21
    assert len(home.resume(s.id).messages()) == 621


def test_one_unknown_block_costs_nothing(home, s, folder):
    """One block of an unknown type makes a whole session of sofos unreadable."""
    s.user("before")
    line = turnlog.Message(
        role="assistant", blocks=[turnlog.UnknownBlock(kind="hologram", json='{"type":"hologram","x":1}')]
    )
    s.append(line)
    s.user("after")
    messages = home.resume(s.id).messages()
    assert texts(messages)[::2] == ["before", "after"]
    assert messages[1].blocks[0].json == '{"type":"hologram","x":1}'


def test_files_are_private_and_not_in_the_work_tree(home, project, folder):
    """Files of sofos are readable by everybody and lie inside the project."""
    before = sorted(project.rglob("*"))
    mask = os.umask(0)
    try:
        session = home.create(workspace=project)
        session.user([Image("image/png", data=b"x" * 70_000)])
    finally:
        os.umask(mask)
    for path in folder.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)
    assert sorted(project.rglob("*")) == before


def test_two_sessions_in_one_second_have_an_order(home, clock):
    """sofos knows seconds only, so that the newest of two is a matter of luck."""
    first, second = home.create(), home.create()
    clock.tick(1)
    second.user("a")
    clock.tick(1)
    first.user("b")
    assert [row.id for row in home.sessions()] == [first.id, second.id]
    clock.tick(-clock.now % 1000)
    ids = sorted(home.create().id for _ in range(5))
    assert [row.id for row in home.sessions()][:5] == ids[::-1]

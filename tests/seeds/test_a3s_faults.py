"""What breaks a3s-code does not break Turnlog."""

import os

import pytest

import turnlog
from tests.seeds.scene import assert_paired, log_of, texts
from tests.store.actors import at_once
from turnlog import Conflict, NotFound, ToolCall, Usage
from turnlog.store.files import connect
from turnlog.store.files.disk import Disk

IDS = ["a/b", "a\\b", "a_b", "x..y", "x_y", "A_B", "a_b ", "é", "e\u0301", ".", "..", "~", "=2f", "a=2fb"]


def test_different_ids_never_share_a_file(home, folder):
    """a3s keeps `a/b`, `a\\b` and `a_b` in one file, and `x..y` and `x_y`: the last one wins."""
    for name in IDS:
        home.create(id=name).user(f"I am {name!r}")
    for name in IDS:
        assert texts(home.resume(name).messages()) == [f"I am {name!r}"]
    files = {path.name.lower() for path in (folder / "sessions").iterdir()}
    assert len(files) == len(IDS)


def test_a_list_has_the_ids_themselves(home):
    """a3s lists the names of files, which are not the ids."""
    for name in IDS:
        home.create(id=name)
    assert sorted(row.id for row in home.sessions()) == sorted(IDS)


def test_an_empty_id_is_refused(home, folder):
    """a3s keeps the id "" in a hidden file that is never listed."""
    with pytest.raises(turnlog.Invalid):
        home.create(id="")
    assert not folder.exists() or list(folder.rglob("*.jsonl")) == []


def test_an_older_state_never_replaces_a_newer_one(home, s):
    """Saves of a3s run in the background: an older one may be renamed over a newer one."""
    stale = home.resume(s.id)
    for number in range(5):
        s.user(f"message {number}")
    with pytest.raises(Conflict):
        stale.user("what I knew long ago")
    stale.set("state", "Paused")
    assert texts(home.resume(s.id).messages()) == [f"message {number}" for number in range(5)]
    assert home.resume(s.id).get("state") == "Paused"


def test_several_processes_never_save_out_of_order(home, s, folder):
    """Without a revision or a lock the last writer of a3s wins."""
    at_once(*(("nodes", folder, s.id, name, 15) for name in "abc"))
    s.refresh()
    said = texts(s.messages())
    for name in "abc":
        assert [text for text in said if text[0] == name] == [f"{name} {number}" for number in range(15)]


def test_a_late_save_does_not_bring_a_deleted_session_back(home, s, folder):
    """A background save of a3s makes a deleted session again."""
    s.user("one")
    late = home.resume(s.id)
    home.delete(s.id)
    with pytest.raises(NotFound):
        late.user("two")
    assert home.sessions() == []
    home.purge(s.id)
    with pytest.raises(NotFound):
        late.note("three")
    assert home.sessions() == []
    assert list((folder / "sessions").iterdir()) == []


def test_threads_that_save_in_the_same_instant_lose_nothing(home, s):
    """Temporary names of a3s are a time and a process: two saves in one tick share a file."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: s.note(f"note {number}"), range(80)))
    assert sorted(note.text for note in s.entries(kind="note")) == sorted(f"note {number}" for number in range(80))


def test_a_write_that_fails_leaves_nothing_behind(folder):
    """a3s leaves its temporary files after an error, and nobody removes them."""

    class FullDisk(Disk):
        is_full = False

        def write_once(self, fd: int, data: bytes) -> int:
            if self.is_full:
                raise OSError(28, os.strerror(28))
            return super().write_once(fd, data)

    disk = FullDisk()
    with turnlog.Home(connect(str(folder), disk=disk)) as home:
        session = home.create()
        session.user("x" * 100_000)
        before = {path: path.stat().st_size for path in folder.rglob("*") if path.is_file()}
        disk.is_full = True
        for attempt in (lambda: session.user("two"), lambda: home.create(), lambda: session.user("x" * 200_000)):
            with pytest.raises(turnlog.OutOfSpace):
                attempt()
        disk.is_full = False
        assert {path: path.stat().st_size for path in folder.rglob("*") if path.is_file()} == before


def test_what_grows_is_appended_and_nothing_is_written_again(s, folder):
    """a3s writes the whole document for every save, with cost records that grow for ever."""
    path = log_of(folder, s)
    sizes = []
    for number in range(60):
        before = path.stat().st_size
        s.assistant("a", usage=Usage(input_tokens=5), model="m", request=f"r{number:02}")
        sizes.append(path.stat().st_size - before)
    assert max(sizes[2:]) - min(sizes[2:]) < 8


def test_cached_tokens_are_counted(home, s):
    """a3s never adds up what was read from and written to a cache."""
    for _ in range(3):
        s.assistant(
            "a", usage=Usage(input_tokens=1, cache_read_tokens=10, cache_write_tokens=5, cache_write_1h_tokens=2)
        )
    assert home.resume(s.id).usage().own == Usage(
        input_tokens=3, cache_read_tokens=30, cache_write_tokens=15, cache_write_1h_tokens=6
    )


def test_a_context_is_as_large_as_the_last_prompt_and_not_as_all_of_them(s):
    """The used tokens of a3s are the sum of all prompts of a run: it compacts much too early."""
    for number in range(10):
        s.user("more")
        s.assistant("ok", usage=Usage(input_tokens=1_000 + number, output_tokens=1))
    assert 1_000 < s.context().tokens < 1_100


def test_an_unknown_model_does_not_cost_nothing(s):
    """What a3s does not know by its exact name costs nothing."""
    s.assistant("a", usage=Usage(input_tokens=1_000), model="claude-haiku-4-5-20251001")
    s.assistant("b", usage=Usage(input_tokens=1_000), model="brand-new-model")
    own = s.cost().own
    assert own.models == {"claude-haiku-4-5-20251001": 1_000}
    assert own.unpriced == {"brand-new-model": Usage(input_tokens=1_000)}
    assert not own.is_complete


def test_a_summary_is_paid_for(s):
    """Calls that write summaries are not in the usage of a3s."""
    s.user("one")
    s.compact("sum", usage=Usage(input_tokens=900), model="claude-haiku-4-5", request="r")
    assert s.usage().own.input_tokens == s.cost().own.micros == 900


def test_a_compaction_leaves_no_orphans_and_throws_nothing_away(home, s):
    """a3s cuts between a call and its result, drops tool calls, and what it replaced is gone."""
    s.user("go")
    for number in range(15):
        s.assistant([ToolCall(id=f"c{number}", name="bash")])
        s.tool_result(f"c{number}", f"output {number}")
    before = s.messages()
    for keep in (20, 19, 1):
        s.compact(keep=keep)
        assert_paired(s.context())
    again = home.resume(s.id)
    assert again.messages() == before
    for _ in range(3):
        again.uncompact()
    assert list(again.context()) == before


def test_a_missing_field_or_a_torn_file_costs_one_entry_at_most(home, s, folder):
    """One missing key makes a3s refuse a session, so does a torn file; and there is no version in it."""
    for number in range(4):
        s.user(f"message {number}")
    path = log_of(folder, s)
    lines = path.read_bytes().split(b"\n")
    hurt = next(n for n, line in enumerate(lines) if b"message 1" in line)
    lines[hurt] = b'{"type":"message","seq":4}'
    path.write_bytes(b"\n".join(lines)[:-10])
    with turnlog.open(folder) as other:
        assert texts(other.resume(s.id).messages()) == ["message 0", "message 2"]
        assert len(other.resume(s.id).damage) == 2
    assert b'"layout":1' in (folder / "home.json").read_bytes()


def test_the_same_session_is_the_same_bytes(tmp_path):
    """Sets and maps of a3s have a random order: the same session is another file every time."""
    from turnlog.testing import ManualClock

    logs = []
    for name in ("one", "two"):
        with turnlog.open(tmp_path / name, clock=ManualClock()) as home:
            session = home.create(id="x")
            session.append(turnlog.Set(key="lanes", value={key: [key] for key in "zaqm"}), id="i1")
            session.append(turnlog.Message(role="user", blocks=[turnlog.Text("hi")]), id="i2")
        lines = log_of(tmp_path / name, "x").read_bytes().splitlines()
        # The id of the first line is another one for every session, whatever the session is called.
        logs.append([line for line in lines[1:] if b'"type":"writer"' not in line])
    assert logs[0] == logs[1]


def test_times_are_finer_than_seconds(home, s, clock):
    """a3s knows seconds only."""
    one = s.user("one")
    clock.tick(1)
    assert (s.user("two").at - one.at).total_seconds() == 0.001

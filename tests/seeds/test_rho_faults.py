"""What breaks rho does not break Turnlog."""

import pytest

import turnlog
from tests.seeds.scene import assert_paired, log_of, texts
from tests.seeds.test_sofos_faults import CountingDisk
from tests.store.actors import at_once
from turnlog import Home, NotFound, ToolCall, Unsupported
from turnlog.store.files import connect


def test_resuming_after_a_crash_keeps_everything_loadable(home, s, folder):
    """rho forgives a torn last line when it loads and glues the next one to it: one message later nothing loads."""
    s.user("one")
    s.user("torn")
    path = log_of(folder, s)
    path.write_bytes(path.read_bytes()[:-20])
    for number in range(3):
        with turnlog.open(folder) as other:
            other.resume(s.id).user(f"after {number}")
    with turnlog.open(folder) as other:
        assert texts(other.resume(s.id).messages()) == ["one", "after 0", "after 1", "after 2"]


def test_an_unanswered_call_hides_nothing_that_came_later(home, s):
    """rho cuts a conversation at the first incomplete tool turn: what is said after that is lost at every load."""
    s.user("one")
    s.assistant([ToolCall(id="a", name="x")])
    for number in range(3):
        again = home.resume(s.id)
        again.user(f"later {number}")
    again = home.resume(s.id)
    assert texts(m for m in again.context() if m.role == "user") == ["one", "later 0", "later 1", "later 2"]
    assert_paired(again.context())


def test_results_may_come_in_any_order(home, s):
    """Tools that ran in parallel and finished in another order cost rho the rest of the session."""
    s.user("go")
    s.assistant([ToolCall(id=name, name="x") for name in "abc"])
    for name in "cab":
        s.tool_result(name, name.upper())
    s.assistant("done")
    again = home.resume(s.id)
    assert sorted(texts(again.context())[-4:]) == ["A", "B", "C", "done"]
    assert_paired(again.context())
    assert texts(again.messages())[-4:] == ["C", "A", "B", "done"]


def test_an_entry_is_written_with_one_call(folder):
    """rho writes every token of its JSON by itself: 50 calls for a message, which others may interrupt."""
    disk = CountingDisk()
    with Home(connect(str(folder), disk=disk)) as home:
        session = home.create()
        session.user("the first, with who writes")
        disk.done.clear()
        session.assistant([ToolCall(id="a", name="x", input={str(n): [n] for n in range(100)})])
        assert disk.done.count("write") == 1


def test_lines_of_two_processes_are_never_mixed(home, s, folder):
    """Two processes of rho write into each other's lines: there is no lock."""
    at_once(*(("notes", folder, s.id, name, 40) for name in "ab"))
    s.refresh()
    assert not s.damage
    notes = [note.text.split(" ")[0] for note in s.entries(kind="note")]
    assert (notes.count("a"), notes.count("b")) == (40, 40)


@pytest.mark.parametrize("where", ["middle", "end"])
def test_a_record_of_a_later_version_is_kept(home, s, folder, where):
    """A newer record in the middle makes rho refuse the session; at the end it is dropped and then written over."""
    s.user("one")
    later = turnlog.log.entry.Unknown(kind="hologram", json='{"type":"hologram","depth":3}')
    s.append(later)
    if where == "middle":
        s.user("two")
    with turnlog.open(folder) as other:
        again = other.resume(s.id)
        again.user("three")
        (kept,) = other.resume(s.id).entries(kind=turnlog.log.entry.Unknown)
        assert (kept.kind, '"depth":3' in kept.json) == ("hologram", True)
        assert texts(again.messages()) == (["one", "two", "three"] if where == "middle" else ["one", "three"])


def test_a_home_of_a_later_version_is_refused(home, s, folder):
    """rho never looked at the version in its files."""
    (folder / "home.json").write_text('{"layout":99,"packs":1}')
    with pytest.raises(Unsupported, match="99"):
        turnlog.open(folder)


def test_deep_workspaces_and_long_ids_fit(home, tmp_path):
    """rho makes a folder name of the whole path: deep ones are longer than a name may be."""
    deep = tmp_path
    for _ in range(12):
        deep = deep / ("d" * 60)
    deep.mkdir(parents=True)
    session = home.create(workspace=deep, id="i" * 1_024)
    session.user("one")
    (row,) = home.sessions(workspace=deep)
    assert (row.id, row.workspace) == ("i" * 1_024, str(deep))
    assert texts(home.resume("i" * 1_024).messages()) == ["one"]


def test_looking_something_up_makes_no_folder(tmp_path, monkeypatch):
    """A look-up that fails makes rho create folders. And only HOME says where."""
    monkeypatch.setenv("TURNLOG_HOME", str(tmp_path / "elsewhere"))
    with turnlog.open() as home:
        assert home.sessions() == []
        with pytest.raises(NotFound):
            home.resume("nobody")
    assert not (tmp_path / "elsewhere").exists()
    with turnlog.open() as home:
        home.create()
    assert (tmp_path / "elsewhere/sessions").is_dir()


def test_every_entry_has_an_id_a_place_and_a_time_in_milliseconds(home, s, clock):
    """Messages of rho have seconds and nothing else."""
    one = s.user("one")
    clock.tick(3)
    two = s.user("two")
    assert one.id != two.id
    assert one.seq < two.seq
    assert (two.at - one.at).total_seconds() == 0.003
    assert home.resume(s.id).find(one.id) == one


def test_new_folders_are_synced(folder):
    """The folder a file is made in is never synced by rho: after a power cut the file may not be there."""
    disk = CountingDisk()
    with Home(connect(str(folder), disk=disk)) as home:
        home.create()
    assert disk.done.count("sync folder") >= 2


def test_nothing_is_ever_written_anew(home, s, folder):
    """Going from version 1 to 4 wrote a transcript that could not be loaded; and each save parsed the whole tree."""
    path = log_of(folder, s)
    before = path.read_bytes()
    one = s.user("one")
    s.assistant("a")
    s.compact("sum")
    s.rewind(to=one)
    s.edit(one, "ONE")
    s.undo()
    s.set("title", "t")
    for step in (lambda: s.user("x"), lambda: s.compact("y"), lambda: s.rewind(to=0)):
        step()
        after = path.read_bytes()
        assert after.startswith(before)
        before = after

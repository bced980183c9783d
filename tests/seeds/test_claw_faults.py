"""What breaks claw-code does not break Turnlog."""

import os
import shutil

import pytest

import turnlog
from tests.seeds.scene import assert_paired, everything_below, log_of, texts, work
from tests.store.actors import at_once
from turnlog import Conflict, NotFound, ToolCall, TurnlogError, Usage


def test_a_torn_last_line_costs_that_line_only(home, s, folder):
    """A torn last line makes a whole session of claw unloadable, in the newest version, too."""
    s.user("one")
    s.user("two")
    path = log_of(folder, s)
    whole = path.read_bytes()
    start = whole[:-1].rindex(b"\n") + 1
    for end in range(start, len(whole) - 1, 7):
        path.write_bytes(whole[:end])
        with turnlog.open(folder) as other:
            again = other.resume(s.id)
            assert texts(again.messages()) == ["one"]
            again.user("three")
            assert texts(other.resume(s.id).messages()) == ["one", "three"]


def test_large_sessions_are_kept_once(s, folder):
    """Above 256 KiB claw writes a full copy for every save and keeps three old ones."""
    for number in range(12):
        s.user(f"{number:02}" + "x" * 40_000)
        s.compact(f"summary {number}", keep=1)
    assert sum(path.stat().st_size for path in (folder / "sessions").iterdir()) < 12 * 41_000
    stored = everything_below(folder)
    assert all(stored.count(f"{number:02}xxx".encode()) == 1 for number in range(12))
    assert len(s.messages()) == 12


def test_the_file_of_a_session_is_never_away(s, folder):
    """claw renames the file away before it puts the new one in its place: a crash there, and there is no session."""
    s.user("x" * 300_000)
    path = log_of(folder, s)
    inode = path.stat().st_ino
    s.compact("sum")
    s.user("y" * 300_000)
    s.rewind(to=0)
    s.set("title", "new")
    assert path.stat().st_ino == inode


def test_five_processes_on_one_large_session_lose_nothing(home, s, folder):
    """claw has no lock: of 150 rewrites by five processes 7 failed, and turns are overwritten silently."""
    s.user("x" * 350_000)
    at_once(*(("nodes", folder, s.id, name, 12) for name in "abcde"))
    s.refresh()
    said = texts(s.messages())[1:]
    assert sorted(said) == sorted(f"{name} {n}" for name in "abcde" for n in range(12))
    assert not s.damage


def test_two_writers_do_not_overwrite_each_others_turns(home, s):
    """With claw the second of two writers wins, and nobody is told."""
    s.user("begin")
    other = home.resume(s.id)
    s.user("mine")
    with pytest.raises(Conflict):
        other.user("theirs")
    other.refresh()
    other.user("theirs")
    assert texts(home.resume(s.id).messages()) == ["begin", "mine", "theirs"]


def test_copies_beside_a_session_are_not_listed(home, s, folder):
    """Rotated copies of claw are listed like sessions, with the same id."""
    s.user("one")
    path = log_of(folder, s)
    for name in (f"{path.stem}.rot-1767225600000.jsonl", f"{path.name}.bak", f"{path.stem} (copy).jsonl"):
        shutil.copy(path, path.with_name(name))
    assert [row.id for row in home.sessions()] == [s.id]
    assert texts(home.resume(home.find(s.id[:-1])).messages()) == ["one"]


def test_a_relative_home_works(tmp_path, monkeypatch):
    """With a bare file name claw writes the file and then fails, because it looks at the folder ''."""
    monkeypatch.chdir(tmp_path)
    with turnlog.open("here") as home:
        session = home.create()
        session.user("one")
        monkeypatch.chdir("/")
        session.user("two")
        assert texts(home.resume(session.id).messages()) == ["one", "two"]
    assert (tmp_path / "here/sessions").is_dir()


def test_an_empty_file_is_no_new_session(home, s, folder):
    """claw takes a file of 0 bytes for a new session and invents an id for it."""
    path = log_of(folder, s)
    path.write_bytes(b"")
    with turnlog.open(folder) as other:
        (row,) = other.sessions()
        assert (row.id, row.is_readable) == (s.id, False)
        again = other.resume(s.id)
        assert (again.id, again.messages()) == (s.id, [])
        again.user("one")
        assert texts(other.resume(s.id).messages()) == ["one"]
        assert [row.id for row in other.sessions()] == [s.id]


def test_a_session_has_the_same_id_however_often_it_is_opened(home, s, folder):
    """An old file without an id gets another one from claw at every load."""
    s.user("one")
    path = log_of(folder, s)
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([b"not the first line any more", *lines[1:]]))
    for _ in range(3):
        with turnlog.open(folder) as other:
            assert [row.id for row in other.sessions()] == [s.id]
            assert texts(other.resume(s.id).messages()) == ["one"]


def test_the_time_of_the_last_change_is_never_stale(home, s, clock):
    """The header of claw keeps the time of the last full write, whatever was appended since."""
    for _ in range(3):
        clock.tick(60_000)
        entry = s.user("more")
        assert home.sessions()[0].updated_at == entry.at == s.stats().last_at


def test_every_compaction_says_how_much_it_removed(s):
    """claw remembers the last compaction only."""
    for number in range(3):
        for _ in range(4):
            s.user("x")
        s.compact(f"summary {number}")
    assert [record.removed for record in s.compactions()] == [4, 4, 4]
    assert sum(record.removed for record in s.compactions()) == len(s.messages())


def test_a_compaction_makes_nothing_cheaper(home, s):
    """Compacting deletes the usage of what is removed: the session of claw becomes cheaper."""
    for _ in range(5):
        s.assistant("a", usage=Usage(input_tokens=1_000), model="claude-haiku-4-5")
    before = (s.usage(), s.cost(), s.stats().messages)
    s.compact(keep=1)
    again = home.resume(s.id)
    assert (again.usage(), again.cost(), again.stats().messages) == before


def test_a_call_is_never_parted_from_its_result(s):
    """claw keeps the last four messages, whatever they are: the provider answers 400."""
    s.user("go")
    s.assistant([ToolCall(id=f"c{n}", name="bash") for n in range(6)])
    for n in range(6):
        s.tool_result(f"c{n}", "ok")
    s.compact("so far", keep=4)
    assert_paired(s.context())
    assert len(s.context()) == 8


def test_the_size_of_a_context_is_that_of_what_is_sent(s):
    """claw compares a running total with its limit: once above, it compacts at every step."""
    for _ in range(50):
        s.user("x " * 500)
        s.assistant("ok", usage=Usage(input_tokens=60_000, output_tokens=1))
    assert s.usage().own.input_tokens == 3_000_000
    assert s.context().tokens < 61_000
    s.compact(keep=2)
    assert s.context().tokens < 2_000
    assert s.usage().own.input_tokens == 3_000_000


def test_summaries_of_summaries_do_not_nest(s):
    """Each summary of claw quotes the one before: their size grows with the square of their number."""
    sizes = []
    for number in range(25):
        s.user(f"question {number:02} about src/{number:02}.py")
        work(s, f"c{number:02}", "ok")
        s.assistant(f"next: step {number:02}")
        s.compact(keep=1)
        (summary, *_) = texts(s.context())
        sizes.append(len(summary))
        assert summary.count("The earlier part of this conversation") == 1
    assert max(sizes) - sizes[10] < 20
    assert "Scope: 99 messages (25 user, 49 assistant, 25 tool)" in summary


def test_what_was_said_is_neither_cut_nor_changed(home, s):
    """claw cuts texts at 16,384 characters and masks what looks like a key: what is loaded is not what was said."""
    long = "ü" * 20_000 + " sk-ant-api03-x Authorization: Bearer abc " + "end"
    s.user(long)
    s.assistant([ToolCall(id="c1", name="write", input={"text": long})])
    again = home.resume(s.id)
    assert texts(again.messages())[0] == long
    assert again.messages()[1].blocks[0].input == {"text": long}
    assert again.messages() == s.messages()


def test_ids_of_processes_that_start_together_are_different(folder):
    """The counter in claw's ids begins anew in every process: two in the same millisecond are one session."""
    told = at_once(*(("starts", folder, f"p{number}", 10) for number in range(4)))
    assert len({session_id for ids in told for session_id in ids}) == 40


def test_clearing_keeps_the_id_and_the_file(home, s, folder):
    """`/clear` changed the id inside a file that kept its name."""
    s.user("one")
    s.rewind(to=0)
    s.user("two")
    again = home.resume(s.id)
    assert (again.id, texts(again.context())) == (s.id, ["two"])
    assert [row.id for row in home.sessions()] == [s.id]
    assert log_of(folder, s).exists()


def test_a_link_is_not_followed_to_somebody_elses_file(home, s, folder, tmp_path):
    """`--resume` of claw opens any file, and follows links."""
    s.user("one")
    elsewhere = tmp_path / "elsewhere.jsonl"
    shutil.move(log_of(folder, s), elsewhere)
    os.symlink(elsewhere, log_of(folder, s))
    before = elsewhere.read_bytes()
    with turnlog.open(folder) as other:
        with pytest.raises(TurnlogError):
            other.resume(s.id).user("two")
        with pytest.raises(NotFound):
            other.resume(str(elsewhere))
    assert elsewhere.read_bytes() == before


def test_folders_of_one_project_see_each_others_sessions(home, project, monkeypatch):
    """claw keeps sessions apart by the folder it is started in: a sub-folder sees none of its project's."""
    (project / "sub").mkdir()
    session = home.create(workspace=project)
    session.user("one")
    monkeypatch.chdir(project / "sub")
    assert home.resume(home.find(session.handle)).workspace == str(project)
    assert [row.workspace for row in home.sessions()] == [str(project)]
    os.symlink(project, project.parent / "link")
    assert [row.id for row in home.sessions(workspace=project.parent / "link")] == [session.id]

"""Whose a line is: one turn's, several turns', or nobody's, and then why."""

import os

import pytest
from msgspec.structs import replace

import turnlog
from tests.blame.lab import Lab
from turnlog import Usage
from turnlog.blame.authorship import blame
from turnlog.blame.commit import sessions_behind
from turnlog.errors import Invalid, NotFound, Unsupported
from turnlog.session.interior import interior
from turnlog.thread.reader import history_of


@pytest.fixture
def lab(tmp_path):
    lab = Lab(tmp_path)
    lab.write("f", "old")
    return lab


def test_a_line_says_all_there_is_to_know(lab):
    with lab.turn():
        asked = lab.session.user("please   write\na line")
        lab.write("f", "old", "new")
        lab.session.assistant("done", model="claude-opus-4-5", usage=Usage(10, 20))
    before, line = lab.blame("f")
    assert (before.why, before.author, before.at) == ("before", None, None)
    author = line.author
    assert (line.line, line.text, line.why, line.authors, line.commit) == (2, "new", None, (), None)
    assert (author.session, author.turn, author.agent) == (lab.session.id, 1, "agent")
    assert (author.model, author.prompt, author.entry) == ("claude-opus-4-5", "please write a line", asked.seq)
    assert author.at < line.at


def test_nobody_is_told_why(lab):
    lab.turn_that(lambda: None)
    lab.write("f", "old", "mine")
    lab.turn_that(lambda: lab.write("g", "x"))
    lab.write("f", "old", "mine", "mine, just now")
    assert lab.told("f") == {"old": "before", "mine": "between", "mine, just now": "since"}
    lab.write("h", "never seen")
    assert lab.told("h") == {"never seen": "since"}


def test_turns_at_once_are_all_named(lab):
    other = lab.home.create(workspace=lab.folder, agent="other")
    with lab.turn():
        lab.write("f", "old", "first")
        with lab.turn(other):
            lab.write("f", "old", "first", "both")
    found = lab.blame("f")
    assert found[1].author.session == lab.session.id
    assert found[2].author is None
    assert (found[2].why, {one.session for one in found[2].authors}) == ("several", {lab.session.id, other.id})


def test_what_one_of_them_declared_is_its_own(lab):
    other = lab.home.create(workspace=lab.folder, agent="other")
    with lab.turn(), lab.turn(other):
        lab.write("f", "old", "told")
        lab.write("g", "not told")
        other.changed(lab.folder / "f")
    assert lab.blame("f")[1].author.session == other.id
    assert lab.blame("g")[0].why == "several"


def test_what_a_subagent_does_is_its_own_and_not_its_parents(lab):
    with lab.turn():
        child = lab.session.spawn(agent="helper")
        with child.turn():
            lab.write("f", "old", "of the helper")
        lab.write("f", "old", "of the helper", "of the parent")
    assert [line.author and line.author.agent for line in lab.blame("f")] == [None, "helper", "agent"]


def test_a_turn_that_runs_has_what_was_written_since_it_began(lab):
    with lab.turn():
        lab.write("f", "old", "new")
        assert lab.told("f") == {"old": "before", "new": 1}


def test_what_came_after_a_turn_that_was_cut_short_is_nobodys(lab):
    lab.session.checkpoint()
    history = history_of(lab.session)
    begin = replace(lab.session._coverage.take(when="begin"), turn="someword-1")
    lab.session._append([begin, turnlog.log.entry.Turn(state="begin", turn="someword-1")])
    lab.write("f", "old", "who knows")
    lab.turn_that(lambda: lab.write("f", "old", "who knows", "new"))
    assert history.state.turn is None
    assert lab.told("f") == {"old": "before", "who knows": "between", "new": 2}


def test_tool_checkpoints_inside_a_turn_are_the_turns(lab):
    with lab.turn():
        lab.write("f", "old", "one")
        lab.session.checkpoint()
        lab.write("f", "one", "old", "two")
    assert lab.told("f") == {"one": 1, "old": "before", "two": 1}


def test_a_fork_did_not_write_what_it_inherited(lab):
    lab.turn_that(lambda: lab.write("f", "old", "of the parent"))
    fork = lab.session.fork()
    with fork.turn():
        lab.write("f", "old", "of the parent", "of the fork")
    found = lab.blame("f")
    assert [(line.author.session, line.author.turn) for line in found[1:]] == [(lab.session.id, 1), (fork.id, 2)]
    lab.home.purge(lab.session.id)
    assert [line.author.session for line in lab.blame("f")[1:]] == [fork.id, fork.id]


def test_a_folder_inside_a_session_and_one_around_it_count_together(lab, tmp_path):
    inner = lab.home.create(workspace=lab.folder / "sub", agent="inner")
    lab.write("sub/g", "old")
    lab.turn_that(lambda: lab.write("sub/g", "old", "outer"))
    lab.turn_that(lambda: lab.write("sub/g", "old", "outer", "inner"), inner)
    assert [line.author and line.author.agent for line in lab.blame("sub/g")] == [None, "agent", "inner"]
    with lab.turn(inner):
        lab.write("f", "old", "beside the folder of the one that ran")
    assert lab.told("f")["beside the folder of the one that ran"] == "since"


def test_a_project_that_moved_keeps_its_authors(lab, tmp_path):
    lab.turn_that(lambda: lab.write("f", "old", "new"))
    os.rename(lab.folder, tmp_path / "elsewhere")
    lab.session.set("workspace", str(tmp_path / "elsewhere"))
    found = blame(interior(lab.home).store, tmp_path / "elsewhere" / "f").lines
    assert found[1].author.turn == 1


def test_what_was_rewound_is_nobodys(lab):
    for number in range(1, 4):
        lab.turn_that(lambda n=number: lab.write("f", *lab.lines("f"), f"turn {n}"))
    lab.session.rewind([e.seq for e in lab.session.entries(kind="checkpoint") if e.when == "begin"][1])
    assert lab.told("f") == {"old": "before", "turn 1": 1}
    lab.write("f", "old", "turn 1", "turn 2")
    lab.turn_that(lambda: None)
    assert lab.told("f")["turn 2"] == "between", "a person wrote it again"


def test_a_rewind_brings_back_the_author_of_then_and_an_undo_that_of_now(lab):
    lab.turn_that(lambda: lab.write("f", "old", "again"))
    then = lab.session.checkpoints()[-1]
    lab.write("f", "old", "mine")
    lab.turn_that(lambda: lab.write("f", "old", "again"))
    lab.turn_that(lambda: lab.write("f", "old"))
    lab.session.rewind(then, force=True)
    assert lab.told("f") == {"old": "before", "again": 1}
    lab.session.undo(force=True)
    assert lab.told("f") == {"old": "before"}
    lab.session.rewind(lab.session.checkpoints()[4], force=True)
    assert lab.told("f") == {"old": "before", "again": 2}


def test_identical_lines_are_told_apart_by_their_order(lab):
    lab.write("f", "{", "a", "}", "", "{", "b", "}")
    lab.turn_that(lambda: lab.write("f", "{", "a", "}", "", "{", "new", "}", "", "{", "b", "}"))
    assert [line.author and 1 for line in lab.blame("f")] == [None, None, None, None, None, 1, 1, 1, 1, None, None]


def test_a_line_that_says_nothing_moves_only_with_its_neighbours(lab):
    lab.write("f", "a", "", "b", "c", "d", "e", "g", "h")
    lab.turn_that(lambda: lab.write("f", "b", "c", "d", "a", "", "e", "g", "h"))
    assert set(lab.told("f").values()) == {"before"}
    lab.turn_that(lambda: lab.write("f", "b", "c", "d", "a", "e", "g", "", "new", "h"))
    found = [(line.text, line.author and line.author.turn) for line in lab.blame("f")]
    assert found[5:] == [("g", None), ("", 2), ("new", 2), ("h", None)]


def test_files_that_were_renamed_and_changed_on_the_way(lab):
    lab.write("f", *"abcdefgh")
    lab.turn_that(lambda: lab.write("f", *"abcdefghi"))
    with lab.turn():
        (lab.folder / "f").unlink()
        lab.write("sub/g", *"abcdefghij")
    assert lab.told("sub/g") == dict.fromkeys("abcdefgh", "before") | {"i": 1, "j": 2}
    os.rename(lab.folder / "sub/g", lab.folder / "h")  # nobody saw that yet
    assert lab.told("h")["i"] == 1
    with lab.turn():
        lab.write("over", "another")
    with lab.turn():
        os.replace(lab.folder / "h", lab.folder / "over")
    assert lab.told("over")["j"] == 2


def test_what_another_machine_saw_in_a_folder_of_that_name_does_not_count(lab):
    lab.turn_that(lambda: lab.write("f", "old", "here"))
    far = lab.home.create(workspace=lab.folder, agent="far")
    lab.write("f", "over there")
    far.append(turnlog.log.entry.Writer(word="faraway12345", pid=1, host="another", boot="another"))
    far.append(replace(far._coverage.take(), id="faraway12345-1"))
    lab.write("f", "old", "here")
    lab.turn_that(lambda: None)
    assert lab.told("f") == {"old": "before", "here": 1}


def test_ignored_files_are_told_as_such(lab):
    lab.write(".gitignore", "*.env", "node_modules", "__pycache__")
    lab.write("a.env", "KEY=1")
    lab.turn_that(lambda: lab.write("a.env", "KEY=1", "MORE=2"))
    found = blame(interior(lab.home).store, lab.folder / "a.env")
    assert found.is_ignored
    assert [line.why for line in found.lines] == ["before", None]
    lab.write("node_modules/x.js", "x")
    lab.write("__pycache__/y", "y")
    lab.turn_that(lambda: None)
    with pytest.raises(NotFound, match="it is ignored, too large"):
        lab.blame("node_modules/x.js")
    with pytest.raises(NotFound, match=r"no checkpoint covers .*: it is ignored"):
        lab.blame("__pycache__/y")


def test_what_has_no_lines_to_tell_says_so(lab, tmp_path):
    lab.turn_that(lambda: None)
    (lab.folder / "b").write_bytes(b"\x89PNG\0\0")
    (lab.folder / "l").symlink_to("f")
    (lab.folder / "e").write_bytes(b"")
    with pytest.raises(Unsupported, match="is binary"):
        lab.blame("b")
    with pytest.raises(Invalid, match="is a link"):
        lab.blame("l")
    with pytest.raises(Invalid, match="is a folder"):
        blame(interior(lab.home).store, lab.folder)
    with pytest.raises(NotFound, match="there is no"):
        lab.blame("gone")
    with pytest.raises(Invalid, match=r"there is no line 2: .* has 1 line"):
        blame(interior(lab.home).store, lab.folder / "f", lines=(1, 2))
    (tmp_path / "outside").write_text("x\n")
    with pytest.raises(NotFound, match="no checkpoint covers"):
        blame(interior(lab.home).store, tmp_path / "outside")
    assert lab.blame("e") == []


def test_a_file_outside_that_a_session_tracks_is_covered(lab, tmp_path):
    outside = tmp_path / "outside.txt"
    outside.write_text("old\n")
    lab.session.track(outside)
    lab.turn_that(lambda: outside.write_text("old\nnew\n"))
    assert [line.author and line.author.turn for line in blame(interior(lab.home).store, outside).lines] == [None, 1]


def test_checkpoints_that_were_given_up_leave_the_rest(lab):
    for number in range(1, 4):
        lab.turn_that(lambda n=number: lab.write("f", *lab.lines("f"), f"turn {n}"))
    points = lab.session.checkpoints()
    lab.session.append(turnlog.log.entry.Drop(checkpoints=[points[0].id, points[1].id]))
    assert lab.told("f") == {"old": "before", "turn 1": "before", "turn 2": 2, "turn 3": 3}


def test_a_version_that_is_lost_or_has_no_lines_takes_no_author_away(lab):
    lab.turn_that(lambda: lab.write("f", "old", "turn 1"))
    lab.turn_that(lambda: (lab.folder / "f").write_bytes(b"\0\0"))
    lab.write("f", "old", "turn 1")
    lab.turn_that(lambda: lab.write("f", "old", "turn 1", "turn 3"))
    assert lab.told("f") == {"old": "before", "turn 1": 1, "turn 3": 3}


def test_the_face_with_await_says_the_same(lab):
    import asyncio

    from turnlog import aio

    lab.turn_that(lambda: lab.write("f", "old", "new"))

    async def ask():
        async with aio.open("memory:") as home:
            with pytest.raises(NotFound):
                await home.blame(lab.folder / "f")

    asyncio.run(ask())
    assert lab.home.blame(lab.folder / "f", lines=(2, 2)).lines[0].author.turn == 1


@pytest.fixture
def far(lab, tmp_path):
    """A session that works elsewhere."""
    (tmp_path / "elsewhere").mkdir()
    return lab.home.create(workspace=tmp_path / "elsewhere", agent="far")


@pytest.mark.parametrize("tracked", ["f", "."])
def test_a_session_elsewhere_that_tracks_the_file_wrote_its_lines(lab, far, tracked):
    """Also while a session works in the folder of the file, and after its last checkpoint."""
    far.track(lab.folder / tracked)
    with lab.turn():
        lab.write("f", "old", "of the folder's")
        with lab.turn(far):
            lab.session.checkpoint()
            lab.write("f", "old", "of the folder's", "of the other's")
            far.changed(lab.folder / "f")
            lab.session.checkpoint()
    lab.turn_that(lambda: lab.write("f", *lab.lines("f"), "between"), far)
    lab.turn_that(lambda: None)
    lab.turn_that(lambda: lab.write("f", *lab.lines("f"), "since"), far)
    authors = {line.text: line.author and line.author.agent for line in lab.blame("f")}
    assert authors == {
        "old": None, "of the folder's": "agent", "of the other's": "far", "between": "far", "since": "far"
    }  # fmt: skip


def test_a_session_elsewhere_is_read_only_if_the_file_changed_while_it_was_there(lab, far, monkeypatch):
    for _ in range(3):
        lab.home.create(workspace=far.workspace).user("before all")
    lab.turn_that(lambda: lab.write("f", "old", "new"))
    lab.turn_that(lambda: None)
    for _ in range(3):
        lab.home.create(workspace=far.workspace).user("while nothing changed")
    lab.turn_that(lambda: None)
    with lab.turn():
        while_it_changed = lab.home.create(workspace=far.workspace)
        while_it_changed.user("go")
        lab.write("f", "old", "new", "newer")
    lab.home.create(workspace=far.workspace).user("while nothing changed any more")
    store, opened = interior(lab.home).store, []
    original = store.open

    def recording(name, **options):
        opened.append(name)
        return original(name, **options)

    monkeypatch.setattr(store, "open", recording)
    assert lab.told("f") == {"old": "before", "new": 1, "newer": 4}
    assert sorted(opened) == sorted([lab.session.id, while_it_changed.id])


def test_a_session_elsewhere_covers_a_file_of_which_those_around_it_know_nothing(lab, far):
    """It is in a repository of its own."""
    lab.write("sub/f", "old")
    lab.git("init", "-q", folder=lab.folder / "sub")
    far.track(lab.folder / "sub/f")
    lab.turn_that(lambda: lab.write("sub/f", "old", "new"), far)
    lab.turn_that(lambda: None)
    assert lab.told("sub/f") == {"old": "before", "new": 1}


def test_what_was_in_an_ignored_file_before_it_was_tracked_is_nobodys(tmp_path):
    lab = Lab(tmp_path)
    lab.home = turnlog.open("memory:", clock=lab._clock, covers_ignored=False)
    lab.session = lab.home.create(workspace=lab.folder, agent="agent")
    lab.write(".gitignore", "*.env")
    lab.write("my.env", "old")
    with lab.turn():
        lab.session.track(lab.folder / "my.env")
    lab.turn_that(lambda: lab.write("my.env", "old", "new"))
    assert lab.told("my.env") == {"old": "before", "new": 2}


def test_the_commits_of_a_folder_know_of_a_session_elsewhere(lab, far, monkeypatch):
    lab.git("init", "-q")
    lab.turn_that(lambda: lab.write("f", "old", "new"))
    far.track(lab.folder / "f")
    lab.turn_that(lambda: lab.write("f", "old", "new", "of the other's"), far)
    lab.write("g", "more")
    lab.turn_that(lambda: lab.commit())
    monkeypatch.chdir(lab.folder)
    assert sessions_behind(interior(lab.home).store, "HEAD") == [lab.session.id, far.id]


def test_a_session_elsewhere_that_came_after_the_last_checkpoint_of_the_folders_wrote_its_lines(lab, far):
    lab.turn_that(lambda: lab.write("f", "old", "new"))
    later = lab.home.create(workspace=far.workspace, agent="later")
    later.track(lab.folder / "f")
    lab.turn_that(lambda: lab.write("f", "old", "new", "later"), later)
    assert [line.author and line.author.agent for line in lab.blame("f")] == [None, "agent", "later"]

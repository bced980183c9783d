"""An entry that was written again after a failed sync counts once, whichever of its two lines others refer to."""

import pytest

import turnlog
from tests.session.repeatlab import append_twice, session_with_repeat
from tests.store.faultlab import ForgetfulDisk
from turnlog import Home, Message, Note, NotFound, Set, Text
from turnlog.log.entry import Checkpoint
from turnlog.store.files import connect

TWO = Message(role="assistant", blocks=[Text("two")])


def test_a_comparison_goes_through_it(place, tmp_path):
    session, _ = session_with_repeat(place, tmp_path / "first", TWO)
    home = place.open()
    session.user("three")
    other = session.fork()
    other.user("four")
    session.user("five")
    found = home.compare("s", other.id)
    assert (found.common.messages, found.common.prompts) == (3, ["one", "three"])
    assert [turn.prompt for turn in (*found.a.turns, *found.b.turns)] == ["five", "four"]


def test_a_comparison_ends_with_it(place, tmp_path):
    session, repeat = session_with_repeat(place, tmp_path / "first", TWO)
    assert session.head == repeat.seq
    for branch in (None, repeat.seq, repeat.again):
        found = place.open().compare("s", "s", branch_a=branch, branch_b=branch)
        assert (found.common.messages, found.common.last_a) == (2, repeat.again)


def test_a_branch_counts_it_once(place, tmp_path):
    session, repeat = session_with_repeat(place, tmp_path / "first", TWO)
    [branch] = session.branches()
    assert (branch.head, branch.messages, branch.is_current) == (repeat.again, 2, True)
    three = session.user("three")
    [branch] = session.branches()
    assert (branch.head, branch.messages, branch.preview) == (three.seq, 3, "three")
    session.rewind(to=repeat)
    session.user("other")
    assert [branch.messages for branch in session.branches()] == [3, 3]


def test_every_parent_is_there(place, tmp_path):
    session, repeat = session_with_repeat(place, tmp_path / "first", TWO)
    session.user("three")
    fork = session.fork(at=repeat)
    fork.user("of the fork")
    for some in (session, fork, place.open().read("s")):
        nodes = [entry for entry in some.entries() if entry.parent is not None]
        assert {node.parent for node in nodes} <= {0, *(node.seq for node in nodes)}
        behind = [entry for entry in some.entries(after=repeat) if entry.parent is not None]
        assert behind == nodes[-1:]
        assert repeat.seq not in {entry.seq for entry in some.entries()}
        assert [entry.seq for entry in some.entries(reverse=True)] == [entry.seq for entry in some.entries()][::-1]


def test_a_checkpoint_is_listed_once(place, tmp_path):
    session, repeat = session_with_repeat(place, tmp_path / "first", Checkpoint(label="here"))
    assert [checkpoint.seq for checkpoint in session.checkpoints()] == [repeat.again]


def test_either_of_its_numbers_means_it(place, tmp_path):
    session, repeat = session_with_repeat(place, tmp_path / "first", TWO)
    session.append(Note(text="n"), after=repeat)
    session.append(Note(text="n"), after=repeat.again)
    session.edit(repeat, "edited")
    session.edit(repeat.again, "again")
    assert [message.blocks for message in session.context().messages][-1] == [Text("again")]
    session.rewind(before=repeat)
    assert [message.blocks for message in session.messages()] == [[Text("one")]]


@pytest.mark.parametrize("by", ["seq", "again"])
def test_erasing_it_erases_both_lines(place, tmp_path, by):
    session, repeat = session_with_repeat(place, tmp_path / "first", Note(text="hunter2"))
    receipt = session.erase(getattr(repeat, by))
    assert sorted(entry.seq for entry in receipt.entries) == [repeat.again, repeat.seq]
    if place.face in ("files", "aio"):
        assert b"hunter2" not in place.all_bytes()
    assert "hunter2" not in repr([*place.open().read("s").entries()])


def test_if_the_first_line_is_lost_the_second_one_counts(tmp_path):
    folder, disk = tmp_path / "home", ForgetfulDisk()
    with Home(connect(str(folder), disk=disk)) as home:
        session = home.create(id="s")
        session.user("one")
        repeat = append_twice(home, disk, folder, session, TWO)
        session.user("three")
    [path] = (folder / "sessions").iterdir()
    lines = path.read_bytes().split(b"\n")
    lost = next(index for index, line in enumerate(lines) if b'"two"' in line)
    path.write_bytes(b"\n".join([*lines[:lost], b"x" * len(lines[lost]), *lines[lost + 1 :]]))
    with turnlog.open(folder) as home, home.read("s") as session:
        assert [entry.seq for entry in session.entries(kind=Message)][1] == repeat.seq
        assert len(session.messages()) == 3
        with pytest.raises(NotFound):
            home.compare("s", "s", branch_a=repeat.again)


def test_a_fact_that_was_written_again_is_erased_with_its_second_line(place, tmp_path):
    session, _ = session_with_repeat(place, tmp_path / "first", Set(key="mood", value="hunter2"))
    session.erase(next(session.entries(kind=Set)))
    assert "hunter2" not in repr([*session.entries()]) + repr(session.facts)

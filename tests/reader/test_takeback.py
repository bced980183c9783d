"""Paths of a plan as viewers show them, and what is said of those that could not be changed."""

import pytest

import turnlog
from turnlog.log.entry import Head
from turnlog.reader.takeback import DoneRewind, carry_out, propose, shown_path
from turnlog.workspace.plan import MODIFY, Step
from turnlog.workspace.restore import Outcome


def step(raw: bytes, root: str) -> Step:
    return Step(raw, MODIFY, "turn 1 changed it", None, None, root=root)


@pytest.mark.parametrize(
    ("raw", "root", "shown"),
    [
        (b"a.txt", "", "a.txt"),
        (b"a.txt", "/work", "a.txt"),
        (b"hosts", "/etc", "/etc/hosts"),
        (b"", "/etc", "/etc"),
        (b"a.txt", "/works", "/works/a.txt"),
    ],
)
def test_a_path_outside_the_workspace_is_shown_from_the_root(raw: bytes, root: str, shown: str):
    assert shown_path(step(raw, root), "/work") == shown


def test_a_path_that_could_not_be_changed_is_told_with_the_reason():
    head = Head(to=3, asof=9, why="rewind")
    done = DoneRewind(head, [Outcome(step(b"hosts", "/etc"), False, "Permission denied")], "/work")
    assert done.staying() == ["/etc/hosts stays as it is: Permission denied"]
    tui = pytest.importorskip("turnlog.tui.changelist", reason="`make venv` installs what `turnlog tui` needs")
    assert "  /etc/hosts stays as it is: Permission denied" in tui.done_lines(done, "k3f9")


def test_going_back_to_a_branch_that_was_left_is_something_to_do():
    with turnlog.open("memory:") as home:
        with home.create(id="talk-1") as session:
            seqs = [session.user(f"ask {number}").seq for number in range(6)]
            session.rewind(to=seqs[1])
            forward = propose(session, str(seqs[4]))
            assert (forward.leaving, forward.returning, forward.is_empty) == (0, 3, False)
            session.user("another way")
        with home.read("talk-1") as session:
            proposed = propose(session, str(seqs[4]))
            assert (proposed.leaving, proposed.returning, proposed.is_empty) == (1, 3, False)
            assert propose(session, str(session.head)).is_empty
        carry_out(home, "talk-1", str(seqs[4]), proposed.stamp)
        with home.read("talk-1") as session:
            assert [message.seq for message in session.messages()] == seqs[:5]


def test_an_undo_is_something_to_do_although_no_file_changes():
    with turnlog.open("memory:") as home:
        with home.create(id="talk-1") as session:
            first = session.user("ask")
            session.user("ask again")
            session.rewind(to=first)
        with home.read("talk-1") as session:
            proposed = propose(session, "undo")
        assert not proposed.is_empty

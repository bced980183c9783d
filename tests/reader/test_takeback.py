"""Paths of a plan as viewers show them, and what is said of those that could not be changed."""

import pytest

from turnlog.log.entry import Head
from turnlog.reader.takeback import DoneRewind, shown_path
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

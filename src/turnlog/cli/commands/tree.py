"""`turnlog tree`."""

from __future__ import annotations

from collections.abc import Iterator

from turnlog.cli.draw.screen import this_screen
from turnlog.cli.draw.tree import tree_lines
from turnlog.cli.fields.tree import TREE, TreeFork, TreeSession, branches, json_tree
from turnlog.cli.frame.command import KEY_OPTION, SESSION_ARGUMENT, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.shape import SESSION
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.frame.notes import tell
from turnlog.cli.pick.session import session_to_read
from turnlog.errors import NotFound
from turnlog.log.ids import handle_of
from turnlog.reader.forkparent import fork_parents
from turnlog.session import Home
from turnlog.thread.report import Info
from turnlog.view.branch import stretches

_MOST = 400
"""Sessions of a tree that are shown. As a chain of forks, they are 800 levels of JSON; many parsers allow 1,000."""
GROUP = "Find", 9
CHANGES = shape.NOTHING
FIELDS = {
    "session": SESSION,
    "tree": shape.one("the original session, with its forks and subagents", TREE),
}


@declare(SESSION_ARGUMENT, KEY_OPTION)
def command(session: str | None, key: str | None, as_json: bool) -> None:
    """Show the branches, forks and subagents of a session.

    A line is a stretch of the conversation, from the entry where it begins to the one where it ends or splits; ● marks
    the head. `turnlog show --branch N` shows the path to entry N, on any branch. A fork is shown with the session it
    was forked from.

    With --json, `branches` are these stretches, and `after` is the entry that each one continues.

    \b
    turnlog tree
    turnlog tree k3f9
    turnlog show k3f9 --branch 42
    """
    with session_to_read(session, key=key) as opened:
        rows = {row.id: row for row in opened.home.sessions()}
        parents = fork_parents(opened.home, rows.values())
        reading = _TreeReader(opened.home, rows, parents, opened.session.id)
        tree = reading.read_all(_top(opened.session.id, parents))
    if as_json:
        print_json({"session": opened.session.id, "tree": json_tree(tree)})
        return
    if opened.source is not None and tree.is_asked:
        tree.handle = opened.name  # the id that it would have here is none yet
    for line in tree_lines(tree, this_screen()):
        print(line)
    if reading.is_cut:
        tell(f"only the first {_MOST:,} sessions of this tree are shown")


def _top(name: str, parents: dict[str, str]) -> str:
    """Return the original session: the one at the root of its forks."""
    seen = {name}
    while (above := parents.get(name, name)) not in seen:
        seen.add(name := above)
    return name


class _TreeReader:
    """Reads a session with everything below it, each session once."""

    def __init__(self, home: Home, rows: dict[str, Info], parents: dict[str, str], asked: str) -> None:
        self._home = home
        self._rows = rows
        self._parents = parents
        self._asked = asked
        """The session that was asked for."""
        self._seen: set[str] = set()
        self.is_cut = False
        """Whether there were too many sessions to read all."""

    def read_all(self, name: str) -> TreeSession:
        """Read the session with everything below it."""
        top = self._session(name)
        waiting = [self._children(top)]
        while waiting:  # by hand, not by recursion: there may be hundreds of forks of forks
            child = next(waiting[-1], None)
            if child is None:
                waiting.pop()
            else:
                waiting.append(self._children(child))
        return top

    def _session(self, name: str) -> TreeSession:
        """Read one session with its stretches; without them if it cannot be read, or there are too many."""
        self._seen.add(name)
        row = self._rows.get(name)
        tree = TreeSession(name, handle_of(name), row and row.title, row and row.agent, is_asked=name == self._asked)
        self.is_cut = self.is_cut or len(self._seen) > _MOST
        if self.is_cut or row is None:
            return tree
        try:
            session = self._home.read(name)
        except NotFound:
            return tree
        with session:
            first = row.fork.seq if row.fork is not None else 0
            tree.title = tree.title or session.preview() or None
            tree.branches = branches(stretches(session.entries(after=first), session.head))
            tree.head = session.head
        return tree

    def _children(self, tree: TreeSession) -> Iterator[TreeSession]:
        """Add the forks and subagents of a session that are in no other place yet, and yield each."""
        if tree.head is None:
            return
        started = {child for branch in tree.branches for child in branch.children}
        for other in self._rows.values():
            if other.id in self._seen:
                continue
            if other.fork is not None and self._parents.get(other.id) == tree.id:
                fork = TreeFork(other.fork.seq, other.fork.name, self._session(other.id))
                tree.forks.append(fork)
                yield fork.session
            elif other.parent == tree.id or other.id in started:
                subagent = self._session(other.id)
                tree.subagents.append(subagent)
                yield subagent

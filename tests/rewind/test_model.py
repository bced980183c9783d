"""Any history of a workspace, beside a model that fits on a page: the files are what the model says, byte for byte,
and nothing is gone that cannot be brought back.

The session works in turns, another session works in turns of its own that may overlap, the user and the shell change
whatever they like whenever they like; there are rewinds, undos, redos, collections and fresh starts in between.
"""

import hashlib
import itertools
import os
import shutil
import stat
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

import turnlog
from turnlog.log.entry import Checkpoint

Files = dict[bytes, tuple[Any, ...]]
"""Every path below the workspace: its kind, its mode, and what is in it."""

FOLDERS = [b"", b"src", b"src/deep", b"docs", b"vendor/lib"]
NAMES = [b"a.py", b"b.txt", b"odd-\xff\xfe", b"data.bin", b"empty"]
IGNORED = [b"trace.log", b"build/out.o", b"src/build/x"]
CONTENTS = {
    "empty": b"",
    "text": b"one\n",
    "crlf": b"two\r\nlines\r\n",
    "binary": b"\0\1\2\xff",
    "long": b"three\n" * 400,
    "alone in its pack": b"x" * 70_000,
}

files = st.builds(lambda folder, name: folder + b"/" + name if folder else name,
                  st.sampled_from(FOLDERS), st.sampled_from(NAMES))  # fmt: skip
edits = st.one_of(
    st.tuples(st.just("write"), files, st.sampled_from(sorted(CONTENTS)), st.sampled_from([0o644, 0o600, 0o755])),
    st.tuples(st.just("write"), files, st.binary(max_size=40), st.just(0o644)),
    st.tuples(st.just("delete"), files),
    st.tuples(st.just("link"), files, st.sampled_from([b"a.py", b"/etc/hosts", b"../nowhere", b"src"])),
    st.tuples(st.just("chmod"), files, st.sampled_from([0o600, 0o755, 0o444])),
    st.tuples(st.just("folder"), st.sampled_from([b"made", b"src/made", b"docs"])),
    st.tuples(st.just("remove"), st.sampled_from([b"made", b"src/made", b"docs", b"src"])),
    st.tuples(st.just("write"), st.sampled_from(IGNORED), st.sampled_from(sorted(CONTENTS)), st.just(0o644)),
)
shells = st.sampled_from(
    [
        "rm -rf src/deep docs",
        "mkdir -p src/deep && mv a.py src/deep/a.py",
        "test -f src/a.py && sed -i 's/o/0/' src/a.py",
        "mkdir -p docs && cp -f a.py docs/b.txt",
        "chmod -R u+w src && echo more >> src/b.txt",
        "rm -f -- *; mkdir -p vendor/lib && printf 'int x;' > vendor/lib/b.txt",
    ]
)


def look(root: Path) -> Files:
    """Everything there is, without a word of Turnlog's."""
    found: Files = {}
    base = os.fsencode(root)
    for folder, folders, names in os.walk(base):
        for name in folders + names:
            path = os.path.join(folder, name)
            status = os.lstat(path)
            key = os.path.relpath(path, base)
            if stat.S_ISLNK(status.st_mode):
                found[key] = ("link", 0, os.readlink(path))
            elif stat.S_ISDIR(status.st_mode):
                found[key] = ("folder", stat.S_IMODE(status.st_mode))
            else:
                with open(path, "rb") as file:
                    found[key] = ("file", stat.S_IMODE(status.st_mode), file.read())
    return found


def is_left_out(path: bytes) -> bool:
    """`build/`, which is ignored and too common a name to be covered, and a repository of its own in it."""
    names = path.split(b"/")
    return b"build" in names or names[:2] == [b"vendor", b"lib"]


def covered(everything: Files) -> Files:
    return {path: node for path, node in everything.items() if not is_left_out(path)}


@dataclass
class Stretch:
    """A piece of somebody's work: the files before it and, unless it goes on, after it."""

    before: Files
    after: Files | None
    began: int
    ended: int | None


def back(target: Files, now: Files, own: list[Stretch], others: list[Stretch]) -> Files:
    """What a rewind leaves: the target where only the session changed something, and everything else as it is."""
    result = dict(now)
    for path in set(target) | set(now) | {path for s in own for path in (*s.before, *(s.after or {}))}:
        changes = [(s.before.get(path), (now if s.after is None else s.after).get(path)) for s in own]
        if all(one == other for one, other in changes):
            continue
        chain = [target.get(path), *itertools.chain(*changes), now.get(path)]
        is_mine = all(chain[i] == chain[i + 1] for i in range(0, len(chain), 2))
        if not is_mine or any(s.before.get(path) != (now if s.after is None else s.after).get(path) for s in others):
            continue
        if path in target:
            result[path] = target[path]
        else:
            result.pop(path, None)
    return result


class Workspace(RuleBasedStateMachine):
    """One workspace with everybody in it."""

    def __init__(self) -> None:
        super().__init__()
        self.top = Path(tempfile.mkdtemp(prefix="turnlog-model-"))
        self.root = self.top / "project"
        self.root.mkdir()
        self.time = itertools.count(1_700_000_000_000, 7)
        self.moment = itertools.count()
        self.open()
        self.mine = self.home.create(workspace=self.root, id="mine")
        self.other = self.home.create(workspace=self.root, id="other")
        self.turns: dict[str, Any] = {}
        self.work: dict[str, list[Stretch]] = {"mine": [], "other": []}
        self.marks: list[tuple[Checkpoint, Files, int]] = []
        """Every checkpoint of the session that one may go back to."""
        self.turned = -1
        """When the session's last turn began or ended."""
        self.undo: list[Stretch] = []
        self.redo: list[Stretch] = []

    def open(self) -> None:
        self.home = turnlog.open(self.top / "home", durability="flush", clock=lambda: next(self.time))

    def teardown(self) -> None:
        for bracket in self.turns.values():
            bracket.__exit__(None, None, None)
        self.home.close()
        for folder, _, _ in os.walk(self.top):
            os.chmod(folder, 0o700)
        shutil.rmtree(self.top)

    @initialize(tree=st.lists(edits, max_size=12))
    def begin(self, tree: list[Any]) -> None:
        (self.root / ".gitignore").write_text("*.log\nbuild/\n")
        (self.root / "vendor/lib/.git").mkdir(parents=True)
        (self.root / "vendor/lib/.git/HEAD").write_text("ref: refs/heads/main\n")
        for edit in tree:
            self.edit(edit)

    # ── who changes something ─────────────────────────────────────────────────────────────────────

    @rule(edit=edits)
    def edit(self, edit: Any) -> None:
        """The session's where it is in a turn, the other session's in one of theirs, the user's otherwise."""
        what, path, *rest = edit
        full = os.path.join(os.fsencode(self.root), path)
        if what == "folder":
            os.makedirs(full, exist_ok=True)
        elif what == "remove":
            shutil.rmtree(full, ignore_errors=True)
        elif what == "delete" and os.path.lexists(full):
            os.unlink(full)
        elif what == "chmod" and os.path.isfile(full) and not os.path.islink(full):
            os.chmod(full, rest[0])
        elif what in ("write", "link"):
            os.makedirs(os.path.dirname(full), exist_ok=True)
            if os.path.lexists(full):
                os.unlink(full)
            if what == "link":
                os.symlink(rest[0], full)
            else:
                with open(full, "xb") as file:
                    file.write(CONTENTS[rest[0]] if isinstance(rest[0], str) else rest[0])
                os.chmod(full, rest[1])

    @rule(command=shells)
    def shell(self, command: str) -> None:
        subprocess.run(["sh", "-c", command], cwd=self.root, capture_output=True, check=False)

    @rule(who=st.sampled_from(["mine", "other"]))
    def turn(self, who: str) -> None:
        """A turn begins, or the one that did ends."""
        session = self.mine if who == "mine" else self.other
        now = covered(look(self.root))
        if who in self.turns:
            self.turns.pop(who).__exit__(None, None, None)
            stretch = self.work[who][-1]
            stretch.after, stretch.ended = now, next(self.moment)
        else:
            bracket = session.turn()
            bracket.__enter__()
            self.turns[who] = bracket
            self.work[who].append(Stretch(now, None, next(self.moment), None))
            session.user("go")
        if who == "mine":
            self.redo.clear()
            self.turned = next(self.moment)
            self.mark(session.checkpoints()[-1], now)

    @precondition(lambda self: "mine" not in self.turns)
    @rule(changes=st.lists(edits, min_size=1, max_size=5), command=st.none() | shells)
    def whole_turn(self, changes: list[Any], command: str | None) -> None:
        """What an agent does: edits, and the shell."""
        self.turn("mine")
        for change in changes:
            self.edit(change)
        if command is not None:
            self.shell(command)
        self.turn("mine")

    def mark(self, checkpoint: Checkpoint, now: Files) -> None:
        self.marks.append((checkpoint, now, next(self.moment)))

    @precondition(lambda self: "mine" not in self.turns)
    @rule()
    def checkpoint(self) -> None:
        now = covered(look(self.root))
        self.mark(self.mine.checkpoint("by hand"), now)

    @rule()
    def collect(self) -> None:
        self.home.gc()

    @precondition(lambda self: not self.turns)
    @rule()
    def start_afresh(self) -> None:
        """Another process, that knows nothing but what is on the disk."""
        self.home.close()
        self.open()
        self.mine, self.other = self.home.resume("mine"), self.home.resume("other")

    # ── going back and forth ──────────────────────────────────────────────────────────────────────

    def _move(self, move: Any, target: Files, own: list[Stretch], others: list[Stretch], plan: Any) -> Stretch:
        before = look(self.root)
        planned = plan()
        assert look(self.root) == before, "a plan touches nothing"
        wanted = back(target, covered(before), own, others)
        head = move()
        after = look(self.root)
        now = covered(after)
        _compare(wanted, now, covered(before))
        left_out = {path for path in before if is_left_out(path)}
        assert {path: after.get(path) for path in left_out} == {path: before[path] for path in left_out}
        assert {path for path in after if is_left_out(path)} == left_out
        for path, node in before.items():
            if node[0] == "file" and after.get(path) != node:
                assert self.home.get_blob("sha256:" + hashlib.sha256(node[2]).hexdigest()) == node[2]
        touched = {step.raw for step in planned.to_do}
        changed = {path for path in set(before) | set(after) if before.get(path) != after.get(path)}
        folders = {path for path in changed if (after.get(path) or before[path])[0] == "folder"}
        assert changed - folders <= touched, "what the plan did not say"
        checkpoints = {entry.seq: entry for entry in self.mine.checkpoints()}
        self.mark(checkpoints[head.before], covered(before))
        stretch = Stretch(covered(before), now, next(self.moment), next(self.moment))
        self.mark(checkpoints[head.after], now)
        return stretch

    @precondition(lambda self: "mine" not in self.turns and self.marks and self.work["mine"])
    @rule(choice=st.integers(0, 10**6))
    def rewind(self, choice: int) -> None:
        checkpoint, target, moment = self.marks[choice % len(self.marks)]
        own = [_from(s, target, moment) for s in self.work["mine"] if s.ended is None or s.ended > moment]
        if checkpoint.when is None and self.turned < moment:
            own = [Stretch(target, None, moment, None)]
        others = [s for s in self.work["other"] if s.ended is None or s.ended > moment]
        stretch = self._move(
            lambda: self.mine.rewind(to=checkpoint), target, own, others, lambda: self.mine.plan_rewind(to=checkpoint)
        )
        self.work["mine"].append(stretch)
        self.undo.append(stretch)
        self.redo.clear()

    @precondition(lambda self: "mine" not in self.turns)
    @rule(
        turns=st.lists(st.lists(edits, min_size=1, max_size=4), min_size=1, max_size=3),
        between=st.lists(edits, max_size=2),
        choice=st.integers(0, 5),
        after=st.lists(st.sampled_from(["undo", "redo", "edit"]), max_size=4),
        edit=edits,
    )
    def there_and_back(self, turns: list[Any], between: list[Any], choice: int, after: list[str], edit: Any) -> None:
        """What people do: some turns, a hand in between, back to one of them, and perhaps that was wrong."""
        for changes in turns:
            self.whole_turn(changes, None)
            for change in between[:1]:
                self.edit(change)
        for change in between[1:]:
            self.edit(change)
        self.rewind(len(self.marks) - 1 - min(choice, len(self.marks) - 1))
        for what in after:
            if what == "undo" and self.undo:
                self.take_back()
            elif what == "redo" and self.redo:
                self.make_again()
            elif what == "edit":
                self.edit(edit)

    @precondition(lambda self: "mine" not in self.turns and self.undo)
    @rule()
    def take_back(self) -> None:
        last = self.undo.pop()
        stretch = self._move(self.mine.undo, last.before, [last], [], self.mine.plan_undo)
        self.work["mine"].append(stretch)
        self.redo.append(stretch)

    @precondition(lambda self: "mine" not in self.turns and self.redo)
    @rule()
    def make_again(self) -> None:
        last = self.redo.pop()
        stretch = self._move(self.mine.redo, last.before, [last], [], self.mine.plan_redo)
        self.work["mine"].append(stretch)
        self.undo.append(stretch)


def _from(stretch: Stretch, target: Files, moment: int) -> Stretch:
    """A stretch that the checkpoint lies in counts from there."""
    return Stretch(target, stretch.after, moment, stretch.ended) if stretch.began < moment else stretch


def _compare(wanted: Files, now: Files, before: Files) -> None:
    """Files and links exactly; a folder may stay because somebody's file is in it, or come because one is put there."""
    plain = {path: node for path, node in wanted.items() if node[0] != "folder"}
    assert {path: node for path, node in now.items() if node[0] != "folder"} == plain
    for path, node in now.items():
        if node[0] == "folder" and path not in wanted:
            assert path in before or any(other.startswith(path + b"/") for other in plain), path
        elif node[0] == "folder":
            assert wanted[path][0] == "folder"
    for path, node in wanted.items():
        if node[0] == "folder":
            assert path in now, path


TestWorkspace = Workspace.TestCase
# The soak's profile has more examples than this; whoever sets fewer gets fewer.
TestWorkspace.settings = settings(max_examples=max(40, settings().max_examples // 4), stateful_step_count=15)

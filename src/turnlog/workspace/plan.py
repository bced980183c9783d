"""What a rewind does to each path, decided before anything is touched. Pure.

A rewind touches only what changed inside the session's own stretches of work, and only where a file still is what
they left. Whatever is unknown on either side stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct, msgpack

from turnlog.log.digest import sha256
from turnlog.workspace.tree import FOLDER, UNKNOWN, GetTree, Tree, TreeNode, changes, lookup, path_text

CREATE, MODIFY, DELETE, MODE, CONFLICT, UNSURE, SKIPPED = (
    "create", "modify", "delete", "mode", "conflict", "unknown", "skipped",
)  # fmt: skip


class Stretch(Struct, frozen=True):
    """A piece of the session's own work: the files before and after it."""

    before: Tree
    after: Tree
    what: str
    """For people: `turn 3`, `rewind 12`."""
    paths: frozenset[bytes] | None = None
    """The only paths that count as changed by it; None means all."""
    doubt: str = ""
    """Why others may have worked in it, too; empty where it is the session's for sure."""
    is_theirs: bool = False
    """Whether it is surely not the session's."""


class Step(Struct, frozen=True):
    """What is to happen to one path, and why."""

    raw: bytes
    """The path as the file system has it."""
    action: str
    reason: str
    now: TreeNode | None
    then: TreeNode | None
    is_declared: bool = False
    root: str = ""
    """The folder that the path is in."""
    is_doubtful: bool = False
    """Whether nothing speaks against it but that nobody can tell whose it is: then it is enough to name it."""

    @property
    def path(self) -> str:
        """The path as text, as in a difference: `bytes:` and %-escapes where it is not Unicode."""
        return path_text(self.raw)


class Plan(Struct, frozen=True):
    """Every step of a rewind, in the order of their paths."""

    steps: list[Step]
    note: str = ""

    def of(self, *actions: str) -> list[Step]:
        """The steps with these actions."""
        return [step for step in self.steps if step.action in actions]

    @property
    def digest(self) -> str:
        """What tells it from every other plan: the paths, what happens to each, and what each is before and after."""
        steps = [(step.root, step.raw, step.action, step.reason, step.now, step.then) for step in self.steps]
        return sha256(msgpack.encode((self.note, steps))).hexdigest()[:32]

    @property
    def to_do(self) -> list[Step]:
        """The steps that change something."""
        return self.of(CREATE, MODIFY, DELETE, MODE)

    @property
    def staying(self) -> list[Step]:
        """The steps whose paths stay as they are."""
        return self.of(CONFLICT, UNSURE, SKIPPED)


Covered = Callable[[bytes], bool]
"""Whether a tree would have this path, were it there: not ignored, or covered all the same."""


def make_plan(
    target: Tree,
    now: Tree,
    stretches: list[Stretch],
    get: GetTree,
    *,
    was_covered: Covered,
    is_covered: Covered = lambda path: True,
    declared: frozenset[bytes] = frozenset(),
    tracked: frozenset[bytes] = frozenset(),
    foreign: Callable[[bytes], str | None] = lambda path: "",
    only: Callable[[bytes], bool] = lambda path: True,
    is_named: bool = False,
    force: bool = False,
    note: str = "",
) -> Plan:
    """The plan for going from `now` back to `target`.

    `is_covered` says whether a path that is not in `now` is not there. What is tracked is the session's whenever it
    changed. `foreign` says who else may have changed a path at the same time; None if only others did. `force`
    overwrites what conflicts. `is_named` says that somebody asked for those in `only` by name: that settles whatever
    nobody can tell the owner of.
    """
    steps: list[Step] = []
    touched = _touched(stretches, get) | _touched((s for s in stretches if not s.doubt and not s.is_theirs), get)
    for path in tracked:
        touched.setdefault(path, "a tracked file")
    for path, what in sorted(touched.items()):
        if not only(path):
            continue
        then, current = lookup(target, path, get), lookup(now, path, get)
        if is_same(then, current):
            continue
        reason, is_doubtful = foreign(path), False
        if reason is None:
            continue
        if path not in tracked:
            mine = [s for s in stretches if not s.is_theirs and (s.paths is None or path in s.paths)]
            broken = _conflict(path, target, now, mine, get)
            doubt = "" if broken else _doubt(path, mine, get)
            is_doubtful = bool(doubt and not reason)
            reason = broken or reason or doubt
        if _unknown(then) or _unknown(current):
            unknown = then if _unknown(then) else current
            why = unknown.reason if unknown is not None else ""
            steps.append(Step(path, UNSURE, f"not covered: {why}", current, then))
        elif then is None and current is not None and not was_covered(path):
            steps.append(Step(path, UNSURE, "was ignored then, so it may have been there", current, then))
        elif then is not None and current is None and not is_covered(path):
            steps.append(Step(path, UNSURE, "is ignored now, so it may be there", current, then))
        elif reason and not force and not (is_doubtful and is_named):
            steps.append(Step(path, CONFLICT, reason, current, then, is_doubtful=is_doubtful))
        else:
            source = "declared" if path in declared else "tracked" if path in tracked else f"changed in {what}"
            if is_doubtful:
                source = f"asked for, though {reason}"
            steps.append(Step(path, _action(current, then), source, current, then, path in declared))
    return Plan(steps, note)


def _touched(stretches: Iterable[Stretch], get: GetTree) -> dict[bytes, str]:
    touched: dict[bytes, str] = {}
    for stretch in stretches:
        for path, _, _ in changes(stretch.before, stretch.after, get):
            if stretch.paths is None or path in stretch.paths:
                touched[path] = stretch.what
    return touched


def _unknown(node: TreeNode | None) -> bool:
    return node is not None and node.kind == UNKNOWN


def is_same(one: TreeNode | None, other: TreeNode | None) -> bool:
    """Folders are the same whatever is in them: that has its own steps."""
    if one is not None and other is not None and one.kind == other.kind == FOLDER:
        return (one.mode, one.extra) == (other.mode, other.extra)
    return one == other


def _action(now: TreeNode | None, then: TreeNode | None) -> str:
    if now is None:
        return CREATE
    if then is None:
        return DELETE
    if now.kind == then.kind and (now.digest, now.target) == (then.digest, then.target):
        return MODE
    if now.kind == then.kind == FOLDER:
        return MODE
    return MODIFY


def _conflict(path: bytes, target: Tree, now: Tree, stretches: list[Stretch], get: GetTree) -> str:
    """Why a path is not only the session's: somebody changed it before, between or after its work."""
    left = lookup(target, path, get)
    where = "before"
    for stretch in stretches:
        before, after = lookup(stretch.before, path, get), lookup(stretch.after, path, get)
        if not _unknown(before):
            if not is_same(left, before):
                return f"somebody changed it {where} {stretch.what}"
            left = before
        elif not _unknown(after) and not is_same(left, after):
            return f"it could not be read {where} {stretch.what}, so nobody can tell who changed it"
        if not _unknown(after):
            left = after
        where = "between turns, before"
    if not is_same(left, lookup(now, path, get)):
        return "somebody changed it since"
    return ""


def _doubt(path: bytes, stretches: list[Stretch], get: GetTree) -> str:
    """Why nobody can tell whose a path is: it changed in a stretch that is not the session's for sure."""
    for stretch in stretches:
        if stretch.doubt and not is_same(lookup(stretch.before, path, get), lookup(stretch.after, path, get)):
            return stretch.doubt
    return ""

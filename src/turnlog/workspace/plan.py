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


def _anywhere(path: bytes) -> bool:
    return True


def _by_no_other(path: bytes) -> str | None:
    return ""


class PlanInput(Struct, frozen=True, kw_only=True):
    """What a plan for going from `now` back to `target` is made of."""

    target: Tree
    now: Tree
    stretches: list[Stretch]
    """The stretches of work between the two."""
    get: GetTree
    was_covered: Covered
    is_covered: Covered = _anywhere
    """Whether a path that is not in `now` is not there."""
    declared: frozenset[bytes] = frozenset()
    """The files that tools said they changed."""
    tracked: frozenset[bytes] = frozenset()
    """The files that are the session's whenever they change."""
    foreign: Callable[[bytes], str | None] = _by_no_other
    """Which other session may have changed a path at the same time, in words; None if only others did."""
    only: Callable[[bytes], bool] = _anywhere
    """The paths that are asked for."""
    is_named: bool = False
    """Whether those were asked for by name: then files of doubtful ownership are taken back as well."""
    force: bool = False
    """Whether what conflicts is overwritten."""


def make_plan(given: PlanInput, note: str = "") -> Plan:
    """The plan for going from `now` back to `target`."""
    own = (one for one in given.stretches if not one.doubt and not one.is_theirs)
    # Of a path that several stretches touched, a sure one of the session itself is named.
    touched = _touched(given.stretches, given.get) | _touched(own, given.get)
    for path in given.tracked:
        touched.setdefault(path, "a tracked file")
    steps = (_step(given, path, what) for path, what in sorted(touched.items()) if given.only(path))
    return Plan([step for step in steps if step is not None], note)


def _step(given: PlanInput, path: bytes, what: str) -> Step | None:
    """What happens to one path that was changed in `what`; None if nothing does."""
    then, current = lookup(given.target, path, given.get), lookup(given.now, path, given.get)
    if is_same(then, current):
        return None
    reason, is_doubtful = given.foreign(path), False
    if reason is None:
        return None
    if path not in given.tracked:
        reason, is_doubtful = _objection(given, path, reason)
    if unsure := _unsure(given, path, then, current):
        return Step(path, UNSURE, unsure, current, then)
    if reason and not given.force and not (is_doubtful and given.is_named):
        return Step(path, CONFLICT, reason, current, then, is_doubtful=is_doubtful)
    is_declared = path in given.declared
    source = "declared" if is_declared else "tracked" if path in given.tracked else f"changed in {what}"
    if is_doubtful:
        source = f"asked for, though {reason}"
    return Step(path, _action(current, then), source, current, then, is_declared)


def _objection(given: PlanInput, path: bytes, reason: str) -> tuple[str, bool]:
    """Why a path is better left alone, given what others did to it; and whether that is only a doubt whose it is."""
    mine = [one for one in given.stretches if not one.is_theirs and (one.paths is None or path in one.paths)]
    broken = _conflict(path, given.target, given.now, mine, given.get)
    doubt = "" if broken else _doubt(path, mine, given.get)
    return broken or reason or doubt, bool(doubt and not reason)


def _unsure(given: PlanInput, path: bytes, then: TreeNode | None, current: TreeNode | None) -> str:
    """Why it is not known what was there, or is; empty if it is."""
    for node in (then, current):
        if node is not None and node.kind == UNKNOWN:
            return f"not covered: {node.reason}"
    if then is None and current is not None and not given.was_covered(path):
        return "was ignored then, so it may have been there"
    if then is not None and current is None and not given.is_covered(path):
        return "is ignored now, so it may be there"
    return ""


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

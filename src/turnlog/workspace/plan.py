"""What a rewind does to each path, decided before anything is changed. Pure.

A rewind changes only what changed inside the session's own stretches of work, and only files that are still as those
left them. A path that is unknown on either side stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct, msgpack
from msgspec.structs import replace

from turnlog.log.digest import sha256
from turnlog.log.startup import NamedTuple
from turnlog.workspace.tree import FOLDER, GetTree, Tree, TreeNode, changes, is_unknown, lookup, path_text

CREATE, MODIFY, DELETE, MODE, CONFLICT, UNSURE, SKIPPED = (
    "create", "modify", "delete", "mode", "conflict", "unknown", "skipped",
)  # fmt: skip


class Stretch(Struct, frozen=True):
    """A part of the session's own work: the files before and after it."""

    before: Tree
    after: Tree
    what: str
    """For people: `turn 3`, `rewind 12`."""
    paths: frozenset[bytes] | None = None
    """The only paths that count as changed by it; None means all."""
    doubt: str = ""
    """Why others may have worked in it, too; empty if the work is certainly the session's."""
    is_theirs: bool = False
    """Whether the work is certainly not the session's."""


class Step(Struct, frozen=True):
    """What to do with one path, and why."""

    raw: bytes
    """The path as bytes, as in the file system."""
    action: str
    reason: str
    now: TreeNode | None
    then: TreeNode | None
    is_declared: bool = False
    root: str = ""
    """The folder that contains the path."""
    is_doubtful: bool = False
    """Whether the only objection is doubt about who changed the path: then naming the path is enough."""

    @property
    def path(self) -> str:
        """The path as text, as in a difference: `bytes:` and %-escapes if it is not Unicode."""
        return path_text(self.raw)


class Plan(Struct, frozen=True):
    """All steps of a rewind, in the order of their paths."""

    steps: list[Step]
    note: str = ""

    def of(self, *actions: str) -> list[Step]:
        """The steps with these actions."""
        return [step for step in self.steps if step.action in actions]

    @property
    def digest(self) -> str:
        """The identity of the plan: a digest of the paths, their actions, and their states before and after."""
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
"""Whether a tree would contain this path if it existed: not ignored, or covered anyway."""


def _anywhere(path: bytes) -> bool:
    return True


class ForeignWork(Struct, frozen=True):
    """What other sessions may have done to a path at the same time."""

    explanation: str = ""
    """Which of them may have changed it, and when; empty if none."""
    is_only_theirs: bool = False
    """Whether one of them made the change, and not this session."""


def _by_no_other(path: bytes) -> ForeignWork:
    return ForeignWork()


class PlanInput(Struct, frozen=True, kw_only=True):
    """The input of a plan for going from `now` back to `target`."""

    target: Tree
    now: Tree
    stretches: list[Stretch]
    """The stretches of work between the two."""
    get: GetTree
    was_covered: Covered
    is_covered: Covered = _anywhere
    """Whether a path that is not in `now` does not exist."""
    declared: frozenset[bytes] = frozenset()
    """The files that tools declared as changed."""
    tracked: frozenset[bytes] = frozenset()
    """The files whose changes always count as the session's."""
    foreign: Callable[[bytes], ForeignWork] = _by_no_other
    only: Callable[[bytes], bool] = _anywhere
    """Which paths are requested."""
    is_named: bool = False
    """Whether paths were requested by name: then files of doubtful ownership are rewound, too."""
    force: bool = False
    """Whether conflicting files are overwritten."""


def make_plan(request: PlanInput, note: str = "") -> Plan:
    """The plan for going from `now` back to `target`."""
    own = (stretch for stretch in request.stretches if not stretch.doubt and not stretch.is_theirs)
    # If several stretches changed a path, one that is certainly the session's is named.
    touched = _touched(request.stretches, request.get) | _touched(own, request.get)
    for path in request.tracked:
        touched.setdefault(path, "a tracked file")
    steps = (_step(request, path, stretch_name) for path, stretch_name in sorted(touched.items()) if request.only(path))
    return Plan([step for step in steps if step is not None], note)


def _step(request: PlanInput, path: bytes, stretch_name: str) -> Step | None:
    """The step for a path that was changed in the stretch of this name; None if there is nothing to do."""
    then, current = lookup(request.target, path, request.get), lookup(request.now, path, request.get)
    if is_same(then, current):
        return None
    foreign = request.foreign(path)
    if foreign.is_only_theirs:
        return None
    objection = _Objection(foreign.explanation)
    if path not in request.tracked:
        objection = _objection(request, path, foreign.explanation)
    reason, is_doubtful = objection
    if unsure := _unsure(request, path, then, current):
        return Step(path, UNSURE, unsure, current, then)
    if reason and not request.force and not (is_doubtful and request.is_named):
        return Step(path, CONFLICT, reason, current, then, is_doubtful=is_doubtful)
    is_declared = path in request.declared
    source = "declared" if is_declared else "tracked" if path in request.tracked else f"changed in {stretch_name}"
    if is_doubtful:
        source = f"asked for, though {reason}"
    return Step(path, action_of(current, then), source, current, then, is_declared)


class _Objection(NamedTuple):
    """Why a path should stay as it is; the reason is empty if it need not."""

    reason: str
    is_doubtful: bool = False
    """Whether that is only doubt about who changed it."""


def _objection(request: PlanInput, path: bytes, by_others: str) -> _Objection:
    """The objection to changing a path; `by_others` is what others did to it."""
    mine = [
        stretch
        for stretch in request.stretches
        if not stretch.is_theirs and (stretch.paths is None or path in stretch.paths)
    ]
    broken = _conflict(path, request.target, request.now, mine, request.get)
    doubt = "" if broken else _doubt(path, mine, request.get)
    return _Objection(broken or by_others or doubt, bool(doubt and not by_others))


def _unsure(request: PlanInput, path: bytes, then: TreeNode | None, current: TreeNode | None) -> str:
    """Why a state of the path is unknown, then or now; empty if both are known."""
    for node in (then, current):
        if node is not None and is_unknown(node):
            return f"not covered: {node.reason}"
    if then is None and current is not None and not request.was_covered(path):
        return "was ignored then, so it may have been there"
    if then is not None and current is None and not request.is_covered(path):
        return "is ignored now, so it may be there"
    return ""


def _touched(stretches: Iterable[Stretch], get: GetTree) -> dict[bytes, str]:
    touched: dict[bytes, str] = {}
    for stretch in stretches:
        for path, _, _ in changes(stretch.before, stretch.after, get):
            if stretch.paths is None or path in stretch.paths:
                touched[path] = stretch.what
    return touched


def is_same(one: TreeNode | None, other: TreeNode | None) -> bool:
    """Whether two nodes are equal, without the content of folders, which has steps of its own."""
    if one is not None and other is not None and one.kind == other.kind == FOLDER:
        return (one.mode, one.extra) == (other.mode, other.extra)
    return one == other


def action_of(now: TreeNode | None, then: TreeNode | None) -> str:
    """What to do with a path that differs, for it to become as it was."""
    if now is None:
        return CREATE
    if then is None:
        return DELETE
    if now.kind == then.kind and (now.digest, now.target) == (then.digest, then.target):
        return MODE
    if now.kind == then.kind == FOLDER:
        return MODE
    return MODIFY


def taken_back(step: Step) -> Step:
    """The step that undoes this one."""
    return replace(step, action=action_of(step.then, step.now), now=step.then, then=step.now)


def _conflict(path: bytes, target: Tree, now: Tree, stretches: list[Stretch], get: GetTree) -> str:
    """Why a path is not only the session's: another writer changed it before, between or after its work."""
    left = lookup(target, path, get)
    where = "before"
    for stretch in stretches:
        before, after = lookup(stretch.before, path, get), lookup(stretch.after, path, get)
        if not is_unknown(before):
            if not is_same(left, before):
                return f"somebody changed it {where} {stretch.what}"
            left = before
        elif not is_unknown(after) and not is_same(left, after):
            return f"it could not be read {where} {stretch.what}, so nobody can tell who changed it"
        if not is_unknown(after):
            left = after
        where = "between turns, before"
    if not is_same(left, lookup(now, path, get)):
        return "somebody changed it since"
    return ""


def _doubt(path: bytes, stretches: list[Stretch], get: GetTree) -> str:
    """Why it is unknown who changed a path: it changed in a stretch that is not certainly the session's."""
    for stretch in stretches:
        if stretch.doubt and not is_same(lookup(stretch.before, path, get), lookup(stretch.after, path, get)):
            return stretch.doubt
    return ""

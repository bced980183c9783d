"""The part of a plan that is about the files of one folder."""

from __future__ import annotations

import os

from msgspec import Struct
from msgspec.structs import replace

from turnlog.log.entry import Changed, Checkpoint
from turnlog.log.part import Root, same_root
from turnlog.rewind.attribution import Attribution
from turnlog.rewind.files import Files
from turnlog.rewind.others import ForeignSpan, seen_by_others
from turnlog.rewind.selection import Selection
from turnlog.rewind.span import Span, paths_in
from turnlog.workspace.pathstate import UNLOCKED
from turnlog.workspace.plan import CREATE, DELETE, SKIPPED, UNSURE, Plan, PlanInput, Step, Stretch, make_plan
from turnlog.workspace.read import exists_below
from turnlog.workspace.tree import FOLDER, Tree, TreeNode, lookup, path_bytes

_FOLDER_GONE = "the folder is gone"


class PlanRequest(Struct, frozen=True):
    """What a plan is asked for: from where to where, which paths, and what is known of the work between."""

    target: Checkpoint
    now: Checkpoint
    spans: list[Span]
    others: list[ForeignSpan]
    attribution: Attribution
    selected: Selection
    force: bool


class RootPlanner:
    """Plans what happens to the files of one folder."""

    def __init__(self, files: Files, request: PlanRequest, root: Root) -> None:
        self._files = files
        self._request = request
        self._root = root
        self._folder = files.place_of(root)
        self._overlay = files.overlay

    def steps(self) -> list[Step]:
        """The steps for this folder, without the folders in it that are covered themselves."""
        now, current_root = self._request.now, same_root(self._request.now.roots, self._root)
        base = self._overlay.tree(self._request.target, self._root)
        current = self._overlay.tree(now, self._root)
        if base is None or current_root is None or current is None:
            return self._skipped()
        if current_root.is_gone and not self._root.is_gone:
            # A missing file cannot be overwritten, whichever process removed the folder.
            plan = self._plan(base, current, [Stretch(base, current, "the folder")], [])
            plan = _with_folder(self._root, plan)
        else:
            plan = self._plan(base, current, self._stretches(), self._request.others)
        inside = [path for other in now.roots if (path := _path_below(self._folder, other))]
        return [replace(step, root=self._folder) for step in plan.steps if not _is_about(step, inside)]

    def _plan(self, base: Tree, current: Tree, stretches: list[Stretch], others: list[ForeignSpan]) -> Plan:
        files, root, request = self._files, self._root, self._request
        # Files tracked by hooks were edited once by a tool; later changes to them are not attributed.
        tracked = () if files.history.state.is_relayed else map(path_bytes, root.tracked)
        foreign = seen_by_others(root, self._folder, others, request.now, self._overlay, request.attribution)
        return make_plan(
            PlanInput(
                target=base,
                now=current,
                stretches=stretches,
                get=self._overlay.get,
                was_covered=self._did_not_exist,
                is_covered=self._does_not_exist,
                declared=self._declared(),
                tracked=frozenset(tracked),
                foreign=foreign,
                only=request.selected.in_folder(self._folder),
                is_named=bool(request.selected.named),
                force=request.force,
            )
        )

    def _skipped(self) -> list[Step]:
        """Steps that skip the files of a folder which no current checkpoint has."""
        root = self._root
        tree = self._overlay.get(root.tree)
        paths = sorted({path_bytes(path) for path in root.tracked} or tree)
        reason = f"nothing is known of {root.path} now"
        nodes = ((path, lookup(tree, path, self._overlay.get)) for path in paths)
        return [Step(path, SKIPPED, reason, None, node, root=root.path) for path, node in nodes]

    def _stretches(self) -> list[Stretch]:
        """The folder before and after each span of the session's own work."""
        stretches: list[Stretch] = []
        for span in self._request.spans:
            ends = (self._files.filled(span.begin, span.end), span.end or self._request.now)
            trees = self._overlay.trees(*ends, self._root)
            if trees is not None:
                was_at = [same.path for end in ends if (same := same_root(end.roots, self._root))]
                paths = None if span.paths is None else paths_in(self._root, span.paths, was_at=was_at)
                stretches.append(Stretch(*trees, span.what, paths, span.doubt, span.is_theirs))
        return stretches

    def _declared(self) -> frozenset[bytes]:
        entries = self._files.history.forward(self._request.target.seq)
        return paths_in(self._root, (path for entry in entries if isinstance(entry, Changed) for path in entry.paths))

    def _did_not_exist(self, path: bytes) -> bool:
        """Whether a path that is not in the target did not exist: it is neither ignored nor skipped."""
        return self._overlay.did_not_exist(self._request.target, self._root, path)

    def _does_not_exist(self, path: bytes) -> bool:
        """Whether a path that is not in the current checkpoint does not exist: it may only be ignored."""
        if self._overlay.is_proved_absent(self._overlay.private(self._request.now, self._root), path):
            return True
        return not exists_below(os.fsdecode(path_bytes(self._folder)), path)


def _path_below(folder: str, root: Root) -> bytes:
    """The path of a wholly covered root relative to the folder; empty if it is not inside it."""
    path, lead = path_bytes(root.path), path_bytes(folder) + b"/"
    is_whole = not root.is_partial and not root.is_private and path.startswith(lead)
    return path[len(lead) :] if is_whole else b""


def _is_about(step: Step, folders: list[bytes]) -> bool:
    """Whether a step would delete, or is unsure about, one of these folders or a folder around one."""
    is_about = any(path == step.raw or path.startswith(step.raw + b"/") for path in folders)
    return is_about and step.action in (DELETE, UNSURE)


def _with_folder(root: Root, plan: Plan) -> Plan:
    """The plan, with creating the folder itself first: that step has an empty path."""
    mode = UNLOCKED if root.mode is None else root.mode
    top = Step(b"", CREATE, "", None, TreeNode(FOLDER, mode))
    steps = [top, *plan.steps] if plan.to_do else plan.steps
    return Plan([replace(step, reason=_FOLDER_GONE) if step.action == CREATE else step for step in steps])

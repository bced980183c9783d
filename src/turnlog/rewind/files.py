"""The workspace of a session: checkpoints of it, and going back to them without destroying anything."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from turnlog.errors import NotFound
from turnlog.log.entry import Changed, Checkpoint, Intent, Root
from turnlog.log.payload import digest
from turnlog.rewind.appearance import Appearances
from turnlog.rewind.coverage import Coverage
from turnlog.rewind.intent import carry_out, step_path
from turnlog.rewind.others import ForeignSpan, seen_by_others
from turnlog.rewind.overlay import Overlay, same_root
from turnlog.rewind.snapshot import WORKSPACE, load_rules, roots_of
from turnlog.rewind.span import Span, paths_in, spans
from turnlog.rewind.testimony import Testimony
from turnlog.store import Store
from turnlog.thread.content import given_up, newest_kept
from turnlog.thread.history import History
from turnlog.thread.settings import Settings
from turnlog.workspace.diff import Difference, differences
from turnlog.workspace.folder import PRIVATE, why_not_made
from turnlog.workspace.git import git_left
from turnlog.workspace.ignore import Outside, was_covered
from turnlog.workspace.plan import CREATE, DELETE, SKIPPED, UNSURE, Plan, PlanInput, Step, Stretch, make_plan
from turnlog.workspace.read import Glance, is_below, read_below
from turnlog.workspace.restore import Outcome
from turnlog.workspace.tree import FOLDER, Tree, TreeNode, lookup, path_bytes, path_text

GONE = "the folder is gone"


class _WayBack(Struct, frozen=True):
    """What a plan is asked for: from where to where, and what is known of the work between."""

    target: Checkpoint
    now: Checkpoint
    spans: list[Span]
    others: list[ForeignSpan]
    testimony: Testimony
    only: list[str] | None
    force: bool


class Files(Coverage):
    """The files of one session."""

    def __init__(self, store: Store, history: History, settings: Settings) -> None:
        super().__init__(store, history, settings)
        self._glance = Glance()
        self._overlay = Overlay(lambda name: self._glance.trees.get(name) or self._store.get(name))
        self._tree = self._overlay.get
        self._appearances = (-1, Appearances(()))

    # ── checkpoints ───────────────────────────────────────────────────────────────────────────────

    def refuse_missing(self) -> None:
        """Raise `NotFound` where the workspace is not there, and cannot be made."""
        missing = self.missing()
        path = os.fsdecode(path_bytes(str(self._history.state.wide.get("workspace"))))
        reason = why_not_made(path) if missing else ""
        if reason:
            above = shlex.quote(path_text(os.fsencode(os.path.dirname(path))))
            way = f"attach its disk, or `mkdir -p {above}` if it was deleted"
            if os.path.lexists(path):
                way = "move that away"
            hint = f"{way}, and try again; `turnlog rewind --conversation` leaves the files alone"
            raise NotFound(f"{missing}: {reason}", hint=hint)

    def look(self) -> Checkpoint:
        """The files as they are now. Nothing is written: it is there to compare with, until the next look."""
        self._refuse()
        now, self._glance = self._snapshots.look(self._history.state, self._telling("scanning"))
        return now

    def at_or_before(self, seq: int) -> Checkpoint | None:
        """The last checkpoint at or before an entry."""
        checkpoint = newest_kept(self._store, self._history.back(seq), self._history.state.dropped)
        return self._history.whole(checkpoint) if checkpoint is not None else None

    def kept_at(self, seq: int) -> Checkpoint | None:
        """The checkpoint that is that entry, unless it was given up."""
        entry = self._history.at(seq)
        return self._history.whole(entry) if isinstance(entry, Checkpoint) and not self._given_up([entry]) else None

    def _given_up(self, checkpoints: list[Checkpoint]) -> frozenset[str]:
        return given_up(self._store, checkpoints, self._history.state.dropped)

    # ── plans ─────────────────────────────────────────────────────────────────────────────────────

    def plan(
        self,
        target: Checkpoint,
        now: Checkpoint,
        spans: list[Span] | None,
        *,
        others: list[ForeignSpan] | None = None,
        only: list[str] | None = None,
        force: bool = False,
    ) -> Plan:
        """What going back to `target` would do, given these stretches of the session's own work since.

        None for them means that all that changed since goes back.
        """
        note = ""
        if spans is not None and any(span.is_theirs for span in spans):
            note = "no turn of the session since, so whatever else changed was changed by somebody else"
        if spans is None:
            note = "no turn of the session since, so everything that changed counts as the session's"
            spans = [Span(target, now, "the time since the checkpoint")]
        testimony = self.testimony({work.session for work in others or ()}, target, now)
        asked, target = target, self._filled(target, None)
        way = _WayBack(target, now, spans, others or [], testimony, only, force)
        # A private root lies over that of the workspace.
        steps = [step for root in target.roots if not root.is_private for step in self._plan_root(way, root)]
        late = [f"what happened in {root.path} before it was first seen stays" for root in _added(asked, target)]
        return Plan(steps, "; ".join(filter(None, (note, git_left(target.git, now.git), *late))))

    def _plan_root(self, way: _WayBack, root: Root) -> list[Step]:
        """What happens to the files of one folder."""
        now = way.now
        base, here = self._overlay.tree(way.target, root), same_root(now, root)
        current = self._overlay.tree(now, root)
        if base is None or here is None or current is None:
            return self._unmatched(root)
        folder = self._place_of(root)
        is_gone = here.is_gone and not root.is_gone
        # A missing file cannot be overwritten, whoever removed the folder.
        stretches = [Stretch(base, current, "the folder")] if is_gone else self._stretches(root, way.spans, now)
        work = [] if is_gone else way.others
        # Files tracked by hooks were edited once by a tool; later changes to them are not attributed.
        is_relayed = self._history.state.is_relayed
        plan = make_plan(
            PlanInput(
                target=base,
                now=current,
                stretches=stretches,
                get=self._tree,
                was_covered=partial(self._covers, way.target, root),
                is_covered=partial(self._is_absent, now, root),
                declared=self._declared(way.target.seq, root),
                tracked=frozenset(() if is_relayed else map(path_bytes, root.tracked)),
                foreign=seen_by_others(root, folder, work, now, self._overlay, way.testimony),
                only=only_paths(way.only),
                is_named=bool(way.only),
                force=way.force,
            )
        )
        if is_gone:
            plan = _made_anew(root, plan)
        inside = [one for other in now.roots if (one := _below(folder, other))]
        return [replace(step, root=folder) for step in plan.steps if not _holds(step, inside)]

    def _filled(self, checkpoint: Checkpoint, until: Checkpoint | None) -> Checkpoint:
        """A checkpoint with the folders that were first covered later, as they were when they were first seen."""
        state = self._history.state
        if self._appearances[0] != state.seq:
            entries = self._history.forward() if state.folders or state.tracked else ()
            checkpoints = [entry for entry in entries if isinstance(entry, Checkpoint)]
            gone = self._given_up(checkpoints)
            self._appearances = state.seq, Appearances(entry for entry in checkpoints if entry.id not in gone)
        return self._appearances[1].fill(checkpoint, until)

    def testimony(self, others: set[str], since: Checkpoint, until: Checkpoint) -> Testimony:
        """Whose the changes between two checkpoints are, where those sessions worked at the same time."""
        return Testimony(self._store, self._history, others, since, until, self._overlay)

    def _covers(self, target: Checkpoint, root: Root, path: bytes) -> bool:
        """Whether a path that is not in a checkpoint was not there: neither ignored nor left out otherwise."""
        if any(path == item or path.startswith(item + b"/") for item in map(path_bytes, root.tracked)):
            return True
        if root.is_partial:
            return False
        if self._overlay.is_known(self._overlay.private(target, root), path):
            return True
        return was_covered(self._tree(root.tree), path, self._rules(root), self._tree, self._store.get)

    def _is_absent(self, now: Checkpoint, root: Root, path: bytes) -> bool:
        """Whether a path that is not in a checkpoint of now is not there: it may only be ignored."""
        if self._overlay.is_known(self._overlay.private(now, root), path):
            return True
        return not is_below(os.fsdecode(path_bytes(self._place_of(root))), path)

    def _place_of(self, root: Root) -> str:
        """Where a root lies now: the workspace wherever that is, any other folder where it was."""
        workspace = self._history.state.wide.get("workspace")
        return str(workspace) if root.name == WORKSPACE and workspace else root.path

    def _unmatched(self, root: Root) -> list[Step]:
        """What cannot go back, because no checkpoint of now has that folder: it is told, not passed over."""
        tree = self._tree(root.tree)
        paths = sorted({path_bytes(path) for path in root.tracked} or tree)
        reason = f"nothing is known of {root.path} now"
        nodes = ((path, lookup(tree, path, self._tree)) for path in paths)
        return [Step(path, SKIPPED, reason, None, node, root=root.path) for path, node in nodes]

    def _declared(self, after: int, root: Root) -> frozenset[bytes]:
        entries = self._history.forward(after)
        return paths_in(root, (path for entry in entries if isinstance(entry, Changed) for path in entry.paths))

    def _rules(self, root: Root) -> Outside:
        return load_rules(self._store.get(root.rules)) if root.rules else []

    def _stretches(self, root: Root, spans: list[Span], now: Checkpoint) -> list[Stretch]:
        stretches: list[Stretch] = []
        for span in spans:
            ends = (self._filled(span.begin, span.end), span.end or now)
            trees = self._overlay.trees(*ends, root)
            if trees is not None:
                was_at = [same.path for end in ends if (same := same_root(end, root))]
                paths = None if span.paths is None else paths_in(root, span.paths, was_at=was_at)
                stretches.append(Stretch(*trees, span.what, paths, span.doubt, span.is_theirs))
        return stretches

    def spans_since(self, target: Checkpoint) -> list[Span] | None:
        """The session's own work after a checkpoint, in order; a turn it lies in counts from there.

        None where everything since goes back: for a caller that never brackets its turns, whatever it rewound, and
        for a checkpoint that somebody asked for and that no turn came after.
        """
        history = self._history
        if not any(isinstance(entry, Checkpoint) and entry.when == "begin" for entry in history.forward()):
            return None
        is_asked_for = target.when is None and target.turn is None
        if is_asked_for and all(entry.turn is None for entry in history.forward(target.seq)):
            return None
        all_spans = spans(self._store, history, history.forward(), target)
        if not any(span.is_turn for span in all_spans):
            all_spans.append(Span(target, None, "the time since the checkpoint", is_theirs=True))
        return all_spans

    def turn(self, turn: int | str | None) -> Span:
        """The turn with that number or id, with all that may be its doing; the newest if not told."""
        turns = self.turns()
        if turn is None and turns:
            return max(turns, key=lambda span: span.number)
        chosen = next((span for span in turns if turn in (span.turn, span.number)), None)
        if chosen is None:
            raise NotFound("no turn with checkpoints" if turn is None else f"no turn {turn} with checkpoints")
        return chosen

    def turns(self) -> list[Span]:
        """Every turn that has checkpoints, as one span each."""
        parts: dict[int, list[Span]] = {}
        for span in spans(self._store, self._history, self._history.forward()):
            if span.is_turn and not span.is_blind:
                parts.setdefault(span.number, []).append(span)
        return [_whole(some) for some in parts.values()]

    # ── doing it ──────────────────────────────────────────────────────────────────────────────────

    def run(self, intent: Intent, steps: list[Step], *, again: bool = False) -> list[Outcome]:
        """Carry out the steps of an intent. `again`: they were begun before, and interrupted."""
        roots = roots_of(self._history.state)
        covered = {path_text(os.fsencode(root.path)): (root.tracked, root.is_partial) for root in roots}
        places = self._places_in(intent)
        steps = [replace(step, root=places.get(step.root, step.root)) for step in steps]
        return carry_out(intent, steps, covered, self._store.stream, again=again, tell=self._telling("restoring"))

    def kept(self, intent: Intent, problems: list[Outcome]) -> list[str]:
        """The paths that stay as they are, as the intent names them."""
        written = {now: then for then, now in self._places_in(intent).items()}
        return [step_path(replace(o.step, root=written.get(o.step.root, o.step.root))) for o in problems]

    def _places_in(self, intent: Intent) -> dict[str, str]:
        """Where the folders of an intent lie now: the project may have moved since it was written down."""
        before = self._history.at(intent.before) if intent.before else None
        roots = before.roots if isinstance(before, Checkpoint) else []
        return {root.path: self._place_of(root) for root in roots if not root.is_private}

    def diff(self, before: Checkpoint, after: Checkpoint, *, lines: bool = True) -> list[Difference]:
        """What changed between two checkpoints."""
        changed: list[Difference] = []
        before = self._filled(before, after)
        own = {root.path for root in before.roots if root.name != WORKSPACE}
        for root in before.roots:
            trees = None if root.is_private else self._overlay.trees(before, after, root)
            if trees is None:
                continue
            content = partial(self._content, root) if lines else None
            private = [tree for end in (before, after) if (tree := self._overlay.private(end, root)) is not None]
            workspace = f"{self._history.state.wide.get('workspace')}/"
            lead = "" if root.name == WORKSPACE else f"{root.path}/".removeprefix(workspace)
            here = list(differences(*trees, self._tree, content, partial(self._is_in, private), lead))
            end = same_root(after, root)
            if end is not None and root.is_partial != end.is_partial:  # of what only one covers, nothing can be said
                few = trees[0] if root.is_partial else trees[1]
                paths = ((item, path_bytes(item.path.removeprefix(lead))) for item in here)
                here = [item for item, path in paths if lookup(few, path, self._tree) is not None]
            # A repository in the workspace that is covered itself is told by what is in it.
            here = [item for item in here if lead or f"{root.path}/{item.path}" not in own]
            changed += here
        return changed

    def _is_in(self, trees: list[Tree], path: bytes) -> bool:
        return any(lookup(tree, path, self._tree) is not None for tree in trees)

    def _content(self, root: Root, path: bytes, node: TreeNode) -> bytes | None:
        if node.digest in self._glance.contents and not self._store.has(node.digest):
            data = read_below(os.fsdecode(path_bytes(self._place_of(root))), path)
            return data if data is not None and digest(data) == node.digest else None
        return self._store.get(node.digest)


def _whole(parts: list[Span]) -> Span:
    """A turn, of its parts."""
    if parts[0].is_relayed:  # it is known where its last tool ended: what came behind that is not shown as its own
        parts = [span for span in parts if not span.doubt] or [replace(parts[0], end=parts[0].begin)]
    return replace(parts[0], end=parts[-1].end)


def _added(before: Checkpoint, after: Checkpoint) -> list[Root]:
    """The folders that only the other has."""
    return [root for root in after.roots if not root.is_private and same_root(before, root) is None]


def _below(folder: str, root: Root) -> bytes:
    """Where in that folder another one lies that is covered as a whole; nothing if it does not."""
    is_whole = not root.is_partial and not root.is_private and root.path.startswith(f"{folder}/")
    return path_bytes(root.path)[len(path_bytes(folder)) + 1 :] if is_whole else b""


def _holds(step: Step, inside: list[bytes]) -> bool:
    """Whether a step is about a folder that cannot go, because such a one is in it, or is that one."""
    is_about = any(one == step.raw or one.startswith(step.raw + b"/") for one in inside)
    return is_about and step.action in (DELETE, UNSURE)


def _made_anew(root: Root, plan: Plan) -> Plan:
    """That plan, with the folder itself first: it is the step without a path."""
    mode = PRIVATE if root.mode is None else root.mode
    top = Step(b"", CREATE, "", None, TreeNode(FOLDER, mode))
    steps = [top, *plan.steps] if plan.to_do else plan.steps
    return Plan([replace(step, reason=GONE) if step.action == CREATE else step for step in steps])


def only_paths(chosen: list[str] | None) -> Callable[[bytes], bool]:
    """Whether a path is, or is in, one of those chosen."""
    if not chosen:
        return lambda path: True
    wanted = [path.strip("/").encode("utf-8", "surrogateescape") for path in chosen]
    return lambda path: any(path == want or path.startswith(want + b"/") for want in wanted)

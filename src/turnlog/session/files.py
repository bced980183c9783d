"""The workspace of a session: checkpoints of it, and going back to them without destroying anything."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from turnlog.errors import Invalid, NotFound
from turnlog.log.entry import AnyEntry, Changed, Checkpoint, Head, Intent, Root, Turn
from turnlog.log.ids import new_id
from turnlog.log.payload import digest
from turnlog.session.history import History
from turnlog.session.places import outside_rules, refuses_checkpoints, this_process
from turnlog.session.report import Settings
from turnlog.store import Pack, Store
from turnlog.workspace import cache
from turnlog.workspace.diff import Difference, differences
from turnlog.workspace.ignore import Outside, was_covered
from turnlog.workspace.plan import Plan, Step, Stretch, make_plan
from turnlog.workspace.restore import Outcome, Restorer
from turnlog.workspace.scan import Scanner
from turnlog.workspace.tree import Node, Tree, decode_tree, lookup, path_bytes, path_text

WORKSPACE = "workspace"
_RULES = msgspec.json.Decoder(list[tuple[str, str]]).decode
Progress = Callable[[int], None]


class Span(Struct, frozen=True):
    """A stretch of the session's own work in the log: a turn, or a rewind of files."""

    begin: Checkpoint
    end: Checkpoint | None
    what: str


class Files:
    """The files of one session."""

    def __init__(self, store: Store, history: History, settings: Settings) -> None:
        self._store = store
        self._history = history
        self._settings = settings
        self._tree = lru_cache(4096)(self._load_tree)

    def _load_tree(self, name: str) -> Tree:
        return decode_tree(self._store.get(name))

    # ── checkpoints ───────────────────────────────────────────────────────────────────────────────

    @property
    def brackets_turns(self) -> bool:
        """Whether a turn takes checkpoints by itself."""
        return self._settings.checkpoints and not self.why_not()

    def why_not(self) -> str:
        """Why there are no checkpoints of this session; empty if there are."""
        workspace = self._history.state.wide.get("workspace")
        if not workspace:
            return "the session has no workspace"
        root = os.fsdecode(path_bytes(str(workspace)))
        if not os.path.isdir(root):
            return f"{workspace} is not a folder here"
        refused = refuses_checkpoints(root)
        return f"{workspace} is never scanned: {refused}" if refused else ""

    def snapshot(
        self, pack: Pack, *, label: str | None = None, when: str | None = None, progress: Progress | None = None
    ) -> Checkpoint:
        """A checkpoint of the files as they are now; what is new goes into the pack."""
        refused = self.why_not()
        if refused:
            raise Invalid(f"no checkpoint: {refused}", hint="create the session with a project folder as workspace")
        roots: list[Root] = []
        skipped: list[dict[str, Any]] = []
        for name, path, tracked, is_partial in self._roots():
            outside = [] if is_partial else outside_rules(path)
            key = "scan-" + digest(os.fsencode(path) + repr(sorted(tracked)).encode())[7:39]
            scanner = Scanner(
                pack,
                outside=outside,
                tracked=tracked,
                max_file=self._settings.max_file_bytes,
                seen=cache.load(self._store.derived(key)),
                avoid=self._store.own_folders(),
                progress=progress,
            )
            found = scanner.scan(path, only_tracked=is_partial)
            self._store.keep_derived(key, cache.dump(found.seen))
            rules = pack.add(_dump_rules(outside)) if outside else None
            names = sorted(path_text(item) for item in tracked)
            roots.append(Root(name, path_text(os.fsencode(path)), found.tree, rules, names, is_partial))
            skipped += [
                {"root": name, "path": path_text(s.path), "reason": s.reason, "size": s.size} for s in found.skipped
            ]
        return Checkpoint(roots=roots, label=label, when=when, skipped=skipped[:1000])

    def _roots(self) -> Iterator[tuple[str, str, frozenset[bytes], bool]]:
        """Name, path, tracked paths in it, and whether only those are covered."""
        state = self._history.state
        workspace = os.fsdecode(path_bytes(str(state.wide["workspace"])))
        inside: set[bytes] = set()
        others: dict[str, set[bytes]] = {}
        for text in state.tracked:
            path = os.fsdecode(path_bytes(text))
            relative = os.path.relpath(path, workspace)
            if relative.startswith(".."):
                others.setdefault(os.path.dirname(path), set()).add(os.fsencode(os.path.basename(path)))
            else:
                inside.add(os.fsencode(relative))
        yield WORKSPACE, workspace, frozenset(inside), False
        for folder, names in sorted(others.items()):
            if os.path.isdir(folder):
                yield folder, folder, frozenset(names), True

    def checkpoints(self) -> list[Checkpoint]:
        """Every checkpoint of the session, inherited ones included, oldest first."""
        return [entry for entry in self._history.forward() if self._is_kept(entry)]  # pyright: ignore[reportReturnType]

    def at_or_before(self, seq: int) -> Checkpoint | None:
        """The last checkpoint at or before an entry."""
        found = next((entry for entry in self._history.back(seq) if self._is_kept(entry)), None)
        return self._history.whole(found) if found is not None else None

    def _is_kept(self, entry: AnyEntry) -> bool:
        return isinstance(entry, Checkpoint) and entry.id not in self._history.state.dropped

    # ── plans ─────────────────────────────────────────────────────────────────────────────────────

    def plan(
        self,
        target: Checkpoint,
        now: Checkpoint,
        spans: list[Span],
        *,
        others: list[Span] | None = None,
        only: Callable[[bytes], bool] = lambda path: True,
        force: bool = False,
    ) -> Plan:
        """What going back to `target` would do, given these stretches of the session's own work since."""
        steps: list[Step] = []
        note = ""
        if not spans:
            note = "no turn was bracketed since, so everything that changed counts as the session's"
            spans = [Span(target, now, "the time since the checkpoint")]
        declared = self._declared(target.seq)
        for root in target.roots:
            base, current = self._tree(root.tree), self._tree_of(now, root)
            if current is None:
                continue
            stretches = self._stretches(root, spans, now)
            foreign = self._stretches(root, others or [], now)
            outside = self._rules(root)
            tracked = frozenset(path_bytes(path) for path in root.tracked)

            def covered(
                path: bytes, _: Node, root: Root = root, base: Tree = base, outside: Outside = outside,
                tracked: frozenset[bytes] = tracked,
            ) -> bool:  # fmt: skip
                if path in tracked:
                    return True
                return not root.is_partial and was_covered(base, path, outside, self._tree, self._store.get)

            def overlap(path: bytes, foreign: list[Stretch] = foreign) -> str:
                for stretch in foreign:
                    if lookup(stretch.before, path, self._tree) != lookup(stretch.after, path, self._tree):
                        return f"{stretch.what} changed it at the same time"
                return ""

            found = make_plan(
                base,
                current,
                stretches,
                self._tree,
                was_covered=covered,
                declared=declared,
                foreign=overlap,
                only=only,
                force=force,
            )
            steps += [replace(step, root=root.path) for step in found.steps]
        return Plan(steps, note)

    def _declared(self, after: int) -> frozenset[bytes]:
        paths: set[bytes] = set()
        for entry in self._history.forward(after):
            if isinstance(entry, Changed):
                paths.update(path_bytes(path) for path in entry.paths)
        return frozenset(paths)

    def _rules(self, root: Root) -> Outside:
        return _load_rules(self._store.get(root.rules)) if root.rules else []

    def _tree_of(self, checkpoint: Checkpoint, root: Root) -> Tree | None:
        return next((self._tree(r.tree) for r in checkpoint.roots if r.path == root.path), None)

    def _stretches(self, root: Root, spans: list[Span], now: Checkpoint) -> list[Stretch]:
        stretches: list[Stretch] = []
        for span in spans:
            before, after = self._tree_of(span.begin, root), self._tree_of(span.end or now, root)
            if before is not None and after is not None:
                stretches.append(Stretch(before, after, span.what))
        return stretches

    def spans_since(self, target: Checkpoint) -> list[Span]:
        """The session's own work after a checkpoint, in order; a turn it lies in counts from there."""
        return spans(self._kept_entries(), target)

    def _kept_entries(self) -> Iterator[AnyEntry]:
        """The log without the checkpoints that were given up: nobody can go by them."""
        return (e for e in self._history.forward() if not isinstance(e, Checkpoint) or self._is_kept(e))

    def turn(self, turn: int | str | None) -> Span:
        """The turn with that number or id; the newest if not told."""
        for span in reversed(spans(self._kept_entries())):
            if span.what.startswith("turn ") and turn in (None, span.begin.turn, int(span.what[5:])):
                return span
        raise NotFound("no turn with checkpoints" if turn is None else f"no turn {turn} with checkpoints")

    # ── doing it ──────────────────────────────────────────────────────────────────────────────────

    def intent(self, plan: Plan, before: Checkpoint, head: Head) -> Intent:
        """What is about to be done, so that it can be finished or taken back should it be interrupted."""
        steps = [[s.root, path_text(s.path), _row(s.now), _row(s.then)] for s in plan.to_do]
        plain = msgspec.to_builtins(replace(head, id=new_id()), str_keys=True)
        return Intent(host=this_process()["host"], before=before.seq, steps=steps, head=plain)

    def run(self, steps: list[Step]) -> list[Outcome]:
        """Carry out steps, folder by folder."""
        outcomes: list[Outcome] = []
        for root in sorted({step.root for step in steps}):
            mine = [step for step in steps if step.root == root]
            try:
                restorer = Restorer(os.fsdecode(path_bytes(root)), self._pieces)
            except OSError as error:
                outcomes += [Outcome(step, False, error.strerror or str(error)) for step in mine]
                continue
            try:
                outcomes += restorer.run(mine)
            finally:
                restorer.close()
        return outcomes

    def _pieces(self, name: str) -> Iterator[bytes]:
        return self._store.stream(name)

    def diff(self, before: Checkpoint, after: Checkpoint) -> list[Difference]:
        """What changed between two checkpoints."""
        found: list[Difference] = []
        for root in before.roots:
            other = self._tree_of(after, root)
            if other is not None:
                found += differences(self._tree(root.tree), other, self._tree, self._store.get)
        return found


def steps_of(intent: Intent) -> list[Step]:
    """The steps that an intent names."""
    return [
        Step(path_bytes(path), "modify", "interrupted", _node(now), _node(then), root=root)
        for root, path, now, then in intent.steps
    ]


def spans(entries: Iterator[AnyEntry], target: Checkpoint | None = None) -> list[Span]:
    """The stretches of own work in a log, in order; those after `target` only, cut where it lies inside one."""
    found: list[Span] = []
    begun: dict[str, Checkpoint] = {}
    seen: dict[int, Checkpoint] = {}
    count = 0
    numbers: dict[str, int] = {}
    after = target.seq if target is not None else 0
    for entry in entries:
        if isinstance(entry, Checkpoint):
            seen[entry.seq] = entry
            if entry.when == "begin" and entry.turn is not None:
                begun[entry.turn] = entry
            elif entry.when == "end" and entry.turn in begun:
                begin = begun.pop(entry.turn)
                _add(found, begin, entry, f"turn {numbers.get(entry.turn, count)}", target, after)
        elif isinstance(entry, Turn) and entry.turn is not None:
            if entry.state == "begin":
                count += 1
                numbers[entry.turn] = count
            else:
                begun.pop(entry.turn, None)
        elif isinstance(entry, Head) and entry.before in seen and entry.after in seen:
            _add(found, seen[entry.before], seen[entry.after], f"{entry.why} {entry.seq}", target, after)
    for turn, begin in begun.items():
        _add(found, begin, None, f"turn {numbers.get(turn, count)}", target, after)
    return found


def _add(
    found: list[Span], begin: Checkpoint, end: Checkpoint | None, what: str, target: Checkpoint | None, after: int
) -> None:
    if end is not None and end.seq <= after:
        return
    if target is not None and begin.seq < after:
        begin = target
    found.append(Span(begin, end, what))


def only_paths(chosen: list[str] | None) -> Callable[[bytes], bool]:
    """Whether a path is, or is in, one of those chosen."""
    if not chosen:
        return lambda path: True
    wanted = [path.strip("/").encode("utf-8", "surrogateescape") for path in chosen]
    return lambda path: any(path == want or path.startswith(want + b"/") for want in wanted)


def must(checkpoint: Checkpoint | None, what: str) -> Checkpoint:
    """The checkpoint, or a clear error."""
    if checkpoint is None:
        raise NotFound(f"there is no checkpoint at or before {what}")
    return checkpoint


def _row(node: Node | None) -> Any:
    if node is None:
        return None
    return [node.kind, node.mode, node.digest, node.size, path_text(node.target)]


def _node(row: Any) -> Node | None:
    return None if row is None else Node(row[0], row[1], row[2], row[3], path_bytes(row[4]))


def _dump_rules(outside: Outside) -> bytes:
    return msgspec.json.encode([(path_text(lead), path_text(text)) for lead, text in outside])


def _load_rules(data: bytes) -> Outside:
    return [(path_bytes(lead), path_bytes(text)) for lead, text in _RULES(data)]

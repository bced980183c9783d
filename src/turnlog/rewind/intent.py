"""Intents: the entry that records a change of files before it begins. Writing it, reading it, carrying it out."""

from __future__ import annotations

import os
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from turnlog.errors import Corrupt, OutOfSpace, Unavailable
from turnlog.log.entry import Checkpoint, Head, Intent
from turnlog.log.ids import new_id, word_of
from turnlog.log.path import is_at_or_below
from turnlog.machine.process import may_run, this_process
from turnlog.rewind.snapshot import CoveredRoot
from turnlog.thread.history import History
from turnlog.workspace.ignore.rule import ALWAYS
from turnlog.workspace.plan import Plan, Step, action_of
from turnlog.workspace.restore import FULL, Outcome, Restorer
from turnlog.workspace.rootfolder import close_root, make_root
from turnlog.workspace.tree import Extra, TreeNode, path_bytes, path_text

HINT = "`turnlog rewind --continue` finishes it, `--abort` takes it back"
_running: set[str] = set()
"""The ids of intents that this process is carrying out."""


class _Saved(Struct, array_like=True):
    """The content at a path, as an intent stores it."""

    kind: str
    mode: int
    digest: str
    size: int
    target: str
    extra: tuple[tuple[int, int] | None, list[tuple[str, str]]] | None = None


def make_intent(plan: Plan, before: Checkpoint, head: Head) -> Intent:
    """The intent for a plan, so that an interrupted change can be finished or taken back."""
    steps = [[s.root, s.path, _saved(s.now), _saved(s.then)] for s in plan.to_do]
    plain = msgspec.to_builtins(replace(head, id=new_id()), str_keys=True)
    return Intent(host=this_process()["host"], before=before.seq, steps=steps, head=plain)


def _saved(node: TreeNode | None) -> Any:
    if node is None:
        return None
    saved: list[Any] = [node.kind, node.mode, node.digest, node.size, path_text(node.target)]
    if node.extra is not None:
        attributes = [[path_text(name), b64encode(value).decode()] for name, value in node.extra.attributes]
        saved.append([list(node.extra.owner) if node.extra.owner is not None else None, attributes])
    return saved


def steps_of(intent: Intent) -> list[Step]:
    """The steps of an intent."""
    try:
        rows = msgspec.convert(intent.steps, list[tuple[str, str, _Saved | None, _Saved | None]])
        nodes = ((root, path, _node(now), _node(then)) for root, path, now, then in rows)
        return [
            Step(path_bytes(path), action_of(now, then), "interrupted", now, then, root=root)
            for root, path, now, then in nodes
        ]
    except (msgspec.ValidationError, ValueError):
        raise _unreadable(intent) from None


def makes_root(intent: Intent) -> bool:
    """Whether the intent creates a folder that was missing as a whole."""
    try:
        return any(not step.raw and step.now is None for step in steps_of(intent))
    except Corrupt:
        return False


def head_of(intent: Intent) -> Head:
    """The head entry that follows the intent."""
    try:
        return msgspec.convert(intent.head, Head, str_keys=True)
    except (msgspec.ValidationError, ValueError):
        raise _unreadable(intent) from None


def step_path(step: Step) -> str:
    """The absolute path of a step."""
    return path_text(path_bytes(step.root) + b"/" + step.raw)


def paths_of(intent: Intent, head: Head) -> frozenset[str]:
    """The files that a rewind changed: other files may differ between its two checkpoints, too."""
    try:
        return frozenset(step_path(step) for step in steps_of(intent)).difference(head.kept)
    except Corrupt:
        return frozenset()


def _node(saved: _Saved | None) -> TreeNode | None:
    if saved is None:
        return None
    extra = None
    if saved.extra is not None:
        owner, attributes = saved.extra
        extra = Extra(owner, tuple((path_bytes(name), b64decode(value)) for name, value in attributes))
    return TreeNode(saved.kind, saved.mode, saved.digest, saved.size, path_bytes(saved.target), extra=extra)


def _unreadable(intent: Intent) -> Corrupt:
    return Corrupt(
        f"entry {intent.seq} is an interrupted rewind that cannot be read",
        hint="`turnlog rewind --abort` leaves the files as they are and forgets it",
    )


def pending_in(history: History) -> Intent | None:
    """The change of files that is begun and not finished, running or not."""
    seq = history.state.intent
    entry = history.at(seq) if seq else None
    return history.whole(entry) if isinstance(entry, Intent) else None


def interrupted_in(history: History) -> Intent | None:
    """The change of files that is begun and not finished, and that no process of this machine is carrying out."""
    intent = pending_in(history)
    return None if intent is None or running_in(intent, history.state.writers) else intent


def is_elsewhere(intent: Intent) -> bool:
    """Whether the intent was begun on another machine, so that its progress is unknown here."""
    return intent.host != this_process()["host"]


def running_in(intent: Intent, writers: dict[str, dict[str, Any]]) -> int:
    """The id of the process on this machine that is carrying out the intent; 0 if there is none."""
    if intent.id in _running:
        return os.getpid()
    who = writers.get(word_of(intent.id))
    if who is None or is_elsewhere(intent) or who.get("pid") == os.getpid():
        return 0
    return int(who.get("pid") or 0) if may_run(who) else 0


def carry_out(
    intent: Intent,
    steps: list[Step],
    covered: dict[str, CoveredRoot],
    get: Callable[[str], Iterator[bytes]],
    *,
    again: bool,
    tell: Callable[[int], None] | None = None,
) -> list[Outcome]:
    """Carry out an intent, folder by folder, only in the folders of the session.

    `covered` are these, by their paths as text. `again`: it was begun before.
    """
    outcomes: list[Outcome] = []
    try:
        _running.add(intent.id)
        for root in sorted({step.root for step in steps}):
            mine: list[Step] = []
            for step in steps:
                if step.root == root and _is_covered(step, covered):
                    mine.append(step)
                elif step.root == root:
                    outcomes.append(Outcome(step, False, "not in the folders of this session"))
            for outcome in _in_one_folder(intent, root, mine, get, again) if mine else ():
                outcomes.append(outcome)
                if tell is not None:
                    tell(len(outcomes))
    except OSError as error:
        so_far = f"{sum(outcome.is_done for outcome in outcomes)} of {len(steps)} files were put back"
        if error.errno in FULL:
            raise OutOfSpace(f"{so_far}, then the disk was full", hint=f"free some space; {HINT}") from error
        raise Unavailable(f"{so_far}, but the disk does not confirm it: {error.strerror}", hint=HINT) from error
    finally:
        _running.discard(intent.id)
    return outcomes


def _is_covered(step: Step, covered: dict[str, CoveredRoot]) -> bool:
    root = covered.get(step.root)
    if root is None:
        return False
    if not step.raw:  # the folder itself
        return True
    if is_at_or_below(step.raw, root.tracked):
        return True
    return not root.is_partial and not ALWAYS.intersection(step.raw.split(b"/"))


def _in_one_folder(
    intent: Intent, root: str, steps: list[Step], get: Callable[[str], Iterator[bytes]], again: bool
) -> Iterator[Outcome]:
    path = os.fsdecode(path_bytes(root))
    begun: Step | None = None
    for step in [step for step in steps if not step.raw]:
        problem = make_root(path, step)
        begun = step if not problem else None
        yield Outcome(step, not problem, problem)
    steps = [step for step in steps if step.raw]
    try:
        restorer = Restorer(path, get, intent.id)
    except OSError as error:
        for step in steps:
            yield Outcome(step, False, error.strerror or str(error))
        return
    try:
        if again:
            restorer.sweep(steps)
        yield from restorer.run(steps)
    finally:
        restorer.close()
    if begun is not None:
        close_root(path, begun)

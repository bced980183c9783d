"""The files of a session: as its checkpoints have them, as they are now, and put back."""

from __future__ import annotations

import os
import shlex

from msgspec.structs import replace

from turnlog.errors import NotFound
from turnlog.log.entry import Checkpoint, Intent
from turnlog.log.part import Root
from turnlog.log.payload import digest
from turnlog.rewind.coverage import Coverage
from turnlog.rewind.intent import carry_out, step_path
from turnlog.rewind.lateroot import LateRoots
from turnlog.rewind.snapshot import current_path, roots_of, workspace_folder, workspace_of
from turnlog.store import Store
from turnlog.thread.history import History
from turnlog.thread.overlay import Overlay
from turnlog.thread.space.checkpointcontent import given_up, newest_kept
from turnlog.workspace.plan import Step
from turnlog.workspace.read import read_below
from turnlog.workspace.restore import Outcome
from turnlog.workspace.rootfolder import why_not_made
from turnlog.workspace.sink import DigestOnlySink
from turnlog.workspace.tree import TreeNode, path_bytes, path_text


class Files:
    """The files of one session."""

    def __init__(self, store: Store, history: History, coverage: Coverage) -> None:
        self.store = store
        self.history = history
        self.coverage = coverage
        self._scanned = DigestOnlySink()
        self.overlay = Overlay(lambda name: self._scanned.trees.get(name) or self.store.get(name))
        self._late_roots, self._late_roots_at = LateRoots(()), -1

    # ── now ───────────────────────────────────────────────────────────────────────────────────────

    def refuse_missing(self) -> None:
        """Raise `NotFound` if the workspace is missing and cannot be created."""
        missing = self.coverage.missing()
        path = workspace_folder(self.history.state)
        reason = why_not_made(path) if missing and path is not None else ""
        if reason and path is not None:
            above = shlex.quote(path_text(os.fsencode(os.path.dirname(path))))
            way = f"attach its disk, or `mkdir -p {above}` if it was deleted"
            if os.path.lexists(path):
                way = "move that away"
            hint = f"{way}, and try again; `turnlog rewind --conversation` leaves the files alone"
            raise NotFound(f"{missing}: {reason}", hint=hint)

    def look(self) -> Checkpoint:
        """Examine the files as they are now, to compare with.

        Nothing is written; the result is valid until the next look.
        """
        now, self._scanned = self.coverage.look()
        return now

    def place_of(self, root: Root) -> str:
        """Where a root is now; see `current_path`."""
        return current_path(root, workspace_of(self.history.state))

    def content(self, root: Root, path: bytes, node: TreeNode) -> bytes | None:
        """The content of a file in a checkpoint; None if only the file had it, and changed since."""
        if node.digest in self._scanned.contents and not self.store.has(node.digest):
            data = read_below(os.fsdecode(path_bytes(self.place_of(root))), path)
            return data if data is not None and digest(data) == node.digest else None
        return self.store.get(node.digest)

    # ── checkpoints ───────────────────────────────────────────────────────────────────────────────

    def at_or_before(self, seq: int) -> Checkpoint | None:
        """The last checkpoint at or before an entry."""
        checkpoint = newest_kept(self.store, self.history.back(seq), self.history.state.dropped)
        return self.history.whole(checkpoint) if checkpoint is not None else None

    def kept_at(self, seq: int) -> Checkpoint | None:
        """The checkpoint with this `seq`, unless it was given up."""
        entry = self.history.at(seq)
        return self.history.whole(entry) if isinstance(entry, Checkpoint) and not self._given_up([entry]) else None

    def filled(self, checkpoint: Checkpoint, until: Checkpoint | None) -> Checkpoint:
        """The checkpoint, plus the folders that were first covered later, as they were when first seen."""
        state = self.history.state
        if self._late_roots_at != state.seq:
            entries = self.history.forward() if state.folders or state.tracked else ()
            checkpoints = [entry for entry in entries if isinstance(entry, Checkpoint)]
            gone = self._given_up(checkpoints)
            self._late_roots = LateRoots(entry for entry in checkpoints if entry.id not in gone)
            self._late_roots_at = state.seq
        return self._late_roots.fill(checkpoint, until)

    def _given_up(self, checkpoints: list[Checkpoint]) -> frozenset[str]:
        return given_up(self.store, checkpoints, self.history.state.dropped)

    # ── putting them back ─────────────────────────────────────────────────────────────────────────

    def carry_out(self, intent: Intent, steps: list[Step], *, again: bool = False) -> list[Outcome]:
        """Carry out the steps of an intent. `again`: they were begun before, and interrupted."""
        covered = {path_text(os.fsencode(root.path)): root for root in roots_of(self.history.state)}
        places = self._places_in(intent)
        steps = [replace(step, root=places.get(step.root, step.root)) for step in steps]
        progress = self.coverage.progress("restoring")
        return carry_out(intent, steps, covered, self.store.stream, again=again, tell=progress)

    def kept(self, intent: Intent, problems: list[Outcome]) -> list[str]:
        """The paths that stay as they are, as the intent names them."""
        written = {now: then for then, now in self._places_in(intent).items()}
        return [step_path(replace(o.step, root=written.get(o.step.root, o.step.root))) for o in problems]

    def _places_in(self, intent: Intent) -> dict[str, str]:
        """Where the folders of an intent are now: the project may have moved since the intent was written."""
        before = self.history.at(intent.before) if intent.before else None
        roots = before.roots if isinstance(before, Checkpoint) else []
        return {root.path: self.place_of(root) for root in roots if not root.is_private}

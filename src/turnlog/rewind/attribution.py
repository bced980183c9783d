"""Which session made a change that several sessions saw, from the checkpoints and the declarations of all of them."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property, lru_cache, partial

from turnlog.errors import Corrupt, NotFound
from turnlog.log.entry import Checkpoint
from turnlog.rewind.files import Files
from turnlog.rewind.snapshot import workspace_prefix
from turnlog.rewind.timeline import NOT_RECORDED, Seen, Sighting, Timeline
from turnlog.rewind.timelinereader import timeline_of
from turnlog.workspace.tree import TreeNode, lookup


class Attribution:
    """What is known of the time between two checkpoints. The logs are read at the first use."""

    def __init__(self, files: Files, others: Collection[str], since: Checkpoint, until: Checkpoint) -> None:
        self._store = files.store
        self._ours = files.history
        self._others = others
        self._ends = since, until
        self._overlay = files.overlay

    @cached_property
    def _timeline(self) -> Timeline:
        timeline = timeline_of(self._store, {self._ours.id, *self._others})
        timeline.sightings.append(Sighting(self._ends[1], workspace_prefix(self._ours.state)))
        return timeline

    @cached_property
    def _numbers(self) -> range:
        """The numbers of the sightings from one end to the other; none if an end is unknown."""
        ids = [sighting.checkpoint.id for sighting in self._timeline.sightings]
        first, last = self._ends
        return range(ids.index(first.id), ids.index(last.id) + 1) if first.id in ids else range(0)

    def is_ours(self, path: bytes) -> bool | None:
        """Whether this session made all changes of a file, or none of them; None if that cannot be decided.

        The path is absolute and has no link in it.
        """
        seen: Seen = lru_cache(None)(partial(self._node_at, path))
        whose = [self._author(*step, path, seen) for step in self._timeline.changes(self._numbers, seen)]
        answers = {session == self._ours.id for session in whose if session}
        return answers.pop() if len(answers) == 1 and None not in whose else None

    def _author(self, first: int, last: int, path: bytes, seen: Seen) -> str | None:
        """The session that changed a file between two sightings; empty if none did, None if that is unknown."""
        rewind = self._timeline.rewind(first, last, path)
        if rewind is not None:
            return rewind.session if rewind.session == self._ours.id else None
        works, is_sure = self._timeline.owners(first, last, path, seen, doubtful=True)
        sessions = {work.session for work in works}
        if not sessions:
            return ""
        if not is_sure or len(sessions) > 1:
            return None
        is_declared = self._timeline.declarer(first, last, path, seen) is works[0]
        return works[0].session if is_declared or works[0].session == self._ours.id else None

    def _node_at(self, path: bytes, sighting: Sighting) -> TreeNode | None:
        try:
            for root, inside in sighting.roots(path):
                tree = self._overlay.tree(sighting.checkpoint, root)
                return NOT_RECORDED if tree is None else lookup(tree, inside, self._overlay.get)
        except (NotFound, Corrupt):
            pass  # the tree cannot be read any more
        return NOT_RECORDED

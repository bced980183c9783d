"""Whose a change is that several sessions saw: told by the checkpoints of all of them, and by what each declared."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property, lru_cache, partial

from turnlog.errors import Corrupt, NotFound
from turnlog.log.entry import Checkpoint
from turnlog.rewind.chronology import folder_path, timeline_of
from turnlog.rewind.overlay import Overlay
from turnlog.rewind.timeline import Seen, Sighting, Timeline
from turnlog.store import Store
from turnlog.thread.history import History
from turnlog.workspace.tree import UNKNOWN, TreeNode, lookup

_UNOBSERVED = TreeNode(UNKNOWN)


class Testimony:
    """What is known of the time between two checkpoints. Nothing is read before somebody asks."""

    def __init__(
        self,
        store: Store,
        ours: History,
        others: Collection[str],
        since: Checkpoint,
        until: Checkpoint,
        overlay: Overlay,
    ) -> None:
        self._store = store
        self._ours = ours
        self._others = others
        self._ends = since, until
        self._overlay = overlay

    @cached_property
    def _timeline(self) -> Timeline:
        timeline = timeline_of(self._store, {self._ours.id, *self._others})
        timeline.sightings.append(
            Sighting(self._ends[1], folder_path(str(self._ours.state.wide.get("workspace") or "/")))
        )
        return timeline

    @cached_property
    def _numbers(self) -> range:
        """The sightings from one end to the other; none where an end is not known."""
        ids = [one.checkpoint.id for one in self._timeline.sightings]
        first, last = self._ends
        return range(ids.index(first.id), ids.index(last.id) + 1) if first.id in ids else range(0)

    def is_ours(self, path: bytes) -> bool | None:
        """Whether all that happened to a file was this session's doing, or none of it was; None if nobody can tell.

        The path is from the root, with no link in it.
        """
        seen: Seen = lru_cache(None)(partial(self._seen, path))
        whose = [self._whose(*step, path, seen) for step in self._timeline.changes(self._numbers, seen)]
        answers = {session == self._ours.id for session in whose if session}
        return answers.pop() if len(answers) == 1 and None not in whose else None

    def _whose(self, first: int, last: int, path: bytes, seen: Seen) -> str | None:
        """The session that changed a file between two sightings; empty if none did, None if nobody can tell."""
        rewind = self._timeline.rewind(first, last, path)
        if rewind is not None:
            return rewind.session if rewind.session == self._ours.id else None
        works, is_sure = self._timeline.owners(first, last, path, seen, doubtful=True)
        sessions = {work.session for work in works}
        if not sessions:
            return ""
        if not is_sure or len(sessions) > 1:
            return None
        is_told = self._timeline.declarer(first, last, path, seen) is works[0]
        return works[0].session if is_told or works[0].session == self._ours.id else None

    def _seen(self, path: bytes, sighting: Sighting) -> TreeNode | None:
        try:
            for root, inside in sighting.roots(path):
                tree = self._overlay.tree(sighting.checkpoint, root)
                return _UNOBSERVED if tree is None else lookup(tree, inside, self._overlay.get)
        except (NotFound, Corrupt):
            pass  # nobody can look any more
        return _UNOBSERVED

"""What the checkpoints of all sessions saw of a file, in order, and which turns were between them.

A change is only ever proved by two checkpoints. Times put the checkpoints of several sessions in order; no change is
attributed because of its time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from turnlog.log.entry import Checkpoint, Message
from turnlog.log.part import Root
from turnlog.rewind.snapshot import WORKSPACE
from turnlog.workspace.plan import is_same
from turnlog.workspace.tree import UNKNOWN, TreeNode, path_bytes


class Sighting(Struct, frozen=True, eq=False):
    """A checkpoint, and the current path of its session's workspace."""

    checkpoint: Checkpoint
    place: bytes
    """The path, with a slash at the end."""

    def roots(self, path: bytes) -> list[tuple[Root, bytes]]:
        """The roots of the checkpoint that contain a file, with its path in each, the nearest first."""
        pairs: list[tuple[Root, bytes]] = []
        for root in self.checkpoint.roots:
            top = self.place if root.name == WORKSPACE else path_bytes(root.path).rstrip(b"/") + b"/"
            inside = path[len(top) :] if path.startswith(top) else b""
            is_covered = not root.is_partial or inside in map(path_bytes, root.tracked)
            if inside and is_covered and not root.is_private:
                pairs.append((root, inside))
        return sorted(pairs, key=lambda pair: len(pair[1]))


NOT_RECORDED = TreeNode(UNKNOWN)
"""A checkpoint has no information about this file."""
Seen = Callable[[Sighting], TreeNode | None]
"""A function that returns a sighting's node of a file; a node of kind `UNKNOWN` if it has no information."""


class TurnWork(Struct, eq=False):
    """A turn with checkpoints, and what its session records about it."""

    session: str
    parent: str | None
    """The session that started this one as a subagent."""
    turn: str
    number: int
    agent: str | None
    begin: Sighting
    end: Sighting | None
    """None while the turn is open."""
    entry: int
    """The `seq` of its beginning."""
    within: str | None
    """The turn of a `turnlog run` that contains it."""
    prompt: Message | None = None
    model: str | None = None

    def sees(self, path: bytes, seen: Seen) -> bool:
        """Whether its roots cover a file: not if the file is in a repository of its own."""
        ends = [sighting for sighting in (self.begin, self.end) if sighting is not None and sighting.roots(path)]
        return any((node := seen(sighting)) is None or node.kind != UNKNOWN for sighting in ends)


class Period(Struct, eq=False):
    """The time from one sighting to a later one, and what is known to have happened then."""

    first: int
    last: int
    work: TurnWork | None = None
    """The turn; None for a rewind."""
    paths: frozenset[bytes] | None = None
    """The only files it is about; None means all."""
    target: int = -1
    """For a rewind: the sighting that files went back to."""
    session: str = ""
    """For a rewind: its session."""
    is_doubtful: bool = False
    """For a turn: whether it was cut short, so that it may not have been running any more."""


ChangeRange = tuple[int, int]
"""Two sightings between which a file changed."""


class Timeline(Struct):
    """Sightings in order, and what is known of the time between them."""

    sightings: list[Sighting]
    turns: list[Period]
    declared: list[Period]
    rewinds: list[Period]

    def owners(
        self, first: int, last: int, path: bytes, seen: Seen, *, doubtful: bool = False
    ) -> tuple[tuple[TurnWork, ...], bool]:
        """The turns that may have changed a file between two sightings, and whether one of them certainly did.

        If turns overlap, the declaring turn owns the change. `doubtful`: turns that were cut short count as far as they
        may have continued.
        """
        by_turn: dict[str, TurnWork] = {}
        is_sure = True
        for step in range(first, last):
            here = (
                period.work
                for period in self.turns
                if period.first <= step < period.last and period.is_doubtful <= doubtful
            )
            works = _deepest([work for work in here if work is not None and work.sees(path, seen)])
            if len(works) > 1 and (declarer := self.declarer(first, last, path, seen)) in works:
                works = [declarer]
            is_sure = is_sure and bool(works)
            by_turn.update((work.turn, work) for work in works)
        return tuple(by_turn.values()), is_sure

    def declarer(self, first: int, last: int, path: bytes, seen: Seen) -> TurnWork | None:
        """The turn whose declaration certainly covers the change of a file between two sightings.

        Each declaration covers one change between two checkpoints of its session. Which change that is can be decided
        if the file has no other change there, or if all others certainly belong to other declarations.
        """
        declarations = [period for period in self.declared if _declares(period, path)]
        if not any(period.first <= first and last <= period.last for period in declarations):
            return None
        numbers = range(
            min(period.first for period in declarations),
            min(max(period.last for period in declarations) + 1, len(self.sightings)),
        )
        steps = {*self.changes(numbers, seen), (first, last)}
        within = [
            ({step for step in steps if period.first <= step[0] and step[1] <= period.last}, period.work)
            for period in declarations
        ]
        return _declared(within).get((first, last))

    def changes(self, numbers: Iterable[int], seen: Seen) -> Iterator[ChangeRange]:
        """The pairs of sightings between which a file changed; sightings without information are skipped."""
        before: tuple[int, TreeNode | None] | None = None
        for number in numbers:
            node = seen(self.sightings[number])
            if node is not None and node.kind == UNKNOWN:
                continue
            if before is not None and not is_same(before[1], node):
                yield before[0], number
            before = number, node

    def rewind(self, first: int, last: int, path: bytes) -> Period | None:
        """The rewind in which a file was put back between two sightings."""
        within = (period for period in self.rewinds if period.first <= first and last <= period.last)
        return next((period for period in within if _has(period, path)), None)


def _declared(declarations: list[tuple[set[ChangeRange], TurnWork | None]]) -> dict[ChangeRange, TurnWork | None]:
    """The owner of each change, given the changes that each declaration may cover; None if two declarations may."""
    owners: dict[ChangeRange, TurnWork | None] = {}
    left = declarations
    while True:
        claimed: dict[ChangeRange, TurnWork | None] = {}
        rest: list[tuple[set[ChangeRange], TurnWork | None]] = []
        for steps, work in left:
            if len(open_steps := steps - owners.keys()) == 1:
                step = open_steps.pop()
                claimed[step] = work if claimed.get(step, work) is work else None
            else:
                rest.append((steps, work))
        owners |= claimed
        left = rest
        if not claimed:
            break
    for steps, work in left:
        if steps <= owners.keys():  # the declaration covers one of these, too
            owners |= {step: None for step in steps if owners[step] is not work}
    return owners


def _has(period: Period, path: bytes) -> bool:
    return period.paths is None or path in period.paths


def _declares(period: Period, path: bytes) -> bool:
    """Whether a period declares a path. A declared file includes the folders around it."""
    return _has(period, path) or any(one.startswith(path + b"/") for one in period.paths or ())


def _deepest(works: list[TurnWork]) -> list[TurnWork]:
    """The turns without those whose subagents or nested agents are among them: a turn contains their work."""
    above = {work.parent for work in works} | {work.within for work in works}
    return [work for work in works if work.session not in above and work.turn not in above]

"""What the checkpoints of all sessions saw of a file, in order, and which turns were between them.

A change is only ever proved by two checkpoints. Times put the checkpoints of several sessions in order; no change is
attributed because of its time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from msgspec import Struct

from turnlog.log.entry import Checkpoint, Message
from turnlog.log.part import Root, covers
from turnlog.rewind.snapshot import WORKSPACE
from turnlog.workspace.plan import is_same
from turnlog.workspace.tree import UNKNOWN, TreeNode, path_bytes


class Sighting(Struct, frozen=True, eq=False):
    """A checkpoint, and where the workspace of its session is now."""

    checkpoint: Checkpoint
    workspace: bytes
    """The path, with a slash at the end; `/` without a workspace."""

    def roots(self, path: bytes) -> list[tuple[Root, bytes]]:
        """The roots of the checkpoint that contain a file, with its path in each, the nearest first."""
        pairs: list[tuple[Root, bytes]] = []
        for root in self.checkpoint.roots:
            top = self.workspace if root.name == WORKSPACE else path_bytes(root.path).rstrip(b"/") + b"/"
            inside = path[len(top) :] if path.startswith(top) else b""
            if inside and covers(root, inside) and not root.is_private:
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
    last: Sighting
    """The one at its end; while the turn is open, the newest of its session."""
    entry: int
    """The `seq` of its beginning."""
    within: str | None
    """The turn of a `turnlog run` that contains it."""
    prompt: Message | None = None
    model: str | None = None

    def sees(self, path: bytes, seen: Seen) -> bool:
        """Whether its roots cover a file: not if the file is in a repository of its own."""
        ends = [sighting for sighting in (self.begin, self.last) if sighting.roots(path)]
        return any((node := seen(sighting)) is None or node.kind != UNKNOWN for sighting in ends)


class TurnPeriod(Struct, eq=False):
    """The time from one sighting to a later one, in which a turn worked."""

    first: int
    last: int
    work: TurnWork
    is_doubtful: bool = False
    """Whether the turn was cut short, so that it may not have been running any more."""


class DeclaredPeriod(Struct, eq=False):
    """The time from one sighting to a later one, in which a turn changed the files that it declared."""

    first: int
    last: int
    work: TurnWork
    paths: frozenset[bytes]


class RewindPeriod(Struct, eq=False):
    """The time from one sighting to a later one, in which files were put back."""

    first: int
    last: int
    paths: frozenset[bytes] | None
    """The only files that it changed; None means all."""
    target: int
    """The sighting that files went back to; -1 if it is unknown."""
    session: str


class Owners(NamedTuple):
    """The turns that may have made a change, and whether one of them certainly did."""

    works: tuple[TurnWork, ...]
    is_sure: bool


ChangeRange = tuple[int, int]
"""Two sightings between which a file changed."""


class _Claim(NamedTuple):
    """A declaration, with the changes that it may be about."""

    changes: set[ChangeRange]
    work: TurnWork


class Timeline(Struct):
    """Sightings in order, and what is known of the time between them."""

    sightings: list[Sighting]
    turns: list[TurnPeriod]
    declared: list[DeclaredPeriod]
    rewinds: list[RewindPeriod]

    def owners(self, first: int, last: int, path: bytes, seen: Seen, *, doubtful: bool = False) -> Owners:
        """The turns that may have changed a file between two sightings.

        If turns overlap, the declaring turn owns the change. `doubtful`: turns that were cut short count as far as they
        may have continued.
        """
        by_turn: dict[str, TurnWork] = {}
        is_sure = True
        for step in range(first, last):
            open_turns = (
                period.work
                for period in self.turns
                if period.first <= step < period.last and period.is_doubtful <= doubtful
            )
            works = _deepest([work for work in open_turns if work.sees(path, seen)])
            if len(works) > 1 and (declarer := self.declarer(first, last, path, seen)) in works:
                works = [declarer]
            is_sure = is_sure and bool(works)
            by_turn.update((work.turn, work) for work in works)
        return Owners(tuple(by_turn.values()), is_sure)

    def declarer(self, first: int, last: int, path: bytes, seen: Seen) -> TurnWork | None:
        """The turn whose declaration certainly covers the change of a file between two sightings.

        Each declaration covers one change between two checkpoints of its session. Which change that is can be decided
        if the file has no other change there, or if all others certainly belong to other declarations.
        """
        declarations = [period for period in self.declared if _declares(period.paths, path)]
        if not any(period.first <= first and last <= period.last for period in declarations):
            return None
        numbers = range(
            min(period.first for period in declarations),
            min(max(period.last for period in declarations) + 1, len(self.sightings)),
        )
        changes = {*self.changes(numbers, seen), (first, last)}
        claims = [
            _Claim(
                {change for change in changes if period.first <= change[0] and change[1] <= period.last}, period.work
            )
            for period in declarations
        ]
        return _claimed(claims).get((first, last))

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

    def rewind(self, first: int, last: int, path: bytes) -> RewindPeriod | None:
        """The rewind in which a file was put back between two sightings."""
        within = (period for period in self.rewinds if period.first <= first and last <= period.last)
        return next((period for period in within if period.paths is None or path in period.paths), None)


def _claimed(claims: list[_Claim]) -> dict[ChangeRange, TurnWork | None]:
    """The owner of each change; None if two declarations may be about it.

    A declaration that may be about one change only, beside those that have an owner, owns it.
    """
    owners: dict[ChangeRange, TurnWork | None] = {}
    undecided = claims
    while True:
        new: dict[ChangeRange, TurnWork | None] = {}
        rest: list[_Claim] = []
        for claim in undecided:
            if len(free := claim.changes - owners.keys()) == 1:
                change = free.pop()
                new[change] = claim.work if new.get(change, claim.work) is claim.work else None
            else:
                rest.append(claim)
        owners |= new
        undecided = rest
        if not new:
            break
    for claim in undecided:
        if claim.changes <= owners.keys():  # the declaration is about one of these, too
            owners |= {change: None for change in claim.changes if owners[change] is not claim.work}
    return owners


def _declares(paths: frozenset[bytes], path: bytes) -> bool:
    """Whether a declaration of these paths is about a path. A declared file includes the folders around it."""
    return path in paths or any(declared.startswith(path + b"/") for declared in paths)


def _deepest(works: list[TurnWork]) -> list[TurnWork]:
    """The turns without those whose subagents or nested agents are among them: a turn contains their work."""
    above = {work.parent for work in works} | {work.within for work in works}
    return [work for work in works if work.session not in above and work.turn not in above]

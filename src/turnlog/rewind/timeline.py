"""What the checkpoints of all sessions saw of a file, in order, and whose turns lay between them.

A change is only ever told by two checkpoints. Times put the checkpoints of several sessions in order; nothing is
anybody's because of when it happened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from turnlog.log.entry import Checkpoint, Message, Root
from turnlog.rewind.snapshot import WORKSPACE
from turnlog.workspace.plan import is_same
from turnlog.workspace.tree import UNKNOWN, TreeNode, path_bytes


class Sighting(Struct, frozen=True, eq=False):
    """A checkpoint, and where the workspace of its session lies now."""

    checkpoint: Checkpoint
    place: bytes
    """With a slash behind it."""

    def roots(self, path: bytes) -> list[tuple[Root, bytes]]:
        """The folders of the checkpoint that a file is in, with its path in them, the nearest first."""
        pairs: list[tuple[Root, bytes]] = []
        for root in self.checkpoint.roots:
            top = self.place if root.name == WORKSPACE else path_bytes(root.path).rstrip(b"/") + b"/"
            inside = path[len(top) :] if path.startswith(top) else b""
            is_covered = not root.is_partial or inside in map(path_bytes, root.tracked)
            if inside and is_covered and not root.is_private:
                pairs.append((root, inside))
        return sorted(pairs, key=lambda pair: len(pair[1]))


Seen = Callable[[Sighting], TreeNode | None]
"""What a sighting has of a file; a node of kind `UNKNOWN` where it does not say."""


class TurnWork(Struct, eq=False):
    """A turn that was bracketed, and what its session says of it."""

    session: str
    parent: str | None
    """The session that started this one as a subagent."""
    turn: str
    number: int
    agent: str | None
    begin: Sighting
    end: Sighting | None
    """None while it goes on."""
    entry: int
    """Where it begins in the log."""
    within: str | None
    """The turn of a `turnlog run` that it is a part of."""
    prompt: Message | None = None
    model: str | None = None

    def sees(self, path: bytes, seen: Seen) -> bool:
        """Whether its folders cover a file, and not a repository of its own that the file is in."""
        ends = [one for one in (self.begin, self.end) if one is not None and one.roots(path)]
        return any((node := seen(one)) is None or node.kind != UNKNOWN for one in ends)


class Period(Struct, eq=False):
    """From one sighting to a later one, and what is known to have happened then."""

    first: int
    last: int
    work: TurnWork | None = None
    """Whose turn it was; None for a rewind."""
    paths: frozenset[bytes] | None = None
    """The only files it is about; None means all."""
    target: int = -1
    """Of a rewind: the sighting that files went back to."""
    session: str = ""
    """Of a rewind: whose it was."""
    is_doubtful: bool = False
    """Of a turn: whether it was cut short, and nobody can tell whether it still went on then."""


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
        """The turns in which a file may have been changed between two sightings, and whether it surely was in one.

        If turns overlap, the declaring turn owns the change. `doubtful`: turns that were cut short count as
        far as they may have gone on.
        """
        by_turn: dict[str, TurnWork] = {}
        is_sure = True
        for step in range(first, last):
            here = (one.work for one in self.turns if one.first <= step < one.last and one.is_doubtful <= doubtful)
            works = _deepest([work for work in here if work is not None and work.sees(path, seen)])
            if len(works) > 1 and (declarer := self.declarer(first, last, path, seen)) in works:
                works = [declarer]
            is_sure = is_sure and bool(works)
            by_turn.update((work.turn, work) for work in works)
        return tuple(by_turn.values()), is_sure

    def declarer(self, first: int, last: int, path: bytes, seen: Seen) -> TurnWork | None:
        """The turn that surely declared what happened to a file between two sightings.

        Each declaration is of one change between two checkpoints of its session. Which one that is can be told where
        no other change of the file lies there, or all others are known to be of other declarations.
        """
        declarations = [one for one in self.declared if _tells(one, path)]
        if not any(one.first <= first and last <= one.last for one in declarations):
            return None
        numbers = range(
            min(one.first for one in declarations), min(max(one.last for one in declarations) + 1, len(self.sightings))
        )
        steps = {*self.changes(numbers, seen), (first, last)}
        within = [
            ({step for step in steps if one.first <= step[0] and step[1] <= one.last}, one.work) for one in declarations
        ]
        return _declared(within).get((first, last))

    def changes(self, numbers: Iterable[int], seen: Seen) -> Iterator[ChangeRange]:
        """Between which of these sightings a file changed; those that do not say are passed over."""
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
        within = (one for one in self.rewinds if one.first <= first and last <= one.last)
        return next((one for one in within if _has(one, path)), None)


def _declared(declarations: list[tuple[set[ChangeRange], TurnWork | None]]) -> dict[ChangeRange, TurnWork | None]:
    """Whose changes are, given which of them each declaration may mean; None for one that two may mean."""
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
        if steps <= owners.keys():  # it was one of these, too
            owners |= {step: None for step in steps if owners[step] is not work}
    return owners


def _has(period: Period, path: bytes) -> bool:
    return period.paths is None or path in period.paths


def _tells(period: Period, path: bytes) -> bool:
    """Whether that is declared: with a file, the folders that it is in."""
    return _has(period, path) or any(one.startswith(path + b"/") for one in period.paths or ())


def _deepest(works: list[TurnWork]) -> list[TurnWork]:
    """Without those whose subagents are among them, or agents that they ran: what those do is in their turns, too."""
    above = {work.parent for work in works} | {work.within for work in works}
    return [work for work in works if work.session not in above and work.turn not in above]

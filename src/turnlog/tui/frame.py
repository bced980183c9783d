"""What a screen shows of a session at one moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from turnlog.view.cost import Costs
from turnlog.view.rowmaker import Rows
from turnlog.view.terminal.line import lines_of

if TYPE_CHECKING:
    from turnlog.log.entry import AnyEntry
    from turnlog.view.terminal.typeset import LineStyle


class MoveResult(NamedTuple):
    """What came of a move through a session."""

    is_found: bool = True
    """Whether there was somewhere to go."""
    message: str = ""
    """What is said of it: for example that a search went on from the beginning."""
    is_changed: bool = True
    """Whether anything on the screen may be another."""


ARRIVED = MoveResult()
NOWHERE = MoveResult(is_found=False)


class Frame(NamedTuple):
    """What is on the screen, and where that is."""

    lines: list[str]
    pieces: list[int]
    """For each line, the piece that it is of."""
    begin: float
    end: float
    """From where to where, of all there is: 0 to 1."""
    piece: int
    """The piece at the top; -1 if that is not known yet."""
    total: int
    is_end: bool
    new: int
    """How many pieces arrived below while the reader is further up."""
    title: str
    result: MoveResult = ARRIVED
    """What came of the move that led here."""
    tags_and_notes: str = ""
    """Its tags, and how many notes stand above it."""


class Glance(NamedTuple):
    """The title and the last entries of a session, without the rest."""

    title: str
    entries: list[AnyEntry]


def frame_of_glance(glance: Glance, style: LineStyle, height: int) -> Frame | None:
    """The end of a session before all of it is known; None where that would not fill the screen."""
    lines = list(lines_of(Rows(price=Costs()).paired(glance.entries), style))[-height:]
    if len(lines) < height:
        return None
    return Frame(
        lines=lines, pieces=[-1] * height, begin=0.0, end=1.0, piece=-1, total=1, is_end=True, new=0,
        title=glance.title,
    )  # fmt: skip

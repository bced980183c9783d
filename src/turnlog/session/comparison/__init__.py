"""Two sessions or branches side by side: what both begin with, then what each of them did, turn by turn."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from turnlog.log.entry import AnyEntry
from turnlog.log.usage import Usage
from turnlog.pricing import Cost

if TYPE_CHECKING:
    from turnlog.workspace.diff import Difference


class ChangedFile(Struct, frozen=True):
    """The net change of a path, and how many lines all turns together added and removed."""

    path: str
    action: str
    """created · modified · deleted · mode"""
    added: int
    removed: int


class ComparedTurn(Struct, frozen=True):
    """A turn of one side: from a prompt to the next one, without the common part. Includes what its subagents spent."""

    first: int
    """The `seq` of its first entry on this side."""
    prompt: str
    """The beginning of the prompt, which may be the last message that both sides have in common."""
    answer: str
    """The beginning of the agent's last message."""
    messages: int
    tool_calls: int
    usage: Usage
    cost: Cost
    duration: timedelta
    """From the prompt to the last entry."""
    files: list[ChangedFile] | None
    """None if no checkpoints were taken."""


class ComparedSide(Struct, frozen=True):
    """One of the two sides, after the common part."""

    session: str
    title: str
    agent: str | None
    head: int
    turns: list[ComparedTurn]
    files: list[ChangedFile] | None
    """The net changes of all turns; None if no checkpoints were taken."""

    @property
    def messages(self) -> int:
        """The number of messages."""
        return sum(turn.messages for turn in self.turns)

    @property
    def tool_calls(self) -> int:
        """The number of tool calls."""
        return sum(turn.tool_calls for turn in self.turns)

    @property
    def usage(self) -> Usage:
        """The tokens of all turns."""
        return sum((turn.usage for turn in self.turns), Usage())

    @property
    def cost(self) -> Cost:
        """What all turns cost."""
        return sum((turn.cost for turn in self.turns), Cost())

    @property
    def duration(self) -> timedelta:
        """The sum of the turns, without the time between them."""
        return sum((turn.duration for turn in self.turns), timedelta())


class CommonBeginning(Struct, frozen=True):
    """What both sides begin with: entries with the same id or the same content."""

    messages: int
    prompts: list[str]
    last_a: int
    """The `seq` of its last entry in A; 0 if nothing is in common."""
    last_b: int


class Comparison(Struct, frozen=True):
    """Two sessions, or branches, side by side."""

    common: CommonBeginning
    a: ComparedSide
    b: ComparedSide


class SubagentBill(Struct, frozen=True):
    """What a subagent and its own subagents spent."""

    usage: Usage = Usage()
    cost: Cost = Cost()


class Comparable(NamedTuple):
    """A session to be compared, of this home or of another agent."""

    name: str
    title: str
    agent: str | None
    head: int
    forward: Callable[[int], Iterable[AnyEntry]]
    """The entries after a `seq`, in the order of the log."""
    changes: Callable[[Collection[str]], dict[str, list[Difference]]] = lambda turns: {}
    bill_of: Callable[[str], SubagentBill] = lambda child: SubagentBill()
    """The bill of a subagent, by the id of its session."""

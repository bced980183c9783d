"""What the catalog returns besides sessions: hits, sums, and details of one session. A listing does not import this."""

from __future__ import annotations

from datetime import datetime

from turnlog.catalog.values import Card, TokenSums
from turnlog.log.startup import NamedTuple


class Hit(NamedTuple):
    """A place in a session that matches a query."""

    card: Card
    entry: str
    """The id of the entry; empty if the name or the title of the session matches."""
    seq: int
    """The number of the entry in a session of ours; else 0."""
    role: str
    tool: str
    at: datetime | None
    snippet: str
    marks: tuple[tuple[int, int], ...]
    """The positions of the words in the snippet."""
    resume: tuple[str, ...]
    """The command that continues from this place."""
    cursor: int
    """The next page has what is older than this."""


class Hits(list[Hit]):
    """A page of hits, the newest first."""

    next: int | None = None
    """The `before` of the next page; None if there is none."""
    is_cut: bool = False
    """Whether there was too much text to read: only what is newer than `next` was searched."""


class FoundSession(NamedTuple):
    """A session with matches."""

    card: Card
    hits: tuple[Hit, ...]
    """The newest matches."""
    more: int
    """The number of other matches in this session."""


class FoundPage(NamedTuple):
    """A page of sessions with matches."""

    sessions: list[FoundSession]
    places: int
    """The number of matches on all pages."""
    total: int
    """The number of sessions on all pages."""
    is_more: bool = False
    """Whether there are more matches than were counted, all of them older than `reached`."""
    reached: datetime | None = None
    is_cut: bool = False
    """Whether it was too much to look through."""
    next: int | None = None
    """The number of the next page."""
    missing: tuple[str, ...] = ()
    """Words that these matches lack, if no place has all words."""
    instead: tuple[tuple[str, str], ...] = ()
    """Words that occur nowhere, each with the word that was searched instead."""


class RecalledPlace(NamedTuple):
    """A place that may answer a question."""

    hit: Hit
    words: tuple[str, ...]
    """Of a near match: the words of the question that it has."""
    is_near: bool


class RecalledPage(NamedTuple):
    """Places that may answer a question, best first; one of each session if there are enough sessions."""

    places: list[RecalledPlace]
    left: int
    """The number of places after this page."""
    is_more: bool
    """Whether there are more than were counted."""
    is_cut: bool
    """Whether it was too much to look through."""


class Spending(NamedTuple):
    """What one group spent: a day, a model, a workspace …"""

    group: str
    tokens: TokenSums
    requests: int
    sessions: int
    unpriced: tuple[str, ...]
    names: tuple[str, ...] = ()
    """The parts of the group if there are several, such as month and model."""


class UsageBlock(NamedTuple):
    """What one agent spent in five hours, from the full hour of the first request."""

    agent: str
    start_ms: int
    end_ms: int
    first_ms: int
    """The time of the first request."""
    last_ms: int
    is_active: bool
    """Whether the block is current: it has not ended, and there was a request in the last five hours."""
    spending: Spending

    @property
    def minutes(self) -> float:
        """The minutes from the first request to the last."""
        return (self.last_ms - self.first_ms) / 60_000

    @property
    def tokens_per_minute(self) -> int | None:
        """All tokens per minute, cache reads included; None if the block has no duration."""
        return round(sum(self.spending.tokens[:5]) / self.minutes) if self.minutes else None

    @property
    def micros_per_hour(self) -> int | None:
        """Micro-dollars per hour; None if the block has no duration."""
        return round(self.spending.tokens.cost_micros * 60 / self.minutes) if self.minutes else None


class ToolUse(NamedTuple):
    """The calls of one tool."""

    tool: str
    calls: int
    errors: int
    took_ms: int
    """The duration that the tool reports, or else from the call to its result."""


class ContextPoint(NamedTuple):
    """A request to a model with the size of its context, or a compaction."""

    seq: int
    """The number of the entry."""
    at_ms: int
    model: str
    tokens: int
    is_compaction: bool = False


class TouchedPath(NamedTuple):
    """A file that tools were called with."""

    path: str
    times: int
    seq: int
    """The number of the last entry that names it."""

"""What the catalog answers with beside sessions: hits, sums, and what was done in one. A listing loads none of it."""

# Without `annotations` from the future, as in `values`.

from datetime import datetime
from typing import NamedTuple

from turnlog.catalog.values import Card, TokenSums


class Hit(NamedTuple):
    """A place in a session where the words were found."""

    card: Card
    entry: str
    """The id of the entry; empty where the session is called so, or has the words in its title."""
    seq: int
    """Its number, in a session of ours; else 0."""
    role: str
    tool: str
    at: datetime | None
    snippet: str
    marks: tuple[tuple[int, int], ...]
    """Where in the snippet the words are."""
    resume: tuple[str, ...]
    """The command that goes on from there."""
    cursor: int
    """For the next page: what is older than this."""


class Hits(list[Hit]):
    """A page of hits, the newest first."""

    next: int | None = None
    """For the page after this; None if that was all."""
    is_cut: bool = False
    """Whether it was too much to look through: only what is newer than `next` was looked at."""


class FoundSession(NamedTuple):
    """A session in which something was found."""

    card: Card
    hits: tuple[Hit, ...]
    """The newest of its places."""
    more: int
    """How many there are besides."""


class FoundPage(NamedTuple):
    """A page of sessions in which something was found."""

    sessions: list[FoundSession]
    places: int
    """How many there are in all of them, on whatever page."""
    total: int
    """How many sessions."""
    is_more: bool = False
    """Whether there are more than were counted, all of them older than `reached`."""
    reached: datetime | None = None
    is_cut: bool = False
    """Whether it was too much to look through."""
    next: int | None = None
    """The page after this."""
    missing: tuple[str, ...] = ()
    """Words that these places do not have: none has all of them."""
    instead: tuple[tuple[str, str], ...] = ()
    """Of words that are nowhere: which one was looked for instead."""


class RecalledPlace(NamedTuple):
    """A place that may be the answer to a question."""

    hit: Hit
    words: tuple[str, ...]
    """Where it only comes near: the words of the question that it has."""
    is_near: bool


class RecalledPage(NamedTuple):
    """Places that may be the answer to a question, the best first; of each session one, where there are enough."""

    places: list[RecalledPlace]
    left: int
    """How many come after these."""
    is_more: bool
    """Whether there are more than were counted."""
    is_cut: bool
    """Whether it was too much to look through."""


class Spending(NamedTuple):
    """What was spent in a day, by a model, in a workspace …"""

    group: str
    tokens: TokenSums
    requests: int
    sessions: int
    unpriced: tuple[str, ...]
    names: tuple[str, ...] = ()
    """The group by its parts, where it is summed up by several things at once: a month, a model."""


class UsageBlock(NamedTuple):
    """What one agent spent in five hours, counted from the full hour of the first request."""

    agent: str
    start_ms: int
    end_ms: int
    first_ms: int
    """The first request in it."""
    last_ms: int
    is_active: bool
    """Whether it goes on: there was a request in the last five hours, and the end is still to come."""
    spending: Spending

    @property
    def minutes(self) -> float:
        """From the first request to the last."""
        return (self.last_ms - self.first_ms) / 60_000

    @property
    def tokens_per_minute(self) -> int | None:
        """All tokens, what was read from a cache too; None of a single moment."""
        return round(sum(self.spending.tokens[:5]) / self.minutes) if self.minutes else None

    @property
    def micros_per_hour(self) -> int | None:
        """Micro-dollars; None of a single moment."""
        return round(self.spending.tokens.cost_micros * 60 / self.minutes) if self.minutes else None


class ToolUse(NamedTuple):
    """What one tool did."""

    tool: str
    calls: int
    errors: int
    took_ms: int
    """As the tool says, or else from the call to its result."""


class ContextPoint(NamedTuple):
    """A request to a model, and how much it was given to read; or a compaction."""

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

"""What the catalog answers with. Plain tuples: whoever only asks loads nothing else."""

# Without `annotations` from the future: a NamedTuple would compile each of them again when it is imported.

from datetime import datetime
from typing import NamedTuple


class TokenSums(NamedTuple):
    """Usage, in the fields of `Usage`, and what it cost."""

    input_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cache_write_1h_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cost_micros: int = 0
    """What has a known price; the rest is in `unpriced` beside it."""


COUNTS = TokenSums._fields[:-1]
"""The fields of `Usage` that count tokens; here, for whoever only asks does without msgspec."""
PRICES = "prices are"
"""Under this name it is noted which prices were used."""


def rounded(pico: int) -> int:
    """Millionths of micro-dollars as micro-dollars, halves to the even one."""
    whole, rest = divmod(pico, 1_000_000)
    return whole + (rest * 2 > 1_000_000 or (rest * 2 == 1_000_000 and whole % 2 == 1))


class Card(NamedTuple):
    """A session, ours or another agent's."""

    name: str
    """What to type for it: the handle of ours, `agent:id` of another agent's."""
    id: str
    """Ours, or that agent's own."""
    is_ours: bool
    agent: str | None
    path: str
    """The file it lies in; "" where it is in a database of ours."""
    key: str
    """Which session, where a file has several."""
    workspace: str | None
    title: str | None
    preview: str
    """The first thing that a person said."""
    model: str | None
    created_at: datetime | None
    updated_at: datetime | None
    messages: int
    turns: int
    tool_calls: int
    branches: int
    fork: str | None
    """The id of the session it was forked from."""
    parent: str | None
    """The id of the session that started it as a subagent."""
    copy_of: str | None
    """The session that it was written from, the agent and id that it was imported from, or what it was imported as."""
    hidden: bool
    archived: bool
    deleted: bool
    tags: tuple[str, ...]
    own: TokenSums
    inherited: TokenSums
    subagents: TokenSums
    unpriced: tuple[str, ...]
    """Models without a known price that it used."""
    state: str
    """running, waiting, idle, stopped or crashed."""
    damage: int
    """How many places in it cannot be read."""
    problem: str
    """Why it could not be read at all; else empty."""
    size_bytes: int
    is_conversation: bool
    """Whether anything was said; not where only `turnlog run` or `turnlog checkpoint` was at work."""
    git_branches: tuple[str, ...] = ()
    """The branches of git that it worked on, as far as it says so."""
    is_indexed: bool = True
    """Whether it was read; else a glance was taken, and counts, cost and state are not known."""


class ListingRow(NamedTuple):
    """A session in a listing of thousands: what a line of it shows, and nothing else."""

    name: str
    is_ours: bool
    agent: str
    workspace: str
    title: str
    """Its title, or else its preview; and in brackets what is special about it."""
    updated_ms: int | None
    turns: int
    cost_micros: int
    """Its own and its subagents'."""
    is_partial: bool
    """Whether it used models without a known price."""
    state: str


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


class Standing(NamedTuple):
    """How much of all there is was read: as long as something is pending, sums and searches are of a part."""

    indexed: int
    pending: int
    since: datetime | None
    """When the first of them was begun."""
    unseen: int = 0
    """Of those that are pending, how many no answer has yet."""

    @property
    def sessions(self) -> int:
        """All there are, without subagents and hidden ones."""
        return self.indexed + self.pending


class Synced(NamedTuple):
    """What a look at the disk led to."""

    sessions: int
    """How many there are now."""
    read: int
    """How many sessions were read, all or in part."""
    read_bytes: int
    gone: int
    is_rebuilt: bool
    """Whether the catalog itself was made anew: it was missing, damaged, or of another version."""

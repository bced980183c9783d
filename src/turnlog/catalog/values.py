"""What a listing is made of. Plain tuples: whoever only asks loads nothing else."""

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
    """The other copy of this conversation: its original, the session it was imported from, or our import of it."""
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

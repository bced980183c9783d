"""What a listing is made of. Plain tuples: a query loads nothing else."""

from __future__ import annotations

from datetime import datetime

from turnlog.log.startup import NamedTuple


class TokenSums(NamedTuple):
    """Usage, in the fields of `Usage`, and what it cost."""

    input_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cache_write_1h_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cost_micros: int = 0
    """The cost of what has a known price; `unpriced` beside it says what has none."""

    @property
    def all_input_tokens(self) -> int:
        """All tokens that the models read, as `Usage` counts them."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens + self.cache_write_1h_tokens


COUNTS = TokenSums._fields[:-1]
"""The fields of `Usage` that count tokens; defined here, so that queries need not load msgspec."""


def rounded(pico: int) -> int:
    """Millionths of micro-dollars as micro-dollars, halves to the even one."""
    whole, rest = divmod(pico, 1_000_000)
    return whole + (rest * 2 > 1_000_000 or (rest * 2 == 1_000_000 and whole % 2 == 1))


class Card(NamedTuple):
    """A session as the catalog shows it, ours or another agent's."""

    name: str
    """The name to type: the handle of ours, `agent:id` of another agent's."""
    id: str
    """Our id, or that agent's own."""
    is_ours: bool
    agent: str | None
    path: str
    """The file of the session; "" if it is in a database of ours."""
    key: str
    """The key of the session, if a file has several."""
    workspace: str | None
    title: str | None
    preview: str
    """The first message of a person."""
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
    """The models without a known price that it used."""
    state: str
    """running, waiting, idle, stopped or crashed."""
    damage: int
    """How many places in it cannot be read."""
    problem: str
    """Why the session cannot be read at all, or that its file was cut; else empty."""
    size_bytes: int
    is_conversation: bool
    """Whether the session has messages; false if it has only `turnlog run` or `turnlog checkpoint`."""
    git_branches: tuple[str, ...] = ()
    """The git branches that the session reports."""
    is_indexed: bool = True
    """Whether the session was read. If not, it had only a glance, and counts, cost and state are unknown."""

    @property
    def heading(self) -> str:
        """The title of the session, or else its first prompt."""
        return self.title or self.preview or "(no title)"

    @property
    def updated_ms(self) -> int | None:
        """When the session was last written to, in milliseconds since 1970."""
        return None if self.updated_at is None else round(self.updated_at.timestamp() * 1000)

    @property
    def cost_micros(self) -> int:
        """The cost of the session and its subagents."""
        return self.own.cost_micros + self.subagents.cost_micros


class ListingRow(NamedTuple):
    """A session in a listing of thousands, with only what one line shows."""

    name: str
    is_ours: bool
    agent: str
    workspace: str
    title: str
    """The title, or else the preview; and in parentheses what is special about the session."""
    updated_ms: int | None
    turns: int
    cost_micros: int
    """The cost of the session and its subagents."""
    is_partial: bool
    """Whether the session used models without a known price."""
    state: str


class Standing(NamedTuple):
    """How much was indexed: as long as sessions are pending, sums and searches cover only a part."""

    indexed: int
    pending: int
    since: datetime | None
    """When the first of these sessions began."""
    unseen: int = 0
    """How many pending sessions are in no answer yet."""

    @property
    def sessions(self) -> int:
        """The number of all sessions, without subagents and hidden ones."""
        return self.indexed + self.pending


class Synced(NamedTuple):
    """The result of a refresh."""

    sessions: int
    """The number of sessions now."""
    read: int
    """The number of sessions that were read, whole or in part."""
    read_bytes: int
    gone: int
    is_rebuilt: bool
    """Whether the catalog was rebuilt: it was missing, damaged, or of another version."""

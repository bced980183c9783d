"""The usage of requests to a model in tokens, in fields that never overlap."""

# Without `from __future__ import annotations`, as in `log/entry.py`.

from msgspec import Struct
from msgspec.structs import astuple


class Usage(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True, gc=False):
    """Tokens of one request, or the sum of several. Every input token is in exactly one of the input fields."""

    input_tokens: int = 0
    """Input tokens that were neither read from a cache nor written to one."""
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cache_write_1h_tokens: int = 0
    output_tokens: int = 0
    """All output; `reasoning_tokens` says how much of it was reasoning."""
    reasoning_tokens: int = 0
    cost_micros: int | None = None
    """Micro-dollars as the provider reported them; None where it did not."""

    @property
    def all_input_tokens(self) -> int:
        """The size of the prompt: cached or not."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens + self.cache_write_1h_tokens

    def __add__(self, other: "Usage") -> "Usage":
        mine, theirs = self.cost_micros, other.cost_micros
        return Usage(
            self.input_tokens + other.input_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            self.cache_write_1h_tokens + other.cache_write_1h_tokens,
            self.output_tokens + other.output_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            mine if theirs is None else theirs if mine is None else mine + theirs,
        )

    def beyond(self, other: "Usage") -> "Usage":
        """Return the difference to another usage, field by field, never below zero. The cost is not set."""
        return Usage(
            *(max(0, mine - theirs) for mine, theirs in zip(astuple(self)[:6], astuple(other)[:6], strict=True))
        )


class UsageReport(Struct, frozen=True):
    """The usage of a session by origin. Only `own` may be summed over sessions."""

    own: Usage
    inherited: Usage
    """Spent before the fork, by the session this one was forked from."""
    subagents: Usage
    models: dict[str, Usage]
    """`own`, by model; usage that names no model is under ""."""
    peak_input_tokens: int
    """The largest prompt of a single request, for prices that have tiers."""

    @property
    def total(self) -> Usage:
        """The usage of everything that this session builds on."""
        return self.own + self.inherited + self.subagents

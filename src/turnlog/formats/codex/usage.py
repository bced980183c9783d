"""The running totals of a rollout as the spending of each response."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from turnlog.interop.records import Tokens
from turnlog.interop.value import fields, token_count
from turnlog.log.usage import Usage


class TokenCounts(Struct, frozen=True, gc=False):
    """Tokens, counted from the beginning of the session."""

    input_tokens: Tokens = 0
    cached_input_tokens: Tokens = 0
    cache_write_input_tokens: Tokens = 0
    output_tokens: Tokens = 0
    reasoning_output_tokens: Tokens = 0

    def since(self, other: TokenCounts) -> TokenCounts | None:
        """What was counted since another count; None if this one began anew."""
        fresh, cached = self.input_tokens - other.input_tokens, self.cached_input_tokens - other.cached_input_tokens
        written = self.cache_write_input_tokens - other.cache_write_input_tokens
        output = self.output_tokens - other.output_tokens
        reasoned = self.reasoning_output_tokens - other.reasoning_output_tokens
        if fresh < 0 or cached < 0 or written < 0 or output < 0 or reasoned < 0:
            return None
        return TokenCounts(fresh, cached, written, output, reasoned)

    def usage(self) -> Usage | None:
        """Codex counts cached input as input, and reasoning as output. None if nothing was spent."""
        if not self.input_tokens and not self.output_tokens:
            return None
        cached, written = self.cached_input_tokens, self.cache_write_input_tokens
        fresh = max(0, self.input_tokens - cached - written)
        return Usage(fresh, cached, written, 0, self.output_tokens, self.reasoning_output_tokens)


class CodexInfo(Struct, gc=False):
    """What a count of tokens tells."""

    total_token_usage: TokenCounts
    last_token_usage: TokenCounts | None = None


class Meter:
    """What each count of tokens tells that was spent since the one before."""

    def __init__(self, now: TokenCounts) -> None:
        self.now = now

    def spent(self, info: Any) -> Usage | None:
        """What was spent since the last count; None if that is nothing new."""
        if type(info) is not CodexInfo:
            raw = fields(info)
            total, last = fields(raw.get("total_token_usage")), fields(raw.get("last_token_usage"))
            if not total:
                last = last or {"input_tokens": raw.get("prompt"), "output_tokens": raw.get("completion")}
                return counts_in(last).usage()
            info = CodexInfo(counts_in(total), counts_in(last))
        before, self.now = self.now, info.total_token_usage
        return (self.now.since(before) or info.last_token_usage or TokenCounts()).usage()


def counts_in(raw: dict[str, Any]) -> TokenCounts:
    """The tokens that an object tells."""
    return TokenCounts(*(token_count(raw.get(name)) for name in TokenCounts.__struct_fields__))

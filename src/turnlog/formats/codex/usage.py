"""The running totals of a rollout as the spending of each response."""

from __future__ import annotations

from operator import lt
from typing import Any

from msgspec import Struct
from msgspec.structs import astuple

from turnlog.interop.records import Tokens
from turnlog.interop.value import fields, token_count
from turnlog.log.usage import Usage


class TokenCounts(Struct, frozen=True, gc=False):
    """Tokens since the beginning of the session: cached ones are part of the input, reasoning is part of the output."""

    input_tokens: Tokens = 0
    cached_input_tokens: Tokens = 0
    cache_write_input_tokens: Tokens = 0
    output_tokens: Tokens = 0
    reasoning_output_tokens: Tokens = 0

    def usage(self) -> Usage | None:
        """All that was counted, as it is spent; None if that is nothing."""
        return self.usage_since(_ZERO)

    def usage_since(self, before: TokenCounts) -> Usage | None:
        """What was spent since an earlier count. None if that is nothing, or if this one began anew."""
        sent, output = self.input_tokens - before.input_tokens, self.output_tokens - before.output_tokens
        cached = self.cached_input_tokens - before.cached_input_tokens
        written = self.cache_write_input_tokens - before.cache_write_input_tokens
        reasoned = self.reasoning_output_tokens - before.reasoning_output_tokens
        if sent < 0 or output < 0 or cached < 0 or written < 0 or reasoned < 0 or not (sent or output):
            return None
        fresh = sent - cached - written
        return Usage(fresh if fresh > 0 else 0, cached, written, 0, output, reasoned)


_ZERO = TokenCounts()


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
        before = self.now
        now = self.now = info.total_token_usage
        spent = now.usage_since(before)
        if spent is None and info.last_token_usage is not None and any(map(lt, astuple(now), astuple(before))):
            return info.last_token_usage.usage()
        return spent


def counts_in(raw: dict[str, Any]) -> TokenCounts:
    """The tokens that an object tells."""
    return TokenCounts(*(token_count(raw.get(name)) for name in TokenCounts.__struct_fields__))

"""A transcript as a copy: with a header field that says what it is a copy of, and without spending.

Tools that add up the sessions of an agent would count the spending of the original again. It counts where it was
spent; in the copy only what its agent adds counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from datetime import datetime
from typing import cast

from msgspec.structs import replace

from turnlog.errors import Unsupported
from turnlog.exchange.origin import decode_origin
from turnlog.formats._shared.transcript import Transcript
from turnlog.interop.copied import Copied, CopiedSpending, CopyOf
from turnlog.log.draft import to_ms
from turnlog.log.entry import AnyEntry, Compaction, Message, Spent, Start
from turnlog.log.usage import Usage, UsageReport
from turnlog.pricing import cost_of

_SPANS_MS = (900_000, 3_600_000, 86_400_000, 1 << 50)
"""The spans that spending is added up in: the first one that gives few enough sums."""
_MAX_SUMS = 60
"""The maximum number of sums in the header field: headers have to be short."""


def without_spending(transcript: Transcript, *, is_own: bool = False) -> Transcript:
    """Return a transcript without spending; with `is_own`, only without that of entries made here."""
    entries = transcript.entries

    def without_own_usage(entry: AnyEntry) -> AnyEntry:
        return entry if is_own and entry.origin is not None else _without_usage(entry)

    def remains(entry: AnyEntry) -> bool:
        return not isinstance(entry, Spent) or (is_own and entry.origin is not None)

    context = copy(transcript.context)
    context.messages = [cast("Message", without_own_usage(message)) for message in context.messages]
    copied = replace(
        transcript,
        path=[without_own_usage(entry) for entry in transcript.path],
        entries=lambda: (without_own_usage(entry) for entry in entries() if remains(entry)),
        context=context,
        is_free=not is_own,
    )
    spent = sum((entry.usage or Usage() for entry in spendings(copied)), Usage())
    return replace(copied, usage=UsageReport(spent, Usage(), Usage(), {}, 0))


def spendings(transcript: Transcript) -> list[Message | Compaction | Spent]:
    """The entries of a transcript with usage. Of a request that became several entries, only the first."""
    paid: list[Message | Compaction | Spent] = []
    requests: set[str] = set()
    for entry in transcript.entries():
        if not isinstance(entry, (Message, Compaction, Spent)) or entry.usage in (None, Usage()):
            continue
        if entry.request is not None and entry.request in requests:
            continue
        paid.append(entry)
        requests |= {entry.request} if entry.request is not None else set()
    return paid


def _without_usage(entry: AnyEntry) -> AnyEntry:
    if isinstance(entry, (Message, Compaction)) and (entry.usage is not None or entry.request is not None):
        return replace(entry, usage=None, request=None)
    return entry


def copied_from(transcript: Transcript) -> Copied:
    """What the header of a copy says about the original. The number of messages is known only after writing."""
    starts = [transcript.start, *transcript.before]
    of = [_copy_of(start) for start in starts]
    spent = list(_spending_sums(transcript, [start.fork.seq for start in starts if start.fork is not None]))
    earlier = decode_origin(transcript.start).copied
    if earlier is not None:  # the original is a copy itself
        spent += [replace(spending, of=spending.of + len(of)) for spending in earlier.spent]
        of += earlier.of
    return Copied(of=of, until=_ms(transcript.updated), spent=spent)


def _copy_of(start: Start) -> CopyOf:
    origin = decode_origin(start)
    identity = origin.identity or origin.id
    return CopyOf(start.session_id, origin.agent, identity) if origin.agent and identity else CopyOf(start.session_id)


def _spending_sums(transcript: Transcript, forks: list[int]) -> Iterator[CopiedSpending]:
    """What was spent in each session, by model and time: in the shortest spans that give few enough sums."""
    paid = spendings(transcript)
    groups: dict[tuple[int, int, str], list[Message | Compaction | Spent]] = {}
    for span in _SPANS_MS:
        groups = {}
        for entry in paid:
            at = _ms(entry.clock or entry.at or transcript.created)
            of = sum(entry.seq <= seq for seq in forks)
            groups.setdefault((of, at // span, entry.model or ""), []).append(entry)
        if len(groups) <= _MAX_SUMS:
            break
    for (of, _, model), entries in groups.items():
        at = min(_ms(entry.clock or entry.at or transcript.created) for entry in entries)
        total, micros = _total(entries)
        yield CopiedSpending(
            of, at, model, total.input_tokens, total.cache_read_tokens, total.cache_write_tokens,
            total.cache_write_1h_tokens, total.output_tokens, total.reasoning_tokens, micros,
        )  # fmt: skip


def _total(entries: list[Message | Compaction | Spent]) -> tuple[Usage, int | None]:
    """The tokens and the cost of entries. Each is priced alone: the price of a request may depend on its size."""
    total = sum((entry.usage or Usage() for entry in entries), Usage())
    try:
        cost = cost_of(entries)
    except Unsupported:  # there are no prices here
        return total, total.cost_micros
    return total, cost.micros if cost.is_complete else total.cost_micros


def _ms(at: datetime) -> int:
    return max(0, to_ms(at))

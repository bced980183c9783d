"""A session as a copy of it is written: knowing what it was written from, and as if it had cost nothing.

Whoever adds up what agents keep would count everything again that was carried over. It is counted where it was spent,
and only what the agent adds counts there.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from datetime import datetime
from typing import Any, cast

from msgspec.structs import replace

from turnlog.errors import Unsupported
from turnlog.formats import Copied, CopiedSpending, CopyOf, Transcript, copied_in
from turnlog.log.draft import to_ms
from turnlog.log.entry import AnyEntry, Compaction, Message, Spent, Start
from turnlog.log.usage import Usage, UsageReport
from turnlog.pricing import cost_of

_SPANS_MS = (900_000, 3_600_000, 86_400_000, 1 << 50)
_MOST = 60
"""So many sums are written down at most: the header of a session is read by many, and has to be short."""


def without_spending(transcript: Transcript, *, is_own: bool = False) -> Transcript:
    """The same, as if it had cost nothing; with `is_own`, as if what was said here had."""
    entries = transcript.entries

    def free(entry: AnyEntry) -> AnyEntry:
        return entry if is_own and entry.origin is not None else _free(entry)

    def is_kept(entry: AnyEntry) -> bool:
        return not isinstance(entry, Spent) or (is_own and entry.origin is not None)

    context = copy(transcript.context)
    context.messages = [cast("Message", free(message)) for message in context.messages]
    copied = replace(
        transcript,
        path=[free(entry) for entry in transcript.path],
        entries=lambda: (free(entry) for entry in entries() if is_kept(entry)),
        context=context,
        is_free=not is_own,
    )
    spent = sum((entry.usage or Usage() for entry in spendings(copied)), Usage())
    return replace(copied, usage=UsageReport(spent, Usage(), Usage(), {}, 0))


def spendings(transcript: Transcript) -> list[Message | Compaction | Spent]:
    """The entries that say what was spent."""
    paid = (entry for entry in transcript.entries() if isinstance(entry, (Message, Compaction, Spent)))
    return [entry for entry in paid if entry.usage is not None and entry.usage != Usage()]


def _free(entry: AnyEntry) -> AnyEntry:
    if isinstance(entry, (Message, Compaction)) and (entry.usage is not None or entry.request is not None):
        return replace(entry, usage=None, request=None)
    return entry


def copied_by(start: Start) -> Copied | None:
    """What an imported session is a copy of."""
    return copied_in(cast("dict[str, Any]", start.origin), "copied") if isinstance(start.origin, dict) else None


def copied_from(transcript: Transcript) -> Copied:
    """The `Copied` mark for an export; `messages` is filled in after the render."""
    starts = [transcript.start, *transcript.before]
    of = [_named(start) for start in starts]
    spent = list(_spending(transcript, [start.fork.seq for start in starts if start.fork is not None]))
    before = copied_by(transcript.start)
    if before is not None:  # and that was one itself
        spent += [replace(one, of=one.of + len(of)) for one in before.spent]
        of += before.of
    return Copied(of=of, until=_ms(transcript.updated), spent=spent)


def _named(start: Start) -> CopyOf:
    origin = cast("dict[str, Any]", start.origin) if isinstance(start.origin, dict) else {}
    agent, identity = origin.get("agent"), origin.get("identity") or origin.get("id")
    if isinstance(agent, str) and isinstance(identity, str):
        return CopyOf(start.session_id, agent, identity)
    return CopyOf(start.session_id)


def _spending(transcript: Transcript, forks: list[int]) -> Iterator[CopiedSpending]:
    """What was spent in each session, by each model and time, in as few sums as tell the days apart."""
    paid = spendings(transcript)
    groups: dict[tuple[int, int, str], list[Message | Compaction | Spent]] = {}
    for span in _SPANS_MS:
        groups = {}
        for entry in paid:
            at = _ms(entry.clock or entry.at or transcript.created)
            of = sum(entry.seq <= seq for seq in forks)
            groups.setdefault((of, at // span, entry.model or ""), []).append(entry)
        if len(groups) <= _MOST:
            break
    for (of, _, model), entries in groups.items():
        at = min(_ms(entry.clock or entry.at or transcript.created) for entry in entries)
        total, micros = _total(entries)
        yield CopiedSpending(
            of, at, model, total.input_tokens, total.cache_read_tokens, total.cache_write_tokens,
            total.cache_write_1h_tokens, total.output_tokens, total.reasoning_tokens, micros,
        )  # fmt: skip


def _total(entries: list[Message | Compaction | Spent]) -> tuple[Usage, int | None]:
    """Their tokens, and what they cost, each for itself: the price of a request may depend on its size."""
    total = Usage()
    seen: set[str] = set()
    for entry in entries:
        if entry.usage is not None and (entry.request is None or entry.request not in seen):
            total += entry.usage
            seen |= {entry.request} if entry.request is not None else set()
    try:
        cost = cost_of(entries)
    except Unsupported:  # there are no prices here
        return total, total.cost_micros
    return total, cost.micros if cost.is_complete else total.cost_micros


def _ms(at: datetime) -> int:
    return max(0, to_ms(at))

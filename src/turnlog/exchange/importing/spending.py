"""The usage of a source beyond what is booked here."""

from __future__ import annotations

from msgspec.structs import replace

from turnlog.log.usage import Usage

_COUNTS = Usage.__struct_fields__[:-1]
"""The fields of a usage without its cost."""


def usage_beyond(usage: Usage, booked: Usage) -> Usage:
    """The tokens of a usage that are not booked yet, without a cost; never less than none."""
    return Usage(**{name: max(0, getattr(usage, name) - getattr(booked, name)) for name in _COUNTS})


def total_beyond(total: Usage, booked: Usage) -> Usage:
    """The tokens and the cost of a running total that are not booked yet; never less than none."""
    cost = 0 if total.cost_micros is None else max(0, total.cost_micros - (booked.cost_micros or 0))
    return replace(usage_beyond(total, booked), cost_micros=cost or None)


def is_smaller(total: Usage, booked: Usage) -> bool:
    """Whether a running total is smaller than what is booked of it."""
    more = [getattr(total, name) - getattr(booked, name) for name in _COUNTS]
    cost = 0 if total.cost_micros is None else total.cost_micros - (booked.cost_micros or 0)
    return min(*more, cost) < 0

"""How many sessions are indexed, and how many are pending."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnlog.catalog.index.columns import time_of
from turnlog.catalog.index.conditions import Condition
from turnlog.catalog.index.ending import UNREAD
from turnlog.catalog.values import Standing

if TYPE_CHECKING:
    from turnlog.catalog.glance.index import GlanceIndex
    from turnlog.catalog.index.index import Index

_READ = Condition("<>", "sessions.ending", UNREAD)
_LISTED = (
    Condition("not", "sessions.is_deleted").and_(Condition("not", "sessions.is_hidden"))
    .and_(Condition("unknown", "sessions.parent")).and_(Condition("not", "sessions.is_copied"))
)  # fmt: skip


def standing(indexes: list[Index], glanced: GlanceIndex | None) -> Standing:
    """Count the sessions in the indexes, and those that the glance did not examine."""
    begun = [index.first(_LISTED) for index in indexes]
    if glanced is None:
        indexed = sum(index.count(_LISTED) for index in indexes)
        return Standing(indexed, 0, time_of(min(filter(None, begun), default=None)))
    indexed = sum(index.count(_LISTED.and_(_READ)) for index in indexes)
    pending = sum(index.count(_LISTED.but_not(_READ)) for index in indexes) + glanced.unseen
    begun.append(glanced.first)
    return Standing(indexed, pending, time_of(min(filter(None, begun), default=None)), glanced.unseen)

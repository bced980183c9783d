"""How many sessions are indexed, and how many are pending."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnlog.catalog.index.columns import time_of
from turnlog.catalog.index.conditions import Condition
from turnlog.catalog.values import Standing

if TYPE_CHECKING:
    from turnlog.catalog.glance.index import GlanceIndex
    from turnlog.catalog.index.index import Index

_LISTED = (
    Condition("not", "sessions.is_deleted").and_(Condition("not", "sessions.is_hidden"))
    .and_(Condition("unknown", "sessions.parent")).and_(Condition("not", "sessions.is_copied"))
)  # fmt: skip


def standing(indexes: list[Index], glanced: GlanceIndex | None) -> Standing:
    """Count the sessions in the indexes, and those that the glance did not examine."""
    parts = [index.progress(_LISTED) for index in indexes]
    listed, indexed = sum(count for count, _, _ in parts), sum(read for _, read, _ in parts)
    begun, unseen = [first for _, _, first in parts], 0
    if glanced is not None:
        begun.append(glanced.first)
        unseen = glanced.unseen
    return Standing(indexed, listed - indexed + unseen, time_of(min(filter(None, begun), default=None)), unseen)

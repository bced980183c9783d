"""What the model sees in a session of rho, and what happened when that was replaced: a compaction, or a new prompt."""

from __future__ import annotations

from datetime import datetime

import msgspec
from msgspec import Struct

from turnlog.formats import Record
from turnlog.formats.seeds.rho.message import Json, hear
from turnlog.log.block import Text
from turnlog.log.digest import sha256
from turnlog.log.entry import Compaction, Edit


class HistoryItem(Struct, frozen=True):
    """One message of a history, by its digest, and the key of its entry, if it is one."""

    digest: bytes
    key: str | None = None


class RhoHistory(Struct):
    """The history at one point of the session: all of it, or what was added to the one before."""

    before: RhoHistory | None = None
    items: list[HistoryItem] = []
    systems: list[HistoryItem] = []
    """The system messages the session began with, as they read now; a compaction leaves them in place."""
    is_start: bool = True
    """Whether nothing but system messages was said so far."""

    def history(self) -> list[HistoryItem]:
        """All of it, oldest first."""
        parts: list[list[HistoryItem]] = []
        place: RhoHistory | None = self
        while place is not None:
            parts.append(place.items)
            place = place.before
        return [item for part in reversed(parts) for item in part]


def digest(raw: Json) -> bytes:
    """What tells one message from another."""
    return sha256(msgspec.json.encode(raw)).digest()[:16]


def extension(before: RhoHistory, messages: list[Json], keys: list[str]) -> RhoHistory:
    """The history with more at its end."""
    items = [HistoryItem(digest(raw), key) for raw, key in zip(messages, keys, strict=True)]
    systems, is_start = before.systems, before.is_start
    if is_start:
        lead = len(_lead(messages))
        systems = [*systems, *items[:lead]]
        is_start = lead == len(messages)
    return RhoHistory(before, items, systems, is_start)


def rewritten(
    before: RhoHistory, messages: list[Json], count: int, key: str, at: datetime | None
) -> tuple[RhoHistory, list[Record]]:
    """Another history in place of the one before, whose last `count` messages are new: the entries that say so."""
    old, systems = before.history(), before.systems
    rest, new = messages[: len(messages) - count], messages[len(messages) - count :]
    marks = [digest(item) for item in rest]
    kept = _kept(old, marks, len(old) - len(systems))
    lead = _lead(rest[: len(rest) - kept])
    drafts: list[Record] = []
    origin: Json = {}
    dropped = 0
    if systems and len(lead) == len(systems):
        for item, words, mark in zip(systems, lead, marks, strict=False):
            if item.digest != mark:
                edit = Edit(entry=0, blocks=[Text(text=words["System"])], at=at)
                drafts.append(Record(entry=edit, names={"entry": item.key or ""}))
        systems = [HistoryItem(mark, item.key) for item, mark in zip(systems, marks, strict=False)]
        dropped = len(lead)
    elif systems and not lead:
        origin["bare"] = True
    replacement = rest[dropped : len(rest) - kept]
    tail = old[len(old) - kept :]
    if replacement or origin or kept != len(old) - len(systems) or not drafts:
        compaction = Compaction(replacement=[hear(item) for item in replacement], trigger="rho", at=at, origin=origin)
        drafts.append(Record(entry=compaction, names={"keep": tail[0].key or ""} if tail else {}))
    first = len(drafts)
    drafts += [Record(entry=hear(item, at)) for item in new]
    fresh = [
        HistoryItem(digest(item), key if first + i == len(drafts) - 1 else f"{key}/{first + i}")
        for i, item in enumerate(new)
    ]
    middle = [HistoryItem(mark) for mark in marks[dropped : len(rest) - kept]]
    return RhoHistory(None, [*(systems if dropped else []), *middle, *tail, *fresh], systems, False), drafts


def _kept(old: list[HistoryItem], marks: list[bytes], limit: int) -> int:
    """How many messages at the end of the old history end the new one, too, and are entries."""
    count = 0
    while count < min(limit, len(marks)) and old[-1 - count].key and old[-1 - count].digest == marks[-1 - count]:
        count += 1
    return count


def _lead(messages: list[Json]) -> list[Json]:
    lead: list[Json] = []
    for item in messages:
        if len(item) != 1 or not isinstance(item.get("System"), str):
            break
        lead.append(item)
    return lead

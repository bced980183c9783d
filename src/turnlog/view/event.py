"""Entries that nobody said as events: compactions, edits, rewinds, failed turns, titles, notes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import json

from turnlog.log.context import text_of
from turnlog.log.entry import (
    Answer,
    AnyEntry,
    Child,
    Compaction,
    Edit,
    Entry,
    Head,
    Message,
    Note,
    Set,
    Spent,
    Turn,
    Uncompact,
    Unknown,
)  # fmt: skip
from turnlog.log.prompt import typed
from turnlog.view.number import used
from turnlog.view.row import ABORTED, EDITED, FAILED, SPENT, SUBAGENT, Event


def event_of(entry: AnyEntry) -> Event | None:
    """The event of an entry; None if readers need not see it."""
    return _EVENTS.get(type(entry), _other)(entry)


def fields_text(entry: AnyEntry) -> str:
    """What an entry says in the fields of its own kind: `name: value`, one after the other."""
    own = (name for name in entry.__struct_fields__ if name not in Entry.__struct_fields__)
    values = ((name, getattr(entry, name)) for name in own)
    return ", ".join(
        f"{name}: {value if isinstance(value, str) else json.encode(value).decode()}"
        for name, value in values
        if value not in (None, "", [], {})
    )


def _compaction(entry: Compaction) -> Event:
    summaries = [text_of(item.blocks) for item in entry.replacement if isinstance(item, Message)]
    sizes = [f"{number:,}" for number in (entry.tokens_before, entry.tokens_after) if number is not None]
    facts = [
        "the model sees a summary of what came before",
        f"and everything from entry {entry.keep}" if entry.keep else "",
        f"({' → '.join(sizes)} tokens)" if sizes else "",
        f"[{entry.trigger}]" if entry.trigger else "",
    ]
    return Event(entry.seq, "compacted", " ".join(filter(None, facts)), entry.at, "\n\n".join(filter(None, summaries)))


def _edit(entry: Edit) -> Event:
    if entry.blocks is None:
        return Event(entry.seq, EDITED, f"entry {entry.entry} is left out for the model", entry.at)
    return Event(
        entry.seq, EDITED, f"entry {entry.entry} reads otherwise for the model", entry.at, text_of(entry.blocks)
    )


def _head(entry: Head) -> Event:
    files = ", ".join(f"{number:,} {what}" for what, number in entry.files.items() if number)
    where = f"to entry {entry.to}" if entry.to else "to the beginning"
    left = f"; what was left is branch {entry.left}" if entry.left else ""
    return Event(entry.seq, entry.why, f"{where}{left}{f'; files: {files}' if files else ''}", entry.at)


def _turn(entry: Turn) -> Event | None:
    if entry.state not in ("aborted", "failed"):
        return None
    return Event(entry.seq, ABORTED if entry.state == "aborted" else FAILED, entry.error or "", entry.at)


def _set(entry: Set) -> Event | None:
    if entry.key != "title" or entry.unset:
        return None
    return Event(entry.seq, "title", str(entry.value), entry.at)


def _child(entry: Child) -> Event:
    return Event(entry.seq, SUBAGENT, " ".join(filter(None, (entry.agent, entry.session))), entry.at, "", entry.session)


def _spent(entry: Spent) -> Event | None:
    return Event(entry.seq, SPENT, f"{used(entry.usage)} for {entry.why}", entry.at) if entry.why else None


def _answer(entry: Answer) -> Event:
    by = f"by {entry.by}" if entry.by else ""
    text = " ".join(filter(None, (by, f"(to entry {entry.ask})", entry.text)))
    return Event(entry.seq, "allowed" if entry.allow else "denied", text, entry.at)


def _note(entry: Note) -> Event | None:
    from turnlog.formats import unknown_type  # few sessions have notes

    return None if unknown_type(entry) else Event(entry.seq, "note", typed(entry.text), entry.at)


def _other(entry: AnyEntry) -> Event | None:
    """Any other mark, by what it says."""
    return Event(entry.seq, entry.type, fields_text(entry), entry.at) if entry.is_shown else None


_EVENTS: dict[type, Callable[[Any], Event | None]] = {
    Compaction: _compaction,
    Uncompact: lambda entry: Event(
        entry.seq, "uncompacted", f"compaction {entry.compaction} no longer applies", entry.at
    ),
    Edit: _edit,
    Head: _head,
    Turn: _turn,
    Set: _set,
    Child: _child,
    Spent: _spent,
    Answer: _answer,
    Note: _note,
    Unknown: lambda entry: Event(entry.seq, entry.kind, "an entry of a newer version", entry.at, entry.json),
}

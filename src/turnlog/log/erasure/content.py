"""Entries whose content was erased: what is left of each kind, and what stands in its place. Pure.

What is left never takes more room than what was there: a line keeps its length.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from turnlog.errors import Invalid
from turnlog.log.block import AnyBlock, Text, ToolCall, ToolResult
from turnlog.log.entry import (
    Answer,
    AnyEntry,
    Ask,
    Compaction,
    Custom,
    Edit,
    Entry,
    Fold,
    Head,
    Message,
    Note,
    Ref,
    Set,
    Start,
    Turn,
    Unknown,
)

ERASED = "[erased]"
SAID, UNSAID, UNASKED = 1, 2, 3
"""Values of `void`: erased content that a model saw, that no model saw, and a user message that was no prompt."""
STATE, FACT = "state", "fact:"
"""Parts of an entry: what a fold says; the fact of that name."""
_E = TypeVar("_E", bound=Entry)


class Erasure(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """That an entry was erased: who did it, when and why."""

    seq: int
    id: str
    at: datetime
    by: str = ""
    why: str = ""
    part: str = ""
    """Where only a part of it was: `state`, or `fact:` and a name. It followed from the erasure of another entry."""


class ErasedLog(Struct, frozen=True):
    """What is erased in one log."""

    session: str
    first: str
    erasures: list[Erasure]


class ErasingPlan(Struct, frozen=True):
    """Everything that goes at once, and the blobs that may go with it."""

    logs: list[ErasedLog]
    blobs: list[str] = []


def void_of(entry: Entry, is_prompt: Callable[[Message], bool]) -> int:
    """What is remembered of an entry in place of its content."""
    if entry.void:
        return entry.void
    if isinstance(entry, Custom) and not entry.blocks:
        return UNSAID
    return UNASKED if isinstance(entry, Message) and entry.role == "user" and not is_prompt(entry) else SAID


def stripped(entry: _E) -> _E:
    """What is left of an entry: how it hangs together with others, and what it cost."""
    rule = _RULES.get(type(entry))
    if rule is None:
        raise Invalid(f"entry {entry.seq} is a {entry.type}, which holds nothing that anybody said")
    origin: Any = entry.origin
    agent = cast("dict[str, Any]", origin).get("agent") if isinstance(origin, dict) else None
    kept = None if origin is None else {"agent": agent} if isinstance(agent, str) else {}
    return replace(
        entry, meta=None, blob=None, raw=None, blobs=[], origin=kept, unknown={}, unverified=False, **rule(entry)
    )


def without_part(entry: AnyEntry, part: str) -> AnyEntry:
    """An entry without what it repeats of another one that was erased."""
    if isinstance(entry, Fold):
        return replace(entry, state=None, blob=None, blobs=[])
    name = part.removeprefix(FACT)
    if isinstance(entry, Head):
        return replace(entry, facts=_without(entry.facts, name))
    if isinstance(entry, Set) and entry.all is not None:
        return replace(entry, all=_without(entry.all, name))
    if isinstance(entry, Start) and name in ("title", "workspace"):
        return replace(entry, **{name: None})
    return entry


def stand_in(entry: AnyEntry) -> AnyEntry:
    """What anybody is given of an entry that was erased."""
    if entry.void == UNSAID:
        return entry
    if isinstance(entry, Message):
        if any(isinstance(block, ToolResult) for block in entry.blocks):
            return replace(entry, blocks=[_answered(block) for block in entry.blocks])
        return replace(entry, blocks=[_SAID, *entry.blocks])
    if isinstance(entry, (Edit, Custom)):
        return replace(entry, blocks=[_SAID])
    if isinstance(entry, Compaction):
        notice = Message(role="user", blocks=[_SAID], id=f"{entry.id}/erased")
        return replace(entry, replacement=[notice, *entry.replacement])
    if isinstance(entry, (Note, Ask, Answer)):
        return replace(entry, text=ERASED)
    return entry


_SAID = Text(text=ERASED)


def _answered(block: AnyBlock) -> AnyBlock:
    return replace(block, content=ERASED) if isinstance(block, ToolResult) else block


def _without(facts: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in facts.items() if key != name}


def _skeleton(blocks: list[AnyBlock]) -> list[AnyBlock]:
    """Which tools were called, and which calls were answered."""
    kept: list[AnyBlock] = []
    for block in blocks:
        if isinstance(block, ToolCall):
            kept.append(ToolCall(id=block.id, name=block.name, by=block.by))
        elif isinstance(block, ToolResult):
            kept.append(
                ToolResult(
                    call=block.call,
                    is_error=block.is_error,
                    name=block.name,
                    duration_ms=block.duration_ms,
                    child=block.child,
                )
            )
    return kept


def _of_message(entry: Message) -> dict[str, Any]:
    return {
        "blocks": _skeleton(entry.blocks),
        "error": None,
        "options": None,
        "display": False if entry.display is False else None,
    }


def _of_compaction(entry: Compaction) -> dict[str, Any]:
    return {"replacement": [item for item in entry.replacement if isinstance(item, Ref)]}


def _of_edit(entry: Edit) -> dict[str, Any]:
    return {"blocks": None if entry.blocks is None else []}


def _of_set(entry: Set) -> dict[str, Any]:
    return {"value": None, "all": None if entry.all is None else _without(entry.all, entry.key)}


_RULES: dict[type[Entry], Callable[[Any], dict[str, Any]]] = {
    Message: _of_message,
    Compaction: _of_compaction,
    Edit: _of_edit,
    Custom: lambda entry: {"data": None, "blocks": []},
    **dict.fromkeys((Note, Ask, Answer), lambda entry: {"text": "", "data": None}),
    Set: _of_set,
    Turn: lambda entry: {"error": None},
    Start: lambda entry: {"title": None, "labels": {}},
}


def refuse_unerasable(entry: Entry) -> None:
    """Raise `Invalid` for an entry that nothing can be erased of."""
    if isinstance(entry, Unknown):
        raise Invalid(f"entry {entry.seq} ({entry.kind}) is of a newer Turnlog", hint="upgrade Turnlog")
    if type(entry) not in _RULES:
        raise Invalid(
            f"entry {entry.seq} is a {entry.type}, which holds nothing that anybody said",
            hint="`turnlog log` shows what can be erased: messages, notes, facts, summaries, edits, titles",
        )

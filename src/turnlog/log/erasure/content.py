"""Erasing the content of entries: what remains of each kind, and what is shown instead. Pure.

The remains never take more room than the original, because a line keeps its length.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from enum import IntEnum
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
STATE, FACT = "state", "fact:"
"""Parts of an entry: the state of a fold; the fact with the name that follows."""
_E = TypeVar("_E", bound=Entry)


class Void(IntEnum):
    """The values of `void` in an entry: what its erased content was."""

    SEEN_BY_MODEL = 1
    NOT_SEEN = 2
    NOT_A_PROMPT = 3
    """A message in the place of a person's that was no prompt."""


class Erasure(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The record of an erased entry: who erased it, when and why."""

    seq: int
    id: str
    at: datetime
    by: str = ""
    why: str = ""
    part: str = ""
    """The part, if only a part was erased because it repeats another erased entry: `state`, or `fact:` and a name."""

    def __post_init__(self) -> None:
        # A record that could not be read again would prevent every later erasure.
        for text in (self.by, self.why):
            try:
                text.encode()
            except (AttributeError, UnicodeEncodeError):
                raise Invalid(f"who erases an entry, and why, is Unicode text, not {text!r:.80}") from None


class ErasedLog(Struct, frozen=True):
    """The erasures in one log."""

    session: str
    first: str
    erasures: list[Erasure]


class ErasingPlan(Struct, frozen=True):
    """Everything that is erased at once, and the blobs that may be removed with it."""

    logs: list[ErasedLog]
    blobs: list[str] = []


def void_of(entry: Entry, is_prompt: Callable[[Message], bool]) -> int:
    """Return the value of `void` for an entry whose content is erased."""
    if entry.void:
        return entry.void
    if isinstance(entry, Custom) and not entry.blocks:
        return Void.NOT_SEEN
    is_other_text = isinstance(entry, Message) and entry.role == "user" and not is_prompt(entry)
    return Void.NOT_A_PROMPT if is_other_text else Void.SEEN_BY_MODEL


def stripped(entry: _E) -> _E:
    """Return what remains of an erased entry: its relations to other entries, and its usage."""
    refuse_unerasable(entry)
    rule = _RULES[type(entry)]
    origin: Any = entry.origin
    agent = cast("dict[str, Any]", origin).get("agent") if isinstance(origin, dict) else None
    kept = None if origin is None else {"agent": agent} if isinstance(agent, str) else {}
    return replace(
        entry, meta=None, blob=None, raw=None, blobs=[], origin=kept, unknown={}, unverified=False, **rule(entry)
    )


def without_part(entry: AnyEntry, part: str) -> AnyEntry:
    """Return an entry without the part that repeats another, erased entry."""
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
    """Return an erased entry as readers see it."""
    if entry.void == Void.NOT_SEEN:
        return entry
    if isinstance(entry, Message):
        if any(isinstance(block, ToolResult) for block in entry.blocks):
            return replace(entry, blocks=[_answered(block) for block in entry.blocks])
        return replace(entry, blocks=[_NOTICE, *entry.blocks])
    if isinstance(entry, (Edit, Custom)):
        return replace(entry, blocks=[_NOTICE])
    if isinstance(entry, Compaction):
        notice = Message(role="user", blocks=[_NOTICE], id=f"{entry.id}/erased")
        return replace(entry, replacement=[notice, *entry.replacement])
    if isinstance(entry, (Note, Ask, Answer)):
        return replace(entry, text=ERASED)
    return entry


_NOTICE = Text(text=ERASED)


def _answered(block: AnyBlock) -> AnyBlock:
    return replace(block, content=ERASED) if isinstance(block, ToolResult) else block


def _without(facts: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in facts.items() if key != name}


def _skeleton(blocks: list[AnyBlock]) -> list[AnyBlock]:
    """Return the blocks with only the names of called tools, and which calls have a result."""
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
    """Raise `Invalid` for an entry that has nothing to erase."""
    if isinstance(entry, Unknown):
        raise Invalid(f"entry {entry.seq} ({entry.kind}) was written by a newer Turnlog", hint="upgrade Turnlog")
    if type(entry) not in _RULES:
        raise Invalid(
            f"entry {entry.seq} is a {entry.type}, which has no content to erase",
            hint="`turnlog log` shows what can be erased: messages, notes, facts, summaries, edits, titles",
        )

"""Conversations that others wrote to or began: how LangGraph sees their messages."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from turnlog.adapters.langgraph.handedout import SeenValue
from turnlog.adapters.langgraph.index import Stored
from turnlog.adapters.langgraph.loading import ValueReader
from turnlog.adapters.langgraph.message import FRAMEWORK, restored
from turnlog.adapters.langgraph.thread import KnownThread
from turnlog.adapters.langgraph.value import Element, StoredValue, ValueWriter
from turnlog.errors import NotFound
from turnlog.log.entry import Message
from turnlog.log.item import kept_of

MESSAGES = "messages"
"""The channel in which graphs have their conversation, by LangGraph's convention."""


class OutsideConversation(NamedTuple):
    """A conversation without a checkpoint: its last entry and its messages."""

    seq: int
    messages: list[Any]


def merge_outside_messages(
    thread: KnownThread, stored: Stored, values: dict[str, Any], writer: ValueWriter, reader: ValueReader
) -> None:
    """Bring what was said since by others into the list of messages: their messages, compactions, edits.

    Of a list that was damaged, the conversation still has the messages.
    """
    index, seen = thread.index, thread.handed_out.values_of(stored.key)
    lists = {name for name, value in seen.items() if any("m" in element.kept for element in value.elements)}
    damaged = {name for name in lists if seen[name].where is None}
    is_unchanged = index.last_outside_seq <= stored.seq and not damaged
    if stored.key[0] or stored.key != index.current or not lists or is_unchanged:
        return
    name = max(damaged or lists, key=lambda name: len(seen[name].elements))
    listed = {element.kept["m"]: element for element in seen[name].elements if "m" in element.kept}
    for entry_id, kept in _regained(thread, stored, name).items():
        if entry_id not in listed:
            listed[entry_id] = reader.element(kept)
    elements: list[Element] = []
    for entry in thread.session.context(repair=False):
        is_ours = kept_of(entry, FRAMEWORK) is not None
        if entry.id in listed and entry.seq:
            elements.append(listed[entry.id])
        elif not is_ours or damaged:
            elements += _outside_elements(thread, entry, writer)
    seen[name] = SeenValue(None, None, elements)
    values[name] = [element.value for element in elements]


def _regained(thread: KnownThread, stored: Stored, name: str) -> dict[str, StoredValue]:
    """The messages that a list had before a compaction which was taken back since, by their entries."""
    index = thread.index
    if index.uncompacted is None or index.uncompacted[0] < stored.seq:
        return {}
    ns, checkpoint = index.uncompacted[1]
    source = index.source_of(ns, checkpoint, name)
    if source is None:
        return {}
    elements = index.elements_of(ns, source.stored).readable
    return {element["m"]: element for element in elements if "m" in element}


def _outside_elements(thread: KnownThread, entry: Message, writer: ValueWriter) -> list[Element]:
    messages = restored(entry, thread.session.blob)
    is_one = bool(entry.seq) and len(messages) == 1 and entry.id in thread.index.messages
    return [Element(message, {"m": entry.id} if is_one else writer.kept(message)) for message in messages]


def conversation_before(
    thread: KnownThread, ns: str, name: str | None, writer: ValueWriter
) -> OutsideConversation | None:
    """The conversation of a session that LangGraph goes on with.

    None if there is a checkpoint, or nothing was said. `name` is the checkpoint id that the conversation was given.
    """
    index = thread.index
    head = thread.session.head if name is None else outside_seq(name)
    if ns or not head or (name is None and (index.latest(ns) is not None or index.hidden)):
        return None
    try:
        context = thread.session.context(at=head, repair=False)
    except NotFound:
        return None
    if not context or any(kept_of(entry, FRAMEWORK) is not None for entry in context):
        return None
    elements = [element for entry in context for element in _outside_elements(thread, entry, writer)]
    thread.handed_out.values_of((ns, outside_name(head)))[MESSAGES] = SeenValue(None, None, elements)
    return OutsideConversation(head, [element.value for element in elements])


def outside_name(seq: int) -> str:
    """The id of a checkpoint that nobody put: the conversation as of an entry. It sorts before LangGraph's own ids."""
    return f"{seq:08x}-0000-6000-8000-000000000000"


def outside_seq(name: str) -> int:
    """The entry in such an id; 0 for an id of LangGraph's."""
    return int(name[:8], 16) if re.fullmatch(r"[0-9a-f]{8}-0000-6000-8000-0{12}", name) else 0

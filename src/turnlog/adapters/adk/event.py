"""Events of ADK as entries, and entries as events."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Sequence
from typing import Any, cast

import msgspec
from google.adk.events import Event

from turnlog.log.block import (
    AnyBlock,
    File,
    Image,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    UnknownBlock,
    bytes_of,
    tool_names,
)
from turnlog.log.context import text_of
from turnlog.log.entry import AnyEntry, Custom, Message
from turnlog.log.item import Mismatch, expand, kept_of, squeeze
from turnlog.session import Session
from turnlog.wire import gemini
from turnlog.wire.gemini.item import message_of

FRAMEWORK = "adk"
KIND = "adk.event"
Item = dict[str, Any]


# ── into the log ──────────────────────────────────────────────────────────────────────────────────


def item_of(event: Event) -> Item:
    """An event as ADK's own services store it: without temporary state."""
    item: Item = json.loads(event.model_dump_json(exclude_none=True))
    delta = item["actions"]["state_delta"]
    item["actions"]["state_delta"] = {key: value for key, value in delta.items() if not key.startswith("temp:")}
    return item


def draft_of(item: Item, rewound_from: str | None = None) -> Message | Custom:
    """An event as an entry. One without content is a `Custom`, because no model sees it.

    `rewound_from`: if the event is a rewind, the node that was the newest before it.
    """
    content: Item = item.get("content") or {}
    if not content.get("parts"):
        meta = None if rewound_from is None else {FRAMEWORK: {"left": rewound_from}}
        return Custom(id=item["id"], kind=KIND, data=squeeze(item, []), meta=meta)
    message = _message_of(item, content)
    blocks = [block for block in message.blocks if not isinstance(block, UnknownBlock)]
    author = item.get("author")
    return msgspec.structs.replace(
        message,
        id=item["id"],
        blocks=blocks,
        agent=None if author == "user" else author or None,
        meta={FRAMEWORK: squeeze(item, blocks)},
    )


def _message_of(item: Item, content: Item) -> Message:
    role = content.get("role") or ("user" if item.get("author") == "user" else "model")
    if role != "model":
        return message_of({**content, "role": "user"})
    response = {"candidates": [{"content": content, "finish_reason": item.get("finish_reason")}]}
    details = {name: item[name] for name in ("usage_metadata", "model_version") if name in item}
    message = gemini.draft({"response_id": item["id"], **response, **details})
    return msgspec.structs.replace(message, request=None, stop=message.stop if "finish_reason" in item else None)


# ── out of the log ────────────────────────────────────────────────────────────────────────────────


def events_of(session: Session, last: int | None = None) -> list[Event]:
    """The events of a session, oldest first; the newest `last` of them."""
    if last is not None:
        nodes = session.path(last=last)
        if all(isinstance(node, Message) or (_is_event(node) and not _rewound_from(node)) for node in nodes):
            return _Reader(session).events(nodes)
    nodes = _whole_path(session)
    if all(isinstance(node, (Message, Custom)) for node in nodes):
        events = _Reader(session).events(nodes)
    else:
        events = _visible_events(session, nodes)
    return events if last is None else events[len(events) - min(last, len(events)) :]


def first_of(session: Session, invocation: str) -> AnyEntry | None:
    """The first node of that invocation that was not taken back."""
    reader = _Reader(session)
    pairs = ((node, reader.events([node])) for node in session.path())
    return next((node for node, events in pairs if events and events[0].invocation_id == invocation), None)


def _is_event(node: AnyEntry) -> bool:
    return isinstance(node, Custom) and node.kind == KIND


def _rewound_from(node: AnyEntry) -> str | None:
    kept = kept_of(node, FRAMEWORK) if _is_event(node) else None
    return None if kept is None else kept["left"]


def _whole_path(session: Session) -> list[AnyEntry]:
    """The path to the head, with what each rewind of ADK took back before that rewind: ADK reads all of it."""
    nodes = session.path()
    path: list[AnyEntry] = []
    while (index := next((i for i in range(len(nodes) - 1, -1, -1) if _rewound_from(nodes[i])), None)) is not None:
        path = nodes[index:] + path
        before = session.find(cast("str", _rewound_from(nodes[index])))
        nodes = nodes[:index] if before is None else session.path(to=before)
    return nodes + path


def _visible_events(session: Session, nodes: list[AnyEntry]) -> list[Event]:
    """The events of a path that compactions and edits leave."""
    context = session.context(repair=False)
    applied = [compaction.entry for compaction in session.compactions() if not compaction.is_cancelled]
    start = (applied[-1].keep or applied[-1].seq) if applied else 0
    events_without_content = [node for node in nodes if _is_event(node) and node.seq >= start]
    visible: list[AnyEntry] = []
    for message in context:
        while events_without_content and message.seq > events_without_content[0].seq:
            visible.append(events_without_content.pop(0))
        visible.append(message)
    return _Reader(session, context.edited).events([*visible, *events_without_content])


class _Reader:
    def __init__(self, session: Session, edited: Iterable[int] = ()) -> None:
        self._session = session
        self._edited = frozenset(edited)
        self._names: dict[str, str] = {}
        """The names of tools by the ids of their calls, as far as messages were read."""

    def events(self, nodes: Sequence[AnyEntry]) -> list[Event]:
        """The events among these nodes."""
        return [event for node in nodes if (event := self._event(node)) is not None]

    def _event(self, node: AnyEntry) -> Event | None:
        if isinstance(node, Message):
            self._names |= tool_names(node.blocks)
        try:
            if isinstance(node, Message) and (kept := kept_of(node, FRAMEWORK)) is not None:
                is_edited = node.seq in self._edited
                return _event(expand(kept, node.blocks, self._session.blob, edited=is_edited))
            if isinstance(node, Custom) and node.kind == KIND:
                return _event(expand(node.data, []))
        except Mismatch:
            pass
        return self._event_from_blocks(node) if isinstance(node, Message) else None

    def _event_from_blocks(self, message: Message) -> Event | None:
        """An event made from a message that ADK did not write."""
        parts = [part for block in message.blocks if (part := self._part(block)) is not None]
        if not parts:
            return None
        is_model = message.role == "assistant"
        item: Item = {
            "id": message.id,
            "invocation_id": message.turn or message.id,
            "author": (message.agent or self._session.agent or "model") if is_model else "user",
            "timestamp": message.at.timestamp() if message.at else 0.0,
            "content": {"role": "model" if is_model else "user", "parts": parts},
        }
        return _event(item | ({"model_version": message.model} if message.model else {}))

    def _part(self, block: AnyBlock) -> Item | None:
        if isinstance(block, Thinking):
            return {"text": block.text, "thought": True} if block.text else None
        if isinstance(block, Text):
            return {"text": block.text} if block.text else None
        if isinstance(block, ToolCall) and block.by is None:
            arguments: Any = {} if block.input is None else block.input
            arguments = cast("Item", arguments) if isinstance(arguments, dict) else {"input": arguments}
            return {"function_call": {"id": block.id, "name": block.name, "args": arguments}}
        if isinstance(block, ToolResult) and block.meta is None:
            text = block.content if isinstance(block.content, str) else text_of(block.content)
            name = block.name or self._names.get(block.call, "tool")
            response: Item = {
                "id": block.call,
                "name": name,
                "response": {"error" if block.is_error else "output": text},
            }
            inner = [] if isinstance(block.content, str) else block.content
            if media := [
                part for nested in inner if isinstance(nested, (Image, File)) and (part := self._media(nested))
            ]:
                response["parts"] = media
            return {"function_response": response}
        return self._media(block) if isinstance(block, (Image, File)) else None

    def _media(self, block: Image | File) -> Item | None:
        kind = block.media_type or "application/octet-stream"
        data = bytes_of(block, self._session.blob)
        if data is not None:
            return {"inline_data": {"mime_type": kind, "data": urlsafe_b64encode(data).decode()}}
        uri = block.url or (block.file if block.provider == gemini.PROVIDER else None)
        return {"file_data": {"mime_type": kind, "file_uri": uri}} if uri else None


def _event(item: Any) -> Event:
    try:
        text = msgspec.json.encode(item)
    except (OverflowError, UnicodeEncodeError):  # numbers over 64 bits, or no Unicode
        text = json.dumps(item)
    return Event.model_validate_json(text)

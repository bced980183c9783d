"""Events of ADK as entries, and entries as events."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Sequence
from typing import Any, cast

import msgspec
from google.adk.events import Event

from turnlog.log.block import AnyBlock, File, Image, Text, Thinking, ToolCall, ToolResult, UnknownBlock
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
    """What ADK's own services keep of an event, without what is only for now."""
    item: Item = json.loads(event.model_dump_json(exclude_none=True))
    delta = item["actions"]["state_delta"]
    item["actions"]["state_delta"] = {key: value for key, value in delta.items() if not key.startswith("temp:")}
    return item


def draft_of(item: Item, left: str | None = None) -> Message | Custom:
    """An event as an entry: one without content is nothing that a model sees. `left`: what a rewind was made from."""
    content: Item = item.get("content") or {}
    if not content.get("parts"):
        meta = None if left is None else {FRAMEWORK: {"left": left}}
        return Custom(id=item["id"], kind=KIND, data=squeeze(item, []), meta=meta)
    message = _said(item, content)
    blocks = [block for block in message.blocks if not isinstance(block, UnknownBlock)]
    author = item.get("author")
    return msgspec.structs.replace(
        message,
        id=item["id"],
        blocks=blocks,
        agent=None if author == "user" else author or None,
        meta={FRAMEWORK: squeeze(item, blocks)},
    )


def _said(item: Item, content: Item) -> Message:
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
        if all(isinstance(node, Message) or (_is_event(node) and not _left(node)) for node in nodes):
            return _Reader(session).events(nodes)
    nodes = _whole_path(session)
    if all(isinstance(node, (Message, Custom)) for node in nodes):
        events = _Reader(session).events(nodes)
    else:
        events = _seen(session, nodes)
    return events if last is None else events[len(events) - min(last, len(events)) :]


def first_of(session: Session, invocation: str) -> AnyEntry | None:
    """The first node of that invocation that was not taken back."""
    reader = _Reader(session)
    pairs = ((node, reader.events([node])) for node in session.path())
    return next((node for node, events in pairs if events and events[0].invocation_id == invocation), None)


def _is_event(node: AnyEntry) -> bool:
    return isinstance(node, Custom) and node.kind == KIND


def _left(node: AnyEntry) -> str | None:
    kept = kept_of(node, FRAMEWORK) if _is_event(node) else None
    return None if kept is None else kept["left"]


def _whole_path(session: Session) -> list[AnyEntry]:
    """The path to the head, and behind each rewind of ADK's what it took back: ADK reads all of it."""
    nodes = session.path()
    path: list[AnyEntry] = []
    while (index := next((i for i in range(len(nodes) - 1, -1, -1) if _left(nodes[i])), None)) is not None:
        path = nodes[index:] + path
        before = session.find(cast("str", _left(nodes[index])))
        nodes = nodes[:index] if before is None else session.path(to=before)
    return nodes + path


def _seen(session: Session, nodes: list[AnyEntry]) -> list[Event]:
    """What compactions and edits leave of it."""
    context = session.context(repair=False)
    applied = [one.entry for one in session.compactions() if not one.is_cancelled]
    start = (applied[-1].keep or applied[-1].seq) if applied else 0
    quiet = [node for node in nodes if _is_event(node) and node.seq >= start]
    visible: list[AnyEntry] = []
    for message in context:
        while quiet and message.seq > quiet[0].seq:
            visible.append(quiet.pop(0))
        visible.append(message)
    return _Reader(session, context.edited).events([*visible, *quiet])


class _Reader:
    def __init__(self, session: Session, edited: Iterable[int] = ()) -> None:
        self._session = session
        self._edited = frozenset(edited)
        self._names: dict[str, str] = {}
        """What the tools of earlier calls are called, by the calls' ids."""

    def events(self, nodes: Sequence[AnyEntry]) -> list[Event]:
        """An event for each of them that is one."""
        return [event for node in nodes if (event := self._event(node)) is not None]

    def _event(self, node: AnyEntry) -> Event | None:
        if isinstance(node, Message):
            self._names.update({block.id: block.name for block in node.blocks if isinstance(block, ToolCall)})
        try:
            if isinstance(node, Message) and (kept := kept_of(node, FRAMEWORK)) is not None:
                is_edited = node.seq in self._edited
                return _event(expand(kept, node.blocks, self._session.blob, edited=is_edited))
            if isinstance(node, Custom) and node.kind == KIND:
                return _event(expand(node.data, []))
        except Mismatch:
            pass
        return self._made(node) if isinstance(node, Message) else None

    def _made(self, message: Message) -> Event | None:
        """An event of a message that ADK did not write."""
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
            response = {"error" if block.is_error else "output": text}
            return {"function_response": {"id": block.call, "name": name, "response": response}}
        return self._media(block) if isinstance(block, (Image, File)) else None

    def _media(self, block: Image | File) -> Item | None:
        kind = block.media_type or "application/octet-stream"
        data = self._session.blob(block.blob) if block.data is None and block.blob else block.data
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

"""A session for the OpenAI Agents SDK.

    from turnlog.adapters.openai_agents import TurnlogSession

    result = await Runner.run(agent, "hi", session=TurnlogSession("chat-1"))

One item is one message. `pop_item` and `clear_session` are rewinds: nothing is erased by them.
"""

from __future__ import annotations

import os
import threading
from base64 import b64encode
from collections.abc import Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

import msgspec

from turnlog.adapters._argument import check_id, check_list
from turnlog.adapters._framework import import_framework
from turnlog.adapters._sessions import AdapterSessions, AnyHome, ClosableAdapter
from turnlog.errors import AlreadyExists, Conflict, Invalid, NotFound
from turnlog.log.block import AnyBlock, File, Image, Text, ToolCall, ToolResult, UnknownBlock, bytes_of
from turnlog.log.entry import AnyEntry, Custom, Edit, Message, Spent
from turnlog.log.item import Mismatch, expand, kept_of, squeeze, storable
from turnlog.log.usage import Usage
from turnlog.session import Session
from turnlog.store.forked import renew_after_fork
from turnlog.wire import kind_of
from turnlog.wire.openai.item import message_of

import_framework("agents", "openai-agents")

from agents.memory.session_settings import (  # noqa: E402
    SessionSettings,
    coerce_session_settings,
    resolve_session_limit,
)

if TYPE_CHECKING:
    from agents import RunContextWrapper, TResponseInputItem

__all__ = ["TurnlogSession"]

FRAMEWORK = "openai-agents"
_RUNS = 16
Item = dict[str, Any]


class TurnlogSession(ClosableAdapter):
    """Keeps the items of one conversation in a session of a home. Safe to use from many threads, tasks and processes.

    The tokens of each run are recorded with its items. `session` is the `turnlog.Session` behind it.
    """

    def __init__(
        self,
        session_id: str,
        home: AnyHome = None,
        session_settings: SessionSettings | dict[str, Any] | None = None,
        workspace: str | os.PathLike[str] | None = None,
    ) -> None:
        self.session_id = check_id(session_id, "session_id")
        self.session_settings: SessionSettings | None = coerce_session_settings(session_settings or SessionSettings())
        self.sessions = AdapterSessions(home, FRAMEWORK)
        self._workspace = workspace
        self.after_fork()
        renew_after_fork(self)
        self._spent: list[tuple[Any, tuple[int, ...]]] = []
        """The usage objects of the newest runs, with the counts of each that were recorded."""

    def after_fork(self) -> None:
        """See `renew_after_fork`: a thread of the parent may hold the old one."""
        self._adding = threading.Lock()

    @property
    def session(self) -> Session:
        """The session, made if there is none yet."""
        return self.sessions.find(self.session_id) or self._make([])

    def _make(self, drafts: list[AnyEntry]) -> Session:
        labels = {"session_id": self.session_id}
        return self.sessions.create(self.session_id, labels=labels, workspace=self._workspace, drafts=drafts)

    # ── the protocol ──────────────────────────────────────────────────────────────────────────────

    async def get_items(
        self, limit: int | None = None, *, wrapper: RunContextWrapper[Any] | None = None
    ) -> list[TResponseInputItem]:
        """The conversation, oldest first; the newest `limit` items of it."""
        del wrapper
        return cast("list[TResponseInputItem]", await self.sessions.run(self._get, limit))

    async def add_items(
        self, items: list[TResponseInputItem], *, wrapper: RunContextWrapper[Any] | None = None
    ) -> None:
        """Append items as one batch. Durable when this returns."""
        await self.sessions.run(self._add, cast("list[Item]", items), wrapper)

    async def pop_item(self, *, wrapper: RunContextWrapper[Any] | None = None) -> TResponseInputItem | None:
        """Take back the newest item and return it. Of several callers at once, each gets another one."""
        del wrapper
        return cast("TResponseInputItem | None", await self.sessions.run(self._pop))

    async def clear_session(self, *, wrapper: RunContextWrapper[Any] | None = None) -> None:
        """Begin anew. What was there stays as a branch; `home.purge` erases."""
        del wrapper
        await self.sessions.run(self._clear)

    # ── the same, on a thread ─────────────────────────────────────────────────────────────────────

    def _get(self, limit: int | None) -> list[Item]:
        limit = resolve_session_limit(limit, self.session_settings)
        session = self.sessions.find(self.session_id)
        if session is None or (limit is not None and limit <= 0):
            return []
        if limit is not None:
            nodes = session.path(last=limit)
            if all(kept_of(node, FRAMEWORK) is not None for node in nodes):  # one item each
                return [item for node in nodes for item in _items_of(cast("Message", node), session)]
        context = session.context(repair=False)
        items = [
            item for message in context for item in _items_of(message, session, edited=message.seq in context.edited)
        ]
        return items if limit is None else items[-limit:]

    def _add(self, items: list[Item], wrapper: Any) -> None:
        drafts: list[AnyEntry] = [_drafted(item) for item in check_list(items, "items")]
        if not drafts:
            self.sessions.check_open()
        with self._adding:
            before = self._spent
            spent = self._spending(wrapper) if drafts else None
            if spent is not None:
                drafts.append(Spent(usage=spent, why="run"))
            try:
                self._append(drafts)
            except BaseException:
                self._spent = before
                raise

    def _append(self, drafts: list[AnyEntry]) -> None:
        while drafts:
            session = self.sessions.find(self.session_id, fresh=False)
            try:
                if session is None:
                    self._make(drafts)
                else:
                    session.append(*drafts, rebase=True)
            except AlreadyExists:
                continue
            except NotFound:
                self.sessions.forget(self.session_id)
                continue
            return

    def _pop(self) -> Item | None:
        while True:
            session = self.sessions.find(self.session_id)
            if session is None or session.head == 0:
                return None
            try:
                return _popped(session, session.head)
            except (Conflict, NotFound):
                continue

    def _clear(self) -> None:
        while (session := self.sessions.find(self.session_id)) is not None and session.head:
            try:
                session.rewind(to=0, files=False)
            except Conflict:
                continue

    def _spending(self, wrapper: Any) -> Usage | None:
        """The tokens that a run used since its items were last added."""
        usage = getattr(wrapper, "usage", None)
        if usage is None:
            return None
        input_details, output_details = (
            getattr(usage, "input_tokens_details", None),
            getattr(usage, "output_tokens_details", None),
        )
        counts = (
            int(getattr(usage, "input_tokens", 0) or 0),
            int(getattr(input_details, "cached_tokens", 0) or 0),
            int(getattr(usage, "output_tokens", 0) or 0),
            int(getattr(output_details, "reasoning_tokens", 0) or 0),
        )
        before = next((recorded for run, recorded in self._spent if run is usage), (0, 0, 0, 0))
        if all(new <= old for new, old in zip(counts, before, strict=True)):
            return None
        self._spent = [*[spent for spent in self._spent if spent[0] is not usage][-_RUNS:], (usage, counts)]
        input_tokens, cached, out, thought = (max(0, new - old) for new, old in zip(counts, before, strict=True))
        return Usage(
            input_tokens=max(0, input_tokens - cached),
            cache_read_tokens=cached,
            output_tokens=out,
            reasoning_tokens=thought,
        )


def _popped(session: Session, head: int) -> Item | None:
    """Take back the newest item of the conversation that ends at `head`; None if it has none."""
    [last] = session.path(last=1)
    if isinstance(last, Message):
        items = _items_of(last, session)
        if len(items) > 1:  # one message of somebody else's, several items
            session.append(*map(_drafted, items[:-1]), to=last.parent or 0, after=head)
            return items[-1]
        session.rewind(before=last, after=head, files=False)
        if items:
            return items[0]
        return _popped(session, session.head) if session.head else None
    if isinstance(last, Custom) and not last.blocks:
        session.rewind(before=last, after=head, files=False)
        return _popped(session, session.head) if session.head else None
    return _popped_from_context(session, head)


def _popped_from_context(session: Session, head: int) -> Item | None:
    """Like `_popped`, for an edit or a compaction as the newest node: a rewind would bring back what it replaced."""
    context = session.context(repair=False)

    def items_of(message: Message) -> list[Item]:
        return _items_of(message, session, edited=message.seq in context.edited)

    for index in reversed(range(len(context))):
        message = context[index]
        if not (items := items_of(message)):
            continue
        if message.seq:
            blocks = _without_last_item(message.blocks) if len(items) > 1 else None
            session.append(Edit(entry=message.seq, blocks=blocks), after=head)
        elif rest := [*chain.from_iterable(map(items_of, context[:index])), *items[:-1]]:
            session.append(*map(_drafted, rest), to=0, after=head)
        else:  # a summary: what it stands for stays away
            session.rewind(to=0, after=head, files=False)
        return items[-1]
    return None


def _without_last_item(blocks: list[AnyBlock]) -> list[AnyBlock]:
    """The blocks without the call or the result that is the last of the items made from them."""
    last = max(index for index, block in enumerate(blocks) if _is_item(block))
    return blocks[:last] + blocks[last + 1 :]


def _is_item(block: AnyBlock) -> bool:
    """Whether a block is an item of its own, not a part of one."""
    return isinstance(block, ToolResult) or (isinstance(block, ToolCall) and block.by is None)


def _drafted(item: object) -> Message:
    """An item as an entry; `Invalid` before anything is written."""
    if type(item) is not dict and not isinstance(item, Mapping):  # the first is cheap, and true of most
        raise Invalid(f"the item {item!r:.80} is not a mapping", hint="an item is a dict, as the SDK makes it")
    fields = dict(cast("Mapping[str, Any]", item))
    try:
        message = message_of(fields)
    except (Invalid, TypeError, RecursionError):
        message = Message(role="assistant")  # of a kind that nobody knows: kept beside no blocks
    try:
        blocks = storable([block for block in message.blocks if not isinstance(block, UnknownBlock)])
        kept = squeeze(fields, blocks)
    except (TypeError, ValueError) as error:
        raise Invalid(f"an item that is not JSON: {error}", hint="an item is a dict, as the SDK makes it") from None
    return Message(id=message.id, role=message.role, blocks=blocks, meta={FRAMEWORK: kept})


def _items_of(message: Message, session: Session, *, edited: bool = False) -> list[Item]:
    """What a message is for the SDK: the item it was made from, or items made from its blocks."""
    if (kept := kept_of(message, FRAMEWORK)) is not None:
        try:
            return [expand(kept, message.blocks, session.blob, edited=edited)]
        except Mismatch:
            pass
    spoken = message.blocks
    if message.role == "assistant":  # it says texts; a picture that it made is named in one
        spoken = [Text(f"[{kind_of(block)}]") if isinstance(block, (Image, File)) else block for block in spoken]
    content = [part for block in spoken if (part := _part(block, session)) is not None]
    items: list[Item] = []
    if content:
        role = "user" if message.role == "tool" else message.role
        items.append({"role": role, "content": _shortest(content)})
    for block in message.blocks:
        if isinstance(block, ToolCall) and block.by is None:
            arguments = msgspec.json.encode(block.input or {}).decode()
            items.append({"type": "function_call", "call_id": block.id, "name": block.name, "arguments": arguments})
        elif isinstance(block, ToolResult):
            parts = [Text(block.content)] if isinstance(block.content, str) else block.content
            output = [part for one in parts if (part := _part(one, session)) is not None]
            items.append({"type": "function_call_output", "call_id": block.call, "output": _shortest(output)})
    return items


def _part(block: AnyBlock, session: Session) -> Item | None:
    """A text, a picture or a file as the SDK sends it; None for what has no part in a message."""
    if isinstance(block, Text):
        return {"type": "input_text", "text": block.text} if block.text else None
    if not isinstance(block, (Image, File)):
        return None
    data = bytes_of(block, session.blob)
    url = block.url if data is None else f"data:{block.media_type};base64,{b64encode(data).decode()}"
    if isinstance(block, Image):
        where = {"image_url": url} if url is not None else {"file_id": block.file}
        return {"type": "input_image", "detail": "auto", **where}
    if data is not None:
        return {"type": "input_file", "file_data": url, "filename": block.name or "file"}
    return {"type": "input_file", **({"file_url": url} if url is not None else {"file_id": block.file})}


def _shortest(parts: list[Item]) -> str | list[Item]:
    """Parts as one text if all of them are texts."""
    if all(part["type"] == "input_text" for part in parts):
        return "\n".join(part["text"] for part in parts)
    return parts

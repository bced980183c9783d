"""A session for the OpenAI Agents SDK.

    from turnlog.adapters.openai_agents import TurnlogSession

    result = await Runner.run(agent, "hi", session=TurnlogSession("chat-1"))

One item is one message. `pop_item` and `clear_session` are rewinds: nothing is erased by them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import msgspec

from turnlog.adapters._shelf import AnyHome, Closing, Shelf, check_id, framework
from turnlog.errors import AlreadyExists, Conflict, Invalid, NotFound
from turnlog.log.block import AnyBlock, Text, ToolCall, ToolResult, UnknownBlock
from turnlog.log.context import text_of
from turnlog.log.entry import AnyEntry, Custom, Message, Spent
from turnlog.log.item import Mismatch, expand, kept_of, squeeze
from turnlog.log.usage import Usage
from turnlog.session import Session
from turnlog.wire.openai.item import message_of

framework("agents", "openai-agents")

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


class TurnlogSession(Closing):
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
        self.shelf = Shelf(home, FRAMEWORK)
        self._workspace = workspace
        self._spent: list[tuple[Any, tuple[int, ...]]] = []
        """Of the newest runs, what was recorded of each."""

    @property
    def session(self) -> Session:
        """The session, made if there is none yet."""
        return self.shelf.find(self.session_id) or self._make([])

    def _make(self, drafts: list[AnyEntry]) -> Session:
        labels = {"session_id": self.session_id}
        return self.shelf.make(self.session_id, labels=labels, workspace=self._workspace, drafts=drafts)

    # ── the protocol ──────────────────────────────────────────────────────────────────────────────

    async def get_items(
        self, limit: int | None = None, *, wrapper: RunContextWrapper[Any] | None = None
    ) -> list[TResponseInputItem]:
        """The conversation, oldest first; the newest `limit` items of it."""
        del wrapper
        return cast("list[TResponseInputItem]", await self.shelf.run(self._get, limit))

    async def add_items(
        self, items: list[TResponseInputItem], *, wrapper: RunContextWrapper[Any] | None = None
    ) -> None:
        """Append items as one batch. Durable when this returns."""
        await self.shelf.run(self._add, cast("list[Item]", items), wrapper)

    async def pop_item(self, *, wrapper: RunContextWrapper[Any] | None = None) -> TResponseInputItem | None:
        """Take the newest item back; no two get the same one."""
        del wrapper
        return cast("TResponseInputItem | None", await self.shelf.run(self._pop))

    async def clear_session(self, *, wrapper: RunContextWrapper[Any] | None = None) -> None:
        """Begin anew. What was there stays as a branch; `home.purge` erases."""
        del wrapper
        await self.shelf.run(self._clear)

    # ── the same, on a thread ─────────────────────────────────────────────────────────────────────

    def _get(self, limit: int | None) -> list[Item]:
        wanted = resolve_session_limit(limit, self.session_settings)
        session = self.shelf.find(self.session_id)
        if session is None or (wanted is not None and wanted <= 0):
            return []
        if wanted is not None:
            nodes = session.path(last=wanted)
            if all(isinstance(node, Message) for node in nodes):
                items = [item for node in nodes for item in _items_of(cast("Message", node), session)]
                return items[-wanted:]
        context = session.context(repair=False)
        items = [item for one in context for item in _items_of(one, session, edited=one.seq in context.edited)]
        return items if wanted is None else items[-wanted:]

    def _add(self, items: list[Item], wrapper: Any) -> None:
        _ = self.shelf.home  # a closed one takes nothing, not even nothing
        drafts: list[AnyEntry] = [_drafted(item) for item in items]
        with self.shelf.locked(self.session_id):
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
            session = self.shelf.find(self.session_id, fresh=False)
            try:
                if session is None:
                    self._make(drafts)
                else:
                    session.append(*drafts, rebase=True)
            except AlreadyExists:
                continue
            except NotFound:
                self.shelf.forget(self.session_id)
                continue
            return

    def _pop(self) -> Item | None:
        while True:
            session = self.shelf.find(self.session_id)
            if session is None or session.head == 0:
                return None
            head = session.head
            try:
                if session.head == head and (popped := _popped(session, head)) is not None:
                    return popped[0]
            except (Conflict, NotFound):
                continue
            return None

    def _clear(self) -> None:
        while (session := self.shelf.find(self.session_id)) is not None and session.head:
            try:
                session.rewind(to=0, files=False)
            except Conflict:
                continue

    def _spending(self, wrapper: Any) -> Usage | None:
        """What a run took since its items were last added."""
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
        nothing = (usage, (0, 0, 0, 0))
        before = next((one for one in self._spent if one[0] is usage), nothing)[1]
        if counts <= before:
            return None
        self._spent = [*[one for one in self._spent if one[0] is not usage][-_RUNS:], (usage, counts)]
        input_tokens, cached, out, thought = (new - old for new, old in zip(counts, before, strict=True))
        return Usage(
            input_tokens=max(0, input_tokens - cached),
            cache_read_tokens=cached,
            output_tokens=out,
            reasoning_tokens=thought,
        )


def _popped(session: Session, head: int) -> tuple[Item] | None:
    """Take the newest item of that head back; None where there is none."""
    [last] = session.path(last=1)
    if isinstance(last, Message):
        items = _items_of(last, session)
        if len(items) > 1:  # one message of somebody else's, several items
            session.append(*map(_drafted, items[:-1]), to=last.parent or 0, after=head)
        else:
            session.rewind(before=last, after=head, files=False)
        return (items[-1],) if items else _popped(session, session.head) if session.head else None
    context = session.context(repair=False)
    messages = [one for one in context if _items_of(one, session)]
    if not messages:
        return None
    item = _items_of(messages[-1], session, edited=messages[-1].seq in context.edited)[-1]
    if isinstance(last, Custom) and not last.blocks:
        session.rewind(before=last, after=head, files=False)
        return _popped(session, session.head) if session.head else None
    if messages[-1].seq:
        session.edit(messages[-1], None)
    else:  # a summary: what it stands for stays away
        session.rewind(to=0, after=head, files=False)
    return (item,)


def _drafted(item: object) -> Message:
    """An item as an entry; `Invalid` before anything is written."""
    if not isinstance(item, Mapping):
        raise Invalid(f"the item {item!r:.80} is not a mapping", hint="an item is a dict, as the SDK makes it")
    fields = dict(cast("Mapping[str, Any]", item))
    try:
        message = message_of(fields)
    except Invalid:
        message = Message(role="assistant")  # of a kind that nobody knows: kept beside no blocks
    blocks: list[AnyBlock] = [block for block in message.blocks if not isinstance(block, UnknownBlock)]
    try:
        kept = squeeze(fields, blocks)
    except (TypeError, ValueError) as error:
        raise Invalid(f"an item that is not JSON: {error}", hint="an item is a dict, as the SDK makes it") from None
    return Message(role=message.role, blocks=blocks, meta={FRAMEWORK: kept})


def _items_of(message: Message, session: Session, *, edited: bool = False) -> list[Item]:
    """What a message is for the SDK: the item it was made from, or items made from its blocks."""
    if (kept := kept_of(message, FRAMEWORK)) is not None:
        try:
            return [expand(kept, message.blocks, session.blob, edited=edited)]
        except Mismatch:
            pass
    items: list[Item] = []
    text = text_of(message.blocks)
    if text and message.role != "tool":
        items.append({"role": message.role, "content": text})
    for block in message.blocks:
        if isinstance(block, ToolCall) and block.by is None:
            arguments = msgspec.json.encode(block.input or {}).decode()
            items.append({"type": "function_call", "call_id": block.id, "name": block.name, "arguments": arguments})
        elif isinstance(block, ToolResult):
            content = block.content if isinstance(block.content, str) else text_of(block.content)
            items.append({"type": "function_call_output", "call_id": block.call, "output": content})
        elif isinstance(block, Text) and message.role == "tool" and block.text:
            items.append({"role": "user", "content": block.text})
    return items

"""Taking back the newest item of a conversation."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from turnlog.adapters.openai_agents.item import Item, drafted, items_of
from turnlog.log.block import AnyBlock, ToolCall, ToolResult
from turnlog.log.entry import AnyEntry, Custom, Edit, Message
from turnlog.session import Session


def pop_item(session: Session) -> Item | None:
    """Take back the newest item; None if there is none. `Conflict` if somebody else wrote meanwhile."""
    head = session.head
    for node in _newest_first(session):
        if isinstance(node, Message):
            items = items_of(node, session)
            if len(items) > 1:  # one message of somebody else's, several items
                session.append(*map(drafted, items[:-1]), to=node.parent or 0, after=head)
            elif items:
                session.rewind(before=node, after=head, files=False)
            if items:
                return items[-1]
        elif not isinstance(node, Custom) or node.blocks:
            return _popped_from_context(session, head)
    if head:
        session.rewind(to=0, after=head, files=False)
    return None


def _newest_first(session: Session) -> Iterator[AnyEntry]:
    """The nodes of a conversation. Nearly always the newest one is enough, and only that is read."""
    newest = session.path(last=1)
    yield from newest
    if newest:
        yield from reversed(session.path()[:-1])


def _popped_from_context(session: Session, head: int) -> Item | None:
    """Like `pop_item`, for an edit or a compaction as the newest node: a rewind would bring back what it replaced."""
    context = session.context(repair=False)

    def visible_items(message: Message) -> list[Item]:
        return items_of(message, session, edited=message.seq in context.edited)

    for index in reversed(range(len(context))):
        message = context[index]
        if not (items := visible_items(message)):
            continue
        if message.seq:
            blocks = _without_last_item(message.blocks) if len(items) > 1 else None
            session.append(Edit(entry=message.seq, blocks=blocks), after=head)
        elif rest := [*chain.from_iterable(map(visible_items, context[:index])), *items[:-1]]:
            session.append(*map(drafted, rest), to=0, after=head)
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

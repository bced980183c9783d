"""The positions of messages in a conversation of Strands: it asks by number.

A message keeps its position with it, so that the end of a long conversation is found from the end.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace
from strands.types.session import SessionMessage

from turnlog.adapters.strands.message import FRAMEWORK, Positioned, messages_of, says_something
from turnlog.log.entry import AnyEntry, Edit, Message
from turnlog.session import Session

_POSITION = f"{FRAMEWORK}.place"


class PositionedMessages(NamedTuple):
    """Messages with their positions, and the newest edit of each by the number of its entry."""

    messages: list[Positioned]
    edits: dict[int, Edit]


def with_position(draft: Message, position: int) -> Message:
    """A draft for that position; it holds for as long as the message stays behind the same one."""
    return replace(draft, meta={**(draft.meta or {}), _POSITION: position})


def next_position(session: Session) -> int:
    """The position of what is appended next."""
    [last] = session.path(last=1) or [None]
    position = _position_of(last)
    if position is not None:
        return position + 1
    return sum(says_something(node) for node in session.path())


def _position_of(node: AnyEntry | None) -> int | None:
    """The position of a message of Strands; None for anything else."""
    position = node.meta.get(_POSITION) if isinstance(node, Message) and node.meta else None
    return position if isinstance(position, int) else None


def messages_from(session: Session, offset: int, limit: int | None) -> list[SessionMessage]:
    """The messages from position `offset` on."""
    positioned, edits = _positioned_tail(session, offset) or positioned_messages(session)
    messages = [(position, node) for position, node in positioned if position >= offset]
    return messages_of(session, messages if limit is None else messages[:limit], edits)


def _positioned_tail(session: Session, offset: int) -> PositionedMessages | None:
    """The messages from `offset` on without reading those before; None if others than Strands wrote some of them."""
    [last] = session.path(last=1) or [None]
    end = _position_of(last)
    if end is None or not 0 < offset <= end:
        return None
    nodes = session.path(last=end - offset + 1)
    messages = [
        (position, node) for node in nodes if isinstance(node, Message) and (position := _position_of(node)) is not None
    ]
    is_all = [position for position, _ in messages] == list(range(offset, end + 1))
    return PositionedMessages(messages, {}) if is_all else None


def positioned_messages(session: Session) -> PositionedMessages:
    """The messages of a conversation with their positions.

    What a compaction left keeps its position, and the summary is before it: Strands counts what it has dropped itself.
    """
    nodes = session.path()
    messages = [node for node in nodes if isinstance(node, Message) and says_something(node)]
    if len(messages) == len(nodes):
        return PositionedMessages(list(enumerate(messages)), {})
    positions = {node.seq: position for position, node in enumerate(messages)}
    visible = [node for node in session.context(repair=False) if says_something(node)]
    first_kept = next((positions[node.seq] for node in visible if node.seq in positions), len(messages))
    summary_count = sum(node.seq not in positions for node in visible)
    start = max(0, first_kept - summary_count)
    summary_positions = iter(range(start, start + summary_count))
    positioned = [(positions[node.seq] if node.seq in positions else next(summary_positions), node) for node in visible]
    return PositionedMessages(positioned, {node.entry: node for node in nodes if isinstance(node, Edit)})

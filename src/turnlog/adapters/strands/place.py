"""The places of messages in a conversation of Strands: it asks by number.

A message keeps its place with it, so that the end of a long conversation is found from the end.
"""

from __future__ import annotations

from msgspec.structs import replace
from strands.types.session import SessionMessage

from turnlog.adapters.strands.message import FRAMEWORK, messages_of, says_something
from turnlog.log.entry import AnyEntry, Edit, Message
from turnlog.session import Session

_PLACE = f"{FRAMEWORK}.place"
Placed = list[tuple[int, Message]]


def placed(draft: Message, place: int) -> Message:
    """A draft for that place; it holds for as long as it hangs where it does."""
    return replace(draft, meta={**(draft.meta or {}), _PLACE: place})


def next_place(session: Session) -> int:
    """The place of what is appended next."""
    [last] = session.path(last=1) or [None]
    place = _place(last)
    if place is not None:
        return place + 1
    return sum(says_something(node) for node in session.path())


def _place(node: AnyEntry | None) -> int | None:
    """Where a message of Strands is; None for whatever else."""
    place = node.meta.get(_PLACE) if isinstance(node, Message) and node.meta else None
    return place if isinstance(place, int) else None


def listed(session: Session, offset: int, limit: int | None) -> list[SessionMessage]:
    """The messages from place `offset` on."""
    places, edits = _end(session, offset) or places_of(session)
    wanted = [place for place in places if place[0] >= offset]
    return messages_of(session, wanted if limit is None else wanted[:limit], edits)


def _end(session: Session, offset: int) -> tuple[Placed, dict[int, Edit]] | None:
    """The same without what is before it; None where the end of the conversation is not messages of Strands alone."""
    [last] = session.path(last=1) or [None]
    place = _place(last)
    if place is None or not 0 < offset <= place:
        return None
    nodes = session.path(last=place - offset + 1)
    placed_nodes = [
        (number, node) for node in nodes if isinstance(node, Message) and (number := _place(node)) is not None
    ]
    is_all = [number for number, _ in placed_nodes] == list(range(offset, place + 1))
    return (placed_nodes, {}) if is_all else None


def places_of(session: Session) -> tuple[Placed, dict[int, Edit]]:
    """The messages of a conversation with their places in it, and how they read.

    What a compaction left keeps its place, and the summary is before it: Strands counts what it has dropped itself.
    """
    nodes = session.path()
    messages = [node for node in nodes if isinstance(node, Message) and says_something(node)]
    if len(messages) == len(nodes):
        return list(enumerate(messages)), {}
    places = {node.seq: place for place, node in enumerate(messages)}
    visible = [node for node in session.context(repair=False) if says_something(node)]
    first = next((places[node.seq] for node in visible if node.seq in places), len(messages))
    fresh = sum(node.seq not in places for node in visible)
    made = range(max(0, first - fresh), max(0, first - fresh) + fresh)
    numbers = iter(made)
    numbered = [(places[node.seq] if node.seq in places else next(numbers), node) for node in visible]
    return numbered, {node.entry: node for node in nodes if isinstance(node, Edit)}

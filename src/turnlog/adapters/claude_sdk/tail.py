"""The end of a conversation, where nearly every line of a transcript goes on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from turnlog.formats.claude_code.mirror import is_mirrored, usage_of
from turnlog.log.entry import AnyEntry, Compaction, Message, Spent
from turnlog.log.usage import Usage
from turnlog.session import Session

Line = dict[str, Any]
_TAIL_LENGTH = 64
"""A line whose parent is not among this many nodes from the end points back."""
_USAGE_SUFFIX = "#usage"


def usage_id(message_id: str) -> str:
    """The id of the entry with the usage that a later line of an answer told, beyond that of the lines before it."""
    return message_id + _USAGE_SUFFIX


class TailNode(Struct, frozen=True):
    """A node near the end of the conversation; `role` is "" if it is no message."""

    id: str
    role: str
    request: str | None = None
    usage: Usage | None = None


class TranscriptTail(Struct):
    """The last nodes of a conversation that ends at `head`."""

    head: int
    nodes: list[TailNode]

    @classmethod
    def of(cls, session: Session) -> TranscriptTail:
        """Read the tail of a session."""
        tail = cls(session.head, [])
        for node in session.path(last=_TAIL_LENGTH):
            late = session.find(usage_id(node.id)) if isinstance(node, Message) and not node.usage else None
            tail.add(replace(node, usage=late.usage) if isinstance(late, Spent) else node)
        return tail

    def add(self, entry: AnyEntry) -> None:
        """Add a node behind the others."""
        is_said = isinstance(entry, Message)
        # What was kept of a conversation stands behind a summary of ours, so that lines go on from before it.
        is_summary = isinstance(entry, Compaction) and is_mirrored(entry)
        role = entry.role if is_said else "user" if is_summary else ""
        spent = (entry.request, entry.usage) if is_said else (None, None)
        self.nodes = [*self.nodes[1 - _TAIL_LENGTH :], TailNode(entry.id, role, *spent)]

    def continues(self, line: Line, drafts: Sequence[AnyEntry]) -> bool:
        """Whether a line follows the end. Otherwise it points back, to where a branch begins.

        In a transcript the results of parallel calls, and what an answer says between them, hang beside each other;
        here they stand in a row. So a line also follows the end if only such nodes are between its parent and the end.
        """
        message = drafts[-1]
        if "parentUuid" not in line or not isinstance(message, Message):
            return True
        parent = line["parentUuid"]
        if parent is None:
            return self._is_beginning()
        if not isinstance(parent, str):
            return True
        for node in reversed(self.nodes):
            if node.id == parent:
                return True
            if node.role and not _is_parallel_result(node, drafts[0]) and not _is_same_answer(node, message):
                return False
        return False

    def _is_beginning(self) -> bool:
        return not any(node.role for node in self.nodes)

    def knows(self, request: str | None) -> bool:
        """Whether a line of that API message is there."""
        return request is not None and any(node.request == request for node in self.nodes)

    def unrecorded_usage(self, line: Line) -> Usage | None:
        """The usage of an API message that a line tells, beyond what was recorded of it; None if there is no more."""
        reported = usage_of(line)
        if reported is None:
            return None
        request, usage = reported
        recorded = sum((node.usage for node in self.nodes if node.request == request and node.usage), Usage())
        more = usage.beyond(recorded)
        return more if more != Usage() else None


def _is_parallel_result(node: TailNode, first: AnyEntry) -> bool:
    """Whether a line is a result, and a node its call or a result beside it."""
    return isinstance(first, Message) and first.role == "tool" and node.role in ("tool", "assistant")


def _is_same_answer(node: TailNode, message: Message) -> bool:
    """Whether a line is of an answer, and a node of the same one or a result of its calls."""
    if message.role != "assistant":
        return False
    return node.role == "tool" or (message.request is not None and node.request == message.request)

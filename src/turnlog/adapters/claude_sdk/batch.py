"""Lines of a transcript on their way into a session."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from turnlog.adapters.claude_sdk.tail import Line, TranscriptTail, usage_id
from turnlog.formats.claude_code.heading import cleared_calls
from turnlog.formats.claude_code.mirror import cleared
from turnlog.log.entry import AnyEntry, Message, Spent
from turnlog.session import Session


class LineBatch:
    """Lines on their way into a session. If there is none, it is created with the first of them."""

    def __init__(
        self,
        create: Callable[[list[AnyEntry]], Session],
        session: Session | None,
        facts: list[AnyEntry],
        tail: TranscriptTail,
    ) -> None:
        self._create = create
        self.session = session
        self.tail = tail
        self._facts = facts
        self._drafts: list[AnyEntry] = []
        self._ids: set[str] = set()
        self._to: int | None = None
        self._has_begun = False

    def add(self, line: Line, drafts: list[AnyEntry]) -> None:
        """Add a line, on a branch if it points back. What the session has already is left out."""
        if not self.tail.continues(line, drafts) and not self._branch(line.get("parentUuid"), drafts[-1].id):
            return
        self._put(line, drafts)
        if calls := cleared_calls(line):
            self._clear(line, calls)

    def _put(self, line: Line, drafts: list[AnyEntry]) -> None:
        """Add the drafts of a line, unless it was in this batch already."""
        if drafts[-1].id in self._ids:
            return
        self._ids.add(drafts[-1].id)
        message = drafts[-1]
        if isinstance(message, Message) and message.role == "assistant":
            more, is_known = self.tail.unrecorded_usage(line), self.tail.knows(message.request)
            drafts = [*drafts[:-1], replace(message, usage=None if is_known else more)]
            if more is not None and is_known:  # a request counts with the first message that names it
                self._drafts.append(Spent(id=usage_id(message.id), usage=more, model=message.model, why="late"))
            message = replace(message, usage=more)
        for draft in [*drafts[:-1], message]:
            self.tail.add(draft)
        self._drafts += drafts

    def _clear(self, line: Line, calls: list[str]) -> None:
        """Take the results of these calls out of what goes to the model, as the line says."""
        for node in self.flush().path():
            if isinstance(node, Message) and (edit := cleared(node, calls, line)) is not None:
                self._drafts.append(edit)
                self.tail.add(edit)

    def _branch(self, parent: str | None, id: str) -> bool:
        """Go on from another node; False if the line of that `id`, which asks for it, is there already."""
        if id in self._ids or (self.session is not None and self.session.find(id) is not None):
            return False
        if parent is not None and parent in self._ids:
            self.flush()
        target = None if parent is None or self.session is None else self.session.find(parent)
        if parent is None or (target is not None and target.is_node):
            self.flush()
            self._to = 0 if target is None else target.seq
            self.tail.nodes = []
            if target is not None:
                self.tail.add(target)
        return True

    def flush(self) -> Session:
        """Write the lines added so far: all of them or nothing."""
        drafts, self._drafts = [*self._facts, *self._drafts], []
        if self.session is None:
            self.session = self._create(drafts)
        elif not drafts:
            return self.session
        else:
            # Facts are about the whole session, so they are refused if others wrote anything: they may be out of date.
            # After the first write of this batch, its lines go behind what others wrote.
            self.session.append(*drafts, to=self._to, rebase=self._has_begun, alone=bool(self._facts))
        self._facts, self._to, self._has_begun = [], None, True
        return self.session

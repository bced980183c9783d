"""A session to look at: what commands that only read ask of it besides."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from msgspec import Struct
from msgspec.structs import fields

from turnlog.log.block import ToolCall, ToolResult
from turnlog.log.context import cut_for_keep, split_system, text_of
from turnlog.log.entry import AnyEntry, Head, Message, Set
from turnlog.log.ids import word_of
from turnlog.log.usage import Usage
from turnlog.machine.process import is_alive
from turnlog.session import Home
from turnlog.session.readonly import ReadOnlySession
from turnlog.thread.history import loaded
from turnlog.thread.summary import summarise


class Totals(Struct, frozen=True):
    """How much is in a session, whichever branch it is on. Subagents and what a fork inherited count where they are."""

    messages: int
    """Of user and assistant."""
    tool_calls: int
    tool_results: int
    usage: dict[str, int | None]
    """Every field of `Usage`."""


class CompactionPreview(Struct, frozen=True):
    """What a compaction would do to what a model sees."""

    removed: int
    """How many messages it would see no more."""
    kept: int
    summary: str
    """What it would see instead, where no model writes it."""


class Look(ReadOnlySession):
    """A session to read from, however large it is."""

    def told(self, head: int | None = None, *, after: int = 0) -> Iterator[AnyEntry]:
        """The nodes that lead to the head, and the marks between them that people should see; oldest first."""
        head = self.head if head is None else head
        seqs: list[int] = []
        for node in self.history.path(head):
            if node.seq <= after:
                break
            seqs.append(node.seq)
        path = {*seqs, 0, after}
        is_here = True  # a mark belongs to where the conversation stood when it was made
        for entry in self.history.forward(after):
            if entry.parent is not None:
                is_here = bool(seqs) and entry.seq == seqs[-1]
                if is_here:
                    seqs.pop()
                    yield self.history.whole(entry)
            elif isinstance(entry, Head):
                is_here = entry.to in path and (bool(seqs) or head == self.head)
                if is_here:
                    yield entry
            elif is_here and entry.is_shown and not self._is_title(entry):
                yield self.history.whole(entry)

    def _is_title(self, entry: AnyEntry) -> bool:
        """Whether it only says what stands above the conversation anyway."""
        return isinstance(entry, Set) and entry.key == "title" and entry.value == self.title

    def answer_before(self, head: int, seq: int) -> Message | None:
        """The last answer of a model before an entry, on the way to a head."""
        for node in self.history.path(head):
            if node.seq < seq and isinstance(node, Message) and node.role == "assistant":
                return self.history.whole(node)
        return None

    def news(self, last: int, *, seconds: float) -> list[AnyEntry]:
        """What was appended after entry `last`, by whomever; waits for it, but not longer than so many seconds."""
        has_grown = self._log.wait(last) or (seconds > 0 and self._log.wait(last, seconds=seconds))
        return list(self.entries(after=last)) if has_grown else []

    def message_seqs(self, head: int, *, most: int | None = None) -> list[int]:
        """The numbers of the messages that lead to a head, oldest first; only the last ones, if told how many."""
        path = (node.seq for node in self.history.path(head) if isinstance(node, Message))
        return list(islice(path, most))[::-1]

    def is_node(self, seq: int) -> bool:
        """Whether that entry is part of a conversation, on whichever branch."""
        entry = self.history.at(seq)
        return entry is not None and entry.parent is not None

    def totals(self) -> Totals:
        """Count what this session's own log has; reads all of it."""
        messages = calls = results = 0
        for entry in self.history.forward(self.history.inherited_to):
            if isinstance(entry, Message) and not self.history.is_repeat(entry):
                messages += entry.role in ("user", "assistant")
                calls += sum(isinstance(block, ToolCall) for block in entry.blocks)
                results += sum(isinstance(block, ToolResult) for block in entry.blocks)
        own = self._state.own
        return Totals(messages, calls, results, {field.name: getattr(own, field.name) for field in fields(Usage)})

    def cut(self, keep: int, summary: str | None) -> CompactionPreview:
        """What compacting it now would do; nothing is written."""
        replaced, kept = self._visible()
        own = kept if replaced else split_system(kept)[1]
        first = cut_for_keep(own, keep)
        stay = sum(message.seq >= first for message in own if message.seq) if first else 0
        gone = len(replaced) + len(own) - stay
        if summary is None and gone:
            summary = text_of(summarise([*replaced, *own], before=first).blocks)
        return CompactionPreview(gone, stay, summary or "")

    def who_is_busy(self) -> int:
        """The process that is in the middle of a turn; 0 if none is."""
        turn = self._state.turn
        who = self._state.writers.get(word_of(turn)) if turn is not None else None
        return int(who.get("pid") or 0) if who is not None and is_alive(who) else 0


def look_at(home: Home, session_id: str) -> Look:
    """A session of that home to read from. Nothing is locked, and a deleted one can be read as well."""
    return Look(home, loaded(home.store, home.store.base(session_id)))

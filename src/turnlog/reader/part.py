"""Which part of a conversation is meant: the last messages, what is around an entry, another branch."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, takewhile

from msgspec import Struct

from turnlog.errors import NotFound
from turnlog.log.entry import AnyEntry, Head, Message, Set
from turnlog.thread.reader import SessionReader, history_of
from turnlog.view.number import count

_AROUND = 3
_NAMED = 8


class Part(Struct, frozen=True):
    """The entries of a conversation after `after` and up to `until`, on the way to `head`."""

    head: int
    after: int = 0
    until: int = 0
    """The last entry of it; 0: up to the end."""
    mark: int = 0
    """The entry that was asked for."""
    note: str = ""
    """What is left out."""

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left out."""
        return not self.after and not self.until

    @property
    def is_end(self) -> bool:
        """Whether it goes up to where the conversation stands."""
        return not self.until

    def holds(self, seq: int) -> bool:
        """Whether an entry is in the stretch of the log that it is about."""
        return seq > self.after and (not self.until or seq <= self.until)

    def before(self, session: SessionReader) -> Message | None:
        """The answer whose tool calls may have their results in this part."""
        path = history_of(session).path(self.head) if self.after else iter(())
        for node in path:
            if node.seq <= self.after and isinstance(node, Message) and node.role == "assistant":
                return history_of(session).whole(node)
        return None

    def entries(self, session: SessionReader) -> Iterator[AnyEntry]:
        """The nodes of it, and the marks between them that people should see; oldest first, however many there are."""
        history = history_of(session)
        seqs = [node.seq for node in takewhile(lambda node: node.seq > self.after, history.path(self.head))]
        path = {*seqs, 0, self.after}
        is_here = True  # a mark belongs to where the conversation stood when it was made
        for entry in history.forward(self.after, self.until + 1 if self.until else None):
            if entry.parent is not None:
                is_here = bool(seqs) and entry.seq == seqs[-1]
                if is_here:
                    seqs.pop()
                    yield history.whole(entry)
            elif isinstance(entry, Head):
                is_here = entry.to in path and (bool(seqs) or self.head == session.head)
                if is_here:
                    yield entry
            elif is_here and entry.is_shown and not _is_title(entry, session):
                yield history.whole(entry)


def numbered(word: str) -> int | None:
    """The number that a word is; None if it is none, or larger than any in a log."""
    return int(word) if word.isascii() and word.isdecimal() and len(word) < 19 else None


def _is_title(entry: AnyEntry, session: SessionReader) -> bool:
    """Whether it only says what stands above the conversation anyway."""
    return isinstance(entry, Set) and entry.key == "title" and entry.value == session.title


def _messages(session: SessionReader, head: int, *, most: int | None = None) -> list[int]:
    """The numbers of the messages that lead to a head, oldest first; only the last ones, if told how many."""
    path = (node.seq for node in history_of(session).path(head) if isinstance(node, Message))
    return list(islice(path, most))[::-1]


def _is_node(session: SessionReader, seq: int) -> bool:
    """Whether that entry is part of a conversation, on whichever branch."""
    entry = history_of(session).at(seq)
    return entry is not None and entry.parent is not None


def part_of(
    session: SessionReader, *, last: int | None = None, at: str | None = None, branch: str | None = None
) -> Part:
    """The part that the options say."""
    head = session.head if branch is None else _branch(session, branch)
    if at is not None:
        return _around(session, _seq(session, at), head, last or _AROUND)
    if last is None:
        return Part(head)
    seqs = _messages(session, head, most=last + 1)
    if len(seqs) <= last:
        return Part(head)
    return Part(head, after=seqs[-last] - 1, note="… earlier messages are left out")


def _seq(session: SessionReader, word: str) -> int:
    seq = numbered(word)
    if seq is not None and history_of(session).at(seq) is not None:
        return seq
    entry = session.find(word)
    if entry is None:
        hint = f"its last is {session.seq}; `turnlog log SESSION` shows them"
        raise NotFound(f"no entry {word!r:.80} in session {session.id}", hint=hint)
    return entry.seq


def _branch(session: SessionReader, word: str) -> int:
    ends = [branch.head for branch in session.branches()]
    head = numbered(word)
    if head is not None and (head in ends or _is_node(session, head)):
        return head
    some = ", ".join(map(str, ends[:_NAMED])) + (" …" if len(ends) > _NAMED else "")
    raise NotFound(
        f"no branch {word!r:.80} in session {session.id}", hint=f"there are {some}; `turnlog tree` shows them"
    )


def _branch_with(session: SessionReader, seq: int, head: int) -> int:
    """A branch that has an entry: this one, if it does. A mark is where the conversation stood when it was made."""
    history = history_of(session)
    node = seq if _is_node(session, seq) else history.state_at(seq).head
    for end in (head, *(branch.head for branch in session.branches())):
        if not node or any(
            other.seq == node for other in takewhile(lambda other: other.seq >= node, history.path(end))
        ):
            return end
    return head


def _around(session: SessionReader, seq: int, head: int, number: int) -> Part:
    """This many messages on each side of an entry, on a branch that has it."""
    head = _branch_with(session, seq, head)
    seqs = _messages(session, head)
    index = sum(other < seq for other in seqs)
    first = max(0, index - number)
    end = index + number + (index < len(seqs) and seqs[index] == seq)
    left = [count(first, "message") + " before" if first else "", ""]
    if end < len(seqs):
        left[1] = count(len(seqs) - end, "message") + " after"
    remaining = " and ".join(filter(None, left))
    return Part(
        head,
        after=seqs[first] - 1 if first else 0,
        until=seqs[end] - 1 if end < len(seqs) else 0,
        mark=seq,
        note=f"… around entry {seq}; {remaining} left out" if remaining else f"… entry {seq}",
    )

"""Which part of a conversation is meant: the last messages, what is around an entry, another branch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from turnlog.errors import NotFound
from turnlog.view.number import count

if TYPE_CHECKING:
    from turnlog.log.entry import AnyEntry
    from turnlog.reader.look import Look

_AROUND = 3
_NAMED = 8


class Part(Struct, frozen=True):
    """From where to where, on the way to which head."""

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

    def before(self, found: Look) -> AnyEntry | None:
        """The answer whose tool calls may have their results in this part."""
        return found.answer_before(self.head, self.after + 1) if self.after else None

    def entries(self, found: Look) -> Iterator[AnyEntry]:
        """What is in it, oldest first."""
        for entry in found.told(self.head, after=self.after):
            if self.until and entry.seq > self.until:
                return
            yield entry


def part_of(found: Look, *, last: int | None, at: str | None, branch: str | None) -> Part:
    """The part that the options say."""
    head = found.head if branch is None else _branch(found, branch)
    if at is not None:
        return _around(found, _seq(found, at), head, last or _AROUND)
    if last is None:
        return Part(head)
    seqs = found.message_seqs(head, most=last + 1)
    if len(seqs) <= last:
        return Part(head)
    return Part(head, after=seqs[-last] - 1, note="… earlier messages are left out")


def _seq(found: Look, word: str) -> int:
    if word.isdecimal() and len(word) < 19:
        seq = int(word)
        if any(True for entry in found.entries(after=seq - 1) if entry.seq == seq):
            return seq
    entry = found.find(word)
    if entry is None:
        raise NotFound(f"no entry {word!r:.80} in session {found.id}", hint="`turnlog log` shows what there is")
    return entry.seq


def _branch(found: Look, word: str) -> int:
    ends = [branch.head for branch in found.branches()]
    if word.isdecimal() and (int(word) in ends or found.is_node(int(word))):
        return int(word)
    some = ", ".join(map(str, ends[:_NAMED])) + (" …" if len(ends) > _NAMED else "")
    raise NotFound(f"no branch {word!r:.80} in session {found.id}", hint=f"there are {some}; `turnlog tree` shows them")


def _around(found: Look, seq: int, head: int, number: int) -> Part:
    """So many messages on each side of an entry, on a branch that has it."""
    seqs = found.message_seqs(head)
    if seq not in seqs and found.is_node(seq):
        for branch in found.branches():
            others = found.message_seqs(branch.head)
            if seq in others:
                head, seqs = branch.head, others
                break
    index = sum(other < seq for other in seqs)
    first = max(0, index - number)
    end = index + number + (index < len(seqs) and seqs[index] == seq)
    left = [count(first, "message") + " before" if first else "", ""]
    if end < len(seqs):
        left[1] = count(len(seqs) - end, "message") + " after"
    told = " and ".join(filter(None, left))
    return Part(
        head,
        after=seqs[first] - 1 if first else 0,
        until=seqs[end] - 1 if end < len(seqs) else 0,
        mark=seq,
        note=f"… around entry {seq}; {told} left out" if told else f"… entry {seq}",
    )

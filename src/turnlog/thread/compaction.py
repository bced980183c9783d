"""How a compaction is made: its replacement, and from which message on the conversation stays as it is."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import NamedTuple

from msgspec import Struct

from turnlog.errors import Invalid, NotFound
from turnlog.log.context import Context, newest_known, split_system, text_of, visible
from turnlog.log.context.tokens import tokens_of
from turnlog.log.context.toolturn import cut_for_keep
from turnlog.log.entry import AnyEntry, Compaction, Custom, Edit, Message, Ref, Uncompact
from turnlog.log.prompt.promptmessage import is_prompt
from turnlog.thread.history import History


class KeptEnd(NamedTuple):
    """How much of the end of a conversation stays as it is: a number of messages, turns or tokens."""

    messages: int = 0
    turns: int | None = None
    tokens: int | None = None

    def count(self, messages: list[Message]) -> int:
        """How many of the last of these messages stay."""
        own = [message for message in messages if message.seq]
        if self.turns is not None:
            begins = [index for index, message in enumerate(own) if is_prompt(message)]
            if not self.turns or not begins:
                return 0 if not self.turns else len(own)
            return len(own) - (begins[-self.turns] if self.turns < len(begins) else 0)
        if self.tokens is None:
            return self.messages
        kept = size = 0
        for index in range(len(own) - 1, -1, -1):
            size += tokens_of(own[index])
            if size > self.tokens:
                break
            if _may_begin(own, index):
                kept = len(own) - index
        return kept


def _may_begin(own: list[Message], index: int) -> bool:
    """Whether the kept part may begin there: not with a result, nor with the answer right after its question."""
    message = own[index]
    return message.role != "tool" and not (message.role == "assistant" and index and own[index - 1].role == "user")


def check_compaction(replacement: list[Message | Ref] | None, keep: KeptEnd, *, of: Context | None) -> None:
    """Raise `Invalid` for arguments that make no sense."""
    for unit, amount in zip(("messages", "turns", "tokens"), keep, strict=True):
        is_left_out = amount is None and unit != "messages"
        if not is_left_out and (type(amount) is not int or amount < 0):
            raise Invalid(f"cannot keep {amount!r:.80} {unit}")
    if sum(map(bool, (keep.messages, keep.turns is not None, keep.tokens is not None))) > 1:
        raise Invalid("keep, keep_turns and keep_tokens each say how much is kept", hint="give one of them")
    if of is not None and not isinstance(of, Context):  # pyright: ignore[reportUnnecessaryIsInstance]
        hint = "of=session.context(), taken before the summary was made"
        raise Invalid(f"`of` is not a Context: {of!r:.80}", hint=hint)
    for item in replacement or ():
        if not isinstance(item, (Message, Ref)):  # pyright: ignore[reportUnnecessaryIsInstance]
            text = f"a summary consists of messages and references, not {item!r:.80}"
            raise Invalid(text, hint="text, turnlog.Message or turnlog.Ref")


def applying(history: History, head: int, which: int | None) -> int:
    """The `seq` of compaction `which`, or of the newest one, if it applies to the conversation; or `NotFound`."""
    cancelled: set[int] = set()
    for node in history.path(head):
        if isinstance(node, Uncompact):
            cancelled.add(node.compaction)
        elif isinstance(node, Compaction) and node.seq not in cancelled and which in (None, node.seq):
            return node.seq
    raise NotFound(f"no compaction {'' if which is None else f'{which} '}applies to this conversation")


class _Cut(Struct, frozen=True):
    """Where a compaction cuts the conversation."""

    replaced: list[Message]
    """The replacement of the newest compaction."""
    rest: list[Message]
    """The rest of what a model sees, without the leading system messages."""
    first: int
    """The `seq` of the first message that stays; 0 if none does."""


def _cut(history: History, head: int, keep: KeptEnd, of: Context | None) -> _Cut:
    def path() -> Iterator[AnyEntry]:
        return (history.whole(node) for node in history.path(head))

    def spoken_path() -> Iterator[AnyEntry]:
        """The path without its compactions, so that messages hidden by an earlier one are included."""
        return (node for node in path() if not isinstance(node, Compaction))

    find = history.whole_at
    replaced, rest = visible(path(), find)
    seen = None if of is None else newest_known(of, history.path(head), _path_of(history, of))
    if seen is not None:
        later = visible(takewhile(lambda node: node.seq > seen, spoken_path()), find)[1]
        if later and (not rest or later[0].seq < rest[0].seq):
            rest = split_system(visible(spoken_path(), find)[1])[1]
    rest = rest if replaced else split_system(rest)[1]
    return _Cut(replaced, rest, cut_for_keep(rest, keep.count(rest), seen=seen))


def compaction(
    history: History, head: int, replacement: list[Message | Ref] | None, keep: KeptEnd, *, of: Context | None
) -> Compaction:
    """The entry that hides everything but what is kept and what came after the context `of`."""
    if replacement is not None and any(isinstance(item, Ref) for item in replacement):
        replacement = _as_edited(history, head, replacement)
    cut = _cut(history, head, keep, of)
    if replacement is None:
        replacement = [_summary(cut)]
    return Compaction(replacement=replacement, keep=cut.first)


def _summary(cut: _Cut) -> Message:
    from turnlog.thread.summary import summarise

    return summarise([*cut.replaced, *cut.rest], before=cut.first)


class CompactionPreview(Struct, frozen=True):
    """What a compaction would change in the context of a model."""

    removed: int
    """How many messages the model would no longer see."""
    kept: int
    summary: str
    """The text that the model would see instead."""


def preview(history: History, head: int, *, keep: KeptEnd, summary: str | None) -> CompactionPreview:
    """What a compaction would do now, with this summary or one made without a model; nothing is written."""
    cut = _cut(history, head, keep, None)
    stay = sum(message.seq >= cut.first for message in cut.rest if message.seq) if cut.first else 0
    gone = len(cut.replaced) + len(cut.rest) - stay
    if summary is None and gone:
        summary = text_of(_summary(cut).blocks)
    return CompactionPreview(gone, stay, summary or "")


def _path_of(history: History, context: Context) -> Iterator[AnyEntry]:
    """The nodes that a context was made of, newest first; none if the context is not of this session."""
    entry = history.at(context.head)
    return history.path(context.head) if entry is not None and entry.id == context.head_id else iter(())


def _as_edited(history: History, head: int, replacement: list[Message | Ref]) -> list[Message | Ref]:
    """Apply edits to the messages that a replacement refers to: edited stays edited, and left out stays left out."""
    edits: dict[int, Edit] = {}
    for node in history.path(head):
        if isinstance(node, Edit):
            edits.setdefault(node.entry, history.whole(node))
    edited: list[Message | Ref] = []
    for item in replacement:
        if isinstance(item, Message):
            edited.append(item)
            continue
        original = history.at(item.entry)
        if not isinstance(original, (Message, Custom)):
            raise NotFound(f"no message {item.entry} in session {history.id}")
        edit = edits.get(item.entry)
        if edit is None:
            edited.append(item)
        elif edit.blocks is not None:
            # The `seq` is kept, so that a later edit of the entry still changes what the model sees.
            edited.append(Message(role=original.role, blocks=edit.blocks, seq=original.seq))
    return edited

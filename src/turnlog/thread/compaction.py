"""A compaction on its way: what it puts in, and from where on everything stays as it is."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import NamedTuple

from msgspec import Struct

from turnlog.errors import Invalid, NotFound
from turnlog.log.context import Context, cut_for_keep, newest_known, split_system, text_of, visible
from turnlog.log.entry import AnyEntry, Compaction, Custom, Edit, Message, Ref, Uncompact
from turnlog.log.shown.promptmessage import is_prompt
from turnlog.log.shown.tokens import tokens_of
from turnlog.thread.history import History


class KeptEnd(NamedTuple):
    """How much stays as it is: so many messages, or turns, or tokens."""

    messages: int = 0
    turns: int | None = None
    tokens: int | None = None

    def count(self, messages: list[Message]) -> int:
        """How many of the last of these messages that is."""
        own = [message for message in messages if message.seq]
        if self.turns is not None:
            begins = [place for place, message in enumerate(own) if is_prompt(message)]
            if not self.turns or not begins:
                return 0 if not self.turns else len(own)
            return len(own) - (begins[-self.turns] if self.turns < len(begins) else 0)
        if self.tokens is None:
            return self.messages
        kept = size = 0
        for place in range(len(own) - 1, -1, -1):
            size += tokens_of(own[place])
            if size > self.tokens:
                break
            if _may_begin(own, place):
                kept = len(own) - place
        return kept


def _may_begin(own: list[Message], place: int) -> bool:
    """Whether what is kept may begin there: not with a result, nor with an answer right behind its question."""
    message = own[place]
    return message.role != "tool" and not (message.role == "assistant" and place and own[place - 1].role == "user")


def check_compaction(replacement: list[Message | Ref] | None, keep: KeptEnd, *, of: Context | None) -> None:
    """Raise `Invalid` for what a caller cannot have meant."""
    for what, much in zip(("messages", "turns", "tokens"), keep, strict=True):
        if much is not None and (type(much) is not int or much < 0):
            raise Invalid(f"cannot keep {much!r:.80} {what}")
    if sum(map(bool, (keep.messages, keep.turns is not None, keep.tokens is not None))) > 1:
        raise Invalid("keep, keep_turns and keep_tokens each say how much is kept", hint="give one of them")
    if of is not None and not isinstance(of, Context):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise Invalid(f"a compaction of {of!r:.80}", hint="of=session.context(), taken before the summary was made")
    for item in replacement or ():
        if not isinstance(item, (Message, Ref)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise Invalid(f"{item!r:.80} in a summary", hint="text, turnlog.Message or turnlog.Ref")


def applying(history: History, head: int, which: int | None) -> int:
    """The `seq` of that compaction, or of the newest one, if it applies to the conversation; raises `NotFound`."""
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
    """What the newest compaction put in."""
    shown: list[Message]
    """The rest of what a model sees, without the system messages at the beginning."""
    first: int
    """The `seq` of the first message that stays; 0 if none does."""


def _cut(history: History, head: int, keep: KeptEnd, of: Context | None) -> _Cut:
    def path() -> Iterator[AnyEntry]:
        return (history.whole(node) for node in history.path(head))

    def said() -> Iterator[AnyEntry]:
        """What was said, also where an earlier compaction hides it."""
        return (node for node in path() if not isinstance(node, Compaction))

    find = history.whole_at
    replaced, shown = visible(path(), find)
    seen = None if of is None else newest_known(of, history.path(head), _path_of(history, of))
    if seen is not None:
        later = visible(takewhile(lambda node: node.seq > seen, said()), find)[1]
        if later and (not shown or later[0].seq < shown[0].seq):
            shown = split_system(visible(said(), find)[1])[1]
    shown = shown if replaced else split_system(shown)[1]
    return _Cut(replaced, shown, cut_for_keep(shown, keep.count(shown), seen=seen))


def compaction(
    history: History, head: int, replacement: list[Message | Ref] | None, keep: KeptEnd, *, of: Context | None
) -> Compaction:
    """The entry that hides all but what is to be kept, and whatever came after the context `of`."""
    if replacement is not None and any(isinstance(item, Ref) for item in replacement):
        replacement = _as_edited(history, head, replacement)
    cut = _cut(history, head, keep, of)
    if replacement is None:
        replacement = [_summary(cut)]
    return Compaction(replacement=replacement, keep=cut.first)


def _summary(cut: _Cut) -> Message:
    from turnlog.thread.summary import summarise

    return summarise([*cut.replaced, *cut.shown], before=cut.first)


class CompactionPreview(Struct, frozen=True):
    """What a compaction would do to what a model sees."""

    removed: int
    """How many messages it would see no more."""
    kept: int
    summary: str
    """What it would see instead."""


def preview(history: History, head: int, *, keep: KeptEnd, summary: str | None) -> CompactionPreview:
    """What compacting it now would do, with that summary or with one that is made here; nothing is written."""
    cut = _cut(history, head, keep, None)
    stay = sum(message.seq >= cut.first for message in cut.shown if message.seq) if cut.first else 0
    gone = len(cut.replaced) + len(cut.shown) - stay
    if summary is None and gone:
        summary = text_of(_summary(cut).blocks)
    return CompactionPreview(gone, stay, summary or "")


def _path_of(history: History, context: Context) -> Iterator[AnyEntry]:
    """The nodes a context was made of, newest first; none if it is not of this session."""
    entry = history.at(context.head)
    return history.path(context.head) if entry is not None and entry.id == context.head_id else iter(())


def _as_edited(history: History, head: int, replacement: list[Message | Ref]) -> list[Message | Ref]:
    """What was edited or left out for the model stays so when a replacement names it."""
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
            # With its number, so that whoever edits it later still changes what the model sees.
            edited.append(Message(role=original.role, blocks=edit.blocks, seq=original.seq))
    return edited

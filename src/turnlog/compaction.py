"""Policies for making a conversation smaller: old results of tools first, then a summary of the rest.

policy = CompactionPolicy(budget=0.8, window=200_000, keep_turns=2)
compact(s, policy, lambda asked: anthropic.draft(client.messages.create(**anthropic.request(asked, …))))
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from turnlog.errors import Conflict, Invalid
from turnlog.log.block import AnyBlock, Text, ToolResult
from turnlog.log.context import Context, text_of
from turnlog.log.context.nativecompaction import newest
from turnlog.log.context.tokens import tokens_of
from turnlog.log.entry import Edit, Message
from turnlog.thread.compaction import KeptEnd

if TYPE_CHECKING:
    from turnlog import aio
    from turnlog.session import Session

CLEARED = "[an old result, left out to save room]"
ASK = (
    "Sum up this conversation for whoever goes on with it: what was asked for, what was decided and why, what was done "
    "to which files, what was found out, and what is left to do. Say nothing else."
)
_BUDGET_HINT = "whole tokens, or a share up to 1.0 with window="
Summarise = Callable[[Context], "Message | str"]
SummariseAsync = Callable[[Context], "Awaitable[Message | str]"]


class CompactionStep(Struct, frozen=True):
    """A decision of a policy, and why."""

    does: Literal["nothing", "clear", "summarise"]
    tokens: int
    """Estimated tokens of the context before."""
    why: str
    edits: list[Edit] = []
    """For `clear`: the edits that replaced old results."""


class CompactionPolicy(Struct, frozen=True, kw_only=True):
    """How large a context may be, and what is kept of one that is larger."""

    budget: int | float
    """Tokens; or, up to 1.0, a share of the `window`."""
    window: int | None = None
    """How many tokens the model takes."""
    keep_turns: int | None = None
    keep_tokens: int | None = None
    """How much of the end stays as it was said; a quarter of the budget if neither is given."""
    clears_results: bool = True
    """Whether old results are left out first, if that is enough: it costs no request."""
    ask: str = ASK
    """The request for a summary, as the model gets it."""

    def __post_init__(self) -> None:
        if type(self.budget) not in (int, float):
            raise Invalid(f"a budget of {self.budget!r:.80} is no number of tokens", hint=_BUDGET_HINT)
        if self.window is not None and (type(self.window) is not int or self.window <= 0):
            raise Invalid(f"a window of {self.window!r:.80} tokens is not possible", hint=_BUDGET_HINT)
        if isinstance(self.budget, float):
            if not 0 < self.budget <= 1:
                raise Invalid(f"a budget of {self.budget} is no share between 0 and 1", hint=_BUDGET_HINT)
            if self.window is None:
                raise Invalid(f"a budget of {self.budget} is a share, and needs `window`", hint=_BUDGET_HINT)
        if self.limit <= 0:
            raise Invalid(f"a budget of {self.limit} tokens is too small", hint=_BUDGET_HINT)
        for name, kept in (("turns", self.keep_turns), ("tokens", self.keep_tokens)):
            if kept is not None and (type(kept) is not int or kept < 0):
                raise Invalid(f"cannot keep {kept!r:.80} {name}", hint=f"give 0 or more as keep_{name}")
        if self.keep_turns is not None and self.keep_tokens is not None:
            raise Invalid("keep_turns and keep_tokens each say how much is kept", hint="give one of them")

    @property
    def limit(self) -> int:
        """The budget in tokens."""
        return int(self.budget * (self.window or 0)) if isinstance(self.budget, float) else self.budget

    @property
    def kept(self) -> KeptEnd:
        """How much of the end stays."""
        if self.keep_turns is not None:
            return KeptEnd(turns=self.keep_turns)
        return KeptEnd(tokens=self.limit // 4 if self.keep_tokens is None else self.keep_tokens)

    def decide(self, context: Context) -> CompactionStep:
        """Decide what to do with a context; nothing is changed."""
        tokens = int(context.tokens)
        if tokens <= self.limit:
            return CompactionStep("nothing", tokens, f"it fits into {self.limit} tokens")
        logged = [message for message in context if message.seq]
        kept_count = self.kept.count(logged)
        # What a provider compacted is small already, and an edit of that would undo it.
        native = newest(logged, context.stands_for)
        start, end = 0 if native is None else native.message, len(logged) - kept_count
        old = logged[start:end]
        if not old:
            return CompactionStep("nothing", tokens, f"the part to be kept is already over {self.limit} tokens")
        if self.clears_results:
            edits, saved = _cleared(old, others=[*logged[:start], *logged[end:]])
            if edits and tokens - saved <= self.limit:
                return CompactionStep("clear", tokens, f"leaving out old results saves about {saved} tokens", edits)
        return CompactionStep("summarise", tokens, f"{len(old)} messages go into a summary")


def _cleared(old: list[Message], *, others: list[Message]) -> tuple[list[Edit], int]:
    """The edits that leave out old results of tools, where that is shorter, and how many tokens they save.

    An edit is of a whole entry, which may be several messages of a context. If one of these is not an old result, the
    entry stays.
    """
    staying = {message.seq for message in others} | {message.seq for message in old if message.role != "tool"}
    blocks: dict[int, list[AnyBlock]] = {}
    saved: dict[int, int] = {}
    for message in old:
        if message.role == "tool" and message.seq not in staying:
            short: list[AnyBlock] = [
                replace(block, content=CLEARED, blob=None, raw=None) if isinstance(block, ToolResult) else block
                for block in message.blocks
            ]
            blocks.setdefault(message.seq, []).extend(short)
            fewer = tokens_of(message) - tokens_of(replace(message, blocks=short))
            saved[message.seq] = saved.get(message.seq, 0) + fewer
    shorter = {seq: fewer for seq, fewer in saved.items() if fewer > 0}  # not what is cleared already
    return [Edit(entry=seq, blocks=blocks[seq]) for seq in shorter], sum(shorter.values())


def compact(session: Session, policy: CompactionPolicy, summarise: Summarise) -> CompactionStep:
    """Compact the context of a session as the policy decides. `summarise` asks a model with the given context.

    It returns a message (from the `draft` of a dialect, whose usage is counted) or a text. If it raises, or the message
    is not a complete answer, the conversation stays as it was. Whatever is said while the model is asked stays visible.
    """
    context = session.context()
    step = policy.decide(context)
    if step.does == "clear":
        session.append(*step.edits, rebase=True)
    if step.does != "summarise":
        return step
    answer = _message(summarise(context.plus(policy.ask)))
    flaw = _flaw(answer)
    if flaw:
        if answer.usage is not None:
            session.spend(answer.usage, model=answer.model, why="compaction", request=answer.request)
        return CompactionStep("nothing", step.tokens, flaw)
    while True:  # a Conflict means that another writer has appended something
        try:
            session.compact(text_of(answer.blocks).strip(), of=context, **_compaction_fields(policy, step, answer))
        except Conflict:
            session.refresh()  # what was said meanwhile stays visible
        else:
            return step


async def compact_async(session: aio.Session, policy: CompactionPolicy, summarise: SummariseAsync) -> CompactionStep:
    """Do as `compact` does, for a session of `turnlog.aio`."""
    context = await session.context()
    step = policy.decide(context)
    if step.does == "clear":
        await session.append(*step.edits, rebase=True)
    if step.does != "summarise":
        return step
    answer = _message(await summarise(context.plus(policy.ask)))
    flaw = _flaw(answer)
    if flaw:
        if answer.usage is not None:
            await session.spend(answer.usage, model=answer.model, why="compaction", request=answer.request)
        return CompactionStep("nothing", step.tokens, flaw)
    while True:  # a Conflict means that another writer has appended something
        try:
            summary = text_of(answer.blocks).strip()
            await session.compact(summary, of=context, **_compaction_fields(policy, step, answer))
        except Conflict:
            await session.refresh()
        else:
            return step


def _message(answer: Message | str) -> Message:
    return Message(role="assistant", blocks=[Text(answer)]) if isinstance(answer, str) else answer


def _flaw(answer: Message) -> str:
    """Why a summary cannot be used; empty if it can."""
    if answer.stop not in (None, "end"):
        return f"the summary was not finished: it stopped with {answer.stop}"
    return "" if text_of(answer.blocks).strip() else "the summary is empty"


def _compaction_fields(policy: CompactionPolicy, step: CompactionStep, answer: Message) -> dict[str, Any]:
    """The arguments of `Session.compact` besides the summary."""
    fields = {"model": answer.model, "request": answer.request, "usage": answer.usage}
    keep = {"keep_turns": policy.kept.turns, "keep_tokens": policy.kept.tokens}
    return {"trigger": "auto", "tokens_before": step.tokens, **keep, **fields}

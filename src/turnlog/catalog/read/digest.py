"""What a session comes to, counted while its records go by: how much was said, where it stopped, what it cost."""

from __future__ import annotations

from typing import Any, cast

from turnlog.catalog.index.cards import OPEN
from turnlog.catalog.index.prices import Paid
from turnlog.catalog.index.texts import clean
from turnlog.formats import preview
from turnlog.log.block import ToolCall, ToolResult
from turnlog.log.context import text_of
from turnlog.log.entry import Checkpoint, Compaction, Entry, Message, Spent, Turn
from turnlog.log.prompt import PREVIEW
from turnlog.log.shown.promptmessage import is_prompt
from turnlog.log.text import one_line

_CALLS = 1000
_RUN = "run: "
_GIVEN_UP = ("aborted", "error")
"""Answers that ended before what they asked for was done."""


def paid_in(entry: Entry) -> Paid | None:
    """What an entry says that was spent."""
    kind = type(entry)
    if kind is Message or kind is Compaction or kind is Spent:
        spent = cast("Message", entry)
        if spent.usage is not None:
            is_total = kind is Spent and spent.request is None
            why = cast("Spent", entry).why if kind is Spent else None
            return Paid(spent.request, spent.model or "", spent.usage, is_total, why)
    return None


class SessionDigest:
    """Counted so far. `freeze` gives it as plain values, `SessionDigest.thaw` goes on from those."""

    def __init__(self) -> None:
        self.messages = self.turns = self.tool_calls = 0
        self.preview = ""
        self.model: str | None = None
        self.models: tuple[str, ...] = ()
        self.git_branches: tuple[str, ...] = ()
        """Where git stood at a checkpoint."""
        self.first: int | None = None
        self.last: int | None = None
        self.spoke: int | None = None
        """When the conversation last went on: a message, or an end of a turn."""
        self.said = ""
        """Who spoke last: user, assistant or tool."""
        self.waiting: frozenset[str] = frozenset()
        """The calls of the newest answer that have no result."""
        self.turn = False
        """Whether a turn was begun and not ended."""
        self.cursor = ""
        """The node that the next one follows."""
        self.tips: frozenset[str] = frozenset()
        """The ends of the conversation besides that one."""
        self.inner: frozenset[str] = frozenset()
        """Nodes that were gone back to, and have others behind them."""
        self.calls: dict[str, str] = {}
        """The tool of each call that has no result yet."""
        self.net = ""
        """What `turnlog run` ran last; where it ran nothing, what the last checkpoint is called."""

    def take(self, entry: Entry, at: int | None) -> None:
        """One more entry."""
        if at is not None:
            if self.first is None:
                self.first = at
            if self.last is None or at > self.last:
                self.last = at
        kind = type(entry)
        if at is not None and (kind is Message or kind is Turn) and (self.spoke is None or at > self.spoke):
            self.spoke = at
        if kind is Message:
            self._message(cast("Message", entry))
        elif kind is Turn:
            self.turn = cast("Turn", entry).state == "begin"
            self.turns += self.turn
            if not self.turn:  # that it ended was written down, whatever is left without an answer
                self.said, self.waiting = "", frozenset()
        elif kind is Checkpoint:
            self._checkpoint(cast("Checkpoint", entry))

    def _checkpoint(self, checkpoint: Checkpoint) -> None:
        if not self.net.startswith(_RUN):
            self.net = clean(f"checkpoint: {checkpoint.label}" if checkpoint.label else "checkpoint")
        branch = checkpoint.git.branch if checkpoint.git is not None else None
        name = (branch or "").removeprefix("refs/heads/")
        if name and name not in self.git_branches:
            self.git_branches = (*self.git_branches, name)

    def _message(self, message: Message) -> None:
        self.messages += 1
        role = message.role
        if role == "assistant":
            asked = [block.id for block in message.blocks if type(block) is ToolCall]
            self.tool_calls += len(asked)
            self.waiting = frozenset(asked) if message.stop not in _GIVEN_UP else frozenset()
            if message.model and message.model != self.model:
                self.model = clean(message.model)
                if self.model not in self.models:
                    self.models = (*self.models, self.model)
            if len(self.calls) > _CALLS:
                self.calls.clear()
        elif role == "tool":
            answered = {block.call for block in message.blocks if type(block) is ToolResult}
            self.waiting -= answered
        elif role == "user":
            is_asked = is_prompt(message)
            self.turns += is_asked and message.turn is None
            self.waiting = frozenset()
            if not self.preview:
                self.preview = clean(preview([message]))
            if message.agent == "turnlog run" and (ran := text_of(message.blocks)).startswith("$ "):
                self.net = clean(_RUN + one_line(ran[2:], PREVIEW))
            if message.display is False:
                return
            role = "user" if is_asked else ""
        else:
            return
        self.said = role

    def node(self, name: str) -> None:
        """A node was added behind the one where the conversation stood."""
        if self.cursor in self.inner:
            self.inner -= {self.cursor}
        self.cursor = name

    def go(self, to: str) -> None:
        """The conversation goes on from another node."""
        if to == self.cursor:
            return
        if self.cursor and self.cursor not in self.inner:
            self.tips |= {self.cursor}
        if to in self.tips:
            self.tips -= {to}
        else:
            self.inner |= {to}
        self.cursor = to
        self.waiting = frozenset()

    @property
    def branches(self) -> int:
        """How many ends the conversation has."""
        return len(self.tips) + 1

    @property
    def ending(self) -> str:
        """Where it stopped: in a turn, at a call, a result or a question, or with an answer."""
        if self.turn:
            return "turn"
        if self.waiting:
            return "call"
        return {"assistant": "answer", "user": "asked", "tool": "result"}.get(self.said, "")

    @property
    def is_open(self) -> bool:
        """Whether it ends inside a turn."""
        return self.ending in OPEN

    def freeze(self) -> tuple[Any, ...]:
        """All of it as plain values."""
        return (
            self.messages, self.turns, self.tool_calls, self.preview, self.model, self.models, self.first, self.last,
            self.said, self.waiting, self.turn, self.cursor, self.tips, self.inner, dict(self.calls),
            self.net, self.spoke, self.git_branches,
        )  # fmt: skip

    @classmethod
    def thaw(cls, frozen: tuple[Any, ...]) -> SessionDigest:
        """The story again."""
        story = cls()
        (
            story.messages, story.turns, story.tool_calls, story.preview, story.model, models, story.first, story.last,
            story.said, waiting, story.turn, story.cursor, tips, inner, calls, story.net,
            story.spoke, branches,
        ) = frozen  # fmt: skip
        story.models, story.calls, story.git_branches = tuple(models), dict(calls), tuple(branches)
        story.waiting, story.tips, story.inner = frozenset(waiting), frozenset(tips), frozenset(inner)
        return story

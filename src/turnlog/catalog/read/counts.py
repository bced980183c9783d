"""Counts of a session, taken entry by entry: messages, where it stopped, what it cost."""

from __future__ import annotations

from typing import Any, cast

from turnlog.catalog.index.columns import clean
from turnlog.catalog.index.ending import OPEN
from turnlog.catalog.index.prices import Paid
from turnlog.catalog.read.tooltime import OpenCalls
from turnlog.log.block import ToolCall, ToolResult
from turnlog.log.context import text_of
from turnlog.log.entry import Checkpoint, Compaction, Entry, Message, Spent, Turn
from turnlog.log.prompt import PREVIEW
from turnlog.log.prompt.promptmessage import is_prompt, preview
from turnlog.log.text import one_line

_RULES = "rules 2"
"""Raised when older values can no longer be read; those are discarded. The first ones begin with a number instead."""
_RUN = "run: "
_GIVEN_UP = ("aborted", "error")
"""The stop reasons of answers that ended early."""


def paid_in(entry: Entry) -> Paid | None:
    """The spending that an entry reports."""
    kind = type(entry)
    if kind is Message or kind is Compaction or kind is Spent:
        spent = cast("Message", entry)
        if spent.usage is not None:
            is_of_several = kind is Spent and spent.request is None
            why = cast("Spent", entry).why if kind is Spent else None
            return Paid(spent.request, spent.model or "", spent.usage, is_of_several, why)
    return None


class SessionCounts:
    """The counts so far. `freeze` returns them as plain values, from which `SessionCounts.thaw` continues."""

    def __init__(self) -> None:
        self.messages = self.turns = self.tool_calls = 0
        self.preview = ""
        self.model: str | None = None
        self.models: tuple[str, ...] = ()
        self.git_branches: tuple[str, ...] = ()
        """The git branches at checkpoints."""
        self.first_ms: int | None = None
        self.last_ms: int | None = None
        self.last_spoke_ms: int | None = None
        """The time of the last message, or of the last mark of a turn."""
        self.last_role = ""
        """Who spoke last: user, assistant or tool."""
        self.waiting: frozenset[str] = frozenset()
        """The calls of the newest answer that have no result."""
        self.is_in_turn = False
        """Whether a turn has begun and not ended."""
        self.cursor = ""
        """The node after which the next one is added."""
        self.other_heads: frozenset[str] = frozenset()
        """The other ends of the conversation."""
        self.branch_points: frozenset[str] = frozenset()
        """Nodes to which the conversation went back, and that have others after them."""
        self.calls: OpenCalls = {}
        self.net_preview = ""
        """The last command of `turnlog run`; if there is none, the name of the last checkpoint."""

    def add(self, entry: Entry, at: int | None) -> None:
        """Count an entry."""
        if at is not None:
            if self.first_ms is None:
                self.first_ms = at
            if self.last_ms is None or at > self.last_ms:
                self.last_ms = at
        kind = type(entry)
        if (
            at is not None
            and (kind is Message or kind is Turn)
            and (self.last_spoke_ms is None or at > self.last_spoke_ms)
        ):
            self.last_spoke_ms = at
        if kind is Message:
            self._message(cast("Message", entry))
        elif kind is Turn:
            self.is_in_turn = cast("Turn", entry).state == "begin"
            self.turns += self.is_in_turn
            if not self.is_in_turn:  # the turn is ended explicitly, even if calls have no result
                self.last_role, self.waiting = "", frozenset()
        elif kind is Checkpoint:
            self._checkpoint(cast("Checkpoint", entry))

    def _checkpoint(self, checkpoint: Checkpoint) -> None:
        if not self.net_preview.startswith(_RUN):
            self.net_preview = clean(f"checkpoint: {checkpoint.label}" if checkpoint.label else "checkpoint")
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
                self.net_preview = clean(_RUN + one_line(ran[2:], PREVIEW))
            if message.display is False:
                return
            role = "user" if is_asked else ""
        else:
            return
        self.last_role = role

    def add_node(self, name: str) -> None:
        """Add a node after the current one."""
        if self.cursor in self.branch_points:
            self.branch_points -= {self.cursor}
        self.cursor = name

    def move_to(self, to: str) -> None:
        """Continue the conversation from another node."""
        if to == self.cursor:
            return
        if self.cursor and self.cursor not in self.branch_points:
            self.other_heads |= {self.cursor}
        if to in self.other_heads:
            self.other_heads -= {to}
        else:
            self.branch_points |= {to}
        self.cursor = to
        self.waiting = frozenset()

    @property
    def branches(self) -> int:
        """The number of ends of the conversation."""
        return len(self.other_heads) + 1

    @property
    def ending(self) -> str:
        """Where the session stopped: in a turn, at a call, a result or a prompt, or with an answer."""
        if self.is_in_turn:
            return "turn"
        if self.waiting:
            return "call"
        return {"assistant": "answer", "user": "asked", "tool": "result"}.get(self.last_role, "")

    @property
    def is_open(self) -> bool:
        """Whether the session stopped inside a turn."""
        return self.ending in OPEN

    def freeze(self) -> tuple[Any, ...]:
        """The counts as plain values."""
        return (
            _RULES,
            self.messages, self.turns, self.tool_calls, self.preview, self.model, self.models, self.first_ms,
            self.last_ms, self.last_role, self.waiting, self.is_in_turn, self.cursor, self.other_heads,
            self.branch_points, dict(self.calls), self.net_preview, self.last_spoke_ms, self.git_branches,
        )  # fmt: skip

    @staticmethod
    def can_thaw(frozen: tuple[Any, ...]) -> bool:
        """Whether the counts were frozen under the rules of this version."""
        return frozen[:1] == (_RULES,)

    @classmethod
    def thaw(cls, frozen: tuple[Any, ...]) -> SessionCounts:
        """The counts as `freeze` returned them."""
        counts = cls()
        (
            _,
            counts.messages, counts.turns, counts.tool_calls, counts.preview, counts.model, models, counts.first_ms,
            counts.last_ms, counts.last_role, waiting, counts.is_in_turn, counts.cursor, other_heads, branch_points,
            calls, counts.net_preview, counts.last_spoke_ms, git_branches,
        ) = frozen  # fmt: skip
        counts.models, counts.git_branches = tuple(models), tuple(git_branches)
        counts.calls = {id: (tool, at) for id, (tool, at) in calls.items()}
        counts.waiting, counts.other_heads, counts.branch_points = (
            frozenset(waiting),
            frozenset(other_heads),
            frozenset(branch_points),
        )
        return counts

"""One side of a comparison, turn by turn, after the common beginning."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import datetime, timedelta

from turnlog.log.block import ToolCall
from turnlog.log.entry import AnyEntry, Child, Compaction, Head, Message, Spent
from turnlog.log.usage import Usage
from turnlog.pricing import cost_of
from turnlog.session.comparison import ChangedFile, Comparable, ComparedSide, ComparedTurn, SubagentBill
from turnlog.session.comparison.beginning import PathNode, first_line, prompt_in
from turnlog.session.comparison.changedfile import files_of

_ANSWER = 300
_Billed = Message | Compaction | Spent


def read_side(side: Comparable, path: list[PathNode], last_common: PathNode | None, prompt: str) -> ComparedSide:
    """What a side did after the last common node. `prompt` is the last one that both sides have."""
    common_to = 0 if last_common is None else last_common.seq
    own_nodes = {node.seq for node in path if node.seq > common_to}
    turns = list(_TurnReader(own_nodes, last_common, prompt).read(side.forward(common_to)))
    ids = list(dict.fromkeys(id for turn in turns for id in turn.ids))
    changes = side.changes(ids) if ids else {}
    counted, started = set[str](), set[str]()
    compared: list[ComparedTurn] = []
    for turn in turns:
        new = [id for id in turn.ids if id in changes and id not in counted]
        files = files_of(changes[id] for id in new) if any(id in changes for id in turn.ids) else None
        counted.update(new)
        children = [child for child in dict.fromkeys(turn.children) if child not in started]
        started.update(children)
        compared.append(turn.finish([side.bill_of(child) for child in children], files))
    all_files = files_of(changes[id] for id in ids if id in changes) if changes else None
    return ComparedSide(side.name, side.title, side.agent, side.head, compared, all_files)


class _Turn:
    """A turn that is being read."""

    def __init__(self, first: int, prompt: str, at: datetime | None) -> None:
        self.first, self.prompt, self.answer = first, prompt, ""
        self.is_opened = False
        """Whether it has an agent's message, or began with a prompt."""
        self.begun_at = self.ended_at = at
        self.messages = self.tool_calls = 0
        self.billed: list[_Billed] = []
        self.ids: list[str] = []
        """The ids of the bracketed turns in it."""
        self.children: list[str] = []

    def begin(self, prompt: str) -> None:
        """Let it begin with this prompt. Messages of programs before the prompt belong to it."""
        self.prompt, self.is_opened = prompt, True
        self.begun_at = self.ended_at = None

    def add(self, entry: AnyEntry) -> None:
        """Add the next entry."""
        if isinstance(entry, Child):
            self.children.append(entry.session)
        if entry.parent is None:
            return  # a title may be set, and a checkpoint taken, long after the turn
        at = entry.clock or entry.at
        self.begun_at = self.begun_at or at
        self.ended_at = max(filter(None, (self.ended_at, at)), default=None)
        if entry.turn and entry.turn not in self.ids:
            self.ids.append(entry.turn)
        if isinstance(entry, Message):
            self.is_opened = self.is_opened or entry.role == "assistant"
            self.messages += 1
            self.tool_calls += sum(isinstance(block, ToolCall) for block in entry.blocks)
            if entry.role == "assistant":
                self.answer = first_line(entry, _ANSWER) or self.answer

    def finish(self, subagents: list[SubagentBill], files: list[ChangedFile] | None) -> ComparedTurn:
        """The finished turn, with its subagents' costs and the files it changed."""
        usages = [entry.usage for entry in self.billed if entry.usage is not None]
        usage = sum((*usages, *(bill.usage for bill in subagents)), Usage())
        cost = sum((bill.cost for bill in subagents), cost_of(self.billed))
        begun, ended = self.begun_at, self.ended_at
        duration = ended - begun if begun is not None and ended is not None else timedelta()
        return ComparedTurn(
            self.first, self.prompt, self.answer, self.messages, self.tool_calls, usage, cost, duration, files
        )


class _TurnReader:
    """Reads the entries after the common beginning as turns."""

    def __init__(self, own_nodes: Collection[int], last_common: PathNode | None, prompt: str) -> None:
        self._own_nodes = own_nodes
        self._last_common = last_common
        self._prompt = prompt
        self._stands_at_own = False
        """Whether the conversation stood at a node of this side."""
        self._requests: set[str] = set()
        """The requests that were billed already."""

    def read(self, entries: Iterable[AnyEntry]) -> Iterator[_Turn]:
        """The turns of these entries, in the order of the log."""
        turn: _Turn | None = None
        for entry in entries:
            if not self._belongs(entry) or (turn is None and not isinstance(entry, (Message, Compaction))):
                continue
            prompt = prompt_in(entry)
            if prompt is not None and turn is not None and turn.is_opened:
                yield turn
                turn = None
            if turn is None:
                turn = _Turn(entry.seq, self._prompt, self._last_common and self._last_common.at)
            if prompt is not None:
                turn.begin(prompt)
            turn.add(entry)
            self._bill(turn, entry)
        if turn is not None:
            yield turn

    def _belongs(self, entry: AnyEntry) -> bool:
        """Whether an entry is of this side; a mark is if the conversation stood at one of its nodes."""
        if isinstance(entry, Head):
            self._stands_at_own = entry.to in self._own_nodes
        elif entry.parent is not None:
            self._stands_at_own = entry.seq in self._own_nodes
        return self._stands_at_own

    def _bill(self, turn: _Turn, entry: AnyEntry) -> None:
        """Bill an entry to its turn. A request that became several entries is billed once."""
        if not isinstance(entry, _Billed):
            return
        if entry.usage is not None and (entry.request is None or entry.request not in self._requests):
            turn.billed.append(entry)
        if entry.request is not None:
            self._requests.add(entry.request)

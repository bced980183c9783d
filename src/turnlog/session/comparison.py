"""Two sessions or branches side by side: what both begin with once, then what each of them did, turn by turn."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from turnlog.errors import NotFound
from turnlog.log.block import ToolCall
from turnlog.log.context import text_of
from turnlog.log.entry import AnyEntry, Child, Compaction, Head, Message, Spent
from turnlog.log.prompt import typed, without_preamble
from turnlog.log.shown.promptmessage import is_prompt
from turnlog.log.text import one_line
from turnlog.log.usage import Usage
from turnlog.pricing import Cost, cost_of
from turnlog.thread.bill import bill
from turnlog.thread.history import opened, subagents

if TYPE_CHECKING:
    from turnlog.session.readonly import ReadOnlySession
    from turnlog.store import Store
    from turnlog.workspace.diff import Difference

_PROMPT = 100
_ANSWER = 300


class ChangedFile(Struct, frozen=True):
    """What became of a path, and how many lines came and went in all."""

    path: str
    action: str
    """created · modified · deleted · mode"""
    added: int
    removed: int


class ComparedTurn(Struct, frozen=True):
    """From a prompt to the next one, as far as it is not in common. What subagents spent is in it."""

    first: int
    """The entry that it begins with here."""
    prompt: str
    """The beginning of what was asked, which may be the last thing that both have in common."""
    answer: str
    """The beginning of the last thing that the agent said."""
    messages: int
    tool_calls: int
    usage: Usage
    cost: Cost
    duration: timedelta
    """From the prompt to the last entry."""
    files: list[ChangedFile] | None
    """None where no checkpoints were taken."""


class ComparedSide(Struct, frozen=True):
    """One of the two, behind what they have in common."""

    session: str
    title: str
    agent: str | None
    head: int
    turns: list[ComparedTurn]
    files: list[ChangedFile] | None
    """Those of all turns; None where no checkpoints were taken."""

    @property
    def messages(self) -> int:
        """How many were said."""
        return sum(turn.messages for turn in self.turns)

    @property
    def tool_calls(self) -> int:
        """How often tools were called."""
        return sum(turn.tool_calls for turn in self.turns)

    @property
    def usage(self) -> Usage:
        """The tokens of all turns."""
        return sum((turn.usage for turn in self.turns), Usage())

    @property
    def cost(self) -> Cost:
        """What all turns cost."""
        return sum((turn.cost for turn in self.turns), Cost())

    @property
    def duration(self) -> timedelta:
        """How long the turns took; the time between them is a person's."""
        return sum((turn.duration for turn in self.turns), timedelta())


class CommonBeginning(Struct, frozen=True):
    """What both begin with: entries that are the same, or say the same."""

    messages: int
    prompts: list[str]
    last_a: int
    """Its last entry, as A has it; 0 where nothing is in common."""
    last_b: int


class Comparison(Struct, frozen=True):
    """Two sessions, or branches, side by side."""

    common: CommonBeginning
    a: ComparedSide
    b: ComparedSide


class Comparable(NamedTuple):
    """A session to be compared, whosever it is."""

    name: str
    title: str
    agent: str | None
    head: int
    forward: Callable[[int], Iterable[AnyEntry]]
    """Its entries after one, in the order of the log."""
    changes: Callable[[Collection[str]], dict[str, list[Difference]]] = lambda turns: {}
    spent_by: Callable[[str], tuple[Usage, Cost]] = lambda child: (Usage(), Cost())
    """What a subagent spent, with those that it started."""


def comparable(session: ReadOnlySession, store: Store, *, branch: int | None = None, name: str = "") -> Comparable:
    """A session that is open, at its head or at the end of another branch."""

    def forward(after: int) -> Iterator[AnyEntry]:
        return session.entries(after=after)

    def spent_by(child: str) -> tuple[Usage, Cost]:
        try:
            log = store.open(child, read_only=True)
        except NotFound:
            return Usage(), Cost()
        with opened(store, log) as history:
            report = bill(store, history)
            usage = sum((below.state.own for below in subagents(store, history)), history.state.own)
            return usage, report.own + report.subagents

    title = session.title or session.preview()
    head = session.head if branch is None else branch
    return Comparable(name or session.id, title, session.agent, head, forward, session.changes, spent_by)


class _Node(NamedTuple):
    """What is remembered of an entry to find out how far two paths are the same."""

    seq: int
    parent: int
    id: str
    says: int | None
    """None for what neither a person nor a model said."""
    prompt: str | None
    at: datetime | None


def compare(a: Comparable, b: Comparable) -> Comparison:
    """Both are read twice: once for where they part, once from there on."""
    ways = [_path(one) for one in (a, b)]
    spines = [[node for node in way if node.says is not None] for way in ways]
    shared = 0
    for one, other in zip(*spines, strict=False):
        if one.id != other.id and one.says != other.says:
            break
        shared += 1
    both = [spine[:shared] for spine in spines]
    prompts = [node.prompt for node in both[0] if node.prompt is not None]
    lasts = [spine[-1] if spine else None for spine in both]
    common = CommonBeginning(shared, prompts, *(0 if last is None else last.seq for last in lasts))
    sides = [
        _side(one, {node.seq for node in way if last is None or node.seq > last.seq}, last, prompts)
        for one, way, last in zip((a, b), ways, lasts, strict=True)
    ]
    return Comparison(common, *sides)


def _path(one: Comparable) -> list[_Node]:
    """The nodes that lead to its head, oldest first."""
    nodes = {entry.seq: _node(entry, entry.parent) for entry in one.forward(0) if entry.parent is not None}
    if one.head and one.head not in nodes:
        hint = "`turnlog tree` shows the last entry of each branch"
        raise NotFound(f"no branch {one.head} in session {one.name}", hint=hint)
    way: list[_Node] = []
    seq = one.head
    while seq in nodes:
        way.append(nodes.pop(seq))
        seq = way[-1].parent
    way.reverse()
    return way


def _node(entry: AnyEntry, parent: int) -> _Node:
    at = entry.clock or entry.at
    if isinstance(entry, Message):
        asked = _beginning(entry, _PROMPT) if is_prompt(entry) else None
        return _Node(entry.seq, parent, entry.id, hash((entry.role, repr(entry.blocks))), asked, at)
    says = hash(repr(entry.replacement)) if isinstance(entry, Compaction) else None
    return _Node(entry.seq, parent, entry.id, says, None, at)


def _beginning(message: Message, most: int) -> str:
    return one_line(typed(without_preamble(text_of(message.blocks))), most)


class _Stretch:
    """A turn while it is read."""

    def __init__(self, first: int, prompt: str, at: datetime | None) -> None:
        self.first, self.prompt, self.answer = first, prompt, ""
        self.is_opened = False
        """Whether an agent did something in it, or a prompt began it."""
        self.begun = self.ended = at
        self.messages = self.tool_calls = 0
        self.billed: list[AnyEntry] = []
        self.turns: list[str] = []
        self.children: list[str] = []

    def take(self, entry: AnyEntry) -> None:
        """One more entry of it."""
        if isinstance(entry, Child):
            self.children.append(entry.session)
        if entry.parent is None:
            return  # a title may be given, and a checkpoint taken, long after the turn
        at = entry.clock or entry.at
        self.begun = self.begun or at
        self.ended = max(filter(None, (self.ended, at)), default=None)
        if entry.turn and entry.turn not in self.turns:
            self.turns.append(entry.turn)
        if isinstance(entry, Message):
            self.is_opened = self.is_opened or entry.role == "assistant"
            self.messages += 1
            self.tool_calls += sum(isinstance(block, ToolCall) for block in entry.blocks)
            if entry.role == "assistant":
                self.answer = _beginning(entry, _ANSWER) or self.answer

    def finish(self, spent: list[tuple[Usage, Cost]], files: list[ChangedFile] | None) -> ComparedTurn:
        """The finished turn, with its subagents' costs and the files it changed."""
        usages = [
            entry.usage for entry in self.billed if isinstance(entry, (Message, Compaction, Spent)) and entry.usage
        ]
        usage = sum((*usages, *(usage for usage, _ in spent)), Usage())
        cost = sum((cost for _, cost in spent), cost_of(self.billed))
        duration = self.ended - self.begun if self.begun is not None and self.ended is not None else timedelta()
        return ComparedTurn(
            self.first, self.prompt, self.answer, self.messages, self.tool_calls, usage, cost, duration, files
        )


def _side(one: Comparable, own_seqs: set[int], last: _Node | None, prompts: list[str]) -> ComparedSide:
    stretches = list(_turns(one, own_seqs, last, prompts))
    ids = list(dict.fromkeys(turn for stretch in stretches for turn in stretch.turns))
    changes = one.changes(ids) if ids else {}
    counted, started = set[str](), set[str]()
    turns: list[ComparedTurn] = []
    for stretch in stretches:
        new = [turn for turn in stretch.turns if turn in changes and turn not in counted]
        files = files_of(changes[turn] for turn in new) if any(turn in changes for turn in stretch.turns) else None
        counted.update(new)
        children = [child for child in dict.fromkeys(stretch.children) if child not in started]
        started.update(children)
        turns.append(stretch.finish([one.spent_by(child) for child in children], files))
    files = files_of(changes[turn] for turn in ids if turn in changes) if changes else None
    return ComparedSide(one.name, one.title, one.agent, one.head, turns, files)


def _turns(one: Comparable, own_seqs: set[int], last: _Node | None, prompts: list[str]) -> Iterator[_Stretch]:
    """What is its own, turn by turn. A mark counts where the conversation stood at something of its own."""
    stretch: _Stretch | None = None
    billed: set[str] = set()
    is_own_branch = False
    for entry in one.forward(0 if last is None else last.seq):
        if isinstance(entry, Head):
            is_own_branch = entry.to in own_seqs
        elif entry.parent is not None:
            is_own_branch = entry.seq in own_seqs
        if not is_own_branch or (stretch is None and not isinstance(entry, (Message, Compaction))):
            continue
        asked = _beginning(entry, _PROMPT) if isinstance(entry, Message) and is_prompt(entry) else None
        if asked is not None and stretch is not None and stretch.is_opened:
            yield stretch
            stretch = None
        if stretch is None:
            stretch = _Stretch(entry.seq, prompts[-1] if prompts else "", last and last.at)
        if asked is not None:  # what programs said before it belongs to it
            stretch.prompt, stretch.is_opened = asked, True
            stretch.begun = stretch.ended = None
        stretch.take(entry)
        request: str | None = getattr(entry, "request", None)
        if getattr(entry, "usage", None) is not None and (request is None or request not in billed):
            stretch.billed.append(entry)  # a request that became several entries is paid once
        if request is not None:
            billed.add(request)
    if stretch is not None:
        yield stretch


def files_of(turns: Iterable[list[Difference]]) -> list[ChangedFile]:
    """What became of each path in all of them: one that came and went again is left out."""
    differences: dict[str, list[Difference]] = {}
    for changed in turns:
        for item in changed:
            differences.setdefault(item.path, []).append(item)
    return [file for path in sorted(differences) if (file := _file(path, differences[path])) is not None]


def _file(path: str, items: list[Difference]) -> ChangedFile | None:
    was, now = items[0].before, items[-1].after
    if was is None and now is None:
        return None
    action = "created" if was is None else "deleted" if now is None else items[-1].action
    if was is not None and now is not None and {item.action for item in items} != {"mode"}:
        action = "modified"
    counted = [item.counts for item in items if not item.is_private]
    return ChangedFile(path, action, sum(plus for plus, _ in counted), sum(minus for _, minus in counted))

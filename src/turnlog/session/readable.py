"""What can be asked of a session: the half of it that changes nothing."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

from turnlog.errors import AlreadyExists, NotFound
from turnlog.log.block import ToolCall
from turnlog.log.codec import Damage
from turnlog.log.context import Context, pending, repair, said_otherwise, split_system, text_of, visible
from turnlog.log.entry import WIDE_FACTS, AnyEntry, Checkpoint, Custom, Edit, Entry, Message
from turnlog.log.fold import State
from turnlog.log.ids import handle_of
from turnlog.log.usage import UsageReport
from turnlog.rewind.target import Target, branches, seq_of
from turnlog.thread.appender import Appender
from turnlog.thread.history import History
from turnlog.thread.report import Branch, Compacted, Info, Stats, compactions_of, stats_of

if TYPE_CHECKING:
    from typing import Self

    from turnlog.exchange.transcript import Exported
    from turnlog.pricing import CostReport
    from turnlog.rewind.bracket import Bracket
    from turnlog.rewind.files import Files
    from turnlog.rewind.others import Work
    from turnlog.rewind.travel import Travel
    from turnlog.session.home import Home
    from turnlog.workspace.diff import Difference
    from turnlog.workspace.plan import Plan
    from turnlog.workspace.restore import Outcome

_FOLLOW_PAUSE_S = 0.05
_Path = str | os.PathLike[str]


class Readable:
    """The reading half of a session."""

    def __init__(self, home: Home, history: History) -> None:
        self._home = home
        self._appender = Appender(home.store, history)
        self._append = self._appender.append
        self._history = history
        self._log = history.log
        self.is_closed = False

    @property
    def _mutex(self) -> threading.RLock:
        return self._appender.mutex

    def _keeping(self) -> AbstractContextManager[object]:
        """Nothing that is kept goes away inside. Always before `_mutex`, or two threads wait for ever."""
        return self._home.store.keeping()

    @cached_property
    def _files(self) -> Files:
        from turnlog.rewind.files import Files  # only who asks for files pays for loading what knows them

        return Files(self._home.store, self._history, self._home.settings)

    @cached_property
    def _bracket(self) -> Bracket:
        from turnlog.rewind.bracket import Bracket

        return Bracket(self._home.store, self._history, self._files, self._append)

    @cached_property
    def _travel(self) -> Travel:
        from turnlog.rewind.travel import Travel

        return Travel(self._home.store, self._appender, self._files, self._overlapping)

    # ── what it is ────────────────────────────────────────────────────────────────────────────────

    @property
    def id(self) -> str:
        """The session's id."""
        return self._log.id

    @property
    def handle(self) -> str:
        """A short name that finds it, too."""
        return handle_of(self.id)

    @property
    def head(self) -> int:
        """The `seq` of the entry the conversation stands at; 0 when it is empty."""
        return self._state.head

    @property
    def seq(self) -> int:
        """The `seq` of the last entry that this object has seen."""
        return self._state.seq

    @property
    def title(self) -> str | None:
        """The title, set with `set("title", …)`."""
        return self._state.wide.get("title")

    @property
    def workspace(self) -> str | None:
        """The folder the agent works in."""
        return self._state.wide.get("workspace")

    @property
    def agent(self) -> str | None:
        """The agent's name."""
        return self._state.start.get("agent")

    @property
    def labels(self) -> dict[str, str]:
        """The labels given at creation."""
        return dict(self._state.start.get("labels", {}))

    @property
    def facts(self) -> dict[str, Any]:
        """Every fact as it is now: the branch's and the session-wide ones."""
        return {**self._state.facts, **self._state.wide}

    @property
    def _state(self) -> State:
        return self._appender.state

    def __repr__(self) -> str:
        return f"<Session {self.id} at {self._history.state.head}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of files. Nothing is left to be written."""
        self.is_closed = True
        self._log.close()
        self._history.close()

    def refresh(self) -> None:
        """Take in what other processes have written since."""
        self._appender.refresh()

    # ── reading ───────────────────────────────────────────────────────────────────────────────────

    def get(self, key: str, default: Any = None) -> Any:
        """A fact as it is now."""
        state = self._state
        return (state.wide if key in WIDE_FACTS else state.facts).get(key, default)

    def messages(self, *, last: int | None = None) -> list[Message]:
        """The messages of the conversation, oldest first: as they were said, whatever was compacted since."""
        with self._mutex:
            found: list[Message] = []
            if last is None or last > 0:
                for node in self._history.path(self._state.head):
                    if isinstance(node, Message):
                        found.append(self._history.whole(node))
                        if len(found) == last:
                            break
        found.reverse()
        return found

    def path(self) -> list[AnyEntry]:
        """The nodes that lead to the head, oldest first: messages, compactions, edits and custom ones."""
        with self._mutex:
            found = [self._history.whole(node) for node in self._history.path(self._state.head)]
        found.reverse()
        return found

    def context(self) -> Context:
        """What the model should see: complete, repaired, compacted."""
        with self._mutex:
            self._appender.understand()
            rewrites: list[Entry] = []
            replaced, kept = self._visible(rewrites)
            leading, messages = split_system(replaced + kept)
            hidden = self._hidden_system({message.seq for message in leading})
            texts = [self.get("system") or "", *(text_of(message.blocks) for message in [*hidden, *leading])]
            tools = self.get("tools")
            listed = cast("list[Any]", tools) if isinstance(tools, list) else []
            head = self._history.at(self._state.head)
        system = "\n\n".join(str(text) for text in texts if text)
        return Context(
            repair(messages),
            system=system,
            tools=listed,
            get_blob=self._home.get_blob,
            said_otherwise=said_otherwise(rewrites),
            head=0 if head is None else head.seq,
            head_id="" if head is None else head.id,
        )

    def _hidden_system(self, seen: set[int]) -> list[Message]:
        """The system prompt where a compaction hides it: the model still needs it."""
        hidden: list[Message] = []
        for original, seq in self._state.system.items():
            entry = None if original in seen else self._whole_at(seq)
            if isinstance(entry, (Message, Edit)) and entry.blocks:
                hidden.append(Message(role="system", blocks=entry.blocks))
        return hidden

    def _visible(self, rewrites: list[Entry] | None = None) -> tuple[list[Message], list[Message]]:
        """The messages that a model sees; `rewrites` takes the entries that make them other than they were said."""

        def path() -> Iterator[AnyEntry]:
            for node in self._history.path(self._state.head):
                if rewrites is not None and not isinstance(node, (Message, Custom)):
                    rewrites.append(node)
                yield self._history.whole(node)

        return visible(path(), self._whole_at)

    def _whole_at(self, seq: int) -> Any:
        entry = self._history.at(seq)
        return None if entry is None else self._history.whole(entry)

    def blob(self, digest: str) -> bytes:
        """The content of a picture, a file or a large payload, by the digest in its block."""
        return self._home.get_blob(digest)

    def pending(self) -> list[ToolCall]:
        """Tool calls of the conversation that have no result yet."""
        with self._mutex:
            replaced, kept = self._visible()
            return pending(replaced + kept)

    def entries(
        self,
        *,
        after: Target = 0,
        kind: str | type[Entry] | None = None,
        reverse: bool = False,
    ) -> Iterator[AnyEntry]:
        """Every entry of the log, inherited ones included, whichever branch it is on."""
        limit = seq_of(after)
        history = self._history
        for entry in history.back() if reverse else history.forward(limit):
            if entry.seq <= limit:
                return
            if (kind is None or entry.type == kind or entry.__class__ is kind) and not history.is_repeat(entry):
                yield history.whole(entry)

    def find(self, id: str) -> AnyEntry | None:
        """The entry with that id, inherited ones included."""
        entry = self._log.find(id)
        if entry is not None:
            return self._history.whole(entry)
        limit = self._history.inherited_to
        inherited = self._history.forward(0, limit + 1) if limit else iter(())
        return next((self._history.whole(entry) for entry in inherited if entry.id == id), None)

    def _refuse_inherited(self, ids: Iterable[str]) -> None:
        """Raise `AlreadyExists` for an id that is in what this session was forked from."""
        limit, wanted = self._history.inherited_to, set(ids)
        for entry in self._history.forward(0, limit + 1) if limit else ():
            if entry.id in wanted:
                raise AlreadyExists(f"the entry id {entry.id!r} is already in session {self.id}, inherited")

    def follow(self, *, after: Target | None = None) -> Iterator[AnyEntry]:
        """Entries as they are appended, by whomever: waits for the next one until the session is closed."""
        last = self._state.seq if after is None else seq_of(after)
        while not self.is_closed:
            before = last
            if self._log.has_grown(last):
                for entry in self.entries(after=last):
                    last = entry.seq
                    yield entry
            if last == before:
                self._log.wait(last, seconds=_FOLLOW_PAUSE_S)

    def listen(self, tell: Callable[[], None]) -> Callable[[], None] | None:
        """See `Log.listen`."""
        return self._log.listen(tell)

    @property
    def damage(self) -> list[Damage]:
        """What is damaged in this session's own log; reads all of it."""
        return [item for item in self._log.read() if isinstance(item, Damage)]

    def checkpoints(self) -> list[Checkpoint]:
        """Every checkpoint of the files, inherited ones included, oldest first."""
        return self._files.checkpoints()

    def diff(
        self,
        before: Checkpoint | None = None,
        after: Checkpoint | None = None,
        *,
        turn: int | str | None = None,
        lines: bool = True,
    ) -> list[Difference]:
        """The net change of a turn, between two checkpoints, or from one until now; the newest turn's if not told.

        Without `lines`, only what happened to each path: comparing large texts takes a while.
        """
        with self._keeping(), self._mutex:
            if before is None:
                span = self._files.turn(turn)
                before, after = span.begin, span.end
            if after is None:
                after = self._files.look()
            return self._files.diff(before, after, lines=lines)

    def plan_undo(self) -> Plan:
        """What an undo would do to each file, and why; nothing is touched."""
        with self._keeping(), self._mutex:
            if not self._state.undo:
                raise NotFound("there is no rewind to undo")
            return self._travel.plan_back(self._state.undo[-1])

    def plan_redo(self) -> Plan:
        """What a redo would do to each file, and why; nothing is touched."""
        with self._keeping(), self._mutex:
            if not self._state.redo:
                raise NotFound("there is no undo to take back")
            return self._travel.plan_back(self._state.redo[-1])

    def interrupted(self) -> bool:
        """Whether a rewind was begun and not finished. The next rewind finishes it first."""
        return bool(self._state.intent) and self._travel.interrupted() is not None

    def problems(self) -> list[Outcome]:
        """What the last rewind, undo or redo of this object could not do to files, and why."""
        return list(self._travel.problems)

    def incomplete(self) -> list[Outcome]:
        """What it did put back, but for an owner or an attribute that the system does not allow to set."""
        return list(self._travel.notes)

    def _overlapping(self, since: Checkpoint) -> list[Work]:
        """Other sessions' work in these folders, around them or inside them, that was not over at that checkpoint."""
        from turnlog.rewind.others import work_of_others

        return work_of_others(self._home, self._history, since)

    def branches(self) -> list[Branch]:
        """Every end of the conversation, the newest first."""
        return branches(self._history.forward(), self._state.head)

    def usage(self) -> UsageReport:
        """Where the tokens went."""
        with self._mutex:
            state = self._state
            spent = self._home.subagents_usage(state.children, {self.id})
            told = self.get("peak_input_tokens")  # by the agent it was imported from
            peak = max(state.peak, state.inherited.peak, told if isinstance(told, int) else 0)
            return UsageReport(state.own, state.inherited.usage, spent, dict(state.models), peak)

    def cost(self) -> CostReport:
        """What that cost, at the prices of the day each request was made; reads all of the log."""
        from turnlog.thread.bill import bill  # only who asks what it cost needs prices

        return bill(self._home.store, self._history)

    def stats(self) -> Stats:
        """How much happened, and when."""
        return stats_of(self._state, self._history.forward)

    def preview(self) -> str:
        """The first thing that a person said, on one line of at most 120 characters; "" if nobody did."""
        from turnlog.formats import preview

        return preview(entry for entry in self.entries() if isinstance(entry, Message))

    def compactions(self) -> list[Compacted]:
        """The compactions of this conversation, oldest first: what each took away, and what it says instead."""
        with self._mutex:
            return compactions_of([self._history.whole(node) for node in self._history.path(self._state.head)])

    def _down_to(self, seq: int) -> Iterator[AnyEntry]:
        for node in self._history.path(self._state.head):
            if node.seq < seq:
                return
            yield node

    def export(
        self, agent: str, place: _Path | None = None, *, force: bool = False, format_version: int | None = None,
        include_ignored: bool = False,
    ) -> Exported:  # fmt: skip
        """Write it for another agent: to a file, or into a folder as that agent lays it out; here if not told where."""
        from turnlog.exchange.transcript import send

        with self._mutex:
            return send(self, agent, place, force=force, format_version=format_version, include_ignored=include_ignored)

    def children(self) -> list[Info]:
        """The sessions that were spawned from this one."""
        return self._home.infos(self._state.children)

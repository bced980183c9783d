"""Reading one session's log: its messages, the context for a model, its entries, usage and cost."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, overload

from turnlog.errors import Invalid, NotFound
from turnlog.log.block import ToolCall
from turnlog.log.codec import Damage
from turnlog.log.context import Context, split_system, stale_spans, text_of, visible
from turnlog.log.context.toolturn import repair as repaired
from turnlog.log.entry import WIDE_FACTS, AnyEntry, Checkpoint, Custom, Edit, Entry, Message
from turnlog.log.fold import State
from turnlog.log.fold.opencall import PendingCall
from turnlog.log.ids import handle_of
from turnlog.log.usage import Usage, UsageReport
from turnlog.store import Place, Store
from turnlog.store.capability import NotifyNewEntries, ability
from turnlog.store.derived import find
from turnlog.thread.branch import Branch, branches
from turnlog.thread.call.ending import LastTurn, last_turn
from turnlog.thread.call.pending import pending_calls
from turnlog.thread.history import History, subagents
from turnlog.thread.report import Compacted, Info, Stats, compactions_of, info_of, stats_of, text_fact
from turnlog.thread.target import Target, node_at, seq_of, state_as_of

if TYPE_CHECKING:
    from typing import Self

    from turnlog.pricing import CostReport
    from turnlog.store.broadcast import Delta

FOLLOW_PAUSE_S = 0.05
_E = TypeVar("_E", bound=Entry)
LOOK_S = 1.0
"""How often a waiting reader checks that the session still exists."""


class SessionReader:
    """A session as read from its log, through a history. Thread-safe."""

    def __init__(self, history: History) -> None:
        self._history = history

    # ── what it is ────────────────────────────────────────────────────────────────────────────────

    @property
    def id(self) -> str:
        """The session's id."""
        return self._history.id

    @property
    def handle(self) -> str:
        """A short name that also finds the session."""
        return handle_of(self.id)

    @property
    def head(self) -> int:
        """The `seq` of the entry that the conversation stands at; 0 if it is empty."""
        return self._state.head

    @property
    def seq(self) -> int:
        """The `seq` of the last entry that this object has seen."""
        return self._state.seq

    @property
    def title(self) -> str | None:
        """The title, set with `set("title", …)`."""
        return text_fact(self._state.wide, "title")

    @property
    def workspace(self) -> str | None:
        """The folder the agent works in."""
        return text_fact(self._state.wide, "workspace")

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
        """All current facts: those of the branch and the session-wide ones."""
        return {**self._state.facts, **self._state.wide}

    @property
    def is_closed(self) -> bool:
        """Whether the session or its home was closed."""
        return self._history.is_closed

    @property
    def _store(self) -> Store:
        return self._history.store

    @property
    def _state(self) -> State:
        return self._history.state

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} at {self._history.state.head}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files. Everything is already written. The state stays; anything else raises `Invalid`."""
        self._history.close()

    def refresh(self) -> None:
        """Load what other processes have written since."""
        with self._history.mutex:
            self._history.load()

    # ── reading ───────────────────────────────────────────────────────────────────────────────────

    def get(self, key: str, default: Any = None) -> Any:
        """The current value of a fact."""
        state = self._state
        return (state.wide if key in WIDE_FACTS else state.facts).get(key, default)

    def messages(self, *, last: int | None = None) -> list[Message]:
        """The messages of the conversation, oldest first: the originals, even if they were compacted since."""
        with self._history.mutex:
            self._history.renew()
            messages: list[Message] = []
            if last is None or last > 0:
                for node in self._history.path(self._state.head):
                    if isinstance(node, Message):
                        messages.append(self._history.whole(node))
                        if len(messages) == last:
                            break
        messages.reverse()
        return messages

    def path(self, *, last: int | None = None, to: Target | None = None) -> list[AnyEntry]:
        """The nodes that lead to the head or to node `to`, oldest first: messages, compactions, edits, custom nodes.

        `last` is how many of the newest are wanted; nothing before them is read.
        """
        with self._history.mutex:
            self._history.renew()
            end = self._state.head if to is None else node_at(self._history, seq_of(to))
            nodes = islice(self._history.path(end), None if last is None else max(0, last))
            path = [self._history.whole(node) for node in nodes]
        path.reverse()
        return path

    def context(self, *, repair: bool = True, at: Target | None = None) -> Context:
        """What the model should see: complete, repaired, compacted; with `at`, what it should have seen at that entry.

        Without `repair` the messages are the originals: calls without results, results without calls, empty messages,
        and system messages in their places; `system` is then only the value of the fact of that name.
        """
        with self._history.mutex:
            self._history.renew()
            state = self._state if at is None else state_as_of(self._history, seq_of(at))
            head = self._history.at(state.head)
            self._history.refuse_critical()
            rewrites: list[Entry] = []
            replaced, kept = self._visible(state.head, rewrites)
            leading, messages = split_system(replaced + kept)
            leading = self._hidden_system(state, {message.seq for message in leading}) + leading
            texts = [state.facts.get("system") or "", *(text_of(message.blocks) for message in leading if repair)]
            tools = state.facts.get("tools")
            listed = cast("list[Any]", tools) if isinstance(tools, list) else []
            root = self._history.root
        system = "\n\n".join(str(text) for text in texts if text)
        return Context(
            repaired(messages) if repair else leading + messages,
            system=system,
            tools=listed,
            get_blob=self.blob,
            stale=stale_spans(rewrites),
            edited=(entry.entry for entry in rewrites if isinstance(entry, Edit)),
            head=0 if head is None else head.seq,
            head_id="" if head is None else head.id,
            root=root,
        )

    def _hidden_system(self, state: State, seen: set[int]) -> list[Message]:
        """The system prompt that a compaction hides: the model still needs it."""
        hidden: list[Message] = []
        for original, seq in state.system.items():
            entry = None if original in seen else self._history.whole_at(seq)
            if isinstance(entry, (Message, Edit)) and entry.blocks:
                hidden.append(Message(role="system", blocks=entry.blocks))
        return hidden

    def _visible(self, head: int, rewrites: list[Entry] | None = None) -> tuple[list[Message], list[Message]]:
        """The messages that a model sees. The entries that change the originals are added to `rewrites`."""

        def path() -> Iterator[AnyEntry]:
            for node in self._history.path(head):
                if rewrites is not None and not isinstance(node, (Message, Custom)):
                    rewrites.append(node)
                yield self._history.whole(node)

        return visible(path(), self._history.whole_at)

    def blob(self, digest: str) -> bytes:
        """The content of an image, a file or a large payload, by the digest in its block."""
        return self._store.get(digest)

    def pending(self) -> list[PendingCall]:
        """The tool calls of the conversation that have no result yet; `state` says how far each of them came.

        This takes no time, however long the session is. After a rewind, or an edit of a message other than a result,
        the first call reads the conversation once.
        """
        with self._history.mutex:
            self._history.renew()
            _ = self._state  # loads the log again if the state is stale
            return pending_calls(self._history)

    @overload
    def entries(self, *, kind: type[_E], after: Target = 0, reverse: bool = False) -> Iterator[_E]: ...
    @overload
    def entries(self, *, kind: str | None = None, after: Target = 0, reverse: bool = False) -> Iterator[AnyEntry]: ...
    def entries(
        self, *, kind: str | type[Entry] | None = None, after: Target = 0, reverse: bool = False
    ) -> Iterator[Any]:
        """The entries of the log on all branches, including inherited ones; with `kind`, only those of that kind.

        A kind is a class such as `Note`, or its name in the log, such as `message`.
        """
        limit = seq_of(after)
        history = self._history
        wanted = kind if isinstance(kind, type) else Entry
        with history.mutex:
            history.renew()
        for entry in history.back() if reverse else history.forward(limit):
            if entry.seq <= limit:
                return
            is_wanted = entry.type == kind if isinstance(kind, str) else isinstance(entry, wanted)
            if is_wanted:
                yield history.whole(entry)

    def find(self, id: str) -> AnyEntry | None:
        """The entry with this id, inherited ones included; None if there is none."""
        entry = find(self._history.log, id)
        if entry is not None:
            return self._history.whole(entry)
        limit = self._history.inherited_to
        inherited = self._history.lines(0, limit + 1) if limit else iter(())
        return next((self._history.whole(entry) for entry in inherited if entry.id == id), None)

    @overload
    def follow(self, *, after: Target | None = None, deltas: Literal[False] = False) -> Iterator[AnyEntry]: ...
    @overload
    def follow(self, *, after: Target | None = None, deltas: bool) -> Iterator[AnyEntry | Delta]: ...
    def follow(self, *, after: Target | None = None, deltas: bool = False) -> Iterator[AnyEntry | Delta]:
        """Entries as any process appends them: waits for the next one until the session is closed.

        With `deltas`, also the text of `live` messages as it arrives, from any process. A `Delta` is in no log; the
        entry with its id replaces it in the end. A follower that comes late, or reconnects with the `seq` of its last
        entry as `after`, first gets the entries it missed, then the text so far.

        Raises `NotFound` soon after the session was purged.
        """
        from turnlog.thread.stream import Listening  # only followers need it

        last = self._state.seq if after is None else seq_of(after)
        log, pause, looked = self._history.log, 0.0, 0.0
        idle_s = FOLLOW_PAUSE_S if ability(log, NotifyNewEntries) is None else LOOK_S  # a notification ends a wait
        listening = Listening(log, deltas=deltas)
        try:
            while not self.is_closed:
                before = last
                if time.monotonic() - looked > LOOK_S:
                    refuse_purged(self)
                    looked = time.monotonic()
                has_grown = log.wait(last, seconds=pause)
                listening.take()
                for entry in self.entries(after=last) if has_grown or listening.has_ended else ():
                    last = entry.seq
                    listening.saw(entry)
                    yield entry
                streamed = listening.deltas()
                yield from streamed
                pause = idle_s if last == before and not streamed else 0.0
        except Invalid:
            if not self.is_closed:
                raise
        finally:
            listening.close()

    @property
    def damage(self) -> list[Damage]:
        """The damage in this session's own log; reads all of it."""
        return [item for item in self._history.log.read() if isinstance(item, Damage)]

    @property
    def last_turn(self) -> LastTurn:
        """How the last turn of the conversation ended, or what cut it off; reads back to the end of that turn."""
        with self._history.mutex:
            self._history.renew()
            _ = self._state  # looked up anew if need be
            return last_turn(self._history)

    def checkpoints(self) -> list[Checkpoint]:
        """Every checkpoint of the files, inherited ones included, oldest first."""
        checkpoints = [entry for entry in self._history.forward() if isinstance(entry, Checkpoint)]
        from turnlog.thread.space.checkpointcontent import given_up  # few callers need checkpoints

        gone = given_up(self._store, checkpoints, self._state.dropped)
        return [entry for entry in checkpoints if entry.id not in gone]

    def branches(self) -> list[Branch]:
        """Every end of the conversation, newest first."""
        return branches(self._history.forward(), self._history.original(self._state.head))

    def usage(self) -> UsageReport:
        """The tokens that were used, by where."""
        with self._history.mutex:
            state = self._state
            spent = sum((child.state.own for child in subagents(self._store, self._history)), Usage())
            reported = self.get("peak_input_tokens")  # by the agent that it was imported from
            peak = max(state.peak, state.inherited.peak, reported if isinstance(reported, int) else 0)
            return UsageReport(state.own, state.inherited.usage, spent, dict(state.models), peak)

    def cost(self) -> CostReport:
        """The cost, at the prices of the day of each request; reads all of the log."""
        from turnlog.thread.sessioncost import bill  # only this needs prices

        return bill(self._store, self._history)

    def stats(self) -> Stats:
        """How much happened, and when."""
        return stats_of(self._state)

    def preview(self) -> str:
        """The first prompt of a person, on one line of at most 120 characters; "" if there is none."""
        from turnlog.log.prompt.promptmessage import preview

        return preview(entry for entry in self.entries() if isinstance(entry, Message))

    def compactions(self) -> list[Compacted]:
        """The compactions of this conversation, oldest first: how many messages each removed, and its summary."""
        with self._history.mutex:
            self._history.renew()
            return compactions_of([self._history.whole(node) for node in self._history.path(self._state.head)])

    def children(self) -> list[Info]:
        """The sessions that this session spawned, in order; `call` is the tool call that spawned each."""
        return _infos(self._store, self._state.children)

    def child(self, call: str | ToolCall) -> Info | None:
        """The session that a tool call spawned; the newest, if a provider used the id twice."""
        name = call.id if isinstance(call, ToolCall) else call
        return next((info for info in reversed(self.children()) if info.call == name), None)


def _infos(store: Store, ids: Sequence[str]) -> list[Info]:
    """The `Info` of each of these sessions, in this order; missing sessions are left out."""
    rows = {row.id: info_of(row) for row in store.listing(ids=set(ids))}
    return [rows[session_id] for session_id in ids if session_id in rows]


def history_of(session: SessionReader) -> History:
    """The history of a session, for rooms of this package that need it. Hold its mutex while using it."""
    return session._history  # pyright: ignore[reportPrivateUsage]


def refuse_purged(session: SessionReader, places: Sequence[Place] = ("live", "deleted")) -> None:
    """Raise `NotFound` if the session is in none of these places any more, as after a purge."""
    history = history_of(session)
    with history.mutex:
        rows = (row for place in places for row in history.store.listing(place, ids=[session.id]))
        if all(row.start is not None and row.first != history.first for row in rows):
            raise NotFound(f"session {session.id} was purged", hint="nothing will be appended to it any more")

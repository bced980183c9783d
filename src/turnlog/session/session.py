"""The object people hold: one session, to append to, to read, to fork, to compact, to rewind."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, overload

from msgspec.structs import replace

from turnlog.errors import Conflict, Invalid, NotFound
from turnlog.log.block import AnyBlock, Text, ToolCall, ToolResult
from turnlog.log.codec import Damage
from turnlog.log.context import Context, cut_for_keep, pending, repair, split_system, text_of, visible
from turnlog.log.entry import (
    WIDE_FACTS,
    AnyEntry,
    Child,
    Compaction,
    Custom,
    Edit,
    Entry,
    Head,
    Message,
    Note,
    Ref,
    Set,
    Spent,
    Turn,
    Uncompact,
)  # fmt: skip
from turnlog.log.fold import State
from turnlog.log.ids import handle_of, new_id
from turnlog.log.usage import Usage, UsageReport
from turnlog.session.appender import Appender
from turnlog.session.history import History
from turnlog.session.places import workspace_path
from turnlog.session.report import Branch, Info, Stats, stats_of
from turnlog.session.rewind import Target, branches, move_back, rewind_to, seq_of

if TYPE_CHECKING:
    from turnlog.session.home import Home

Content = str | Sequence[AnyBlock]
_E = TypeVar("_E", bound=AnyEntry)

_FOLLOW_PAUSE_S = 0.05


def _blocks(content: Content) -> list[AnyBlock]:
    return [Text(content)] if isinstance(content, str) else list(content)


class Session:
    """One session. Safe to use from many threads; made by `Home.create` and `Home.resume`."""

    def __init__(self, home: Home, history: History) -> None:
        self._home = home
        self._appender = Appender(home.store, history)
        self._append = self._appender.append
        self._mutex = self._appender.mutex
        self._history = history
        self._log = history.log
        self._is_closed = False

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

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of files. Nothing is left to be written."""
        self._is_closed = True
        self._log.close()
        self._history.close()

    def refresh(self) -> None:
        """Take in what other processes have written since."""
        self._appender.refresh()

    # ── appending ─────────────────────────────────────────────────────────────────────────────────

    @overload
    def append(
        self, draft: _E, /, *, id: str | None = None, after: Target | None = None, rebase: bool = False,
        once: bool = False,
    ) -> _E: ...  # fmt: skip
    @overload
    def append(
        self, *drafts: AnyEntry, id: str | None = None, after: Target | None = None, rebase: bool = False,
        once: bool = False,
    ) -> list[AnyEntry]: ...  # fmt: skip
    def append(
        self, *drafts: AnyEntry, id: str | None = None, after: Target | None = None, rebase: bool = False,
        once: bool = False,
    ) -> Any:  # fmt: skip
        """Append drafts as one batch: all of them, or none. Durable when this returns.

        `after` is the head the caller expects; anything else is a `Conflict`. `rebase` hangs the drafts on the
        new head instead of raising when another process was faster. Drafts with ids that are in the log already
        are answered with what is there; `once` refuses them. Returns the entry, or a list for several.
        """
        if not drafts:
            raise Invalid("nothing to append")
        entries = list(drafts)
        if id is not None:
            entries = [replace(e, id=id if not i else f"{id}/{i}") for i, e in enumerate(entries)]
        head = None if after is None else seq_of(after)
        done = self._append(entries, head=head, rebase=rebase, once=once)
        return done[0] if len(done) == 1 else done

    def user(self, content: Content, **fields: Any) -> Message:
        """A person's message."""
        return self._append([Message(role="user", blocks=_blocks(content), **fields)])[0]

    def system(self, content: Content, **fields: Any) -> Message:
        """A system message. Those at the beginning are the system prompt."""
        return self._append([Message(role="system", blocks=_blocks(content), **fields)])[0]

    def assistant(
        self,
        content: Content,
        *,
        model: str | None = None,
        usage: Usage | None = None,
        request: str | None = None,
        stop: str | None = None,
        **fields: Any,
    ) -> Message:
        """A model's response, whole: one response is one message."""
        blocks = _blocks(content)
        return self._append(
            [
                Message(
                    role="assistant",
                    blocks=blocks,
                    model=model,
                    usage=usage,
                    request=request,
                    stop=stop,
                    **fields,
                )
            ]
        )[0]

    def tool_result(
        self,
        call: str | ToolCall,
        content: str | bytes | Sequence[AnyBlock],
        *,
        is_error: bool = False,
        duration_ms: int | None = None,
        details: Any = None,
        child: str | None = None,
        **fields: Any,
    ) -> Message:
        """A tool's answer to the call with that id."""
        if isinstance(content, bytes):
            content = content.decode("utf-8", "surrogateescape")
        result = ToolResult(
            call=call.id if isinstance(call, ToolCall) else call,
            content=content if isinstance(content, str) else list(content),
            is_error=is_error,
            name=call.name if isinstance(call, ToolCall) else None,
            duration_ms=duration_ms,
            details=details,
            child=child,
        )
        return self._append([Message(role="tool", blocks=[result], **fields)])[0]

    def note(self, text: str, *, data: Any = None) -> Note:
        """Something for people to see; no model does."""
        return self._append([Note(text=text, data=data)])[0]

    def spend(
        self, usage: Usage, *, model: str | None = None, why: str | None = None, request: str | None = None
    ) -> Spent:
        """Spending without a message: a title, a summary, a failed request."""
        return self._append([Spent(usage=usage, model=model, why=why, request=request)])[0]

    @contextmanager
    def turn(self) -> Iterator[str]:
        """Bracket a turn. It ends completed, aborted (interrupted from outside) or failed (an error)."""
        with self._mutex:
            if self._appender.turn is not None:
                raise Invalid("a turn has begun already and not ended", hint="turns do not nest")
            turn = new_id()
            self._append([Turn(state="begin", turn=turn)])
            self._appender.turn = turn
        state, error = "completed", None
        try:
            yield turn
        except Exception as reason:
            state, error = "failed", f"{type(reason).__name__}: {reason}"[:1000]
            raise
        except BaseException:
            state = "aborted"
            raise
        finally:
            self._appender.turn = None
            self._append([Turn(state=state, error=error, turn=turn)])

    # ── facts ─────────────────────────────────────────────────────────────────────────────────────

    def set(self, key: str, value: Any) -> Set:
        """A fact. It follows the branch, except title, tags, workspace and archived, which are the session's."""
        if key == "workspace" and value is not None:
            value = workspace_path(value)
        return self._set(Set(key=key, value=value))

    def unset(self, key: str) -> Set:
        """That fact is no more."""
        return self._set(Set(key=key, unset=True))

    def _set(self, entry: Set) -> Set:
        if not entry.key:
            raise Invalid("a fact needs a name")
        while entry.key in WIDE_FACTS:
            facts = {**self._state.wide, entry.key: entry.value}
            if entry.unset:
                del facts[entry.key]
            try:
                return self._append([replace(entry, all=facts)], alone=True)[0]
            except Conflict:
                self._appender.catch_up()
        return self._append([entry])[0]

    def get(self, key: str, default: Any = None) -> Any:
        """A fact as it is now."""
        state = self._state
        return (state.wide if key in WIDE_FACTS else state.facts).get(key, default)

    # ── reading ───────────────────────────────────────────────────────────────────────────────────

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

    def context(self) -> Context:
        """What the model should see: complete, repaired, compacted."""
        with self._mutex:
            self._appender.understand()
            leading, messages = split_system(self._visible())
            seen = {message.seq for message in leading}
            first = [self._history.at(seq) for seq in self._state.system if seq not in seen]
            prompt = [m for m in first if isinstance(m, Message)] + leading
            texts = [self.get("system") or "", *(text_of(self._history.whole(m).blocks) for m in prompt)]
            tools = self.get("tools")
        system = "\n\n".join(str(text) for text in texts if text)
        return Context(repair(messages), system=system, tools=tools if isinstance(tools, list) else [])

    def _visible(self) -> list[Message]:
        path = self._history.path(self._state.head)
        return visible((self._history.whole(node) for node in path), self._whole_at)

    def _whole_at(self, seq: int) -> Any:
        entry = self._history.at(seq)
        return None if entry is None else self._history.whole(entry)

    def pending(self) -> list[ToolCall]:
        """Tool calls of the conversation that have no result yet."""
        with self._mutex:
            return pending(self._visible())

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

    def follow(self, *, after: Target | None = None) -> Iterator[AnyEntry]:
        """Entries as they are appended, by whomever: waits for the next one until the session is closed."""
        last = self._state.seq if after is None else seq_of(after)
        while not self._is_closed:
            for entry in self.entries(after=last):
                last = entry.seq
                yield entry
            while not self._is_closed and not self._log.has_grown(last):
                time.sleep(_FOLLOW_PAUSE_S)
            time.sleep(_FOLLOW_PAUSE_S / 10)

    @property
    def damage(self) -> list[Damage]:
        """What is damaged in this session's own log; reads all of it."""
        return [item for item in self._log.read() if isinstance(item, Damage)]

    def branches(self) -> list[Branch]:
        """Every end of the conversation, the newest first."""
        return branches(self._history.forward(), self._state.head)

    def usage(self) -> UsageReport:
        """Where the tokens went."""
        with self._mutex:
            state = self._state
            spent = self._home.subagents_usage(state.children, {self.id})
            peak = max(state.peak, state.inherited.peak)
            return UsageReport(state.own, state.inherited.usage, spent, dict(state.models), peak)

    def stats(self) -> Stats:
        """How much happened, and when."""
        return stats_of(self._state)

    # ── compaction and edits ──────────────────────────────────────────────────────────────────────

    def compact(self, summary: str | Sequence[Message | Ref], *, keep: int = 0, **fields: Any) -> Compaction:
        """From now on the model sees the summary, then the last `keep` messages. Everything else stays in the log.

        A tool call is never parted from its result: where the cut would do that, more is kept.
        """
        if keep < 0:
            raise Invalid(f"cannot keep {keep} messages")
        replacement = [Message(role="user", blocks=[Text(summary)])] if isinstance(summary, str) else list(summary)
        with self._mutex:
            first = cut_for_keep(split_system(self._visible())[1], keep)
            return self._append([Compaction(replacement=replacement, keep=first, **fields)])[0]

    def uncompact(self, compaction: Target | None = None) -> Uncompact:
        """That compaction (the newest one) no longer applies."""
        with self._mutex:
            cancelled: set[int] = set()
            for node in self._history.path(self._state.head):
                if isinstance(node, Uncompact):
                    cancelled.add(node.compaction)
                elif isinstance(node, Compaction) and node.seq not in cancelled:
                    if compaction is None or node.seq == seq_of(compaction):
                        return self._append([Uncompact(compaction=node.seq)])[0]
        which = "compaction" if compaction is None else f"compaction {seq_of(compaction)}"
        raise NotFound(f"no {which} applies to this conversation")

    def edit(self, entry: Target, blocks: Content | None) -> Edit:
        """For the model, that entry reads as these blocks, or is left out. The original stays."""
        seq = seq_of(entry)
        with self._mutex:
            if not any(node.seq == seq and isinstance(node, (Message, Custom)) for node in self._down_to(seq)):
                raise NotFound(f"entry {seq} is not a message of this conversation")
            return self._append([Edit(entry=seq, blocks=None if blocks is None else _blocks(blocks))])[0]

    def _down_to(self, seq: int) -> Iterator[AnyEntry]:
        for node in self._history.path(self._state.head):
            if node.seq < seq:
                return
            yield node

    # ── moving ────────────────────────────────────────────────────────────────────────────────────

    def rewind(self, to: Target | None = None, *, before: Target | None = None, turns: int | None = None) -> Head:
        """The conversation continues from that entry, before that entry, or before the last turns.

        `to` a mark means the last node at or before it, 0 the empty conversation. The rest stays as a branch.
        """
        with self._mutex:
            return self._append([rewind_to(self._history, to=to, before=before, turns=turns)])[0]

    def undo(self) -> Head:
        """Take back the newest rewind that has not been taken back."""
        with self._mutex:
            if not self._state.undo:
                raise NotFound("there is no rewind to undo")
            return self._append([move_back(self._history, self._state.undo[-1], "undo")])[0]

    def redo(self) -> Head:
        """Take back the newest undo. Anything said since makes that impossible."""
        with self._mutex:
            if not self._state.redo:
                raise NotFound("there is no undo to take back")
            return self._append([move_back(self._history, self._state.redo[-1], "redo")])[0]

    def fork(self, at: Target | None = None, *, name: str | None = None, **fields: Any) -> Session:
        """A new session that continues this one, from its end or from entry `at`. Nothing is copied."""
        with self._mutex:
            return self._home.fork(self._history, self._state.seq if at is None else seq_of(at), name, fields)

    def spawn(
        self, *, agent: str | None = None, call: str | None = None, role: str | None = None, **fields: Any
    ) -> Session:
        """A subagent's session, linked to this one and to the tool call that started it."""
        session_id = self._home.new_id(fields.pop("id", None))
        self._append([Child(session=session_id, call=call, agent=agent)])
        return self._home.spawn(session_id, self, agent, call, role, fields)

    def children(self) -> list[Info]:
        """The sessions that were spawned from this one."""
        return self._home.infos(self._state.children)

"""A session for writing: appending, reading, forking, compacting, rewinding."""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from itertools import takewhile
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from msgspec.structs import replace

from turnlog.errors import NotFound, TurnlogError
from turnlog.log.block import AnyBlock, Text, ToolCall
from turnlog.log.context import Context
from turnlog.log.entry import (
    Answer,
    AnyEntry,
    Ask,
    Changed,
    Checkpoint,
    Child,
    Compaction,
    Custom,
    Edit,
    Head,
    Message,
    Note,
    Ref,
    Set,
    Spent,
    Started,
    Stop,
    Track,
    Turn,
    Uncompact,
)
from turnlog.log.fold import State
from turnlog.log.part import Spawned
from turnlog.log.usage import Usage
from turnlog.machine.folder import place_in
from turnlog.session.erasable import ErasableSession
from turnlog.session.interior import HasInterior, interior
from turnlog.session.message.content import Content, JsonValue, as_list, blocks_of, id_of
from turnlog.session.message.fields import AnswerFields, CompactionFields, MessageFields
from turnlog.session.message.toolmessage import tool_message
from turnlog.session.turn import When, bracketed
from turnlog.thread.appender import Appender, batch_of
from turnlog.thread.call.approval import answer, ask, start
from turnlog.thread.compaction import KeptEnd, applying, check_compaction, compaction
from turnlog.thread.fact import check_fact
from turnlog.thread.history import History
from turnlog.thread.target import Target, rewind_to, seq_of

if TYPE_CHECKING:
    from turnlog.rewind.bracket import Bracket
    from turnlog.rewind.rewinder import Rewinder
    from turnlog.rewind.snapshot import Progress
    from turnlog.thread.home.newsession import SessionFields
    from turnlog.thread.stream import Live
    from turnlog.wire import Feed
    from turnlog.workspace.restore import Outcome

_E = TypeVar("_E", bound=AnyEntry)


class Session(ErasableSession):
    """One session. Thread-safe; opened by `Home.create` and `Home.resume`."""

    def __init__(self, home: HasInterior, history: History) -> None:
        super().__init__(home, history)
        self._appender = Appender(interior(home).store, history)
        self._append = self._appender.append
        self._last_context: Context | None = None
        """The end of the last context that `context` returned."""

    @property
    def _state(self) -> State:
        return self._appender.state

    def refresh(self) -> None:
        """Load what other processes have written since."""
        self._appender.refresh()

    @contextmanager
    def _locked(self) -> Generator[None]:
        # In this order, or there is a deadlock: a collection holds the store and appends drops to sessions.
        with self._store.keeping(), self._history.mutex:
            yield

    @cached_property
    def _bracket(self) -> Bracket:
        from turnlog.rewind.bracket import Bracket

        return Bracket(self._store, self._appender, self._coverage)

    @cached_property
    def _rewinder(self) -> Rewinder:
        from turnlog.rewind.rewinder import Rewinder

        return Rewinder(self._appender, self._files, self._planner)

    # ── appending ─────────────────────────────────────────────────────────────────────────────────

    @overload
    def append(
        self, draft: _E, /, *, id: str | None = None, after: Target | None = None, rebase: bool = False,
        once: bool = False, to: Target | None = None, alone: bool = False,
    ) -> _E: ...  # fmt: skip
    @overload
    def append(
        self, first: AnyEntry, second: AnyEntry, /, *drafts: AnyEntry, id: str | None = None,
        after: Target | None = None, rebase: bool = False, once: bool = False, to: Target | None = None,
        alone: bool = False,
    ) -> list[AnyEntry]: ...  # fmt: skip
    def append(
        self, *drafts: AnyEntry, id: str | None = None, after: Target | None = None, rebase: bool = False,
        once: bool = False, to: Target | None = None, alone: bool = False,
    ) -> Any:  # fmt: skip
        """Append drafts as one batch: all of them, or none. The batch is durable when this returns.

        `after` is the head the caller expects; another one raises `Conflict`. If another process appended a node,
        `rebase` puts the drafts after it instead of raising; `alone` raises for any entry of another process, facts
        included. `to` is the node that the drafts follow: the head moves there first, in the same batch. A draft with
        an id that is in the log already returns that entry, and the rest is appended; `once` refuses it. Returns the
        entry, or a list for several.
        """
        entries = batch_of(drafts, id)
        if once:
            self._history.refuse_inherited({entry.id for entry in entries})
        head, base = None if after is None else seq_of(after), None if to is None else seq_of(to)
        appended = self._appender.append_batch(entries, head=head, rebase=rebase, once=once, alone=alone, to=base)
        return appended[0] if len(appended) == 1 else appended

    def user(self, content: Content, *, rebase: bool = False, **fields: Unpack[MessageFields]) -> Message:
        """Append a person's message. With `rebase`, it follows what others appended, instead of a `Conflict`."""
        return self._append([Message(role="user", blocks=blocks_of(content), **fields)], rebase=rebase)[0]

    def system(self, content: Content, *, rebase: bool = False, **fields: Unpack[MessageFields]) -> Message:
        """Append a system message. System messages at the beginning are the system prompt."""
        return self._append([Message(role="system", blocks=blocks_of(content), **fields)], rebase=rebase)[0]

    def assistant(
        self,
        content: Content,
        *,
        model: str | None = None,
        usage: Usage | None = None,
        request: str | None = None,
        stop: Stop | None = None,
        rebase: bool = False,
        **fields: Unpack[AnswerFields],
    ) -> Message:
        """Append a model's response, complete: one response is one message."""
        blocks = blocks_of(content)
        message = Message(
            role="assistant", blocks=blocks, model=model, usage=usage, request=request, stop=stop, **fields
        )
        return self._append([message], rebase=rebase)[0]

    def tool_result(
        self,
        call: str | ToolCall,
        content: str | bytes | Sequence[AnyBlock] | JsonValue,
        *,
        is_error: bool = False,
        duration_ms: int | None = None,
        details: Any = None,
        child: str | None = None,
        rebase: bool = False,
        **fields: Unpack[MessageFields],
    ) -> Message:
        """Append a tool's result for the call with this id: text, blocks, or any JSON, which a model reads as text."""
        message = tool_message(
            call, content, is_error=is_error, duration_ms=duration_ms, details=details, child=child, fields=fields
        )
        return self._append([message], rebase=rebase)[0]

    def live(self, stream: Feed) -> Live:
        """A response that followers with `deltas=True` see while it arrives; see `Live`."""
        from turnlog.thread.stream import Live

        return Live(self._history.log, stream)

    def ask(self, call: str | ToolCall, text: str = "", *, data: Any = None) -> Ask:
        """Append a question whether an open call may be run. Until it is answered the session is `waiting`."""
        with self._history.mutex:
            return ask(self._appender, Ask(call=id_of(call), text=text, data=data))

    def answer(self, ask: Target, *, allow: bool, by: str | None = None, text: str = "", data: Any = None) -> Answer:
        """Answer a question: allow or deny the call. Works from any process. `Conflict` if it has an answer."""
        with self._history.mutex:
            return answer(self._appender, Answer(ask=seq_of(ask), allow=allow, by=by, text=text, data=data))

    def tool_start(self, call: str | ToolCall) -> Started:
        """Record that an open call is about to run: after a crash, only calls that were not started are safe to run.

        `Conflict` if it waits for an answer, or was denied.
        """
        with self._history.mutex:
            return start(self._appender, Started(call=id_of(call)))

    def note(self, text: str, *, data: Any = None) -> Note:
        """Append a note: people see it, models do not."""
        return self._append([Note(text=text, data=data)])[0]

    def spend(
        self, usage: Usage, *, model: str | None = None, why: str | None = None, request: str | None = None
    ) -> Spent:
        """Record usage without a message: of a title, a summary, a failed request."""
        return self._append([Spent(usage=usage, model=model, why=why, request=request)])[0]

    @contextmanager
    def turn(self) -> Generator[str]:
        """A turn, as a context manager, with a checkpoint at each end. It ends completed, aborted or failed.

        If no checkpoint can be taken, a note in the log says why, and the turn continues.
        """
        with bracketed(self._appender, self._append_turn_mark) as turn:
            yield turn

    # ── facts ─────────────────────────────────────────────────────────────────────────────────────

    def set(self, key: str, value: Any, *, exact: bool = False) -> Set:
        """Set a fact. It belongs to the branch, except the session-wide title, tags, workspace, archived and listed.

        Secrets in it are masked, unless it is `exact`. `listed` is a dict of the caller's that listings show.
        """
        return self._fact(Set(key=key, value=value, exact=exact))

    def unset(self, key: str) -> Set:
        """Remove a fact."""
        return self._fact(Set(key=key, unset=True))

    def _fact(self, entry: Set) -> Set:
        check_fact(entry)
        return self._appender.set(entry)

    # ── compaction and edits ──────────────────────────────────────────────────────────────────────

    def context(self, *, repair: bool = True, at: Target | None = None) -> Context:
        """What the model should see; see `ReadOnlySession.context`. `compact` keeps later messages visible."""
        context = super().context(repair=repair, at=at)
        self._last_context = Context([], head=context.head, head_id=context.head_id)
        return context

    def compact(
        self,
        summary: str | Sequence[Message | Ref] | None = None,
        *,
        keep: int = 0,
        keep_turns: int | None = None,
        keep_tokens: int | None = None,
        of: Context | None = None,
        **fields: Unpack[CompactionFields],
    ) -> Compaction:
        """From now on the model sees the summary, then the last `keep` messages. Everything else stays in the log.

        Instead of messages, the kept part can be given in turns, or in tokens: then it is as much as fits, and begins
        neither with a result nor with the answer to a question that is not kept. `of` is the context that was
        summarised; by default, the last one from this object. Messages after that context stay visible, even if less is
        to be kept. Without a summary, one is made without a model. A call and its result are never separated.
        """
        if isinstance(summary, str):
            summary = [Message(role="user", blocks=[Text(summary)])]
        replacement = None if summary is None else as_list(summary)
        kept = KeptEnd(keep, keep_turns, keep_tokens)
        check_compaction(replacement, kept, of=of)
        with self._history.mutex:
            if of is None and replacement is not None:
                of = self._last_context
            compacted = compaction(self._history, self._state.head, replacement, kept, of=of)
            return self._append([replace(compacted, **fields)])[0]

    def uncompact(self, compaction: Target | None = None) -> Uncompact:
        """Cancel a compaction (the newest one by default)."""
        with self._history.mutex:
            which = None if compaction is None else seq_of(compaction)
            return self._append([Uncompact(compaction=applying(self._history, self._state.head, which))])[0]

    def edit(self, entry: Target, blocks: Content | None) -> Edit:
        """Replace an entry with these blocks for the model, or leave it out. The original stays."""
        with self._history.mutex:
            seq = self._history.original(seq_of(entry))
            path = takewhile(lambda node: node.seq >= seq, self._history.path(self._state.head))
            if not any(node.seq == seq and isinstance(node, (Message, Custom)) for node in path):
                raise NotFound(f"entry {seq} is not a message of this conversation")
            return self._append([Edit(entry=seq, blocks=None if blocks is None else blocks_of(blocks))])[0]

    # ── moving ────────────────────────────────────────────────────────────────────────────────────

    def rewind(
        self,
        to: Target | None = None,
        *,
        before: Target | None = None,
        turns: int | None = None,
        files: bool = True,
        conversation: bool = True,
        only: Sequence[str] | None = None,
        force: bool = False,
        plan: str | None = None,
        after: Target | None = None,
    ) -> Head:
        """Files and conversation continue from that entry, before it, or before the last turns, as `stats` counts them.

        If `to` is a mark, the last node at or before it is meant; 0 is the empty conversation. Files go to the last
        checkpoint at or before that; files that others changed stay, unless `force`. The rest stays as a branch. `plan`
        is the `digest` of the plan that was shown, `after` the head the caller expects: any other is a `Conflict`.
        """
        with self._locked():
            if after is not None:
                self._appender.refuse_other_head(seq_of(after))
            head = rewind_to(self._history, to=to, before=before, turns=turns)
            paths, rewinder = as_list(only or ()), self._rewinder
            moved = rewinder.rewind(head, files=files, conversation=conversation, only=paths, force=force, plan=plan)
            return moved.entry

    def undo(self, *, force: bool = False, plan: str | None = None) -> Head:
        """Undo the newest rewind that has not been undone, files and conversation together.

        Files that changed since stay, unless `force`.
        """
        with self._locked():
            return self._rewinder.take_back("undo", force=force, plan=plan).entry

    def redo(self, *, force: bool = False, plan: str | None = None) -> Head:
        """Undo the newest undo. This is impossible once something was appended to the conversation."""
        with self._locked():
            return self._rewinder.take_back("redo", force=force, plan=plan).entry

    # ── files ─────────────────────────────────────────────────────────────────────────────────────

    def checkpoint(self, label: str | None = None, *, progress: Progress | None = None) -> Checkpoint:
        """Take a checkpoint of the files as they are now. It is durable when this returns."""
        if self._state.intent:
            self._rewinder.settle()
        with self._store.keeping():
            return self._append([self._coverage.take(label=label, progress=progress)])[0]

    def _append_turn_mark(self, turn: Turn, when: When) -> None:
        if interior(self._home).settings.checkpoints and (self.workspace or self._state.tracked):
            if when == "begin" and self._state.intent:
                self._rewinder.settle()
            self._bracket.append(turn, when)
        else:
            self._append([turn])

    def track(self, path: str | os.PathLike[str]) -> Track:
        """Cover a file even if it is ignored or outside the workspace."""
        return self._append([Track(path=place_in(self.workspace, path, is_relative=False))])[0]

    def changed(self, *paths: str | os.PathLike[str]) -> Changed:
        """Declare that the session itself made the changes to these files."""
        return self._append([Changed(paths=[place_in(self.workspace, path, is_relative=True) for path in paths])])[0]

    def problems(self) -> list[Outcome]:
        """What the last rewind, undo or redo of this object could not do to files, and why."""
        return list(self._rewinder.problems)

    def incomplete(self) -> list[Outcome]:
        """Files that were restored without an owner or an attribute that the system does not allow to set."""
        return list(self._rewinder.notes)

    def finish_rewind(self, *, abort: bool = False) -> Head | None:
        """Finish an interrupted rewind, or with `abort`, undo its finished part."""
        with self._locked():
            moved = self._rewinder.finish_interrupted(abort=abort, asked=True)
            return None if moved is None else moved.entry

    def fork(self, at: Target | None = None, *, name: str | None = None, **fields: Unpack[SessionFields]) -> Session:
        """A new session that continues this one, from its end or from entry `at`. Nothing is copied."""
        with self._history.mutex:
            seq = self._state.seq if at is None else seq_of(at)
            history = interior(self._home).creator.fork(self._history, seq, name, {**fields})
            return open_for_writing(self._home, history)

    def spawn(self, *, call: str | None = None, role: str | None = None, **fields: Unpack[SessionFields]) -> Session:
        """Create a subagent's session, linked to this one and to the tool call that started it."""
        self._history.refuse_closed()
        inner, spawned = interior(self._home), Spawned(self.id, call, role)
        child = open_for_writing(self._home, inner.creator.spawn(spawned, self.workspace, fields))
        try:
            self._append([Child(session=child.id, call=call, agent=fields.get("agent"))])
        except BaseException:
            child.close()
            with suppress(TurnlogError):  # nobody knows of it yet
                inner.store.purge(child.id, deleted=False)
            raise
        return child


def open_for_writing(home: HasInterior, history: History) -> Session:
    """A session for writing, closed with its home."""
    inner = interior(home)
    inner.finish_erasing()
    session = Session(home, history)
    inner.sessions.add(session)
    return session

"""The object people hold: one session, to append to, to read, to fork, to compact, to rewind."""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import takewhile
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from msgspec.structs import replace

from turnlog.errors import NotFound
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
    Spawned,
    Spent,
    Started,
    Stop,
    Track,
    Turn,
    Uncompact,
)  # fmt: skip
from turnlog.log.fold import State
from turnlog.log.usage import Usage
from turnlog.machine.folder import place_in
from turnlog.session.erasable import ErasableSession
from turnlog.session.interior import Housed, interior
from turnlog.session.messagefields import (
    AnswerFields,
    CompactionFields,
    Content,
    JsonValue,
    MessageFields,
    SessionFields,
    answer_of,
    blocks_of,
    id_of,
)  # fmt: skip
from turnlog.session.readonly import as_list
from turnlog.session.turn import bracketed
from turnlog.thread.appender import Appender, batch_of
from turnlog.thread.call.approval import answer, ask, start
from turnlog.thread.compaction import KeptEnd, applying, check_compaction, compaction
from turnlog.thread.fact import check_fact
from turnlog.thread.history import History
from turnlog.thread.target import Target, rewind_to, seq_of

if TYPE_CHECKING:
    from turnlog.rewind.bracket import Bracket
    from turnlog.rewind.snapshot import Progress
    from turnlog.rewind.travel import Travel
    from turnlog.thread.stream import Live
    from turnlog.wire import Feed
    from turnlog.workspace.restore import Outcome

_E = TypeVar("_E", bound=AnyEntry)


class Session(ErasableSession):
    """One session. Safe to use from many threads; made by `Home.create` and `Home.resume`."""

    def __init__(self, home: Housed, history: History) -> None:
        super().__init__(home, history)
        self._appender = Appender(interior(home).store, history)
        self._append = self._appender.append
        self._given: Context | None = None
        """How far the last context went that was given out."""

    @property
    def _state(self) -> State:
        return self._appender.state

    def refresh(self) -> None:
        """Take in what other processes have written since."""
        self._appender.refresh()

    @contextmanager
    def _steady(self) -> Generator[None]:
        # In this order, or two threads wait for ever: who collects asks sessions to write what was given up.
        with self._store.keeping(), self._history.mutex:
            yield

    @cached_property
    def _bracket(self) -> Bracket:
        from turnlog.rewind.bracket import Bracket

        return Bracket(self._store, self._appender, self._files)

    @cached_property
    def _travel(self) -> Travel:
        from turnlog.rewind.travel import Travel

        return Travel(self._store, self._appender, self._files, self._planner)

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
        """Append drafts as one batch: all of them, or none. Durable when this returns.

        `after` is the head the caller expects; anything else is a `Conflict`. `rebase` hangs the drafts on the
        new head instead of raising when another process was faster; `alone` raises whatever another process wrote, a
        fact too. `to` is the node that they follow: the head moves there first, in the same batch. Drafts with ids that
        are in the log already are answered with what is there, and the rest is appended; `once` refuses them. Returns
        the entry, or a list for several.
        """
        entries = batch_of(drafts, id)
        if once:
            self._history.refuse_inherited({entry.id for entry in entries})
        head, base = (None if at is None else seq_of(at) for at in (after, to))
        appended = self._appender.append_batch(entries, head=head, rebase=rebase, once=once, alone=alone, to=base)
        return appended[0] if len(appended) == 1 else appended

    def user(self, content: Content, *, rebase: bool = False, **fields: Unpack[MessageFields]) -> Message:
        """A person's message. `rebase` as in `append`: it follows what others said meanwhile, and is no conflict."""
        return self._append([Message(role="user", blocks=blocks_of(content), **fields)], rebase=rebase)[0]

    def system(self, content: Content, *, rebase: bool = False, **fields: Unpack[MessageFields]) -> Message:
        """A system message. Those at the beginning are the system prompt."""
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
        """A model's response, whole: one response is one message."""
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
        """A tool's answer to the call with that id: text, blocks, or any JSON, which a model reads as text."""
        message = answer_of(
            call, content, is_error=is_error, duration_ms=duration_ms, details=details, child=child, fields=fields
        )
        return self._append([message], rebase=rebase)[0]

    def live(self, stream: Feed) -> Live:
        """A response that those who follow with `deltas=True` see while it arrives. `Live` says how."""
        from turnlog.thread.stream import Live

        return Live(self._history.log, stream)

    def ask(self, call: str | ToolCall, text: str = "", *, data: Any = None) -> Ask:
        """Whether that open call may be run: somebody has to say so. Until then the session is `waiting`."""
        with self._history.mutex:
            return ask(self._appender, Ask(call=id_of(call), text=text, data=data))

    def answer(self, ask: Target, *, allow: bool, by: str | None = None, text: str = "", data: Any = None) -> Answer:
        """Answer entry `ask`: allow or deny the call. Works from any process. `Conflict` if it has an answer."""
        with self._history.mutex:
            return answer(self._appender, Answer(ask=seq_of(ask), allow=allow, by=by, text=text, data=data))

    def tool_start(self, call: str | ToolCall) -> Started:
        """Record that an open call is about to run: after a crash, only calls that were not started are safe to run.

        `Conflict` if it waits for an answer, or was denied."""
        with self._history.mutex:
            return start(self._appender, Started(call=id_of(call)))

    def note(self, text: str, *, data: Any = None) -> Note:
        """Something for people to see; no model does."""
        return self._append([Note(text=text, data=data)])[0]

    def spend(
        self, usage: Usage, *, model: str | None = None, why: str | None = None, request: str | None = None
    ) -> Spent:
        """Spending without a message: a title, a summary, a failed request."""
        return self._append([Spent(usage=usage, model=model, why=why, request=request)])[0]

    @contextmanager
    def turn(self) -> Generator[str]:
        """Bracket a turn, and its files: a checkpoint at each end. It ends completed, aborted or failed.

        Where there can be no checkpoint, a note in the log says why; the turn goes on.
        """
        with bracketed(self._appender, self._append_end) as turn:
            yield turn

    # ── facts ─────────────────────────────────────────────────────────────────────────────────────

    def set(self, key: str, value: Any, *, exact: bool = False) -> Set:
        """A fact. It follows the branch, except title, tags, workspace, archived and listed: those are the session's.

        Secrets in it are masked, unless it is `exact`. `listed` is a dict of the caller's that listings show.
        """
        return self._fact(Set(key=key, value=value, exact=exact))

    def unset(self, key: str) -> Set:
        """That fact is no more."""
        return self._fact(Set(key=key, unset=True))

    def _fact(self, entry: Set) -> Set:
        check_fact(entry)
        return self._appender.set(entry)

    # ── compaction and edits ──────────────────────────────────────────────────────────────────────

    def context(self, *, repair: bool = True, at: Target | None = None) -> Context:
        """What the model should see; see `ReadOnlySession.context`. What comes after it, `compact` leaves visible."""
        context = super().context(repair=repair, at=at)
        self._given = Context([], head=context.head, head_id=context.head_id)
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

        Instead of messages, what is kept can be told in turns, or in tokens: then it is as much as fits, and begins
        neither with a result nor with the answer to a question that is gone.
        `of` is the context that was summarised, or the last one that this object gave out: whatever it did not have
        stays visible, however little is to be kept. Without a summary one is made of all that is there, without a
        model: see `thread/summary.py`. A tool call is never parted from its result: where the cut would do that, more
        is kept.
        """
        if isinstance(summary, str):
            summary = [Message(role="user", blocks=[Text(summary)])]
        replacement = None if summary is None else as_list(summary)
        check_compaction(replacement, kept := KeptEnd(keep, keep_turns, keep_tokens), of=of)
        with self._history.mutex:
            if of is None and replacement is not None:
                of = self._given
            compacted = compaction(self._history, self._state.head, replacement, kept, of=of)
            return self._append([replace(compacted, **fields)])[0]

    def uncompact(self, compaction: Target | None = None) -> Uncompact:
        """That compaction (the newest one) no longer applies."""
        with self._history.mutex:
            which = None if compaction is None else seq_of(compaction)
            return self._append([Uncompact(compaction=applying(self._history, self._state.head, which))])[0]

    def edit(self, entry: Target, blocks: Content | None) -> Edit:
        """For the model, that entry reads as these blocks, or is left out. The original stays."""
        seq = seq_of(entry)
        with self._history.mutex:
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

        `to` a mark means the last node at or before it, 0 the empty conversation. Files go to the last checkpoint
        at or before that; what somebody else changed stays, unless `force`. The rest stays as a branch. `plan` is the
        `digest` of the plan that was shown, `after` the head the caller expects: any other is a `Conflict`.
        """
        with self._steady():
            if after is not None:
                self._appender.refuse_other_head(seq_of(after))
            head = rewind_to(self._history, to=to, before=before, turns=turns)
            paths, travel = None if only is None else as_list(only), self._travel
            moved = travel.rewind(head, files=files, conversation=conversation, only=paths, force=force, plan=plan)
            return moved.entry

    def undo(self, *, force: bool = False, plan: str | None = None) -> Head:
        """Take back the newest rewind that has not been taken back, files and conversation together.

        What was changed since stays, unless `force`.
        """
        with self._steady():
            return self._travel.take_back("undo", force=force, plan=plan).entry

    def redo(self, *, force: bool = False, plan: str | None = None) -> Head:
        """Take back the newest undo. Anything said since makes that impossible."""
        with self._steady():
            return self._travel.take_back("redo", force=force, plan=plan).entry

    # ── files ─────────────────────────────────────────────────────────────────────────────────────

    def checkpoint(self, label: str | None = None, *, progress: Progress | None = None) -> Checkpoint:
        """The files as they are now, to come back to. Everything is on the disk when this returns."""
        if self._state.intent:
            self._travel.settle()
        with self._store.keeping():
            return self._append([self._files.take(label=label, progress=progress)])[0]

    def _append_end(self, turn: Turn, when: str) -> None:
        if interior(self._home).settings.checkpoints and (self.workspace or self._state.tracked):
            if when == "begin" and self._state.intent:
                self._travel.settle()
            self._bracket.append(turn, when)
        else:
            self._append([turn])

    def track(self, path: str | os.PathLike[str]) -> Track:
        """Cover a file even though it is ignored or outside the workspace."""
        return self._append([Track(path=place_in(self.workspace, path, is_relative=False))])[0]

    def changed(self, *paths: str | os.PathLike[str]) -> Changed:
        """These changes are the session's: the caller says so."""
        return self._append([Changed(paths=[place_in(self.workspace, path, is_relative=True) for path in paths])])[0]

    def problems(self) -> list[Outcome]:
        """What the last rewind, undo or redo of this object could not do to files, and why."""
        return list(self._travel.problems)

    def incomplete(self) -> list[Outcome]:
        """What it did put back, but for an owner or an attribute that the system does not allow to set."""
        return list(self._travel.notes)

    def finish_rewind(self, *, abort: bool = False) -> Head | None:
        """Finish an interrupted rewind, or take back what was done of it."""
        with self._steady():
            moved = self._travel.finish_interrupted(abort=abort, asked=True)
            return None if moved is None else moved.entry

    def fork(self, at: Target | None = None, *, name: str | None = None, **fields: Unpack[SessionFields]) -> Session:
        """A new session that continues this one, from its end or from entry `at`. Nothing is copied."""
        with self._history.mutex:
            seq = self._state.seq if at is None else seq_of(at)
            return hold(self._home, interior(self._home).creator.fork(self._history, seq, name, fields))

    def spawn(self, *, call: str | None = None, role: str | None = None, **fields: Unpack[SessionFields]) -> Session:
        """A subagent's session, linked to this one and to the tool call that started it."""
        session_id = interior(self._home).creator.new_id(fields.pop("id", None))
        self._append([Child(session=session_id, call=call, agent=fields.get("agent"))])
        spawned = Spawned(self.id, call, role)
        return hold(self._home, interior(self._home).creator.spawn(session_id, spawned, self.workspace, dict(fields)))


def hold(home: Housed, history: History) -> Session:
    """A session of that home, closed with it."""
    inner = interior(home)
    inner.finish_erasing()
    session = Session(home, history)
    inner.sessions.add(session)
    return session

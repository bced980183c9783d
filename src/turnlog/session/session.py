"""The object people hold: one session, to append to, to read, to fork, to compact, to rewind."""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, overload

from msgspec.structs import replace

from turnlog.errors import Conflict, Invalid, NotFound
from turnlog.log.block import AnyBlock, Text, ToolCall, ToolResult
from turnlog.log.context import Context
from turnlog.log.entry import (
    WIDE_FACTS,
    AnyEntry,
    Changed,
    Checkpoint,
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
    Track,
    Turn,
    Uncompact,
)  # fmt: skip
from turnlog.log.ids import new_id
from turnlog.log.usage import Usage
from turnlog.machine import place_in, workspace_path
from turnlog.rewind.target import Target, rewind_to, seq_of
from turnlog.session.readable import Readable
from turnlog.thread.compaction import compaction

if TYPE_CHECKING:
    from turnlog.rewind.files import Progress
    from turnlog.workspace.plan import Plan

Content = str | Sequence[AnyBlock]
_E = TypeVar("_E", bound=AnyEntry)
_T = TypeVar("_T")


def _blocks(content: Content) -> list[AnyBlock]:
    return [Text(content)] if isinstance(content, str) else _listed(content)


def _listed(items: Sequence[_T]) -> list[_T]:
    try:
        return list(items)
    except TypeError:
        raise Invalid(f"text or a list, not {items!r:.80}") from None


class Session(Readable):
    """One session. Safe to use from many threads; made by `Home.create` and `Home.resume`."""

    _given: Context | None = None
    """How far the last context went that was given out."""

    # ── appending ─────────────────────────────────────────────────────────────────────────────────

    @overload
    def append(
        self, draft: _E, /, *, id: str | None = None, after: Target | None = None, rebase: bool = False,
        once: bool = False,
    ) -> _E: ...  # fmt: skip
    @overload
    def append(
        self, first: AnyEntry, second: AnyEntry, /, *drafts: AnyEntry, id: str | None = None,
        after: Target | None = None, rebase: bool = False, once: bool = False,
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
        for draft in drafts:
            if not isinstance(draft, Entry):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise Invalid(f"{draft!r:.80} is not an entry", hint="use turnlog.Message and the like")
        entries = list(drafts)
        if id is not None:
            entries = [replace(e, id=id if not i else f"{id}/{i}") for i, e in enumerate(entries)]
        head = None if after is None else seq_of(after)
        if once:
            self._refuse_inherited(entry.id for entry in entries)
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
            content=content if isinstance(content, str) else _listed(content),
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
    def turn(self) -> Generator[str]:
        """Bracket a turn, and its files: a checkpoint at each end. It ends completed, aborted or failed.

        Where there can be no checkpoint, a note in the log says why; the turn goes on.
        """
        turn = new_id()
        try:
            with self._mutex:
                if self._appender.turn is not None:
                    raise Invalid("a turn has begun already and not ended", hint="turns do not nest")
                self._appender.turn = turn
            self._append_end(Turn(state="begin", turn=turn), "begin")
        except BaseException:
            if self._appender.turn == turn:
                self._appender.turn = None
            raise
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
            try:
                self._append_end(Turn(state=state, error=error, turn=turn), "end")
            finally:
                self._appender.turn = None

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
        if not isinstance(entry.key, str) or not entry.key:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise Invalid(f"a fact needs a name, not {entry.key!r:.80}")
        while entry.key in WIDE_FACTS:
            facts = {**self._state.wide, entry.key: entry.value}
            if entry.unset:
                del facts[entry.key]
            try:
                return self._append([replace(entry, all=facts)], alone=True)[0]
            except Conflict:
                self._appender.catch_up()
        return self._append([entry])[0]

    # ── compaction and edits ──────────────────────────────────────────────────────────────────────

    def context(self) -> Context:
        """What the model should see: complete, repaired, compacted. What comes after it, `compact` leaves visible."""
        context = super().context()
        self._given = Context([], head=context.head, head_id=context.head_id)
        return context

    def compact(
        self,
        summary: str | Sequence[Message | Ref] | None = None,
        *,
        keep: int = 0,
        of: Context | None = None,
        **fields: Any,
    ) -> Compaction:
        """From now on the model sees the summary, then the last `keep` messages. Everything else stays in the log.

        `of` is the context that was summarised, or the last one that this object gave out: whatever it did not have
        stays visible, however little is to be kept. Without a summary one is made of all that is there, without a
        model: see `thread/summary.py`. A tool call is never parted from its result: where the cut would do that, more
        is kept.
        """
        if type(keep) is not int or keep < 0:
            raise Invalid(f"cannot keep {keep!r:.80} messages")
        if of is not None and not isinstance(of, Context):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise Invalid(f"a compaction of {of!r:.80}", hint="of=session.context(), taken before the summary was made")
        if isinstance(summary, str):
            summary = [Message(role="user", blocks=[Text(summary)])]
        replacement = None if summary is None else _listed(summary)
        for item in replacement or ():
            if not isinstance(item, (Message, Ref)):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise Invalid(f"{item!r:.80} in a summary", hint="text, turnlog.Message or turnlog.Ref")
        with self._mutex:
            if of is None and replacement is not None:
                of = self._given
            made = compaction(self._history, self._state.head, replacement, keep=keep, of=of)
            return self._append([replace(made, **fields)])[0]

    def uncompact(self, compaction: Target | None = None) -> Uncompact:
        """That compaction (the newest one) no longer applies."""
        with self._mutex:
            cancelled: set[int] = set()
            for node in self._history.path(self._state.head):
                if isinstance(node, Uncompact):
                    cancelled.add(node.compaction)
                elif (
                    isinstance(node, Compaction)
                    and node.seq not in cancelled
                    and (compaction is None or node.seq == seq_of(compaction))
                ):
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
    ) -> Head:
        """Files and conversation continue from that entry, before that entry, or before the last turns.

        `to` a mark means the last node at or before it, 0 the empty conversation. Files go to the last checkpoint
        at or before that; what somebody else changed stays, unless `force`. The rest stays as a branch.
        """
        with self._keeping(), self._mutex:
            head = rewind_to(self._history, to=to, before=before, turns=turns)
            paths = None if only is None else _listed(only)
            moved = self._travel.rewind(head, files=files, conversation=conversation, only=paths, force=force)
            return moved.entry

    def plan_rewind(
        self,
        to: Target | None = None,
        *,
        before: Target | None = None,
        turns: int | None = None,
        only: Sequence[str] | None = None,
        force: bool = False,
    ) -> Plan:
        """What a rewind would do to each file, and why; nothing is touched."""
        with self._keeping(), self._mutex:
            head = rewind_to(self._history, to=to, before=before, turns=turns)
            return self._travel.plan(head.asof, only=None if only is None else _listed(only), force=force)

    def undo(self) -> Head:
        """Take back the newest rewind that has not been taken back, files and conversation together."""
        with self._keeping(), self._mutex:
            return self._travel.take_back("undo").entry

    def redo(self) -> Head:
        """Take back the newest undo. Anything said since makes that impossible."""
        with self._keeping(), self._mutex:
            return self._travel.take_back("redo").entry

    # ── files ─────────────────────────────────────────────────────────────────────────────────────

    def checkpoint(self, label: str | None = None, *, progress: Progress | None = None) -> Checkpoint:
        """The files as they are now, to come back to. Everything is on the disk when this returns."""
        if self._state.intent:
            self._travel.settle()
        with self._keeping():
            return self._append([self._files.take(label=label, progress=progress)])[0]

    def _append_end(self, turn: Turn, when: str) -> None:
        if self._home.settings.checkpoints and (self.workspace or self._state.tracked):
            if when == "begin" and self._state.intent:
                self._travel.settle()
            self._bracket.append(turn, when)
        else:
            self._append([turn])

    def track(self, path: str | os.PathLike[str]) -> Track:
        """Cover a file even though it is ignored or outside the workspace."""
        return self._append([Track(path=self._place_of(path, is_relative=False))])[0]

    def changed(self, *paths: str | os.PathLike[str]) -> Changed:
        """These changes are the session's: the caller says so."""
        return self._append([Changed(paths=[self._place_of(path, is_relative=True) for path in paths])])[0]

    def _place_of(self, path: str | os.PathLike[str], *, is_relative: bool) -> str:
        return place_in(self.workspace, path, is_relative=is_relative)

    def finish_rewind(self, *, abort: bool = False) -> Head | None:
        """Finish an interrupted rewind, or take back what was done of it."""
        with self._keeping(), self._mutex:
            moved = self._travel.finish_interrupted(abort=abort, asked=True)
            return None if moved is None else moved.entry

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

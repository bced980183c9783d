"""A session to look at: its log, the files it remembers, and what it would be for another agent."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar, overload

from turnlog.errors import Invalid, NotFound
from turnlog.log.entry import Checkpoint
from turnlog.session.document import FORMS, Document, DocumentForm, document_of
from turnlog.session.interior import Housed, interior
from turnlog.thread.history import History
from turnlog.thread.reader import SessionReader
from turnlog.thread.target import Target, rewind_to

if TYPE_CHECKING:
    from turnlog.exchange.transcript import Exported
    from turnlog.log.erasure.content import Erasure
    from turnlog.rewind.files import Files
    from turnlog.rewind.planner import Planner
    from turnlog.rewind.span import Span
    from turnlog.workspace.diff import Difference
    from turnlog.workspace.plan import Plan

_Path = str | os.PathLike[str]
_T = TypeVar("_T")


def as_list(items: Sequence[_T]) -> list[_T]:
    """Items that a caller gave, or `Invalid`."""
    try:
        return list(items)
    except TypeError:
        raise Invalid(f"text or a list, not {items!r:.80}") from None


class ReadOnlySession(SessionReader):
    """One session, to look at; made by `Home.read`.

    It takes no lock, settles nothing that somebody left unfinished and never writes to the home, so it works beside a
    writer and on a disk that cannot be written. It shows what was acknowledged when it was opened; `refresh` takes in
    the rest.
    """

    def __init__(self, home: Housed, history: History) -> None:
        super().__init__(history)
        self._home = home

    @cached_property
    def _files(self) -> Files:
        from turnlog.rewind.files import Files  # only who asks for files pays for loading what knows them

        return Files(self._store, self._history, interior(self._home).settings)

    @cached_property
    def _planner(self) -> Planner:
        from turnlog.rewind.planner import Planner

        return Planner(self._store, self._history, self._files)

    def _steady(self) -> AbstractContextManager[object]:
        """Nothing changes inside under whoever compares files."""
        _ = self._store  # a closed session compares nothing
        return self._history.mutex

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
        with self._steady():
            if before is not None:
                return self._files.diff(before, after or self._files.look(), lines=lines)
            return self._change_of(self._files.turn(turn), lines=lines)

    def changes(self, turns: Collection[str]) -> dict[str, list[Difference]]:
        """The net change of each of these turns, by its id; those without checkpoints are left out."""
        with self._steady():
            spans = [span for span in self._files.turns() if span.turn in turns] if turns else []
            return {str(span.turn): self._change_of(span, lines=True) for span in spans}

    def _change_of(self, span: Span, *, lines: bool) -> list[Difference]:
        after = span.end or self._files.look()
        return self._planner.without_others(span.begin, after, self._files.diff(span.begin, after, lines=lines))

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
        with self._steady():
            head = rewind_to(self._history, to=to, before=before, turns=turns)
            return self._planner.plan(head.asof, only=None if only is None else as_list(only), force=force)

    def plan_undo(self, *, force: bool = False) -> Plan:
        """What an undo would do to each file, and why; nothing is touched."""
        with self._steady():
            if not self._state.undo:
                raise NotFound("there is no rewind to undo")
            return self._planner.plan_back(self._state.undo[-1], force=force)

    def plan_redo(self, *, force: bool = False) -> Plan:
        """What a redo would do to each file, and why; nothing is touched."""
        with self._steady():
            if not self._state.redo:
                raise NotFound("there is no undo to take back")
            return self._planner.plan_back(self._state.redo[-1], force=force)

    def erasures(self) -> list[Erasure]:
        """What was erased in this session's own log: which entry, when, by whom and why."""
        from turnlog.store import derived

        with self._history.mutex:
            erasures = derived.erasures(self._store, self._history.first).get(self._history.first, [])
        return sorted((one for one in erasures if not one.part), key=lambda one: one.seq)

    def interrupted(self) -> bool:
        """Whether a rewind was begun and not finished. The next rewind finishes it first."""
        if not self._state.intent:
            return False
        from turnlog.rewind.intent import interrupted_in

        with self._history.mutex:
            return interrupted_in(self._history) is not None

    @overload
    def export(self, to: DocumentForm, *, redact: bool = True, content: bool = False) -> Document: ...
    @overload
    def export(
        self, to: str, place: _Path | None = None, *, force: bool = False, format_version: int | None = None,
        include_ignored: bool = False,
    ) -> Exported: ...  # fmt: skip
    def export(
        self, to: str, place: _Path | None = None, *, redact: bool | None = None, content: bool | None = None,
        force: bool = False, format_version: int | None = None, include_ignored: bool = False,
    ) -> Document | Exported:  # fmt: skip
        """A document for people (`html`, `markdown`) or programs (`json`, `jsonl`, `otel`): `s.export("html").data`.

        Keys, tokens and passwords are taken out of it unless `redact=False`; spans have what was said with `content`.
        For any other word, written for that agent: to a file, or into a folder as the agent lays it out; here if not
        told where.
        """
        if to in FORMS:
            if place is not None or force or format_version is not None or include_ignored:
                hint = f'pathlib.Path(…).write_bytes(session.export("{to}").data)'
                raise Invalid(f"{to} is given back, not written for an agent", hint=hint)
            return document_of(self, self._home, to, redact=redact is not False, content=content is True)
        if redact is not None or content is not None:
            raise Invalid(f"{to!r:.40} is no document, and nothing is redacted", hint=f"{', '.join(FORMS)} are")
        from turnlog.exchange.transcript import send

        with self._history.mutex:
            return send(self, to, place, force=force, format_version=format_version, include_ignored=include_ignored)

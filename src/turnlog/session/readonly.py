"""A read-only session: its log, its files, and its exports."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import TYPE_CHECKING, overload

from turnlog.errors import Invalid, NotFound
from turnlog.log.entry import Checkpoint
from turnlog.session.document import FORMS, Document, DocumentForm, document_of
from turnlog.session.interior import HasInterior, interior
from turnlog.session.message.content import as_list
from turnlog.thread.history import History
from turnlog.thread.reader import SessionReader
from turnlog.thread.target import Target, rewind_to

if TYPE_CHECKING:
    from turnlog.exchange.exporting.output import Exported
    from turnlog.log.erasure.content import Erasure
    from turnlog.rewind.coverage import Coverage
    from turnlog.rewind.files import Files
    from turnlog.rewind.planner import Planner
    from turnlog.workspace.diff import Difference
    from turnlog.workspace.plan import Plan

_Path = str | os.PathLike[str]


class ReadOnlySession(SessionReader):
    """One session for reading; opened by `Home.read`.

    It takes no lock, repairs nothing that was left unfinished and never writes to the home, so it works beside a writer
    and on a read-only disk. It shows what was acknowledged when it was opened; `refresh` loads the rest.
    """

    def __init__(self, home: HasInterior, history: History) -> None:
        super().__init__(history)
        self._home = home

    @cached_property
    def _coverage(self) -> Coverage:
        from turnlog.rewind.coverage import Coverage

        return Coverage(self._store, self._history, interior(self._home).settings)

    @cached_property
    def _files(self) -> Files:
        from turnlog.rewind.files import Files  # loaded only when files are needed

        return Files(self._store, self._history, self._coverage)

    @cached_property
    def _planner(self) -> Planner:
        from turnlog.rewind.planner import Planner

        return Planner(self._files)

    def _locked(self) -> AbstractContextManager[object]:
        """A lock under which nothing changes while files are compared."""
        _ = self._store  # raises if the session is closed
        return self._history.mutex

    def diff(
        self,
        before: Checkpoint | None = None,
        after: Checkpoint | None = None,
        *,
        turn: int | str | None = None,
        lines: bool = True,
    ) -> list[Difference]:
        """The net change of a turn (the newest by default), between two checkpoints, or from one until now.

        Without `lines`, only the kind of change of each path: comparing large texts takes a while.
        """
        from turnlog.rewind.difference import differences_between, differences_of
        from turnlog.rewind.span import get_turn

        if after is not None and before is None:
            raise Invalid("`after` was given without `before`", hint="diff(before, after), or diff(turn=…)")
        if turn is not None and before is not None:
            raise Invalid("`turn` and `before` were both given", hint="diff(turn=…), or diff(before, after)")

        with self._locked():
            if before is not None:
                return differences_between(self._files, before, after or self._files.look(), lines=lines)
            work = get_turn(self._store, self._history, turn)
            return differences_of(self._files, work, lines=lines)

    def changes(self, turns: Collection[str]) -> dict[str, list[Difference]]:
        """The net change of each of these turns, by its id; turns without checkpoints are left out."""
        from turnlog.rewind.difference import differences_of
        from turnlog.rewind.span import turns as turns_of

        with self._locked():
            spans = [span for span in turns_of(self._store, self._history) if span.turn in turns] if turns else []
            return {str(span.turn): differences_of(self._files, span, lines=True) for span in spans}

    def plan_rewind(
        self,
        to: Target | None = None,
        *,
        before: Target | None = None,
        turns: int | None = None,
        only: Sequence[str] | None = None,
        force: bool = False,
    ) -> Plan:
        """What a rewind would do to each file, and why; nothing is changed.

        `only` these files and folders: paths from the workspace, or absolute.
        """
        with self._locked():
            head = rewind_to(self._history, to=to, before=before, turns=turns)
            return self._planner.plan(head.asof, only=as_list(only or ()), force=force)

    def plan_undo(self, *, force: bool = False) -> Plan:
        """What an undo would do to each file, and why; nothing is changed."""
        with self._locked():
            if not self._state.undo:
                raise NotFound("there is no rewind to undo")
            return self._planner.plan_back(self._state.undo[-1], force=force)

    def plan_redo(self, *, force: bool = False) -> Plan:
        """What a redo would do to each file, and why; nothing is changed."""
        with self._locked():
            if not self._state.redo:
                raise NotFound("there is no undo to take back")
            return self._planner.plan_back(self._state.redo[-1], force=force)

    def erasures(self) -> list[Erasure]:
        """The erasures in this session's own log: which entry, when, by whom and why."""
        from turnlog.store import derived

        with self._history.mutex:
            erasures = derived.erasures(self._store, self._history.first).get(self._history.first, [])
        return sorted((one for one in erasures if not one.part), key=lambda one: one.seq)

    def interrupted(self) -> bool:
        """Whether a rewind is unfinished. The next rewind finishes it first."""
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

        Keys, tokens and passwords are redacted unless `redact=False`; the spans of `otel` contain text only with
        `content`. Any other `to` is the name of an agent: the session is written for it to a file, or into a folder in
        the agent's layout; without a `place`, here.
        """
        if to in FORMS:
            if place is not None or force or format_version is not None or include_ignored:
                hint = f'pathlib.Path(…).write_bytes(session.export("{to}").data)'
                raise Invalid(f"export({to!r}) returns a document, and takes no options for files", hint=hint)
            return document_of(self, self._home, to, redact=redact is not False, content=content is True)
        if redact is not None or content is not None:
            text = f"redact and content are for documents, and {to!r:.40} is the name of an agent"
            raise Invalid(text, hint=f"documents are {', '.join(FORMS)}")
        from turnlog.exchange.exporting.output import export

        with self._history.mutex:
            return export(self, to, place, force=force, format_version=format_version, include_ignored=include_ignored)

"""The work of other sessions in the same folders, so that a rewind does not take it back."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from math import inf

from msgspec import Struct
from msgspec.structs import replace

from turnlog.errors import Corrupt, NotFound
from turnlog.log.entry import AnyEntry, Checkpoint, Track, Turn, Writer
from turnlog.log.ids import word_of
from turnlog.log.part import Root, same_root
from turnlog.log.path import is_at_or_below
from turnlog.rewind.attribution import Attribution
from turnlog.rewind.snapshot import CoveredRoot, current_path, folder_path, roots_of, workspace_of
from turnlog.rewind.span import Span, paths_in, spans
from turnlog.rewind.timelinereader import each_opened, tracked_paths
from turnlog.store import Store
from turnlog.thread.history import History
from turnlog.thread.overlay import Overlay
from turnlog.thread.report import Info, info_of
from turnlog.workspace.git import repository_place
from turnlog.workspace.plan import ForeignWork, is_same
from turnlog.workspace.tree import Tree, lookup, path_bytes, path_text


class ForeignSpan(Struct, frozen=True):
    """A stretch of another session's work."""

    begin: Checkpoint
    end: Checkpoint | None
    until: Checkpoint | None
    """For a span without an end: our checkpoint by which it was over; None if it may go on."""
    what: str
    paths: frozenset[str] | None
    late: list[Root]
    """What it covers only since then, if only some files of a folder: no tree shows how that was before."""
    is_ordered: bool
    """Whether the timeline has it: it is a turn, and begins with a checkpoint."""
    session: str
    workspace: str | None
    """The current path of the session's workspace."""


class _Ours(Struct):
    """The part of our own log that matters for the work of others."""

    checkpoints: set[str]
    gone: dict[str, Checkpoint]
    """The words of processes that were gone, with the first checkpoint that reports each."""
    writers: dict[str, Writer]
    turns: set[str]
    within: set[str]
    """Turns of others that contain turns of ours: an agent's work in a `turnlog run` is not another session's."""


def work_of_others(
    store: Store, history: History, since: Checkpoint, until: Checkpoint | None = None
) -> list[ForeignSpan]:
    """Other sessions' work that ended, or may have continued, after checkpoint `since`, and began before `until`.

    This considers sessions with a folder that is covered here, inside a covered one or around one, those in other
    worktrees of the same repository, because they may have come here, and those that track a file or a folder here.
    """
    if since.at is None:
        return []
    ours, covered = _ours(history), _CoveredFolders(history, since)
    works: list[ForeignSpan] = []
    candidates = _candidates(store, history, covered, since, until)
    for row, theirs in each_opened(store, candidates, lambda row: not covered.is_near(row.workspace)):
        if not covered.is_near(row.workspace) and not covered.includes_any(tracked_paths(theirs)):
            continue
        if _is_since(row, since) or theirs.state.turn is not None:
            works += _work_of(store, theirs, row, since, ours)
    return works


def _candidates(
    store: Store, history: History, covered: _CoveredFolders, since: Checkpoint, until: Checkpoint | None
) -> list[Info]:
    """The sessions that may have worked in the same folders, newest first, if they began before `until`.

    Those elsewhere only if they wrote anything since: what they track is in their logs, and not all are opened.
    """
    last = None if until is None else until.at
    rows = map(info_of, sorted(store.listing(), key=lambda row: row.order, reverse=True))
    return [
        row
        for row in rows
        if row.id != history.id and (last is None or row.created_at is None or row.created_at <= last)
        if _is_since(row, since) or covered.is_near(row.workspace)
    ]


def _is_since(row: Info, since: Checkpoint) -> bool:
    """Whether a session was written to at a checkpoint or later, as far as times tell."""
    return row.updated_at is None or since.at is None or row.updated_at >= since.at


class _CoveredFolders:
    """The folders that are covered in a session, now or in a checkpoint."""

    def __init__(self, history: History, since: Checkpoint) -> None:
        workspace = workspace_of(history.state)
        now = [path_text(os.fsencode(root.path)) for root in roots_of(history.state)]
        then = [current_path(root, workspace) for root in since.roots if not root.is_private]
        self._folders = [folder_path(path) for path in {*now, *then}]
        self._repositories = {_repository(folder) for folder in self._folders} - {None}
        self._known: dict[str, bool] = {}

    def is_near(self, workspace: str | None) -> bool:
        """Whether a workspace is one of them, inside one, around one, or in the same repository."""
        if workspace is None:
            return False
        if workspace not in self._known:
            folder = folder_path(workspace)
            is_in_repository = bool(self._repositories) and _repository(folder) in self._repositories
            self._known[workspace] = is_in_repository or self._meets(folder)
        return self._known[workspace]

    def includes_any(self, paths: Iterable[str]) -> bool:
        """Whether one of these files and folders is one of them, inside one or around one."""
        return any(self._meets(path_bytes(path) + b"/") for path in paths)

    def _meets(self, folder: bytes) -> bool:
        return any(folder.startswith(other) or other.startswith(folder) for other in self._folders)


def _ours(history: History) -> _Ours:
    ours = _Ours(set(), {}, {}, set(), set())
    for entry in history.forward():
        if isinstance(entry, Checkpoint):
            ours.checkpoints.add(entry.id)
            for word in entry.gone:
                ours.gone.setdefault(word, entry)
        elif isinstance(entry, Writer):
            ours.writers[entry.word] = entry
        elif isinstance(entry, Turn) and entry.state == "begin" and entry.turn is not None:
            ours.turns.add(entry.turn)
            ours.within |= {entry.within} if entry.within is not None else set()
    return ours


def _work_of(store: Store, theirs: History, row: Info, since: Checkpoint, ours: _Ours) -> Iterator[ForeignSpan]:
    entries = list(theirs.forward())
    shared = [entry for entry in entries if isinstance(entry, Checkpoint) and entry.id in ours.checkpoints]
    writers = {entry.word: entry for entry in entries if isinstance(entry, Writer)}
    target = shared[-1] if shared else None  # a fork inherits its parent's work, but did not do it
    covered_now = [covered.root("") for covered in roots_of(theirs.state)]
    nested = {entry.turn for entry in entries if isinstance(entry, Turn) and entry.within in ours.turns}
    for span in spans(store, theirs, entries, target):
        if span.is_turn and (span.turn in ours.within or span.turn in nested):
            continue
        if span.doubt and span.is_turn and span.began <= theirs.inherited_to:
            continue  # it continued in the session that was forked, if at all
        until = ours.gone.get(word_of(span.turn or "")) if span.end is None else None
        is_over = until is not None and until.seq <= since.seq
        if is_over or (span.end is None and _was_over(span, writers, since, ours)):
            continue
        if span.end is None or span.end.at is None or since.at is None or span.end.at >= since.at:
            how = "may have changed it, too" if span.doubt else "changed it at the same time"
            what = f"session {row.handle}, {span.what}, {how}"
            until_end = covered_now if span.end is None else span.end.roots
            late = list(_covered_since(span.begin.roots, [*until_end, *_covered_meanwhile(entries, span, until_end)]))
            is_ordered = span.is_turn and bool(span.begin.id)
            yield ForeignSpan(span.begin, span.end, until, what, span.paths, late, is_ordered, row.id, row.workspace)


def _covered_meanwhile(entries: list[AnyEntry], span: Span, until_end: list[Root]) -> Iterator[Root]:
    """The folders that came to be covered in a span and are not at its end: only the last few stay covered."""
    last = inf if span.end is None else span.end.seq
    for entry in entries:
        if isinstance(entry, Track) and entry.is_folder and span.begin.seq < entry.seq < last:
            root = CoveredRoot(entry.path, entry.path).root("")
            if same_root(until_end, root) is None:
                yield root


def _covered_since(before: list[Root], after: list[Root]) -> Iterator[Root]:
    """The roots that cover more than before; where only some files of a folder are covered, with the new ones."""
    for root in after:
        earlier = same_root(before, root)
        if root.is_private or (earlier is not None and not earlier.is_partial):
            continue
        if earlier is None or not root.is_partial:
            yield root
        elif new := sorted(set(root.tracked).difference(earlier.tracked)):
            yield replace(root, tracked=new)


def _was_over(span: Span, writers: dict[str, Writer], since: Checkpoint, ours: _Ours) -> bool:
    """Whether the machine was rebooted between a turn without an end and that checkpoint."""
    theirs = writers.get(word_of(span.turn or ""))
    mine = ours.writers.get(word_of(since.id)) or ours.writers.get(word_of(since.turn or ""))
    if theirs is None or mine is None or theirs.host != mine.host:
        return False
    return theirs.boot != mine.boot and None not in (theirs.boot, mine.boot)


class _ForeignView(Struct):
    """A folder as another session saw it before a stretch of its work, and after it."""

    folder: bytes
    what: str
    covered: frozenset[bytes] | None
    """The only files and folders in it that the session covers; None, here and for `paths`, means all."""
    paths: frozenset[bytes] | None
    """The only ones that the work is about."""
    before: Tree | None = None
    """None, here and below, if it is not known: not covered then, or it cannot be read any more."""
    after: Tree | None = None
    is_ours: bool = False
    """Whether `after` is our own folder as we saw it."""
    is_clear: bool = False
    """Whether the timeline tells who changed a file."""

    def is_about(self, path: bytes) -> bool:
        """Whether the work may have changed a path of the folder, as far as paths tell."""
        return all(paths is None or is_at_or_below(path, paths) for paths in (self.covered, self.paths))


def seen_by_others(
    root: Root, folder: str, others: list[ForeignSpan], now: Checkpoint, overlay: Overlay, attribution: Attribution
) -> Callable[[bytes], ForeignWork]:
    """A function that returns which of these spans may also have changed a path of this root, now at `folder`."""
    here, get = folder_path(folder), overlay.get
    views = [view for work in others for view in _views_of(work, root, here, now, overlay)]

    def done_by_others(path: bytes) -> ForeignWork:
        seen = [view for view in views if has_seen(view, path)]
        if not seen:
            return ForeignWork()
        is_ours = attribution.is_ours(here + path) if all(view.is_clear for view in seen) else None
        return ForeignWork(seen[0].what if is_ours is None else "", is_only_theirs=is_ours is False)

    def has_seen(view: _ForeignView, path: bytes) -> bool:
        if not (here + path).startswith(view.folder):
            return False
        inside = (here + path)[len(view.folder) :]
        if not view.is_about(inside):
            return False
        if view.before is None or view.after is None:
            return True
        after = lookup(view.after, path if view.is_ours else inside, get)
        return not is_same(lookup(view.before, inside, get), after)

    return done_by_others


def _views_of(work: ForeignSpan, ours: Root, here: bytes, now: Checkpoint, overlay: Overlay) -> Iterator[_ForeignView]:
    """How the session saw the folders that are inside this one or around it."""
    for root in work.begin.roots:
        view = _view_of(work, root, here)
        if view is not None:
            end, seen = (work.end, root) if work.end is not None else (work.until or now, ours)
            look = overlay.comparable(work.begin, end, root)
            view.before, view.after = _readable(look, work.begin, root), _readable(look, end, seen)
            view.is_ours = work.end is None
            view.is_clear = work.is_ordered and view.before is not None and view.after is not None
            yield view
    for root in work.late:
        view = _view_of(work, root, here)
        if view is not None:
            # The timeline only knows of it if the checkpoint at the end has it, which an open turn lacks.
            view.is_clear = work.is_ordered and work.end is not None and same_root(work.end.roots, root) is not None
            yield view


def _view_of(work: ForeignSpan, root: Root, here: bytes) -> _ForeignView | None:
    """The view of one folder, without trees; None if it is elsewhere."""
    folder = folder_path(current_path(root, work.workspace))
    is_near = here.startswith(folder) or folder.startswith(here)
    if root.is_private or not is_near:  # a private tree is laid over that of the workspace
        return None
    was_at = [other.path for other in (work.end.roots if work.end is not None else ())]
    paths = None if work.paths is None else paths_in(root, work.paths, was_at=was_at)
    covered = frozenset(map(path_bytes, root.tracked)) if root.is_partial else None
    return _ForeignView(folder, work.what, covered, paths)


def _readable(look: Callable[[Checkpoint, Root], Tree | None], checkpoint: Checkpoint, root: Root) -> Tree | None:
    try:
        return look(checkpoint, root)
    except (NotFound, Corrupt):
        return None


def _repository(folder: bytes) -> str | None:
    return repository_place(os.fsdecode(folder))

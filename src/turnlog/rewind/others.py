"""The work of other sessions in the same folders, so that a rewind does not take it back."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from msgspec import Struct

from turnlog.errors import Corrupt, NotFound
from turnlog.log.entry import Changed, Checkpoint, Turn, Writer
from turnlog.log.fold import State
from turnlog.log.ids import word_of
from turnlog.log.part import Root
from turnlog.rewind.attribution import Attribution
from turnlog.rewind.lateroot import LateRoots
from turnlog.rewind.overlay import Overlay
from turnlog.rewind.snapshot import current_path, folder_path, roots_of, workspace_of
from turnlog.rewind.span import Span, paths_in, spans
from turnlog.rewind.timelinereader import each_opened
from turnlog.store import Store
from turnlog.thread.history import History
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
    declared: frozenset[str]
    """Files that it declared in folders which it covers only since then: their trees do not show the change."""
    is_turn: bool
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
    for row, theirs in each_opened(store, _candidates(store, history, covered, since, until)):
        is_near = row.workspace is not None and covered.is_near(row.workspace)
        if not is_near and not covered.has_tracked(theirs.state):
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
        if _is_since(row, since) or (row.workspace is not None and covered.is_near(row.workspace))
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

    def is_near(self, workspace: str) -> bool:
        """Whether a workspace is one of them, inside one, around one, or in the same repository."""
        if workspace not in self._known:
            folder = folder_path(workspace)
            is_in_repository = bool(self._repositories) and _repository(folder) in self._repositories
            self._known[workspace] = is_in_repository or self._meets(folder)
        return self._known[workspace]

    def has_tracked(self, state: State) -> bool:
        """Whether a session tracks a file or a folder in one of them."""
        return any(self._meets(path_bytes(path) + b"/") for path in (*state.tracked, *state.folders))

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
    late_roots = LateRoots(entry for entry in entries if isinstance(entry, Checkpoint))
    declared: dict[str, set[str]] = {}
    for entry in entries:
        if isinstance(entry, Changed) and entry.turn is not None:
            declared.setdefault(entry.turn, set()).update(entry.paths)
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
            begin = late_roots.fill(span.begin, span.end)
            late = [root for root in begin.roots if root not in span.begin.roots]
            own = _paths_below(late, declared.get(span.turn or "", set()))
            yield ForeignSpan(begin, span.end, until, what, span.paths, own, span.is_turn, row.id, row.workspace)


def _paths_below(roots: list[Root], paths: set[str]) -> frozenset[str]:
    """Those of the paths that are in one of the roots."""
    return frozenset(path for path in paths if any(paths_in(root, [path]) for root in roots))


def _was_over(span: Span, writers: dict[str, Writer], since: Checkpoint, ours: _Ours) -> bool:
    """Whether the machine was rebooted between a turn without an end and that checkpoint."""
    theirs = writers.get(word_of(span.turn or ""))
    mine = ours.writers.get(word_of(since.id)) or ours.writers.get(word_of(since.turn or ""))
    if theirs is None or mine is None or theirs.host != mine.host:
        return False
    return theirs.boot != mine.boot and None not in (theirs.boot, mine.boot)


class _ForeignView(Struct):
    """A folder as another session saw it before a stretch of its work, and after it."""

    place: bytes
    before: Tree | None
    """None, here and below, if it cannot be read any more."""
    after: Tree | None
    is_ours: bool
    """Whether `after` is our own folder as we saw it."""
    paths: frozenset[bytes] | None
    declared: frozenset[bytes]
    """See `ForeignSpan.declared`."""
    what: str
    is_turn: bool


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
        # Changes can only be attributed if all of these are turns with readable trees.
        is_clear = all(view.is_turn and view.before is not None and view.after is not None for view in seen)
        is_ours = attribution.is_ours(here + path) if is_clear else None
        return ForeignWork(seen[0].what if is_ours is None else "", is_only_theirs=is_ours is False)

    def has_seen(view: _ForeignView, path: bytes) -> bool:
        if not (here + path).startswith(view.place):
            return False
        inside = (here + path)[len(view.place) :]
        if view.paths is not None and inside not in view.paths:
            return False
        if inside in view.declared or view.before is None or view.after is None:
            return True
        after = lookup(view.after, path if view.is_ours else inside, get)
        return not is_same(lookup(view.before, inside, get), after)

    return done_by_others


def _views_of(work: ForeignSpan, ours: Root, here: bytes, now: Checkpoint, overlay: Overlay) -> Iterator[_ForeignView]:
    for root in work.begin.roots:
        if root.is_private:
            continue  # its tree is laid over that of the workspace
        folder = folder_path(current_path(root, work.workspace))
        if not (here.startswith(folder) or folder.startswith(here)):
            continue
        was_at = [other.path for other in (work.end.roots if work.end is not None else ())]
        paths = None if work.paths is None else paths_in(root, work.paths, was_at=was_at)
        declared = paths_in(root, work.declared, was_at=was_at)
        if root.is_partial:
            tracked = frozenset(path_bytes(path) for path in root.tracked)
            paths = tracked if paths is None else paths & tracked
        end, seen = (work.end, root) if work.end is not None else (work.until or now, ours)
        look = overlay.comparable(work.begin, end, root)
        before, after = _readable(look, work.begin, root), _readable(look, end, seen)
        yield _ForeignView(folder, before, after, work.end is None, paths, declared, work.what, work.is_turn)


def _readable(look: Callable[[Checkpoint, Root], Tree | None], checkpoint: Checkpoint, root: Root) -> Tree | None:
    try:
        return look(checkpoint, root)
    except (NotFound, Corrupt):
        return None


def _repository(folder: bytes) -> str | None:
    return repository_place(os.fsdecode(folder))

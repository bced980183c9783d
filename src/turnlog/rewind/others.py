"""What other sessions did in the same folders, so that a rewind does not take it back."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from turnlog.errors import Corrupt, NotFound
from turnlog.log.entry import Checkpoint, Root, Turn, Writer
from turnlog.log.ids import word_of
from turnlog.rewind.appearance import Appearances
from turnlog.rewind.chronology import folder_path
from turnlog.rewind.overlay import Overlay
from turnlog.rewind.snapshot import WORKSPACE, roots_of
from turnlog.rewind.span import Span, paths_in, spans
from turnlog.rewind.testimony import Testimony
from turnlog.store import Store
from turnlog.thread.history import History, opened
from turnlog.thread.report import Info, info_of
from turnlog.workspace.git import repository_place
from turnlog.workspace.plan import is_same
from turnlog.workspace.tree import Tree, lookup, path_bytes, path_text


class ForeignSpan(Struct, frozen=True):
    """A stretch of another session's work."""

    begin: Checkpoint
    end: Checkpoint | None
    until: Checkpoint | None
    """Where it has no end: the checkpoint of ours at which it was over; None if it may go on."""
    what: str
    paths: frozenset[str] | None
    is_turn: bool
    session: str
    workspace: str
    """Where its workspace lies now."""


class _Ours(Struct):
    """What our own log says that matters for the work of others."""

    checkpoints: set[str]
    gone: dict[str, Checkpoint]
    """Processes that were gone, by their words, and the first checkpoint that says so."""
    writers: dict[str, dict[str, Any]]
    turns: set[str]
    within: set[str]
    """Turns of others that ours are parts of: what an agent did in a `turnlog run` is not another's work."""


def work_of_others(
    store: Store, history: History, since: Checkpoint, until: Checkpoint | None = None
) -> list[ForeignSpan]:
    """Stretches of other sessions' work that ended, or may have gone on, after that checkpoint; not what came later.

    Asked is every session whose folder is one of those that are covered, lies in one or is around one; and those of
    other worktrees of the same repository, for they may have come here.
    """
    ours = _ours(history)
    workspace = history.state.wide.get("workspace")
    now = [path_text(os.fsencode(root.path)) for root in roots_of(history.state)]
    then = [_where(root, workspace) for root in since.roots if not root.is_private]
    places = [folder_path(path) for path in {*now, *then}]
    last = None if until is None else until.at
    repositories = {_repository(place) for place in places} - {None}

    @cache
    def is_near(folder: str) -> bool:
        here = folder_path(folder)
        if any(here.startswith(other) or other.startswith(here) for other in places):
            return True
        return bool(repositories) and _repository(here) in repositories

    works: list[ForeignSpan] = []
    for row in map(info_of, sorted(store.listing(), key=lambda row: row.order, reverse=True)):
        if row.id == history.id or row.workspace is None or since.at is None:
            continue
        if not is_near(row.workspace) or (last is not None and row.created_at is not None and row.created_at > last):
            continue
        with opened(store, store.open(row.id, read_only=True)) as theirs:
            if row.updated_at is not None and row.updated_at < since.at and theirs.state.turn is None:
                continue
            works += _of_one(store, theirs, row, since, ours)
    return works


def _ours(history: History) -> _Ours:
    ours = _Ours(set(), {}, {}, set(), set())
    for entry in history.forward():
        if isinstance(entry, Checkpoint):
            ours.checkpoints.add(entry.id)
            for word in entry.gone:
                ours.gone.setdefault(word, entry)
        elif isinstance(entry, Writer):
            ours.writers[entry.word] = asdict(entry)
        elif isinstance(entry, Turn) and entry.state == "begin" and entry.turn is not None:
            ours.turns.add(entry.turn)
            ours.within |= {entry.within} if entry.within is not None else set()
    return ours


def _of_one(store: Store, theirs: History, row: Info, since: Checkpoint, ours: _Ours) -> Iterator[ForeignSpan]:
    entries = list(theirs.forward())
    shared = [entry for entry in entries if isinstance(entry, Checkpoint) and entry.id in ours.checkpoints]
    writers = {entry.word: asdict(entry) for entry in entries if isinstance(entry, Writer)}
    target = shared[-1] if shared else None  # a fork has its parent's work, and did not do it
    came = Appearances(entry for entry in entries if isinstance(entry, Checkpoint))
    parts = {entry.turn for entry in entries if isinstance(entry, Turn) and entry.within in ours.turns}
    for span in spans(store, theirs, entries, target):
        if span.is_turn and (span.turn in ours.within or span.turn in parts):
            continue
        if span.doubt and span.is_turn and span.began <= theirs.inherited_to:
            continue  # it went on in the session that it was forked from, if at all
        until = ours.gone.get(word_of(span.turn or "")) if span.end is None else None
        is_over = until is not None and until.seq <= since.seq
        if is_over or (span.end is None and _was_over(span, writers, since, ours)):
            continue
        if span.end is None or span.end.at is None or since.at is None or span.end.at >= since.at:
            how = "may have changed it, too" if span.doubt else "changed it at the same time"
            what = f"session {row.handle}, {span.what}, {how}"
            begin = came.fill(span.begin, span.end)
            yield ForeignSpan(begin, span.end, until, what, span.paths, span.is_turn, row.id, row.workspace or "")


def _was_over(span: Span, writers: dict[str, dict[str, Any]], since: Checkpoint, ours: _Ours) -> bool:
    """Whether the machine was started anew between a turn without an end and that checkpoint."""
    theirs = writers.get(word_of(span.turn or ""))
    mine = ours.writers.get(word_of(since.id)) or ours.writers.get(word_of(since.turn or ""))
    if theirs is None or mine is None or theirs["host"] != mine["host"]:
        return False
    return theirs["boot"] != mine["boot"] and None not in (theirs["boot"], mine["boot"])


class _View(Struct):
    """A folder as another session saw it before a stretch of its work, and as it was when that was over."""

    place: bytes
    before: Tree | None
    """None, here and below, where nobody can look any more."""
    after: Tree | None
    is_ours: bool
    """Whether `after` is what we saw: of our own folder."""
    paths: frozenset[bytes] | None
    what: str
    is_turn: bool


def seen_by_others(
    root: Root, folder: str, others: list[ForeignSpan], now: Checkpoint, overlay: Overlay, testimony: Testimony
) -> Callable[[bytes], str | None]:
    """Says of a path in a root, which lies there now, which of these stretches may have changed it, too.

    Nothing if none did; None where it was another session, and not this one.
    """
    here, get = folder_path(folder), overlay.get
    views = [view for work in others for view in _views(work, root, here, now, overlay)]

    def who(path: bytes) -> str | None:
        seen = [view for view in views if has_seen(view, path)]
        if not seen:
            return ""
        # Only turns are told apart, and only where all of them can be looked at.
        is_clear = all(view.is_turn and view.before is not None and view.after is not None for view in seen)
        is_ours = testimony.is_ours(here + path) if is_clear else None
        return seen[0].what if is_ours is None else "" if is_ours else None

    def has_seen(view: _View, path: bytes) -> bool:
        if not (here + path).startswith(view.place):
            return False
        inside = (here + path)[len(view.place) :]
        if view.paths is not None and inside not in view.paths:
            return False
        if view.before is None or view.after is None:
            return True
        after = lookup(view.after, path if view.is_ours else inside, get)
        return not is_same(lookup(view.before, inside, get), after)

    return who


def _views(work: ForeignSpan, ours: Root, here: bytes, now: Checkpoint, overlay: Overlay) -> Iterator[_View]:
    for root in work.begin.roots:
        if root.is_private:
            continue  # it lies over that of the workspace
        folder = folder_path(_where(root, work.workspace))
        if not (here.startswith(folder) or folder.startswith(here)):
            continue
        paths = None
        if work.paths is not None:
            was_at = [other.path for other in (work.end.roots if work.end is not None else ())]
            paths = paths_in(root, work.paths, was_at=was_at)
        if root.is_partial:
            tracked = frozenset(path_bytes(path) for path in root.tracked)
            paths = tracked if paths is None else paths & tracked
        end, seen = (work.end, root) if work.end is not None else (work.until or now, ours)
        look = overlay.comparable(work.begin, end, root)
        before, after = _looked(look, work.begin, root), _looked(look, end, seen)
        yield _View(folder, before, after, work.end is None, paths, work.what, work.is_turn)


def _looked(look: Callable[[Checkpoint, Root], Tree | None], checkpoint: Checkpoint, root: Root) -> Tree | None:
    try:
        return look(checkpoint, root)
    except (NotFound, Corrupt):
        return None


def _where(root: Root, workspace: str | None) -> str:
    """Where a root lies now: a project may have moved since."""
    return workspace if root.name == WORKSPACE and workspace else root.path


def _repository(folder: bytes) -> str | None:
    return repository_place(os.fsdecode(folder))

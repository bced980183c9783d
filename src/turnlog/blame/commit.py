"""The turns that wrote the lines of a commit, and what those turns cost."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from functools import partial

from msgspec import Struct

from turnlog.blame.alignment import NEW, matches
from turnlog.blame.authorship import Authors, Blame, BlamedLine, LineAuthor, content_now, file_place
from turnlog.blame.repository import CommittedFile, Repository
from turnlog.blame.trail import LineTrail, Verdict
from turnlog.blame.version import Versions, lines_of
from turnlog.errors import NotFound, TurnlogError, Unsupported
from turnlog.log.entry import AnyEntry, Child, Compaction, Message, Spent
from turnlog.log.payload import digest
from turnlog.machine.folder import named_here
from turnlog.pricing import Cost, cost_of
from turnlog.rewind.timeline import Timeline
from turnlog.rewind.timelinereader import timeline_at
from turnlog.store import Store
from turnlog.thread.history import opened, subagents
from turnlog.thread.sessioncost import own_entries
from turnlog.thread.turnnumber import number_turn
from turnlog.workspace.git import worktree_of
from turnlog.workspace.tree import path_text


class CommitTurn(Struct, frozen=True):
    """A turn that wrote lines of a commit."""

    author: LineAuthor
    lines: int
    cost_micros: int | None
    """The cost of the turn with its subagents; None if unknown."""
    unpriced: list[str]
    """The models without a known price, whose cost is not included."""


class CommitBlame(Struct, frozen=True):
    """A commit, and the authors of its lines."""

    commit: str
    subject: str
    top: str
    """The folder of the repository."""
    files: list[Blame]
    """The files with the lines that the commit added."""
    turns: list[CommitTurn]
    """The turns that wrote lines, the one with the most first."""
    others: dict[str, int]
    """The number of lines without a single author, by reason."""


def blame_commit(store: Store, revision: str, path: str | os.PathLike[str] | None = None) -> CommitBlame:
    """The authors of the lines that a commit added: in one file, or in all of them."""
    file = None if path is None else file_place(path)
    repository = _repository(named_here(".") if file is None else os.path.dirname(os.fsdecode(file)))
    try:
        commit = repository.commit(revision)
        changed = [one for one in repository.changed(commit) if file in (None, one.path)]
        if file is not None and not changed:
            raise NotFound(f"commit {commit[:9]} did not change {path_text(file)}")
        timeline = _timeline(store, repository, changed)
        files = _files(store, timeline, repository, commit, changed)
        subject = repository.subject(commit)
    finally:
        repository.close()
    lines = [line for file in files for line in file.lines]
    others = Counter(line.why for line in lines if line.why is not None)
    return CommitBlame(
        commit, subject, path_text(repository.top.rstrip(b"/")), files, _turns(store, lines), dict(others)
    )


def sessions_behind(store: Store, revisions: str) -> list[str]:
    """The sessions whose turns wrote lines of a commit, or of all in a range `A..B`, in the current repository."""
    repository = _repository(named_here("."))
    try:
        commits = repository.commits(revisions)
        timeline = _timeline(store, repository, [])
        sessions: dict[str, None] = {}
        for commit in commits:
            for file in _files(store, timeline, repository, commit, repository.changed(commit)):
                for line in file.lines:
                    sessions.update((author.session, None) for author in (line.author, *line.authors) if author)
    finally:
        repository.close()
    return list(sessions)


def _repository(folder: str) -> Repository:
    top = worktree_of(folder)
    if top is None:
        raise NotFound(
            f"{path_text(os.fsencode(folder))} is in no git repository", hint="go into the one with the commit"
        )
    return Repository(top)


def _timeline(store: Store, repository: Repository, changed: list[CommittedFile]) -> Timeline:
    """The timeline of the only changed file, or of all files of the repository."""
    if len(changed) == 1:
        path = changed[0].path
        timeline = timeline_at(store, path, partial(Versions(store).at, path=path))
    else:
        timeline = timeline_at(store, repository.top)
    if not timeline.sightings:
        top = path_text(repository.top)
        raise NotFound(f"no checkpoint covers {top}", hint="`turnlog run -- COMMAND` takes two")
    return timeline


def _files(
    store: Store, timeline: Timeline, repository: Repository, commit: str, changed: list[CommittedFile]
) -> list[Blame]:
    """The lines that a commit added to each of these files, with their authors."""
    commit_lines = _CommitLines(timeline, Versions(store), repository, commit)
    authors, parents = Authors(store), repository.parents(commit)
    blames: list[Blame] = []
    for file in changed:
        texts = repository.lines(commit, file.path)
        if texts is None:
            continue  # not a text
        before = repository.lines(parents[0], file.old_path) if parents else ()
        added = [number for number, origin in enumerate(matches(before or (), texts)) if origin == NEW]
        verdicts = commit_lines.verdicts(file.path, texts) if added else []
        lines = [authors.line(number + 1, texts[number], verdicts[number]) for number in added]
        blames.append(Blame(path_text(file.path), lines, revision=commit))
    return blames


class _CommitLines:
    """Finds the authors of the lines of a commit by their content, wherever the commit was made."""

    def __init__(self, timeline: Timeline, versions: Versions, repository: Repository, commit: str) -> None:
        self._sightings = timeline.sightings
        self._versions = versions
        self._repository = repository
        self._commit = commit
        self._trail = LineTrail(timeline, versions, repository)
        at_commit = (number for number in range(len(self._sightings)) if self._trail.commit_at(number) == commit)
        self._upper = next(at_commit, len(self._sightings))
        """The first sighting after the commit was made; if none saw it, the present."""

    def verdicts(self, path: bytes, texts: tuple[bytes, ...]) -> list[Verdict]:
        """The verdict for each line."""
        content = digest(self._repository.content(self._commit, path) or b"")
        for number in range(min(self._upper, len(self._sightings) - 1), -1, -1):
            node = self._versions.at(self._sightings[number], path)
            if node is not None and node.digest == content:
                return self._trail.follow(path, texts, content, number)
        unknown = Verdict(why="git", commit=self._commit)
        verdicts = self._trail.find(path, texts, min(self._upper + 1, len(self._sightings)), unknown)
        if self._upper == len(self._sightings) and unknown in verdicts:
            self._add_since(path, texts, verdicts, unknown)
        return verdicts

    def _add_since(self, path: bytes, texts: tuple[bytes, ...], verdicts: list[Verdict], unknown: Verdict) -> None:
        """Lines that no checkpoint has yet may be in the file as it is now."""
        try:
            data = content_now(path)
        except TurnlogError:
            return
        lines = lines_of(data)
        if lines is None:
            return
        now = self._trail.follow(path, lines, digest(data), len(self._sightings))
        for number, index in enumerate(matches(lines, texts)):
            if index != NEW and verdicts[number] is unknown:
                verdicts[number] = now[index]


# ── what it cost ──────────────────────────────────────────────────────────────────────────────────


def _turns(store: Store, lines: Iterable[BlamedLine]) -> list[CommitTurn]:
    counts = Counter(line.author for line in lines if line.author is not None)
    costs: dict[str, dict[int, Cost | None]] = {}
    for author in counts:
        if author.session not in costs:
            wanted = {one.turn for one in counts if one.session == author.session}
            costs[author.session] = _costs(store, author.session, wanted)
    turns: list[CommitTurn] = []
    for author, number in counts.most_common():
        cost = costs[author.session].get(author.turn)
        unpriced = [] if cost is None else sorted(cost.unpriced)
        is_known = cost is not None and (cost.models or not unpriced)
        turns.append(CommitTurn(author, number, cost.micros if cost is not None and is_known else None, unpriced))
    return turns


def _costs(store: Store, session: str, wanted: set[int]) -> dict[int, Cost | None]:
    """The cost of turns, by their numbers; None without recorded usage."""
    numbers: dict[str, int] = {}
    entries: dict[int, list[AnyEntry]] = {number: [] for number in wanted}
    started = {session}
    with opened(store, store.open(session, read_only=True)) as history:
        for entry in history.forward():
            number_turn(numbers, entry)
            number = numbers.get(entry.turn) if entry.turn is not None else None
            child = entry.session if isinstance(entry, Child) and entry.session not in started else None
            started |= {child} if child is not None else set()
            if number not in entries:
                continue
            entries[number].append(entry)
            if child is not None:
                entries[number] += _below(store, child, started)
    return {number: _cost(of_turn) for number, of_turn in entries.items()}


def _below(store: Store, session: str, started: set[str]) -> list[AnyEntry]:
    """The own entries of a subagent and of those below it; each session counts once, where it was started first."""
    try:
        log = store.open(session, read_only=True)
    except NotFound:
        return []
    with opened(store, log) as history:
        entries = list(own_entries(history))
        for below in subagents(store, history):
            if below.id not in started:
                started.add(below.id)
                entries += own_entries(below)
    return entries


def _cost(entries: list[AnyEntry]) -> Cost | None:
    paid = (entry for entry in entries if isinstance(entry, (Message, Compaction, Spent)))
    if not any(entry.usage is not None for entry in paid):
        return None
    try:
        return cost_of(entries)
    except Unsupported:  # the prices are not installed
        return None

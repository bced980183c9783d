"""The turns whose lines a commit contains, and what those turns cost."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from turnlog.blame.alignment import NEW, matches
from turnlog.blame.authorship import Authors, Blame, BlamedLine, LineAuthor, file_place
from turnlog.blame.repository import Repository
from turnlog.blame.trail import GIT, LineTrail, Verdict
from turnlog.blame.version import Versions, lines_of
from turnlog.errors import NotFound, Unsupported
from turnlog.log.entry import AnyEntry, Child
from turnlog.log.payload import digest
from turnlog.machine.folder import named_here
from turnlog.pricing import Cost, cost_of
from turnlog.rewind.chronology import timeline
from turnlog.rewind.timeline import Timeline
from turnlog.store import Store
from turnlog.thread.bill import own_entries
from turnlog.thread.history import opened, subagents
from turnlog.thread.target import number_turn
from turnlog.workspace.git import worktree_of
from turnlog.workspace.tree import path_text


class CommitTurn(Struct, frozen=True):
    """A turn that wrote lines of a commit."""

    author: LineAuthor
    lines: int
    cost_micros: int | None
    """What the turn cost, with its subagents; None where nothing is known of it."""
    unpriced: list[str]
    """The models of which no price is known: what they cost is not in it."""


class CommitBlame(Struct, frozen=True):
    """A commit, and whose its lines are."""

    commit: str
    subject: str
    top: str
    """The folder of the repository."""
    files: list[Blame]
    """The lines that it added."""
    turns: list[CommitTurn]
    """The one with the most lines first."""
    others: dict[str, int]
    """How many lines are not one turn's, by why."""


def blame_commit(store: Store, revision: str, path: str | os.PathLike[str] | None = None) -> CommitBlame:
    """Whose the lines are that a commit added: in one file, or in all of them."""
    folder = named_here(".") if path is None else os.fsdecode(file_place(path))
    repository = _repository(folder if path is None else os.path.dirname(folder))
    try:
        commit = repository.commit(revision)
        names = repository.changed(commit)
        if path is not None:
            names = [(new, old) for new, old in names if new == os.fsencode(folder)]
            if not names:
                raise NotFound(f"commit {commit[:9]} did not change {path_text(os.fsencode(folder))}")
        files = _files(store, _history(store, repository, names), repository, commit, names)
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
        history = _history(store, repository, [])
        sessions: dict[str, None] = {}
        for commit in commits:
            for file in _files(store, history, repository, commit, repository.changed(commit)):
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


def _history(store: Store, repository: Repository, names: list[tuple[bytes, bytes]]) -> Timeline:
    history = timeline(store, names[0][0] if len(names) == 1 else repository.top)
    if not history.sightings:
        top = path_text(repository.top)
        raise NotFound(f"no checkpoint covers {top}", hint="`turnlog run -- COMMAND` takes two")
    return history


def _files(
    store: Store, history: Timeline, repository: Repository, commit: str, names: list[tuple[bytes, bytes]]
) -> list[Blame]:
    looker = _CommitLines(history, Versions(store), repository, commit)
    authors, parents = Authors(store), repository.parents(commit)
    blames: list[Blame] = []
    for new, old in names:
        texts = repository.lines(commit, new)
        if texts is None:
            continue  # no text
        before = repository.lines(parents[0], old) if parents else ()
        added = [number for number, was in enumerate(matches(before or (), texts)) if was == NEW]
        verdicts = looker.verdicts(new, texts) if added else []
        lines = [authors.line(number + 1, texts[number], verdicts[number]) for number in added]
        blames.append(Blame(path_text(new), lines, revision=commit))
    return blames


class _CommitLines:
    """Finds the authors of the lines of a commit, wherever it came from: by what they say."""

    def __init__(self, history: Timeline, versions: Versions, repository: Repository, commit: str) -> None:
        self._sightings = history.sightings
        self._versions = versions
        self._repository = repository
        self._commit = commit
        self._trail = LineTrail(history, versions, repository)
        seen = (number for number in range(len(self._sightings)) if self._trail.commit_at(number) == commit)
        self._upper = next(seen, len(self._sightings))
        """The first sighting after the commit was made; now, if none saw it."""

    def verdicts(self, path: bytes, texts: tuple[bytes, ...]) -> list[Verdict]:
        """Of each line, who wrote it."""
        content = digest(self._repository.content(self._commit, path) or b"")
        for number in range(min(self._upper, len(self._sightings) - 1), -1, -1):
            node = self._versions.at(self._sightings[number], path)
            if node is not None and node.digest == content:
                return self._trail.follow(path, texts, content, number)
        unknown = Verdict(why=GIT, commit=self._commit)
        verdicts = self._trail.find(path, texts, min(self._upper + 1, len(self._sightings)), unknown)
        if self._upper == len(self._sightings) and unknown in verdicts:
            self._add_since(path, texts, verdicts, unknown)
        return verdicts

    def _add_since(self, path: bytes, texts: tuple[bytes, ...], verdicts: list[Verdict], unknown: Verdict) -> None:
        """What no checkpoint has yet may be in the file as it is now."""
        try:
            with open(path, "rb") as file:
                data = file.read()
        except OSError:
            return
        lines = lines_of(data)
        if lines is None:
            return
        now = self._trail.follow(path, lines, digest(data), len(self._sightings))
        for number, there in enumerate(matches(lines, texts)):
            if there != NEW and verdicts[number] is unknown:
                verdicts[number] = now[there]


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
    """What turns cost, by their numbers; None where they say nothing of what they used."""
    numbers: dict[str, int] = {}
    entries: dict[int, list[AnyEntry]] = {number: [] for number in wanted}
    started = {session}
    with opened(store, store.open(session, read_only=True)) as history:
        for entry in history.forward():
            number_turn(numbers, entry)
            number = numbers.get(entry.turn) if entry.turn is not None else None
            child = entry.session if isinstance(entry, Child) and entry.session not in started else None
            started |= {child} if child is not None else set()
            if number not in entries or history.is_repeat(entry):
                continue
            entries[number].append(entry)
            if child is not None:
                entries[number] += _below(store, child, started)
    return {number: _cost(some) for number, some in entries.items()}


def _below(store: Store, session: str, started: set[str]) -> list[AnyEntry]:
    """What a subagent and those below it did themselves; each counts where it was started first."""
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
    if not any(getattr(entry, "usage", None) is not None for entry in entries):
        return None
    try:
        return cost_of(entries)
    except Unsupported:  # the prices are not installed
        return None

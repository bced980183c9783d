"""Following the lines of a file back to the sightings at which each appeared.

A line that an older sighting does not have was added in between. A line that git or a rewind restored keeps its earlier
author.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import Enum
from functools import partial
from itertools import groupby
from typing import Literal, NamedTuple

from msgspec import Struct, field

from turnlog.blame.alignment import NEW, has_word, matches
from turnlog.blame.gitchange import GitChanges
from turnlog.blame.rename import MIN_SIMILARITY, earlier_name
from turnlog.blame.repository import Repository
from turnlog.blame.version import Versions
from turnlog.rewind.timeline import NOT_RECORDED, RewindPeriod, Timeline, TurnWork
from turnlog.workspace.tree import TreeNode

Why = Literal["before", "between", "since", "git", "several"]


class Verdict(Struct, frozen=True, eq=False):
    """The author of a line, or the reason why there is none."""

    works: tuple[TurnWork, ...] = ()
    why: Why | None = None
    commit: str | None = None
    at: datetime | None = None


class _Match(Enum):
    """What a line that came back may match."""

    ANY_REMOVED = "any line that was removed"
    REMOVED_BY_GIT = "a line that git removed"
    RUN_REMOVED_BY_GIT = "a line of a run that git removed as a whole"


class _Waiting(Struct):
    """A line that came back and whose origin was not found yet."""

    line: int
    """The number of the requested line."""
    text: bytes
    match: _Match
    run: int
    """The number of the first line of its run."""
    verdict: Verdict
    """The verdict if the origin is not found."""


class _Walk(Struct):
    """The state of following one file back."""

    path: bytes
    lines: Sequence[bytes]
    digest: str | None
    upper: int
    """The sighting that has these lines; the number after the last one stands for the present."""
    pending: dict[int, int]
    """The indexes of lines that are still followed, each with the number of the requested line."""
    verdicts: list[Verdict]
    waiting: list[_Waiting] = field(default_factory=list[_Waiting])

    def settle(self, indexes: Iterable[int], verdict: Verdict) -> None:
        for index in indexes:
            self.verdicts[self.pending.pop(index)] = verdict

    def wait(
        self, indexes: list[int], match: _Match, verdicts: dict[int, Verdict], otherwise: Verdict
    ) -> list[_Waiting]:
        """Stop following lines until equal ones are found that were removed."""
        run, waiting = 0, list[_Waiting]()
        previous: int | None = None
        for index in indexes:
            if previous is None or index != previous + 1:
                run = self.pending[index]
            previous = index
            line = self.pending.pop(index)
            waiting.append(_Waiting(line, self.lines[index], match, run, verdicts.get(index, otherwise)))
        return waiting

    def resume(self, pairs: list[tuple[int, _Waiting]]) -> None:
        """Follow waiting lines again, each from the index where it was found."""
        traced = {waiting.line for _, waiting in pairs}
        self.pending.update((index, waiting.line) for index, waiting in pairs)
        self.waiting = [waiting for waiting in self.waiting if waiting.line not in traced]


class _OlderVersion(NamedTuple):
    """The file at an older sighting, and for each line of the walk the index that it has there."""

    path: bytes
    digest: str | None
    lines: Sequence[bytes]
    origins: list[int]


class LineTrail:
    """Follows lines back through a timeline."""

    def __init__(self, timeline: Timeline, versions: Versions, repository: Repository | None) -> None:
        self._timeline = timeline
        self._sightings = timeline.sightings
        self._versions = versions
        self._git = GitChanges(repository, timeline.sightings) if repository is not None else None

    def commit_at(self, number: int) -> str | None:
        """The commit that was checked out at a sighting."""
        return None if self._git is None else self._git.commit_at(number)

    def follow(self, path: bytes, lines: Sequence[bytes], digest: str | None, upper: int) -> list[Verdict]:
        """The verdict for each line.

        `upper` is the sighting with these lines; the number after the last stands for the present.
        """
        pending = {number: number for number in range(len(lines))}
        return self._follow(_Walk(path, lines, digest, upper, pending, [Verdict()] * len(lines)))

    def find(self, path: bytes, lines: Sequence[bytes], upper: int, otherwise: Verdict) -> list[Verdict]:
        """The verdict for lines of which only the content is known: each is the last equal one below `upper`."""
        waiting = [_Waiting(number, line, _Match.ANY_REMOVED, 0, otherwise) for number, line in enumerate(lines)]
        return self._follow(_Walk(path, (), None, upper, {}, [otherwise] * len(lines), waiting))

    def _follow(self, walk: _Walk) -> list[Verdict]:
        older = walk.upper - 1
        while (walk.pending or walk.waiting) and older >= 0:
            node = self._versions.at(self._sightings[older], walk.path)
            digest = node.digest if node is not None else None
            if node is NOT_RECORDED or (digest is not None and self._versions.lines(digest) is None):
                older -= 1  # without information: the change counts for the next sighting
            elif digest == walk.digest:
                walk.upper = older
                older -= 1
            else:
                older = self._step(walk, older, node) - 1
        walk.settle(list(walk.pending), Verdict(why="before"))
        for waiting in walk.waiting:
            walk.verdicts[waiting.line] = waiting.verdict
        return walk.verdicts

    # ── one step back ─────────────────────────────────────────────────────────────────────────────

    def _step(self, walk: _Walk, older: int, node: TreeNode | None) -> int:
        """Process the changes between an older sighting and the known one; returns the sighting that is known now."""
        rewind = self._timeline.rewind(older, walk.upper, walk.path)
        restored = self._restored_sighting(walk, older, rewind)
        if restored is not None and not walk.waiting:
            walk.upper = restored
            return restored
        if restored is not None:  # waiting lines still need every step
            self._follow(_Walk(walk.path, walk.lines, walk.digest, restored, walk.pending, walk.verdicts))
            walk.pending = {}
        version = self._older_version(walk, older, node)
        added = sorted(index for index in walk.pending if version.origins[index] == NEW)
        new_waiting = self._decide(walk, older, added, rewind) if added else []
        walk.pending = {version.origins[index]: line for index, line in walk.pending.items()}
        if walk.waiting:
            kept = set(version.origins)
            removed = [index for index in range(len(version.lines)) if index not in kept]
            self._match_waiting(walk, older, version.lines, removed)
        walk.waiting += new_waiting
        walk.path, walk.lines, walk.digest, walk.upper = version.path, version.lines, version.digest, older
        return older

    def _restored_sighting(self, walk: _Walk, older: int, rewind: RewindPeriod | None) -> int | None:
        """The sighting with exactly the same file, if a rewind or git restored it from there; else None."""
        if not walk.pending or walk.digest is None:
            return None
        if rewind is not None and 0 <= rewind.target < older and self._is_at(rewind.target, walk):
            return rewind.target
        if rewind is None and self._restored_commit(walk, older) is None:
            return None
        return next((number for number in range(older - 1, -1, -1) if self._is_at(number, walk)), None)

    def _is_at(self, number: int, walk: _Walk) -> bool:
        node = self._versions.at(self._sightings[number], walk.path)
        return node is not None and node.digest == walk.digest

    def _restored_commit(self, walk: _Walk, older: int) -> str | None:
        return None if self._git is None else self._git.restored_commit(older, walk.upper, walk.path, walk.lines)

    def _older_version(self, walk: _Walk, older: int, node: TreeNode | None) -> _OlderVersion:
        """The file at an older sighting, also if it had another name there."""
        version = self._version(walk, walk.path, node)
        is_similar = node is not None and version.origins.count(NEW) <= MIN_SIMILARITY * len(version.origins)
        if is_similar or walk.digest is None or not walk.pending:
            return version
        sighting = self._sightings[older]
        if walk.upper < len(self._sightings):
            gone = self._versions.gone_between(sighting, self._sightings[walk.upper])
        else:
            gone = self._versions.gone_now(sighting)
        name = earlier_name(walk.path, walk.digest, walk.lines, gone, self._versions)
        return version if name is None else self._version(walk, name, self._versions.at(sighting, name))

    def _version(self, walk: _Walk, path: bytes, node: TreeNode | None) -> _OlderVersion:
        if node is None:
            return _OlderVersion(path, None, (), matches((), walk.lines))
        lines = self._versions.lines(node.digest) or ()
        return _OlderVersion(path, node.digest, lines, matches(lines, walk.lines))

    # ── whose a line is ───────────────────────────────────────────────────────────────────────────

    def _decide(self, walk: _Walk, older: int, added: list[int], rewind: RewindPeriod | None) -> list[_Waiting]:
        """The verdicts for lines that were added since an older sighting; lines that came back are returned."""
        verdict = self._turn_verdict(walk, older)
        if rewind is not None:
            return walk.wait(added, _Match.ANY_REMOVED, {}, Verdict(why="between", at=verdict.at))
        if self._git is None:
            walk.settle(added, verdict)
            return []
        return self._decide_with_git(self._git, walk, older, added, verdict)

    def _decide_with_git(
        self, git: GitChanges, walk: _Walk, older: int, added: list[int], verdict: Verdict
    ) -> list[_Waiting]:
        """The same in a repository; `verdict` is for the lines that git did not bring."""
        before, after = git.state(older), git.state(walk.upper)
        if before is None or after is None:
            walk.settle(added, verdict)
            return []
        if (before.commit, before.stash) != (after.commit, after.stash):
            brought = git.brought_lines(older, walk.upper, walk.path, walk.lines, added)
            match = _Match.RUN_REMOVED_BY_GIT if before.stash == after.stash else _Match.REMOVED_BY_GIT
            verdicts = _git_verdicts(brought, verdict.at)
            waiting = walk.wait([index for index in added if index in brought], _Match.ANY_REMOVED, verdicts, verdict)
            return waiting + walk.wait([index for index in added if index not in brought], match, {}, verdict)
        commit = git.restored_commit(older, walk.upper, walk.path, walk.lines)
        if commit is None:
            walk.settle(added, verdict)
            return []
        restored = git.restored_lines(commit, walk.path, walk.lines, added)
        return walk.wait(added, _Match.ANY_REMOVED, _git_verdicts(restored, verdict.at), verdict)

    def _turn_verdict(self, walk: _Walk, older: int) -> Verdict:
        """The verdict for lines that were added since an older sighting, if neither git nor a rewind did it."""
        node_at = partial(self._versions.at, path=walk.path)
        works, is_sure = self._timeline.owners(older, walk.upper, walk.path, node_at)
        is_now = walk.upper == len(self._sightings)
        at = None if is_now else self._sightings[walk.upper].checkpoint.at
        if len(works) == 1 and is_sure:
            return Verdict(works, at=at)
        if works:
            return Verdict(works, "several", at=at)
        return Verdict(why="since" if is_now else "between", at=at)

    # ── lines that came back ──────────────────────────────────────────────────────────────────────

    def _match_waiting(self, walk: _Walk, older: int, old: Sequence[bytes], removed: list[int]) -> None:
        """Match lines that came back with equal lines that were removed here."""
        is_git_asked = bool(removed) and any(one.match is not _Match.ANY_REMOVED for one in walk.waiting)
        by_git = is_git_asked and self._git is not None and self._git.has_removed_lines(older, walk.upper)
        accepted = {_Match.ANY_REMOVED, _Match.REMOVED_BY_GIT} if by_git else {_Match.ANY_REMOVED}
        candidates = [waiting for waiting in walk.waiting if waiting.match in accepted]
        origins = matches([old[index] for index in removed], [waiting.text for waiting in candidates])
        pairs = [
            (removed[origin], waiting) for origin, waiting in zip(origins, candidates, strict=True) if origin != NEW
        ]
        if any(has_word(waiting.text) for _, waiting in pairs):
            walk.resume(pairs)
        if by_git:
            in_runs = [waiting for waiting in walk.waiting if waiting.match is _Match.RUN_REMOVED_BY_GIT]
            for _, run in groupby(in_runs, key=_run_of):
                _match_run(walk, old, removed, list(run))


def _run_of(waiting: _Waiting) -> int:
    return waiting.run


def _match_run(walk: _Walk, old: Sequence[bytes], removed: list[int], run: list[_Waiting]) -> None:
    """Match the lines of a run with equal lines that were removed together."""
    texts = tuple(waiting.text for waiting in run)
    if not any(map(has_word, texts)):
        return
    free = {index for index in removed if index not in walk.pending}
    for first in removed:
        indexes = range(first, first + len(texts))
        if free.issuperset(indexes) and tuple(old[first : first + len(texts)]) == texts:
            walk.resume(list(zip(indexes, run, strict=True)))
            return


def _git_verdicts(commits: dict[int, str | None], at: datetime | None) -> dict[int, Verdict]:
    return {index: Verdict(why="git", commit=commit, at=at) for index, commit in commits.items()}

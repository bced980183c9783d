"""From the lines of a file back to the sightings at which each of them came.

What is not at an older sighting came in between. What git or a rewind brings back has the author it had before.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from functools import partial

from msgspec import Struct, field

from turnlog.blame.alignment import NEW, matches, tells
from turnlog.blame.rename import ALIKE, earlier_name
from turnlog.blame.repository import NO_COMMIT, HeadStep, Repository
from turnlog.blame.version import UNTOLD, Versions
from turnlog.log.entry import Git
from turnlog.rewind.timeline import Period, Timeline, TurnWork
from turnlog.workspace.git import git_now, worktree_of
from turnlog.workspace.tree import TreeNode

BEFORE, BETWEEN, SINCE, GIT, SEVERAL = "before", "between", "since", "git", "several"
_ANY, _LEFT, _RUN = "any", "left", "run"
"""What a line that came back may have been: any line that went, one that git took, or one of a run that git took."""


class Verdict(Struct, frozen=True, eq=False):
    """Who wrote a line, or why nobody did."""

    works: tuple[TurnWork, ...] = ()
    why: str | None = None
    commit: str | None = None
    at: datetime | None = None


class _Waiting(Struct):
    """A line that came back from where nobody has looked yet."""

    line: int
    text: bytes
    how: str
    run: int
    verdict: Verdict
    """Where it is not found."""


class _Walk(Struct):
    """How far one has come."""

    path: bytes
    lines: Sequence[bytes]
    digest: str | None
    upper: int
    """The sighting that has these lines; one behind the last is now."""
    pending: dict[int, int]
    """Places in these lines, and which of the lines asked for they are."""
    found: list[Verdict]
    waiting: list[_Waiting] = field(default_factory=list[_Waiting])

    def settle(self, places: list[int], verdict: Verdict) -> list[_Waiting]:
        for number in places:
            self.found[self.pending.pop(number)] = verdict
        return []

    def wait(self, places: list[int], how: str, verdicts: dict[int, Verdict], otherwise: Verdict) -> list[_Waiting]:
        run, waiting = 0, list[_Waiting]()
        for before, number in zip([NEW, *places], places, strict=False):
            run = run if before == number - 1 else self.pending[number]
            line = self.pending.pop(number)
            waiting.append(_Waiting(line, self.lines[number], how, run, verdicts.get(number, otherwise)))
        return waiting


class LineTrail:
    """Follows lines back through a timeline."""

    def __init__(self, timeline: Timeline, versions: Versions, repository: Repository | None) -> None:
        self._timeline = timeline
        self._sightings = timeline.sightings
        self._versions = versions
        self._repository = repository
        self._now = git_now(os.fsdecode(repository.top)) if repository is not None else None
        self._tops: dict[bytes, bytes] = {}
        self._places: dict[int, int | None] | None = None

    def follow(self, path: bytes, lines: Sequence[bytes], digest: str | None, upper: int) -> list[Verdict]:
        """Of each line, who wrote it. `upper` is the sighting that has them; one behind the last is now."""
        pending = {number: number for number in range(len(lines))}
        return self._back(_Walk(path, lines, digest, upper, pending, [Verdict()] * len(lines)))

    def find(self, path: bytes, lines: Sequence[bytes], upper: int, otherwise: Verdict) -> list[Verdict]:
        """The same for lines of which only the content is known: each is the last one below `upper` that says that."""
        waiting = [_Waiting(number, line, _ANY, 0, otherwise) for number, line in enumerate(lines)]
        return self._back(_Walk(path, (), None, upper, {}, [otherwise] * len(lines), waiting))

    def _back(self, walk: _Walk) -> list[Verdict]:
        older = walk.upper - 1
        while (walk.pending or walk.waiting) and older >= 0:
            node = self._versions.at(self._sightings[older], walk.path)
            digest = node.digest if node is not None else None
            if node is UNTOLD or (digest is not None and self._versions.lines(digest) is None):
                older -= 1  # it does not say: what happened then is in the next one, too
            elif digest == walk.digest:
                walk.upper = older
                older -= 1
            else:
                older = self._step(walk, older, node) - 1
        walk.settle(list(walk.pending), Verdict(why=BEFORE))
        for one in walk.waiting:
            walk.found[one.line] = one.verdict
        return walk.found

    # ── one step back ─────────────────────────────────────────────────────────────────────────────

    def _step(self, walk: _Walk, older: int, node: TreeNode | None) -> int:
        """What came between an older sighting and what is known; returns the sighting that is known now."""
        rewind = self._timeline.rewind(older, walk.upper, walk.path)
        back = self._came_back(walk, older, rewind)
        if back is not None and not walk.waiting:
            walk.upper = back
            return back
        if back is not None:  # waiting lines still need every step
            self._back(_Walk(walk.path, walk.lines, walk.digest, back, walk.pending, walk.found))
            walk.pending = {}
        old = () if node is None else self._versions.lines(node.digest) or ()
        origins = matches(old, walk.lines)
        earlier = self._earlier_name(walk, older, node, origins)
        if earlier is not None:
            node = self._versions.at(self._sightings[older], earlier)
            old = () if node is None else self._versions.lines(node.digest) or ()
            origins = matches(old, walk.lines)
        came = sorted(number for number in walk.pending if origins[number] == NEW)
        fresh = self._judge(walk, older, came, rewind) if came else []
        walk.pending = {origins[number]: line for number, line in walk.pending.items()}
        if walk.waiting:
            kept = set(origins)
            self._attach(walk, older, old, [number for number in range(len(old)) if number not in kept])
        walk.waiting += fresh
        walk.path = earlier or walk.path
        walk.lines, walk.digest, walk.upper = old, node.digest if node is not None else None, older
        return older

    def _came_back(self, walk: _Walk, older: int, rewind: Period | None) -> int | None:
        """The sighting that has the file to the byte as it is, where a rewind or git put it back; None if none did."""
        if not walk.pending or walk.digest is None:
            return None
        if rewind is not None and 0 <= rewind.target < older and self._is_at(rewind.target, walk):
            return rewind.target
        if rewind is None and self._put_back(walk, older) is None:
            return None
        return next((number for number in range(older - 1, -1, -1) if self._is_at(number, walk)), None)

    def _is_at(self, number: int, walk: _Walk) -> bool:
        node = self._versions.at(self._sightings[number], walk.path)
        return node is not None and node.digest == walk.digest

    def _earlier_name(self, walk: _Walk, older: int, node: TreeNode | None, origins: list[int]) -> bytes | None:
        """What the file was called at an older sighting, if it was another one."""
        is_like = node is not None and origins.count(NEW) <= ALIKE * len(origins)
        if is_like or walk.digest is None or not walk.pending:
            return None
        sighting = self._sightings[older]
        if walk.upper < len(self._sightings):
            gone = self._versions.gone_between(sighting, self._sightings[walk.upper])
        else:
            gone = self._versions.gone_now(sighting)
        return earlier_name(walk.path, walk.digest, walk.lines, gone, self._versions)

    # ── whose it is ───────────────────────────────────────────────────────────────────────────────

    def _judge(self, walk: _Walk, older: int, came: list[int], rewind: Period | None) -> list[_Waiting]:
        """Lines that came between an older sighting and what is known: whose they are, or which of them came back."""
        own = self._own(walk, older)
        before, after = self._git(older), self._git(walk.upper)
        if rewind is not None:
            return walk.wait(came, _ANY, {}, Verdict(why=BETWEEN, at=own.at))
        if before is None or after is None:
            return walk.settle(came, own)
        if before.commit == after.commit and before.stash == after.stash:
            commit = self._put_back(walk, older)
            if commit is None:
                return walk.settle(came, own)
            return walk.wait(came, _ANY, self._brought_by(walk, came, None, commit, own.at), own)
        brought: dict[int, Verdict] = {}
        for old, new in self._sources(before, after, older, walk.upper):
            brought.update(self._brought_by(walk, came, old, new, own.at))
        how = _RUN if before.stash == after.stash else _LEFT
        back = walk.wait([number for number in came if number in brought], _ANY, brought, own)
        return back + walk.wait([number for number in came if number not in brought], how, {}, own)

    def _own(self, walk: _Walk, older: int) -> Verdict:
        seen = partial(self._versions.at, path=walk.path)
        works, is_sure = self._timeline.owners(older, walk.upper, walk.path, seen)
        at = self._at(walk.upper)
        if len(works) == 1 and is_sure:
            return Verdict(works, at=at)
        if works:
            return Verdict(works, SEVERAL, at=at)
        return Verdict(why=SINCE if walk.upper == len(self._sightings) else BETWEEN, at=at)

    def _at(self, number: int) -> datetime | None:
        return self._sightings[number].checkpoint.at if number < len(self._sightings) else None

    # ── what git did ──────────────────────────────────────────────────────────────────────────────

    def _git(self, number: int) -> Git | None:
        """Where git stood at a sighting, in the repository that the file is in."""
        if self._repository is None or number >= len(self._sightings):
            return self._now
        sighting = self._sightings[number]
        if sighting.place not in self._tops:
            top = worktree_of(os.fsdecode(sighting.place.rstrip(b"/"))) or ""
            self._tops[sighting.place] = os.path.join(os.fsencode(os.path.realpath(top)), b"")
        return sighting.checkpoint.git if self._tops[sighting.place] == self._repository.top else None

    def commit_at(self, number: int) -> str | None:
        """The commit that was checked out at a sighting."""
        git = self._git(number)
        return None if git is None else git.commit

    def _put_back(self, walk: _Walk, older: int) -> str | None:
        """The commit that a file was put back from: as a whole, and HEAD stayed where it was.

        That is the one that is checked out, or where something was staged an earlier one of any branch.
        """
        before, after = self._git(older), self._git(walk.upper)
        if self._repository is None or before is None or after is None or before.commit != after.commit:
            return None
        has = self._repository.lines
        if before.commit is not None and has(before.commit, walk.path) == walk.lines:
            return before.commit
        if before.index == after.index:
            return None
        earlier = (one for one, at in self._repository.commits_of(walk.path) if self._is_earlier(one, at, older))
        return next((commit for commit in earlier if has(commit, walk.path) == walk.lines), None)

    def _is_earlier(self, commit: str, at: int, older: int) -> bool:
        """Whether a commit was made before a sighting: git's log of HEAD says so, or else a whole second did."""
        assert self._repository is not None
        committed_at = next((number for number, step in enumerate(self._repository.steps) if step.new == commit), None)
        seen_at = self._place(older)
        if committed_at is not None and seen_at is not None:
            return committed_at < seen_at
        seen = self._at(older)
        return seen is not None and at < int(seen.timestamp())

    def _sources(self, before: Git, after: Git, older: int, upper: int) -> list[tuple[str | None, str]]:
        """Between which commits files were changed by git, and not the other way round."""
        assert self._repository is not None
        sources: list[tuple[str | None, str]] = []
        if before.stash is not None and before.stash != after.stash:
            sources.append((before.commit, before.stash))
        if after.commit is None or before.commit == after.commit:
            return sources
        for step in self._steps(before, after, older, upper):
            if not step.is_commit:
                sources.append((step.old, step.new))
            elif step.is_merge:
                sources += [(step.old, parent) for parent in self._repository.parents(step.new)[1:]]
        return sources

    def _steps(self, before: Git, after: Git, older: int, upper: int) -> list[HeadStep]:
        """How HEAD moved between two sightings."""
        assert self._repository is not None
        first, last = self._place(older), self._place(upper)
        if first is not None and last is not None:
            return self._repository.steps[first:last]
        # Without a record it may have been either, and so no turn is credited with lines that git may have brought.
        return [HeadStep(before.commit or NO_COMMIT, after.commit or NO_COMMIT, 0, "unknown")]

    def _place(self, number: int) -> int | None:
        """How many steps HEAD had made at a sighting."""
        if self._places is None and self._repository is not None:
            seen = [(number, self._git(number)) for number in range(len(self._sightings) + 1)]
            with_git = [(number, git) for number, git in seen if git is not None]
            places = self._repository.places((git, self._at(number)) for number, git in with_git)
            self._places = dict(zip((number for number, _ in with_git), places, strict=True))
        return (self._places or {}).get(number)

    def _brought_by(
        self, walk: _Walk, came: list[int], old: str | None, new: str, at: datetime | None
    ) -> dict[int, Verdict]:
        """Which of the lines a commit has that another one has not, with the commits that brought them."""
        assert self._repository is not None
        has = self._repository.lines(new, walk.path)
        if has is None:
            return {number: Verdict(why=GIT, at=at) for number in came}
        had = (self._repository.lines(old, walk.path) or ()) if old is not None and int(old, 16) else ()
        news, places = matches(had, has), matches(has, walk.lines)
        some = [number for number in came if places[number] != NEW and news[places[number]] == NEW]
        commits = self._repository.authors(old, new, walk.path) if some else {}
        return {number: Verdict(why=GIT, commit=commits.get(places[number]), at=at) for number in some}

    def _took(self, older: int, upper: int) -> bool:
        """Whether git took lines away between two sightings."""
        before, after = self._git(older), self._git(upper)
        if before is None or after is None:
            return False
        if before.stash != after.stash:
            return True
        if before.commit == after.commit:
            return False
        return not all(step.is_commit for step in self._steps(before, after, older, upper))

    def _attach(self, walk: _Walk, older: int, old: Sequence[bytes], gone: list[int]) -> None:
        """Lines that came back are those that went here, as far as they say the same."""
        took = any(one.how != _ANY for one in walk.waiting) and bool(gone) and self._took(older, walk.upper)
        loose = [one for one in walk.waiting if one.how == _ANY or (took and one.how == _LEFT)]
        texts = [old[number] for number in gone]
        pairs = [
            (number, one)
            for number, one in zip(matches(texts, [one.text for one in loose]), loose, strict=True)
            if number != NEW
        ]
        if any(tells(one.text) for _, one in pairs):
            self._take(walk, [(gone[number], one) for number, one in pairs])
        runs: dict[int, list[_Waiting]] = {}
        for one in walk.waiting if took else ():
            if one.how == _RUN:
                runs.setdefault(one.run, []).append(one)
        for run in runs.values():
            self._attach_run(walk, old, gone, run)

    def _attach_run(self, walk: _Walk, old: Sequence[bytes], gone: list[int], run: list[_Waiting]) -> None:
        texts = tuple(one.text for one in run)
        free = [number for number in gone if number not in walk.pending]
        for first in free:
            places = range(first, first + len(texts))
            if tuple(old[first : first + len(texts)]) == texts and set(places) <= set(free) and any(map(tells, texts)):
                self._take(walk, list(zip(places, run, strict=True)))
                return

    def _take(self, walk: _Walk, pairs: list[tuple[int, _Waiting]]) -> None:
        taken = {one.line for _, one in pairs}
        walk.pending.update((number, one.line) for number, one in pairs)
        walk.waiting = [one for one in walk.waiting if one.line not in taken]

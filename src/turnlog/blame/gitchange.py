"""What git did to a file between two sightings: the lines that it brought, restored or removed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from turnlog.blame.alignment import NEW, matches
from turnlog.blame.repository import HeadStep, Repository
from turnlog.log.part import Git
from turnlog.rewind.timeline import Sighting
from turnlog.workspace.git import git_now, worktree_of


class _Source(NamedTuple):
    """Two commits between which git changed files."""

    old: str | None
    new: str


class GitChanges:
    """What one repository did between sightings. The number after the last sighting stands for the present."""

    def __init__(self, repository: Repository, sightings: Sequence[Sighting]) -> None:
        self._repository = repository
        self._sightings = sightings
        self._now = git_now(os.fsdecode(repository.top))
        self._tops: dict[bytes, bytes] = {}

    def state(self, number: int) -> Git | None:
        """The state of git at a sighting, if it is of this repository."""
        if number >= len(self._sightings):
            return self._now
        sighting = self._sightings[number]
        if sighting.workspace not in self._tops:
            top = worktree_of(os.fsdecode(sighting.workspace.rstrip(b"/"))) or ""
            self._tops[sighting.workspace] = os.path.join(os.fsencode(os.path.realpath(top)), b"")
        return sighting.checkpoint.git if self._tops[sighting.workspace] == self._repository.top else None

    def commit_at(self, number: int) -> str | None:
        """The commit that was checked out at a sighting."""
        state = self.state(number)
        return None if state is None else state.commit

    def has_removed_lines(self, older: int, upper: int) -> bool:
        """Whether git removed lines between two sightings."""
        before, after = self.state(older), self.state(upper)
        if before is None or after is None:
            return False
        if before.stash != after.stash:
            return True
        if before.commit == after.commit:
            return False
        return not all(step.is_commit for step in self._steps(older, upper, before, after))

    # ── files that were restored from a commit ────────────────────────────────────────────────────

    def restored_commit(self, older: int, upper: int, path: bytes, lines: Sequence[bytes]) -> str | None:
        """The commit that a whole file was restored from without moving HEAD.

        That is the one that is checked out, or, if the index changed, an earlier one of any branch.
        """
        before, after = self.state(older), self.state(upper)
        if before is None or after is None or before.commit != after.commit:
            return None
        lines_in = self._repository.lines
        if before.commit is not None and lines_in(before.commit, path) == lines:
            return before.commit
        if before.index == after.index:
            return None
        earlier = (commit for commit, at in self._repository.commits_of(path) if self._is_earlier(commit, at, older))
        return next((commit for commit in earlier if lines_in(commit, path) == lines), None)

    def _is_earlier(self, commit: str, at: int, number: int) -> bool:
        """Whether a commit was made before a sighting: by git's log of HEAD, or else by at least a second."""
        committed_at = next((index for index, step in enumerate(self._repository.steps) if step.new == commit), None)
        seen_at = self._moves_before.get(number)
        if committed_at is not None and seen_at is not None:
            return committed_at < seen_at
        seen = self._sighted_at(number)
        return seen is not None and at < int(seen.timestamp())

    # ── lines that git brought ────────────────────────────────────────────────────────────────────

    def brought_lines(
        self, older: int, upper: int, path: bytes, lines: Sequence[bytes], added: list[int]
    ) -> dict[int, str | None]:
        """Of the lines that were added between two sightings those that git brought, with the commit, if known."""
        commits: dict[int, str | None] = {}
        for source in self._sources(older, upper):
            commits.update(self._lines_of_source(source, path, lines, added))
        return commits

    def restored_lines(
        self, commit: str, path: bytes, lines: Sequence[bytes], added: list[int]
    ) -> dict[int, str | None]:
        """The lines that were added by restoring a file from a commit, each with the commit that brought it."""
        return self._lines_of_source(_Source(None, commit), path, lines, added)

    def _lines_of_source(
        self, source: _Source, path: bytes, lines: Sequence[bytes], added: list[int]
    ) -> dict[int, str | None]:
        """The added lines that the new commit has and the old one lacks; all if the new one cannot be read."""
        new_lines = self._repository.lines(source.new, path)
        if new_lines is None:
            return dict.fromkeys(added)
        old_lines = (self._repository.lines(source.old, path) or ()) if source.old is not None else ()
        old_indexes, new_indexes = matches(old_lines, new_lines), matches(new_lines, lines)
        brought = [index for index in added if new_indexes[index] != NEW and old_indexes[new_indexes[index]] == NEW]
        commits = self._repository.authors(source.old, source.new, path) if brought else {}
        return {index: commits.get(new_indexes[index]) for index in brought}

    def _sources(self, older: int, upper: int) -> list[_Source]:
        before, after = self.state(older), self.state(upper)
        if before is None or after is None:
            return []
        sources: list[_Source] = []
        if before.stash is not None and before.stash != after.stash:
            sources.append(_Source(before.commit, before.stash))
        if after.commit is None or before.commit == after.commit:
            return sources
        for step in self._steps(older, upper, before, after):
            if not step.is_commit:
                sources.append(_Source(step.old, step.new))
            elif step.is_merge:
                sources += [_Source(step.old, parent) for parent in self._repository.parents(step.new)[1:]]
        return sources

    # ── how HEAD moved ────────────────────────────────────────────────────────────────────────────

    def _steps(self, older: int, upper: int, before: Git, after: Git) -> list[HeadStep]:
        """The moves of HEAD between two sightings."""
        first, last = self._moves_before.get(older), self._moves_before.get(upper)
        if first is not None and last is not None:
            return self._repository.steps[first:last]
        # Without a record, git may have brought these lines, so no turn is credited with them.
        return [HeadStep(before.commit, after.commit or "", 0, "unknown")]

    @cached_property
    def _moves_before(self) -> dict[int, int | None]:
        """The number of moves of HEAD before each sighting."""
        states = [(number, self.state(number)) for number in range(len(self._sightings) + 1)]
        known = [(number, state) for number, state in states if state is not None]
        moves = self._repository.moves_before((state, self._sighted_at(number)) for number, state in known)
        return dict(zip((number for number, _ in known), moves, strict=True))

    def _sighted_at(self, number: int) -> datetime | None:
        return self._sightings[number].checkpoint.at if number < len(self._sightings) else None

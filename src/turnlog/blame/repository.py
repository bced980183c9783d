"""What git knows of a file: asked only where checkpoints show that git moved something.

Nothing is written or fetched, and none of a repository's hooks, filters or converters are run.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from datetime import datetime
from functools import cached_property, lru_cache
from typing import NamedTuple

from msgspec import Struct

from turnlog.blame.version import LARGEST_BYTES, lines_of
from turnlog.errors import Invalid, NotFound, Unavailable
from turnlog.log.part import Git
from turnlog.machine.environment import environment
from turnlog.workspace.git import git_now, head_log

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess

_STEP = re.compile(rb"([0-9a-f]{40,64}) ([0-9a-f]{40,64}) [^\t\n]*> (\d+) [+-]\d{4}\t([^\n]*)")
_GIT = ("git", "--no-optional-locks", "--literal-pathspecs", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false")
_QUIET = {"GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_REPLACE_OBJECTS": "1", "LC_ALL": "C"}
_SWITCH = re.compile(r"checkout: moving from (\S+) to (\S+)")
_MOST_COMMITS = 200
_MOST_IN_RANGE = 2_000
_LINE = re.compile(rb"\^?([0-9a-f]{40,64}) \d+ (\d+)(?: \d+)?")


class HeadStep(Struct, frozen=True):
    """A move of HEAD from one commit to another."""

    old: str | None
    """None before the first commit."""
    new: str
    at: int
    what: str
    """The message in git's log: `commit: …`, `checkout: moving from …`."""
    end: int = 0
    """The offset of its end in git's log."""

    @property
    def is_commit(self) -> bool:
        """Whether files became a commit, and not a commit files."""
        return self.what.startswith("commit")

    @property
    def is_merge(self) -> bool:
        """Whether the commit is a merge."""
        return self.what.startswith("commit (merge)")


class CommittedFile(NamedTuple):
    """A file that a commit created, changed or renamed."""

    path: bytes
    old_path: bytes
    """The path before the commit; the same if it was not renamed."""


class _TooLargeError(Exception):
    """What git was asked for is larger than `LARGEST_BYTES`."""


class Repository:
    """A git worktree; close it after use."""

    def __init__(self, top: str) -> None:
        self.top = os.fsencode(os.path.join(os.path.realpath(top), ""))
        self._reader: subprocess.Popen[bytes] | None = None
        self.lines = lru_cache(64)(self._lines)
        self.authors = lru_cache(16)(self._authors)
        self.commits_of = lru_cache(16)(self._commits_of)

    def close(self) -> None:
        """End the git process, if one was started."""
        if self._reader is not None:
            self._reader.communicate()
            self._reader = None

    def head(self) -> str | None:
        """The commit that is checked out."""
        now = git_now(os.fsdecode(self.top))
        return None if now is None else now.commit

    # ── how HEAD moved ────────────────────────────────────────────────────────────────────────────

    @cached_property
    def steps(self) -> list[HeadStep]:
        """The moves of HEAD in git's log, oldest first."""
        return [_step(match) for match in _STEP.finditer(head_log(os.fsdecode(self.top)))]

    def moves_before(self, states: Iterable[tuple[Git, datetime | None]]) -> list[int | None]:
        """For each recorded state of git, in order, the number of moves made before it; None if that is unknown.

        The size of git's log decides, unless git removed its beginning since. Otherwise commit, branch and time decide:
        git's times are in seconds, and of the moves that match, the first one not before the previous state counts.
        """
        numbers: list[int | None] = []
        heads = [self.steps[0].old, *(step.new for step in self.steps)] if self.steps else []
        ends = {0: 0, **{step.end: number for number, step in enumerate(self.steps, start=1)}}
        branches = self._branches()
        last = 0
        for git, at in states:
            earliest, lowest, highest = last, last, len(self.steps)
            if at is not None:
                second = int(at.timestamp())
                # A move just after this state may have the second before: git reads a clock that is a little late.
                earliest = max(last, bisect_left(self.steps, second - 1, key=_at))
                lowest = max(last, bisect_left(self.steps, second, key=_at))
                highest = bisect_right(self.steps, second + 1, key=_at)
            fits = [index for index in range(earliest, highest + 1) if heads and heads[index] == git.commit]
            if git.branch is not None:
                fits = [index for index in fits if branches[index] in (None, git.branch)]
            exact = ends.get(git.log_bytes)
            index = exact if exact in fits else next((index for index in fits if index >= lowest), None)
            last = last if index is None else index
            numbers.append(index)
        return numbers

    def _branches(self) -> list[str | None]:
        """The branch after each number of moves; None if it is unknown."""
        branches: list[str | None] = [None] * (len(self.steps) + 1)
        for number, step in enumerate(self.steps):
            switch = _SWITCH.fullmatch(step.what)
            if switch is not None:
                branches[number], branches[number + 1] = (f"refs/heads/{name}" for name in switch.groups())
            elif not step.what.startswith("rebase"):
                branches[number + 1] = branches[number]
        for number in range(len(self.steps) - 1, -1, -1):  # the branch that a checkout left was current before, too
            if not self.steps[number].what.startswith(("rebase", "checkout")):
                branches[number] = branches[number] or branches[number + 1]
        return branches

    # ── what is in commits ────────────────────────────────────────────────────────────────────────

    def _lines(self, commit: str, path: bytes) -> tuple[bytes, ...] | None:
        """The lines of a file in a commit: empty if the file is not in it, None if that is unknown."""
        data = self.content(commit, path)
        return None if data is None else lines_of(data)

    def content(self, commit: str, path: bytes) -> bytes | None:
        """The content of a file in a commit: empty if the file is not in it, None if that is unknown or too large."""
        if not path.startswith(self.top) or b"\n" in path:
            return None
        try:
            if self._ask(commit.encode() + b"^{commit}") is None:
                return None
            return self._ask(commit.encode() + b":" + path[len(self.top) :]) or b""
        except _TooLargeError:
            return None

    def _ask(self, name: bytes) -> bytes | None:
        if self._reader is None:
            try:
                self._reader = self._start("cat-file", "--batch", is_asked=True)
            except OSError:
                return None  # git is not installed
        pipe, answer = self._reader.stdin, self._reader.stdout
        assert pipe is not None
        assert answer is not None
        try:
            pipe.write(name + b"\n")
            pipe.flush()
        except BrokenPipeError:
            return None
        words = answer.readline().split()
        if len(words) != 3 or not words[2].isdigit():
            return None
        size = int(words[2])
        if size > LARGEST_BYTES:
            for start in range(0, size + 1, LARGEST_BYTES):  # what is asked next comes behind it
                answer.read(min(LARGEST_BYTES, size + 1 - start))
            raise _TooLargeError
        data = answer.read(size + 1)[:-1]
        return data if words[1] in (b"blob", b"commit") else None

    def _authors(self, old: str | None, new: str, path: bytes) -> dict[int, str]:
        """For the lines of a file in a commit (from 0), the commits that brought them, if newer than `old`."""
        span = new if old is None else f"{old}..{new}"
        name = path[len(self.top) :]
        output = self.run("blame", "--porcelain", "--no-textconv", span, "--", name)
        commits: dict[int, str] = {}
        for match in map(_LINE.fullmatch, output.split(b"\n")):
            if match is not None:
                commits[int(match[2]) - 1] = match[1].decode()
        return commits

    def _commits_of(self, path: bytes) -> list[tuple[str, int]]:
        """The newest commits of all branches that changed a file, with their times in seconds."""
        name = path[len(self.top) :]
        output = self.run("log", "--all", f"-{_MOST_COMMITS}", "--format=%H %ct", "--", name).decode()
        return [(commit, int(at)) for commit, _, at in (line.partition(" ") for line in output.splitlines())]

    def commit(self, revision: str) -> str:
        """The full id of a commit."""
        name = revision + "^{commit}"
        full_id = b"" if revision.startswith("-") else self.run("rev-parse", "--verify", "--quiet", name).strip()
        if not full_id:
            hint = "a branch, a tag or the beginning of a commit's hash, as `git log` shows them"
            raise NotFound(f"no commit {revision!r:.80} in {os.fsdecode(self.top)}", hint=hint)
        return full_id.decode()

    def commits(self, revisions: str) -> list[str]:
        """One commit, or all of a range `A..B`, without merges; `Invalid` if there are too many."""
        old, dots, new = revisions.partition("..")
        if not dots:
            return [self.commit(revisions)]
        if new.startswith("."):
            hint = f"write {old}..{new[1:]} for the commits of {new[1:] or 'HEAD'} that {old or 'HEAD'} does not have"
            raise Invalid(f"the range {revisions!r:.80} has three dots", hint=hint)
        span = f"^{self.commit(old or 'HEAD')}", self.commit(new or "HEAD")
        most = f"--max-count={_MOST_IN_RANGE + 1}"
        commits = self.run("rev-list", "--no-merges", most, *span, "--").decode().split()
        if len(commits) > _MOST_IN_RANGE:
            problem = f"{revisions:.80} has more than {_MOST_IN_RANGE:,} commits"
            raise Invalid(problem, hint="take a part of it, such as one release: commit:v1.2..v1.3")
        return commits

    def parents(self, commit: str) -> list[str]:
        """The parents of a commit; empty if unknown."""
        words = self.run("rev-list", "--parents", "-n", "1", commit, "--").split()
        return [word.decode() for word in words[1:]]

    def changed(self, commit: str) -> list[CommittedFile]:
        """The files that a commit created, changed or renamed, compared to its first parent."""
        words = self.run(
            "diff-tree", "-r", "-z", "--root", "--no-commit-id", "--name-status", "-M", "--diff-filter=AMR", "-m",
            "--first-parent", commit,
        ).split(b"\0")  # fmt: skip
        files: list[CommittedFile] = []
        rest = iter(words)
        for state in rest:
            if state:
                old = next(rest, b"")
                new = next(rest, b"") if state.startswith(b"R") else old
                files.append(CommittedFile(self.top + new, self.top + old))
        return files

    def subject(self, commit: str) -> str:
        """The first line of a commit's message."""
        return self.run("log", "-1", "--format=%s", commit, "--").decode("utf-8", "replace").strip()

    def run(self, *words: str | bytes) -> bytes:
        """The output of git; empty if the command fails."""
        try:
            with self._start(*words) as process:
                return process.communicate()[0] if process.stdout is not None else b""
        except OSError as error:
            raise Unavailable(f"git cannot be run: {error.strerror or error}", hint="install git") from error

    def _start(self, *words: str | bytes, is_asked: bool = False) -> subprocess.Popen[bytes]:
        import subprocess  # loaded only when git is run

        outside = {name: value for name, value in environment().items() if not name.startswith("GIT_")}
        return subprocess.Popen(
            [*_GIT, "-C", self.top, *words],
            stdin=subprocess.PIPE if is_asked else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**outside, **_QUIET},
        )


def _at(step: HeadStep) -> int:
    return step.at


def _step(match: re.Match[bytes]) -> HeadStep:
    old, new, at, what = match.groups()
    before = old.decode() if old.strip(b"0") else None  # git's word for no commit is as long as its other ids
    return HeadStep(before, new.decode(), int(at), what.decode("utf-8", "replace"), match.end() + 1)

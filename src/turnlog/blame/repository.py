"""What git knows of a file: asked of git itself, and only where checkpoints say that git moved something.

Nothing is written, fetched or run on the way: no hooks, no filters, no converters of a repository's settings.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from datetime import datetime
from functools import cached_property, lru_cache

from msgspec import Struct

from turnlog.blame.version import LARGEST_BYTES, lines_of
from turnlog.errors import Invalid, NotFound, Unavailable
from turnlog.log.entry import Git
from turnlog.machine.environment import environment
from turnlog.workspace.git import git_now, head_log

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess

_STEP = re.compile(rb"([0-9a-f]{40,64}) ([0-9a-f]{40,64}) [^\t\n]*> (\d+) [+-]\d{4}\t([^\n]*)")
_GIT = ("git", "--no-optional-locks", "--literal-pathspecs", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false")
_QUIET = {"GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_REPLACE_OBJECTS": "1", "LC_ALL": "C"}
_SWITCH = re.compile(r"checkout: moving from (\S+) to (\S+)")
NO_COMMIT = "0" * 40
_MOST_COMMITS = 200
_MOST_IN_RANGE = 2_000
_LINE = re.compile(rb"\^?([0-9a-f]{40,64}) \d+ (\d+)(?: \d+)?")


class HeadStep(Struct, frozen=True):
    """HEAD moved from one commit to another."""

    old: str
    new: str
    at: int
    what: str
    """As git says it: `commit: …`, `checkout: moving from …`."""
    end: int = 0
    """Where it ends in git's log."""

    @property
    def is_commit(self) -> bool:
        """Whether what was in the files became a commit, and not the other way round."""
        return self.what.startswith("commit")

    @property
    def is_merge(self) -> bool:
        """Whether that commit has another parent."""
        return self.what.startswith("commit (merge)")


class Repository:
    """A worktree, until it is closed."""

    def __init__(self, top: str) -> None:
        self.top = os.fsencode(os.path.join(os.path.realpath(top), ""))
        self._reader: subprocess.Popen[bytes] | None = None
        self.lines = lru_cache(64)(self._lines)
        self.authors = lru_cache(16)(self._authors)
        self.commits_of = lru_cache(16)(self._commits_of)

    def close(self) -> None:
        """End what was started."""
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
        """How HEAD moved, as far as git wrote it down, the oldest step first."""
        return [_step(match) for match in _STEP.finditer(head_log(os.fsdecode(self.top)))]

    def places(self, seen: Iterable[tuple[Git, datetime | None]]) -> list[int | None]:
        """How many steps had been made when git stood so, in order; None where nobody can tell.

        How long git's log was says it, unless git took the beginning away since. Otherwise commit, branch and time
        do: git's times are in seconds, and of the places that fit it is the first that is not before the last one.
        """
        numbers: list[int | None] = []
        heads = [self.steps[0].old, *(step.new for step in self.steps)] if self.steps else []
        ends = {0: 0, **{step.end: number for number, step in enumerate(self.steps, start=1)}}
        branches = self._branches()
        last = 0
        for git, at in seen:
            second = None if at is None else int(at.timestamp())
            lowest = last if second is None else max(last, bisect_left(self.steps, second, key=_at))
            highest = len(self.steps) if second is None else bisect_right(self.steps, second + 1, key=_at)
            fits = [
                index for index in range(lowest, highest + 1) if heads and heads[index] == (git.commit or NO_COMMIT)
            ]
            if git.branch is not None:
                fits = [index for index in fits if branches[index] in (None, git.branch)]
            exact = ends.get(git.log_bytes)
            index = exact if exact in fits else next(iter(fits), None)
            last = last if index is None else index
            numbers.append(index)
        return numbers

    def _branches(self) -> list[str | None]:
        """The branch at each place; None where it is not told."""
        branches: list[str | None] = [None] * (len(self.steps) + 1)
        for number, step in enumerate(self.steps):
            switch = _SWITCH.fullmatch(step.what)
            if switch is not None:
                branches[number], branches[number + 1] = (f"refs/heads/{name}" for name in switch.groups())
            elif not step.what.startswith("rebase"):
                branches[number + 1] = branches[number]
        for number in range(len(self.steps) - 1, -1, -1):  # what a switch left was there before, too
            if not self.steps[number].what.startswith(("rebase", "checkout")):
                branches[number] = branches[number] or branches[number + 1]
        return branches

    # ── what is in commits ────────────────────────────────────────────────────────────────────────

    def _lines(self, commit: str, path: bytes) -> tuple[bytes, ...] | None:
        """The lines of a file in a commit: none where it is not in there; None where nobody can tell."""
        data = self.content(commit, path)
        return None if data is None else () if data == b"" else lines_of(data)

    def content(self, commit: str, path: bytes) -> bytes | None:
        """What is in a file in a commit; nothing where it is not in there; None where nobody can tell."""
        if not path.startswith(self.top) or b"\n" in path:
            return None
        if self._ask(commit.encode() + b"^{commit}") is None:
            return None
        return self._ask(commit.encode() + b":" + path[len(self.top) :]) or b""

    def _ask(self, name: bytes) -> bytes | None:
        if self._reader is None:
            try:
                self._reader = self._start("cat-file", "--batch", is_asked=True)
            except OSError:
                return None  # there is no git here
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
        data = answer.read(int(words[2]) + 1)[:-1]
        return data if words[1] in (b"blob", b"commit") and len(data) <= LARGEST_BYTES else None

    def _authors(self, old: str | None, new: str, path: bytes) -> dict[int, str]:
        """Of the lines of a file in a commit (from 0) the commits that brought them, those behind `old` only."""
        span = new if old is None or old == NO_COMMIT else f"{old}..{new}"
        name = path[len(self.top) :]
        output = self.run("blame", "--porcelain", "--no-textconv", span, "--", name)
        commits: dict[int, str] = {}
        for match in map(_LINE.fullmatch, output.split(b"\n")):
            if match is not None:
                commits[int(match[2]) - 1] = match[1].decode()
        return commits

    def _commits_of(self, path: bytes) -> list[tuple[str, int]]:
        """The newest commits of all branches that changed a file, with the seconds when they were made."""
        name = path[len(self.top) :]
        output = self.run("log", "--all", f"-{_MOST_COMMITS}", "--format=%H %ct", "--", name).decode()
        return [(commit, int(at)) for commit, _, at in (line.partition(" ") for line in output.splitlines())]

    def commit(self, revision: str) -> str:
        """The commit that is called so."""
        name = revision + "^{commit}"
        full_id = b"" if revision.startswith("-") else self.run("rev-parse", "--verify", "--quiet", name).strip()
        if not full_id:
            hint = "a branch, a tag or the beginning of a commit's hash, as `git log` shows them"
            raise NotFound(f"no commit {revision!r:.80} in {os.fsdecode(self.top)}", hint=hint)
        return full_id.decode()

    def commits(self, revisions: str) -> list[str]:
        """One commit, or all of a range `A..B`, without merges; `Invalid` for a very long one."""
        old, dots, new = revisions.partition("..")
        if not dots:
            return [self.commit(revisions)]
        span = f"^{self.commit(old)}", self.commit(new.lstrip(".") or "HEAD")
        most = f"--max-count={_MOST_IN_RANGE + 1}"
        commits = self.run("rev-list", "--no-merges", most, *span, "--").decode().split()
        if len(commits) > _MOST_IN_RANGE:
            problem = f"{revisions:.80} has more than {_MOST_IN_RANGE:,} commits"
            raise Invalid(problem, hint="take a part of it, such as one release: commit:v1.2..v1.3")
        return commits

    def parents(self, commit: str) -> list[str]:
        """The parents of a commit; none where nobody can tell."""
        words = self.run("rev-list", "--parents", "-n", "1", commit, "--").split()
        return [word.decode() for word in words[1:]]

    def changed(self, commit: str) -> list[tuple[bytes, bytes]]:
        """The files that a commit created, changed or renamed against its first parent, with what they were called."""
        words = self.run(
            "diff-tree", "-r", "-z", "--root", "--no-commit-id", "--name-status", "-M", "--diff-filter=AMR", "-m",
            "--first-parent", commit,
        ).split(b"\0")  # fmt: skip
        pairs: list[tuple[bytes, bytes]] = []
        rest = iter(words)
        for state in rest:
            if state:
                old = next(rest, b"")
                new = next(rest, b"") if state.startswith(b"R") else old
                pairs.append((self.top + new, self.top + old))
        return pairs

    def subject(self, commit: str) -> str:
        """The first line of a commit's message."""
        return self.run("log", "-1", "--format=%s", commit, "--").decode("utf-8", "replace").strip()

    def run(self, *words: str | bytes) -> bytes:
        """What git says; nothing where it refuses."""
        try:
            with self._start(*words) as process:
                return process.communicate()[0] if process.stdout is not None else b""
        except OSError as error:
            raise Unavailable(f"git cannot be run: {error.strerror or error}", hint="install git") from error

    def _start(self, *words: str | bytes, is_asked: bool = False) -> subprocess.Popen[bytes]:
        import subprocess  # only who has something to ask pays for it

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
    return HeadStep(old.decode(), new.decode(), int(at), what.decode("utf-8", "replace"), match.end() + 1)

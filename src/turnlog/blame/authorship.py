"""Who wrote the lines of a file, as people and programs ask for it."""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime

from msgspec import Struct

from turnlog.blame.repository import Repository
from turnlog.blame.trail import SEVERAL, LineTrail, Verdict
from turnlog.blame.version import LARGEST_BYTES, UNTOLD, Versions, lines_of
from turnlog.errors import Invalid, NotFound, Unavailable, Unsupported
from turnlog.formats import preview
from turnlog.log.entry import Message
from turnlog.log.payload import digest, restore
from turnlog.machine.folder import named_here
from turnlog.rewind.chronology import timeline
from turnlog.rewind.timeline import Timeline, TurnWork
from turnlog.store import Store
from turnlog.workspace.git import worktree_of
from turnlog.workspace.tree import path_text

_HOW = "a checkpoint covers the files of a session's folder: `turnlog run -- COMMAND` takes two"


class LineAuthor(Struct, frozen=True):
    """A turn that wrote a line."""

    session: str
    turn: int
    """Its number, as `turnlog diff --turn` takes it."""
    agent: str | None
    model: str | None
    """The last one that answered in it."""
    at: datetime | None
    """When it began."""
    prompt: str | None
    """The beginning of what was asked."""
    entry: int
    """For `turnlog show --at`: the prompt, or where the turn begins."""


class BlamedLine(Struct, frozen=True):
    """A line, and who wrote it."""

    line: int
    text: str
    author: LineAuthor | None
    """None where it is not one turn."""
    why: str | None
    """Then, why: `before` the first checkpoint, `between` turns, `since` the last one, `git`, or `several` turns."""
    authors: tuple[LineAuthor, ...] = ()
    """Of several: the turns at the same time."""
    commit: str | None = None
    """Of git: the commit that brought it, where that is known."""
    at: datetime | None = None
    """The first checkpoint that has it, where there is one."""


class Blame(Struct, frozen=True):
    """The lines of a file."""

    path: str
    """From the root."""
    lines: list[BlamedLine]
    is_ignored: bool = False
    """Whether git would ignore the file: what is in it is for nobody else's eyes."""
    revision: str | None = None
    """The commit that has the file as it is here, if that is known."""


class Authors:
    """Turns as those who ask see them, each made once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, LineAuthor] = {}

    def of(self, work: TurnWork) -> LineAuthor:
        """The turn."""
        if work.turn not in self._known:
            prompt = self._prompt(work.prompt)
            entry = work.prompt.seq if work.prompt is not None else work.entry
            at = work.begin.checkpoint.at
            self._known[work.turn] = LineAuthor(work.session, work.number, work.agent, work.model, at, prompt, entry)
        return self._known[work.turn]

    def _prompt(self, message: Message | None) -> str | None:
        if message is None:
            return None
        whole = restore(message, self._blob)
        return (preview([whole]) if isinstance(whole, Message) else "") or None

    def _blob(self, name: str) -> bytes | None:
        try:
            return self._store.get(name)
        except NotFound:
            return None

    def line(self, number: int, text: bytes, verdict: Verdict) -> BlamedLine:
        """A line with its verdict."""
        writers = tuple(map(self.of, verdict.works))
        author = writers[0] if verdict.why is None else None
        several = writers if verdict.why == SEVERAL else ()
        decoded = text.removesuffix(b"\r").decode("utf-8", "backslashreplace")
        return BlamedLine(number, decoded, author, verdict.why, several, verdict.commit, verdict.at)


def blame(store: Store, path: str | os.PathLike[str], *, lines: tuple[int, int] | None = None) -> Blame:
    """Who wrote the lines of a file as it is now; with `lines`, the first and the last of those asked for, from 1."""
    file = file_place(path)
    data = _content(file)
    texts = lines_of(data)
    name = path_text(file)
    if texts is None:
        raise Unsupported(f"{name} is binary, and has no lines", hint="`turnlog diff --turn N` tells what a turn did")
    first, last = _chosen(name, lines, len(texts))
    seen, versions = timeline(store, file), Versions(store)
    is_ignored = refuse_uncovered(seen, versions, file)
    with repository_of(file) as repository:
        verdicts = LineTrail(seen, versions, repository).follow(file, texts, digest(data), len(seen.sightings))
        commit = repository.head() if repository is not None else None
        is_commit = repository is not None and commit is not None and repository.lines(commit, file) == texts
    authors = Authors(store)
    blamed = [authors.line(n, texts[n - 1], verdicts[n - 1]) for n in range(first, last + 1)]
    return Blame(name, blamed, is_ignored, commit if is_commit else None)


def file_place(path: str | os.PathLike[str]) -> bytes:
    """A file from the root; its folder as it is, whatever links lead there."""
    try:
        full = named_here(os.fsdecode(path))
        return os.fsencode(os.path.join(os.path.realpath(os.path.dirname(full)), os.path.basename(full)))
    except (TypeError, ValueError) as error:
        raise Invalid(f"the file {path!r:.80}: {error}") from None


@contextmanager
def repository_of(path: bytes) -> Generator[Repository | None]:
    """The repository that a file is in."""
    top = worktree_of(os.path.dirname(os.fsdecode(path)))
    repository = None if top is None else Repository(top)
    try:
        yield repository
    finally:
        if repository is not None:
            repository.close()


def _content(path: bytes) -> bytes:
    name = path_text(path)
    try:
        status = os.lstat(path)
        if stat.S_ISDIR(status.st_mode):
            raise Invalid(f"{name} is a folder", hint="name a file")
        if stat.S_ISLNK(status.st_mode):
            raise Invalid(f"{name} is a link", hint=f"name the file itself: {path_text(os.readlink(path))}")
        if not stat.S_ISREG(status.st_mode):
            raise Invalid(f"{name} is no file", hint="name a file")
        if status.st_size > LARGEST_BYTES:
            raise Unsupported(f"{name} has {status.st_size:,} bytes: that is too much to compare line by line")
        with open(path, "rb") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        raise NotFound(f"there is no {name}", hint="only files that are there have lines to ask for") from None
    except OSError as error:
        raise Unavailable(f"{name} cannot be read: {error.strerror or error}") from error


def _chosen(name: str, lines: tuple[int, int] | None, count: int) -> tuple[int, int]:
    if lines is None:
        return 1, count
    first, last = lines
    if not 1 <= first <= last:
        raise Invalid(f"lines {first} to {last}", hint="lines are counted from 1, the smaller number first")
    if last > count:
        word = "line" if count == 1 else "lines"
        raise Invalid(f"there is no line {last}: {name} has {count:,} {word}")
    return first, last


def refuse_uncovered(history: Timeline, versions: Versions, path: bytes) -> bool:
    """Raise `NotFound` if no checkpoint says anything of that file; whether the newest that does has it as ignored."""
    name = path_text(path)
    newest = next((one for one in reversed(history.sightings) if one.roots(path)), None)
    if newest is None:
        raise NotFound(f"no checkpoint covers {name}", hint=_HOW)
    if versions.at(newest, path) is UNTOLD:
        raise NotFound(f"no checkpoint has what is in {name}: it is ignored, too large or cannot be read")
    if versions.at(newest, path) is None and versions.is_left_out(newest, path):
        raise NotFound(f"no checkpoint covers {name}: it is ignored", hint="`session.track` covers it from then on")
    return versions.is_ignored(newest, path)

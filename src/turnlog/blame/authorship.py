"""The authors of the lines of a file, as values for people and programs."""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime
from functools import partial

from msgspec import Struct

from turnlog.blame.repository import Repository
from turnlog.blame.trail import LineTrail, Verdict
from turnlog.blame.version import LARGEST_BYTES, Versions, lines_of
from turnlog.errors import Invalid, NotFound, Unavailable, Unsupported
from turnlog.log.entry import Message
from turnlog.log.payload import digest, restore
from turnlog.log.prompt.promptmessage import preview
from turnlog.machine.folder import named_here
from turnlog.rewind.timeline import NOT_RECORDED, Sighting, Timeline, TurnWork
from turnlog.rewind.timelinereader import timeline_at
from turnlog.store import Store
from turnlog.workspace.git import worktree_of
from turnlog.workspace.tree import path_text

_HOW_TO_COVER = "a checkpoint covers the files of a session's folder: `turnlog run -- COMMAND` takes two"


class LineAuthor(Struct, frozen=True):
    """A turn that wrote a line."""

    session: str
    turn: int
    """The number of the turn, as `turnlog diff --turn` takes it."""
    agent: str | None
    model: str | None
    """The model of its last answer."""
    at: datetime | None
    """The time when the turn began."""
    prompt: str | None
    """The beginning of the prompt."""
    entry: int
    """The entry for `turnlog show --at`: the prompt, or the beginning of the turn."""


class BlamedLine(Struct, frozen=True):
    """A line and its author."""

    line: int
    text: str
    author: LineAuthor | None
    """None if it is not exactly one turn."""
    why: str | None
    """Otherwise the reason: `before` the first checkpoint, `between` turns, `since` the last, `git`, or `several`."""
    authors: tuple[LineAuthor, ...] = ()
    """With `several`: the concurrent turns."""
    commit: str | None = None
    """With `git`: the commit that brought the line, if known."""
    at: datetime | None = None
    """The first checkpoint with the line, if there is one."""


class Blame(Struct, frozen=True):
    """The lines of a file, with their authors."""

    path: str
    """The absolute path."""
    lines: list[BlamedLine]
    is_ignored: bool = False
    """Whether git would ignore the file, so that its content is private."""
    revision: str | None = None
    """The commit that contains the file as it is here, if known."""


class Authors:
    """The authors for turns, each created once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._by_turn: dict[str, LineAuthor] = {}

    def of(self, work: TurnWork) -> LineAuthor:
        """The author for a turn."""
        if work.turn not in self._by_turn:
            prompt = self._prompt(work.prompt)
            entry = work.prompt.seq if work.prompt is not None else work.entry
            at = work.begin.checkpoint.at
            self._by_turn[work.turn] = LineAuthor(work.session, work.number, work.agent, work.model, at, prompt, entry)
        return self._by_turn[work.turn]

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
        several = writers if verdict.why == "several" else ()
        decoded = text.removesuffix(b"\r").decode("utf-8", "backslashreplace")
        return BlamedLine(number, decoded, author, verdict.why, several, verdict.commit, verdict.at)


def blame(store: Store, path: str | os.PathLike[str], *, lines: tuple[int, int] | None = None) -> Blame:
    """The authors of the lines of a file as it is now; `lines` are the first and the last line wanted, from 1."""
    file = file_place(path)
    data = content_now(file)
    texts = lines_of(data)
    name = path_text(file)
    if texts is None:
        raise Unsupported(f"{name} is binary, and has no lines", hint="`turnlog diff --turn N` tells what a turn did")
    first, last = _line_range(name, lines, len(texts))
    versions = Versions(store)
    timeline = timeline_at(store, file, partial(versions.at, path=file), digest(data))
    newest = _newest_sighting(timeline, versions, file)
    with repository_of(file) as repository:
        present = len(timeline.sightings)
        verdicts = LineTrail(timeline, versions, repository).follow(file, texts, digest(data), present)
        commit = repository.head() if repository is not None else None
        is_commit = repository is not None and commit is not None and repository.lines(commit, file) == texts
    authors = Authors(store)
    blamed = [authors.line(n, texts[n - 1], verdicts[n - 1]) for n in range(first, last + 1)]
    return Blame(name, blamed, versions.is_ignored(newest, file), commit if is_commit else None)


def file_place(path: str | os.PathLike[str]) -> bytes:
    """The absolute path of a file, with the links in its folder resolved."""
    try:
        full = named_here(os.fsdecode(path))
        return os.fsencode(os.path.join(os.path.realpath(os.path.dirname(full)), os.path.basename(full)))
    except (TypeError, ValueError) as error:
        raise Invalid(f"the file {path!r:.80}: {error}") from None


@contextmanager
def repository_of(path: bytes) -> Generator[Repository | None]:
    """The repository that contains a file, as a context manager; None if there is none."""
    top = worktree_of(os.path.dirname(os.fsdecode(path)))
    repository = None if top is None else Repository(top)
    try:
        yield repository
    finally:
        if repository is not None:
            repository.close()


def content_now(path: bytes) -> bytes:
    """The content of a file as it is now; raises what is wrong with it."""
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


def _line_range(name: str, lines: tuple[int, int] | None, count: int) -> tuple[int, int]:
    """The first and the last line that are wanted."""
    if lines is None:
        return 1, count
    first, last = lines
    if not 1 <= first <= last:
        raise Invalid(f"lines {first} to {last}", hint="lines are counted from 1, the smaller number first")
    if last > count:
        word = "line" if count == 1 else "lines"
        raise Invalid(f"there is no line {last}: {name} has {count:,} {word}")
    return first, last


def _newest_sighting(timeline: Timeline, versions: Versions, path: bytes) -> Sighting:
    """The newest sighting that covers the file. Raises `NotFound` if in no workspace the newest one covers it."""
    newest: dict[bytes, Sighting] = {}
    for sighting in reversed(timeline.sightings):
        if sighting.workspace not in newest and sighting.roots(path):
            newest[sighting.workspace] = sighting
    refusals: list[NotFound] = []
    for sighting in newest.values():
        refusal = _refusal(sighting, versions, path)
        if refusal is None:
            return sighting
        refusals.append(refusal)
    raise refusals[0] if refusals else NotFound(f"no checkpoint covers {path_text(path)}", hint=_HOW_TO_COVER)


def _refusal(sighting: Sighting, versions: Versions, path: bytes) -> NotFound | None:
    """The error for a sighting that leaves the file out, or has no information about it."""
    if versions.at(sighting, path) is not NOT_RECORDED:
        return None
    name = path_text(path)
    if versions.is_left_out(sighting, path):
        return NotFound(f"no checkpoint covers {name}: it is ignored", hint="`session.track` covers it from then on")
    return NotFound(f"no checkpoint has what is in {name}: it is ignored, too large or cannot be read")

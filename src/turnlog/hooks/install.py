"""Hooks into the settings of agents, and out of them: planned for all that are meant before anything is changed."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from turnlog.errors import AlreadyExists, Corrupt, Invalid, Unavailable, Unsupported
from turnlog.hooks import HookedAgent
from turnlog.hooks.entries import added, removed
from turnlog.hooks.ownfile import program_of
from turnlog.hooks.trust import CONFIG, hashes, trusted, untrusted
from turnlog.machine.imprint import Imprint, Imprints, missing_folders, taken_back
from turnlog.machine.replace import read_bytes, replace_file, text_of
from turnlog.machine.settings import plain
from turnlog.machine.toml import toml_value


class HookPlaces(NamedTuple):
    """Where things are: the user's home folder, what the environment says, a project, and where imprints are kept."""

    home: str
    environ: Mapping[str, str]
    project: str
    imprints: Imprints
    filled: str = ""
    """The home that hooks are to fill; empty for the usual one."""

    def file(self, agent: HookedAgent, scope: str) -> str:
        """The file that has an agent's hooks, for the user or for the project."""
        if scope == "user":
            return os.path.join(self.folder(agent), agent.file.name)
        if agent.file.project is None:
            raise Unsupported(f"{agent.title} has no hooks of a project", hint="install them without --project")
        return os.path.join(self.project, agent.file.project)

    def folder(self, agent: HookedAgent) -> str:
        """The folder of an agent."""
        return agent.folder.path(self.home, self.environ)

    def config(self, agent: HookedAgent) -> str:
        """The file in which an agent keeps what its user trusts."""
        return os.path.join(self.folder(agent), CONFIG)

    def has(self, agent: HookedAgent) -> bool:
        """Whether an agent is here."""
        return os.path.isdir(self.folder(agent))


class FileEdit(NamedTuple):
    """One file that is to be changed. Nothing `after` is no file."""

    agent: str
    path: str
    before: bytes | None
    after: bytes | None
    imprint: Imprint | None = None
    """What is to be remembered; None where it is to be forgotten."""

    @property
    def is_change(self) -> bool:
        """Whether it makes a difference."""
        return self.before != self.after


def installing(agent: HookedAgent, places: HookPlaces, scope: str, program: str, *, trust: bool) -> list[FileEdit]:
    """What has to be changed so that an agent calls this program."""
    path = places.file(agent, scope)
    before = read_bytes(path)
    if agent.file.render is not None:
        after = agent.file.render(program, places.filled)
        _refuse_others(path, before, agent)
        return [FileEdit(agent.name, path, before, after.encode(), _imprint(places, path, None, after))]
    with _about(path, agent):
        now = text_of(path, before)
        after = added(now, agent, program, places.filled)
        rest = _restored(places, path, now, lambda known: removed(now, agent, known), _settings(agent))
    was = rest.encode() if before is not None else None
    edits = [FileEdit(agent.name, path, before, after.encode(), _imprint(places, path, was, after))]
    return [*edits, *_trusting(agent, places, path, after)] if trust and agent.trusts else edits


def uninstalling(agent: HookedAgent, places: HookPlaces, scope: str) -> list[FileEdit]:
    """What has to be changed so that an agent's files are as they would be without us."""
    path = places.file(agent, scope)
    before = read_bytes(path)
    if before is None:
        return []
    if agent.file.render is not None:
        if program_of(text_of(path, before), agent.name) is None:
            return []
        return [FileEdit(agent.name, path, before, None)]
    with _about(path, agent):
        now = text_of(path, before)
        settings = plain(now, dialect=agent.file.dialect)
        rest = _restored(places, path, now, lambda known: removed(now, agent, known), _settings(agent))
        gone = hashes(settings, agent, path) if agent.trusts else {}
    edits = [_emptied(agent, places, path, before, rest, is_empty=plain(rest, dialect=agent.file.dialect) == {})]
    config = places.config(agent)
    written = read_bytes(config) if gone else None
    if written is not None:
        with _about(config, agent):
            now = text_of(config, written)
            rest = _restored(places, config, now, lambda _: untrusted(now, gone), toml_value)
        edits.append(_emptied(agent, places, config, written, rest, is_empty=not toml_value(rest)))
    return edits


def apply(edit: FileEdit, places: HookPlaces) -> None:
    """Change one file. What it was is kept before, and what was made for it goes with it."""
    known = places.imprints.find(edit.path)
    if edit.imprint is not None:
        places.imprints.keep(edit.imprint)
    if edit.is_change and edit.after is not None:
        replace_file(edit.path, edit.before, edit.after)
    elif edit.is_change:
        _remove(edit, known.folders if known is not None else [])
    if edit.imprint is None:
        places.imprints.forget(edit.path)


def _settings(agent: HookedAgent) -> Callable[[str], Any]:
    return lambda text: plain(text, dialect=agent.file.dialect)


def _restored(
    places: HookPlaces, path: str, now: str, without: Callable[[Any], str], read: Callable[[str], Any]
) -> str:
    """The text without what is ours, as near to what it was as can be."""
    known = places.imprints.find(path)
    if known is None:
        return without(None)
    rest = without(read((known.before or b"").decode(errors="replace")))
    return taken_back(now, known, rest, same=lambda one, other: _reads(read, one) == read(other))


def _reads(read: Callable[[str], Any], text: str) -> Any:
    try:
        return read(text)
    except Corrupt:
        return _reads  # equal to nothing


def _emptied(
    agent: HookedAgent, places: HookPlaces, path: str, before: bytes, rest: str, *, is_empty: bool
) -> FileEdit:
    """The edit that leaves the rest; no file, where we made it and nothing is left in it."""
    known = places.imprints.find(path)
    is_made = known is not None and known.before is None
    return FileEdit(agent.name, path, before, None if is_made and is_empty else rest.encode())


def _trusting(agent: HookedAgent, places: HookPlaces, path: str, after: str) -> list[FileEdit]:
    config = places.config(agent)
    before = read_bytes(config)
    with _about(config, agent):
        now = text_of(config, before)
        wanted = hashes(plain(after, dialect=agent.file.dialect), agent, path)
        new = trusted(now, wanted)
        rest = _restored(places, config, now, lambda _: untrusted(now, wanted), toml_value)
    was = rest.encode() if before is not None else None
    return [FileEdit(agent.name, config, before, new.encode(), _imprint(places, config, was, new))]


def _imprint(places: HookPlaces, path: str, before: bytes | None, after: str) -> Imprint:
    known = places.imprints.find(path)
    folders = known.folders if known is not None else missing_folders(path)
    if known is not None and known.before is None and not (before or b"").strip():
        before = None
    return Imprint(path, before, after.encode(), folders)


def _refuse_others(path: str, before: bytes | None, agent: HookedAgent) -> None:
    """A file that we did not write, or that somebody changed since, is not ours to replace."""
    if before is not None and program_of(before.decode(errors="replace"), agent.name) is None:
        raise AlreadyExists(f"{path} is there, and not as we wrote it", hint="move it away, then again")


def _remove(edit: FileEdit, folders: list[str]) -> None:
    try:
        os.unlink(edit.path)
        for folder in reversed(folders):
            os.rmdir(folder)
    except FileNotFoundError:
        return
    except OSError as error:
        if os.path.lexists(edit.path):
            raise Unavailable(f"{edit.path} could not be removed: {error.strerror}") from None


class _about:
    """Says of which file it is that something is wrong with, and whose."""

    def __init__(self, path: str, agent: HookedAgent) -> None:
        self._path = path
        self._agent = agent

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (Corrupt, Invalid)) and not error.message.startswith(self._path):
            message = f"{self._path}, {error.message}"
            hint = f"{self._agent.title} would not read it as it is: mend it first; nothing was changed"
            raise type(error)(message, hint=hint) from None

"""Hooks into the settings of agents, and out of them: planned for all that are meant before anything is changed."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from turnlog.errors import AlreadyExists, Unsupported
from turnlog.hooks import HookedAgent
from turnlog.hooks.entries import added, removed
from turnlog.hooks.ownfile import program_of
from turnlog.hooks.trust import CONFIG, hashes, trusted, untrusted
from turnlog.machine.edit import FileEdit, emptied, imprint_of, make_edit, naming_file, restored
from turnlog.machine.imprint import Imprints
from turnlog.machine.replace import read_bytes, text_of
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


def installing(agent: HookedAgent, places: HookPlaces, scope: str, program: str, *, trust: bool) -> list[FileEdit]:
    """What has to be changed so that an agent calls this program."""
    path = places.file(agent, scope)
    before = read_bytes(path)
    if agent.file.render is not None:
        after = agent.file.render(program, places.filled)
        _refuse_others(path, before, agent)
        return [FileEdit(agent.name, path, before, after.encode(), imprint_of(places.imprints, path, None, after))]
    with naming_file(path, agent.title):
        now = text_of(path, before)
        after = added(now, agent, program, places.filled)
        rest = restored(
            places.imprints, path, now, lambda program_there: removed(now, agent, program_there), _settings(agent)
        )
    was = rest.encode() if before is not None else None
    edits = [FileEdit(agent.name, path, before, after.encode(), imprint_of(places.imprints, path, was, after))]
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
    with naming_file(path, agent.title):
        now = text_of(path, before)
        settings = plain(now, dialect=agent.file.dialect)
        rest = restored(
            places.imprints, path, now, lambda program_there: removed(now, agent, program_there), _settings(agent)
        )
        gone = hashes(settings, agent, path) if agent.trusts else {}
    edits = [
        emptied(agent.name, places.imprints, path, before, rest, is_empty=plain(rest, dialect=agent.file.dialect) == {})
    ]
    config = places.config(agent)
    written = read_bytes(config) if gone else None
    if written is not None:
        with naming_file(config, agent.title):
            now = text_of(config, written)
            rest = restored(places.imprints, config, now, lambda _: untrusted(now, gone), toml_value)
        edits.append(emptied(agent.name, places.imprints, config, written, rest, is_empty=not toml_value(rest)))
    return edits


def apply(edit: FileEdit, places: HookPlaces) -> None:
    """Change one file. What it was is kept before, and what was made for it goes with it."""
    make_edit(edit, places.imprints)


def _settings(agent: HookedAgent) -> Callable[[str], Any]:
    return lambda text: plain(text, dialect=agent.file.dialect)


def _trusting(agent: HookedAgent, places: HookPlaces, path: str, after: str) -> list[FileEdit]:
    config = places.config(agent)
    before = read_bytes(config)
    with naming_file(config, agent.title):
        now = text_of(config, before)
        wanted = hashes(plain(after, dialect=agent.file.dialect), agent, path)
        new = trusted(now, wanted)
        rest = restored(places.imprints, config, now, lambda _: untrusted(now, wanted), toml_value)
    was = rest.encode() if before is not None else None
    return [FileEdit(agent.name, config, before, new.encode(), imprint_of(places.imprints, config, was, new))]


def _refuse_others(path: str, before: bytes | None, agent: HookedAgent) -> None:
    """A file that we did not write, or that somebody changed since, is not ours to replace."""
    if before is not None and program_of(before.decode(errors="replace"), agent.name) is None:
        raise AlreadyExists(f"{path} is there, and not as we wrote it", hint="move it away, then again")

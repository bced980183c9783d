"""The server into the settings of agents, and out of them: planned for all that are meant before any is changed."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from turnlog.errors import AlreadyExists, Invalid, TurnlogError, Unsupported
from turnlog.interop.value import fields
from turnlog.machine.edit import FileEdit, edit_without_us, imprint_of, restored
from turnlog.machine.environment import environment, user_folder
from turnlog.machine.imprint import Imprints
from turnlog.machine.launcher import starts_this_installation
from turnlog.machine.replace import naming_file, read_bytes, text_of
from turnlog.machine.settings import MISSING, parse_settings, position_of, value_at, with_value, without
from turnlog.machine.settings.toml import table_at, toml_value, with_table, without_table
from turnlog.mcp.agents import Entry, ServerAgent, server_agent, server_names
from turnlog.reader.agents.hookedhome import home_for_settings, imprints
from turnlog.reader.naming.here import project

HOME = "TURNLOG_HOME"
_ENVIRONS = ("env", "environment")


class ServerPlaces(NamedTuple):
    """Where things are: the user's home folder, what the environment says, a project, and where imprints are kept."""

    home: str
    environ: Mapping[str, str]
    project: str
    imprints: Imprints
    target_home: str = ""
    """The home that the server is to look into; empty for the usual one."""

    def file(self, agent: ServerAgent, scope: str) -> str:
        """The file that tells an agent of servers, for the user or for the project."""
        if scope == "user":
            folder = agent.folder.path(self.home, self.environ)
            there = [name for name in agent.files if os.path.lexists(os.path.join(folder, name))]
            return os.path.join(folder, (there or agent.files)[0])
        if agent.project is None:
            raise Unsupported(f"{agent.title} has no servers of a project", hint="install it without --project")
        return os.path.join(self.project, agent.project)

    def has(self, agent: ServerAgent) -> bool:
        """Whether an agent is here."""
        folder = agent.hooked.folder.path(self.home, self.environ)
        return os.path.isdir(folder) or os.path.exists(self.file(agent, "user"))


def server_places(location: str | None) -> ServerPlaces:
    """The places of here, for a server that looks into that home."""
    return ServerPlaces(user_folder(), environment(), project(), imprints(location, "mcp"), home_for_settings(location))


class ServerStatus(NamedTuple):
    """The server of one agent in one file."""

    agent: str
    is_here: bool
    """Whether the agent is."""
    installed: bool
    path: str
    scope: str
    program: str | None = None
    arguments: tuple[str, ...] = ()
    """What the program is started with."""
    is_current: bool = False
    """Whether the program is there, and is this one."""
    blocked_by: str | None = None
    """Why the agent cannot read the file."""


def installing(
    agent: ServerAgent, places: ServerPlaces, scope: str, program: str, options: Sequence[str] | None = None
) -> list[FileEdit]:
    """What has to be changed so that an agent starts this program, with these options; None for those that are there.

    What else stands in our entry stays. One that is not ours is refused.
    """
    path = places.file(agent, scope)
    before = read_bytes(path)
    with naming_file(path, agent.title):
        now = text_of(path, before)
        entry = _entry_in(now, agent)
        _refuse_others(now, entry, agent, path)
        kept = _words(agent, entry)[2:] if entry is not None and options is None else []
        environ = {HOME: places.target_home} if places.target_home else {}
        wanted = agent.entry([program, "mcp", *(options or kept)], environ)
        after = _with_entry(now, _merged(entry or {}, wanted), agent)
        rest = restored(places.imprints, path, now, lambda then: _removed(now, agent, then), _reader(agent))
    was = rest.encode() if before is not None else None
    return [FileEdit(agent.name, path, before, after.encode(), imprint_of(places.imprints, path, was, after))]


def uninstalling(agent: ServerAgent, places: ServerPlaces, scope: str) -> list[FileEdit]:
    """What has to be changed so that the file is as it would be without us."""
    path = places.file(agent, scope)
    before = read_bytes(path)
    if before is None:
        return []
    with naming_file(path, agent.title):
        now = text_of(path, before)
        entry = _entry_in(now, agent)
        if entry is None:
            return []
        _refuse_others(now, entry, agent, path)
        rest = restored(places.imprints, path, now, lambda then: _removed(now, agent, then), _reader(agent))
    return [edit_without_us(agent.name, places.imprints, path, before, rest, is_empty=not _reader(agent)(rest))]


def server_statuses(places: ServerPlaces) -> list[ServerStatus]:
    """One for each agent; another one where a project has a server of its own."""
    statuses: list[ServerStatus] = []
    for agent in map(server_agent, server_names()):
        statuses.append(server_status(agent, places, "user"))
        if agent.project is not None:
            project = server_status(agent, places, "project")
            statuses += [project] if project.installed and project.path != statuses[-1].path else []
    return statuses


def server_status(agent: ServerAgent, places: ServerPlaces, scope: str) -> ServerStatus:
    """How it stands in that file."""
    path = places.file(agent, scope)
    empty = ServerStatus(agent.name, places.has(agent), False, path, scope)
    try:
        entry = _entry_in(text_of(path, read_bytes(path)), agent)
    except TurnlogError as error:
        return empty._replace(blocked_by=f"{path}: {error.message.removeprefix(path).lstrip(': ')}")
    if entry is None:
        return empty
    program, *words = _words(agent, entry) or [""]
    is_current = words[:1] == ["mcp"] and _is_program(program) and starts_this_installation(program)
    return empty._replace(installed=True, program=program, arguments=tuple(words), is_current=is_current)


# ── an entry in a text ────────────────────────────────────────────────────────────────────────────


def _reader(agent: ServerAgent) -> Callable[[str], Any]:
    return lambda text: toml_value(text) if agent.syntax is None else parse_settings(text, syntax=agent.syntax)


def _entry_in(text: str, agent: ServerAgent) -> Entry | None:
    if agent.syntax is None:
        entry = table_at(toml_value(text), agent.path)
    else:
        servers = agent.path[:1]
        for path in ((), servers):
            value = value_at(text, path, syntax=agent.syntax)
            if value is not MISSING and not isinstance(value, dict):
                where = position_of(text, path, syntax=agent.syntax)
                raise Invalid(f"{where}: {'.'.join(path) or 'the whole'} is no object", hint="mend it first, by hand")
        entry = value_at(text, agent.path, syntax=agent.syntax)
    return None if entry is None or entry is MISSING else fields(entry)


def _words(agent: ServerAgent, entry: Entry) -> list[str]:
    """The command of an entry; empty where it names no program."""
    command = agent.command(entry)
    return list(map(str, command)) if command and isinstance(command[0], str) else []


def _is_program(path: str) -> bool:
    try:
        return os.access(path, os.X_OK)
    except ValueError:
        return False  # JSON has strings that no path can be


def _refuse_others(text: str, entry: Entry | None, agent: ServerAgent, path: str) -> None:
    """A server of that name that somebody else made is not ours to change."""
    if entry is None:
        return
    program, *words = _words(agent, entry) or [""]
    if os.path.basename(program) != "turnlog" or words[:1] != ["mcp"]:
        name = ".".join(agent.path)
        raise AlreadyExists(f"{path}: {name} is there, and not ours", hint="give it another name, or take it out")


def _merged(entry: Entry, wanted: Entry) -> Entry:
    """Ours, with what somebody added to it."""
    merged = {**entry, **wanted}
    for name in _ENVIRONS:
        if name in entry or name in wanted:
            merged[name] = {**fields(entry.get(name)), **fields(wanted.get(name))}
    return merged


def _with_entry(text: str, entry: Entry, agent: ServerAgent) -> str:
    if agent.syntax is None:
        return with_table(text, agent.path, entry)
    return with_value(text, agent.path, entry, syntax=agent.syntax)


def _removed(text: str, agent: ServerAgent, before: Any) -> str:
    """The text without our entry; without what we made for it, where that was not there `before`."""
    if agent.syntax is None:
        return without_table(text, agent.path)
    if value_at(text, agent.path, syntax=agent.syntax) is MISSING:
        return text
    text = without(text, agent.path, syntax=agent.syntax)
    servers = agent.path[:1]
    is_empty = value_at(text, servers, syntax=agent.syntax) == {}
    return text if not is_empty or servers[0] in fields(before) else without(text, servers, syntax=agent.syntax)

"""Adding the server to the settings of agents, and removing it: all edits are planned before any file is changed."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from turnlog.errors import AlreadyExists, Invalid, TurnlogError, Unsupported
from turnlog.interop.value import as_list, fields
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
    """What a plan has to know of this machine."""

    home: str
    environ: Mapping[str, str]
    project: str
    imprints: Imprints
    target_home: str = ""
    """The home that the server reads; empty for the default one."""

    def file(self, agent: ServerAgent, scope: str) -> str:
        """The path of the file that lists an agent's servers, for the user or for the project."""
        if scope == "user":
            folder = agent.folder.path(self.home, self.environ)
            there = [name for name in agent.files if os.path.lexists(os.path.join(folder, name))]
            return os.path.join(folder, (there or agent.files)[0])
        if agent.project is None:
            raise Unsupported(f"{agent.title} has no servers of a project", hint="install it without --project")
        return os.path.join(self.project, agent.project)

    def has(self, agent: ServerAgent) -> bool:
        """Whether an agent is installed."""
        folder = agent.hooked.folder.path(self.home, self.environ)
        return os.path.isdir(folder) or os.path.exists(self.file(agent, "user"))


def server_places(location: str | None) -> ServerPlaces:
    """The places on this machine, for a server that reads that home."""
    return ServerPlaces(user_folder(), environment(), project(), imprints(location, "mcp"), home_for_settings(location))


class ServerStatus(NamedTuple):
    """The server of one agent in one file."""

    agent: str
    is_here: bool
    """Whether the agent is installed."""
    installed: bool
    path: str
    scope: str
    program: str | None = None
    arguments: tuple[str, ...] = ()
    """The arguments of the program."""
    is_current: bool = False
    """Whether the program exists, and is this one."""
    blocked_by: str | None = None
    """Why the agent cannot read the file."""


def installing(
    agent: ServerAgent, places: ServerPlaces, scope: str, program: str, options: Sequence[str] | None = None
) -> list[FileEdit]:
    """The edits after which an agent starts this program with these options; None keeps the present options.

    Everything else in our entry stays. Raises `AlreadyExists` if the entry is not ours.
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
    """The edits after which the file is as it would be without us."""
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
    """One status for each agent, and another one if the project has a server of its own for it."""
    statuses: list[ServerStatus] = []
    for agent in map(server_agent, server_names()):
        statuses.append(server_status(agent, places, "user"))
        if agent.project is not None:
            project = server_status(agent, places, "project")
            statuses += [project] if project.installed and project.path != statuses[-1].path else []
    return statuses


def server_status(agent: ServerAgent, places: ServerPlaces, scope: str) -> ServerStatus:
    """The status of an agent's server in its file for the user or for the project."""
    path = places.file(agent, scope)
    empty = ServerStatus(agent.name, places.has(agent), False, path, scope)
    try:
        with naming_file(path):
            entry = _entry_in(text_of(path, read_bytes(path)), agent)
    except TurnlogError as error:
        return empty._replace(blocked_by=error.message)
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
    """The command of an entry; empty if it names no program."""
    command = agent.command(entry)
    return list(map(str, command)) if command and isinstance(command[0], str) else []


def _is_program(path: str) -> bool:
    try:
        return os.access(path, os.X_OK)
    except ValueError:
        return False  # no path has a NUL, but a string in JSON may


def _refuse_others(text: str, entry: Entry | None, agent: ServerAgent, path: str) -> None:
    """Raise `AlreadyExists` if somebody else has a server of our name."""
    if entry is None:
        return
    program, *words = _words(agent, entry) or [""]
    if os.path.basename(program) != "turnlog" or words[:1] != ["mcp"]:
        name = ".".join(agent.path)
        raise AlreadyExists(f"{path}: {name} is there, and not ours", hint="give it another name, or take it out")


def _merged(entry: Entry, wanted: Entry) -> Entry:
    """Our entry, with the fields that the user added to it, and the tools and variables that the user chose."""
    merged = {**entry, **wanted}
    for name in _ENVIRONS:
        if name in merged:
            before = fields(entry.get(name))
            kept = {key: value for key, value in before.items() if key != HOME or not _is_folder(value)}
            merged[name] = {**kept, **fields(wanted.get(name))}
            if before and not merged[name]:
                del merged[name]  # it had nothing but our home
    if "tools" in entry:
        merged["tools"] = entry["tools"]
    if "env_vars" in wanted:
        ours = wanted["env_vars"]
        added = [one for one in as_list(entry.get("env_vars")) if one not in ours and one != HOME]
        merged["env_vars"] = [*ours, *added]
    return merged


def _is_folder(home: object) -> bool:
    """Whether a home is in a folder: such a home was written here by us. What names a database never is."""
    return isinstance(home, str) and "://" not in home


def _with_entry(text: str, entry: Entry, agent: ServerAgent) -> str:
    if agent.syntax is None:
        return with_table(text, agent.path, entry)
    return with_value(text, agent.path, entry, syntax=agent.syntax)


def _removed(text: str, agent: ServerAgent, before: Any) -> str:
    """The text without our entry, and without the object of servers if it is empty and was not there `before`."""
    if agent.syntax is None:
        return without_table(text, agent.path)
    if value_at(text, agent.path, syntax=agent.syntax) is MISSING:
        return text
    text = without(text, agent.path, syntax=agent.syntax)
    servers = agent.path[:1]
    is_empty = value_at(text, servers, syntax=agent.syntax) == {}
    return text if not is_empty or servers[0] in fields(before) else without(text, servers, syntax=agent.syntax)

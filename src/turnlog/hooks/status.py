"""The status of the hooks of each agent: installed or not, the program they call, trusted, switched off."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from turnlog.errors import TurnlogError
from turnlog.hooks import HookedAgent, HookSwitch, hooked_agent, names
from turnlog.hooks.install import file_hooks
from turnlog.hooks.places import HookPlaces
from turnlog.machine.launcher import starts_this_installation
from turnlog.machine.replace import naming_file, read_bytes, text_of
from turnlog.machine.settings import parse_settings
from turnlog.machine.settings.toml import table_at, toml_value

_ENOUGH_TURNS = 5
"""Fewer turns prove nothing: one that its user interrupts with Escape ends without an event."""


class HookStatus(NamedTuple):
    """The hooks of one agent in one file."""

    agent: str
    is_here: bool
    """Whether the agent is installed."""
    installed: bool
    path: str
    scope: str
    program: str | None = None
    """The program that the hooks call."""
    is_current: bool = False
    """Whether the program exists, is this one, and the hooks are as this version writes them."""
    trusted: bool | None = None
    """Whether the user trusts the hooks; None if the agent does not ask."""
    blocked_by: str | None = None
    """What keeps the hooks from running: a setting and its file, or an error in a file."""
    fills: str | None = None
    """The home that the hooks write to; None for the default one."""


def statuses(places: HookPlaces) -> list[HookStatus]:
    """One status for each agent, and another one if the project has hooks of its own for it."""
    rows: list[HookStatus] = []
    for agent in map(hooked_agent, names()):
        user = status(agent, places, "user")
        rows.append(user)
        if agent.file.project is not None:
            project = status(agent, places, "project")
            if project.installed and project.path != user.path:
                rows.append(project)
    return rows


def missing_events(agent: HookedAgent, events: Mapping[str, int]) -> str | None:
    """The events that the installed version of an agent never reports, judged by its counts; None if there are none."""
    counts = {"begin": 0, "tool": 0, "end": 0}
    for name, times in events.items():
        event = agent.event(name)
        if event is not None and event.means in counts:
            counts[event.means] += times
    if counts["begin"] >= _ENOUGH_TURNS and not counts["end"]:
        return f"it told of {counts['begin']} turns that began and of none that ended: each counts as interrupted"
    if counts["end"] >= _ENOUGH_TURNS and not counts["begin"]:
        return f"it told of {counts['end']} turns that ended and of none that began: none of them can be taken back"
    return None


def status(agent: HookedAgent, places: HookPlaces, scope: str) -> HookStatus:
    """The status of an agent's hooks in its file for the user or for the project."""
    hooks = file_hooks(agent, places, scope)
    path = hooks.path
    blocked_by = _blocked_by(agent, places)
    none = HookStatus(agent.name, places.has(agent), installed=False, path=path, scope=scope, blocked_by=blocked_by)
    try:
        with naming_file(path):
            installed = hooks.installed()
    except TurnlogError as error:
        return none._replace(blocked_by=error.message)
    none = none._replace(blocked_by=installed.refusal or blocked_by)
    if installed.program is None:
        return none
    return none._replace(
        installed=True,
        program=installed.program,
        is_current=installed.is_current
        and os.access(installed.program, os.X_OK)
        and starts_this_installation(installed.program),
        trusted=installed.trusted,
        fills=installed.home or None,
    )


def _blocked_by(agent: HookedAgent, places: HookPlaces) -> str | None:
    """The setting that keeps the hooks of an agent from running, and the last file that has it; None if none does."""
    for switch in agent.switches:
        last: tuple[Any, str] | None = None
        for file in switch.files:
            path = _switch_path(file, agent, places)
            value = table_at(_settings_in(path), switch.key.split("."))
            last = (value, path) if value is not None else last
        if last is not None and _is_off(switch, last[0]):
            return f"{switch.key} in {last[1]}"
    return None


def _switch_path(file: str, agent: HookedAgent, places: HookPlaces) -> str:
    """The path of a file of a switch: see `HookSwitch.files`."""
    if file.startswith("~/"):
        return os.path.join(places.folder(agent), file[2:])
    if file.startswith("./"):
        return os.path.join(places.project, file[2:])
    return file


def _is_off(switch: HookSwitch, value: Any) -> bool:
    return switch.off in value if isinstance(value, list) else value == switch.off


def _settings_in(path: str) -> Any:
    """The settings in a file; empty if there is no file, or one that its agent could not read either."""
    try:
        text = text_of(path, read_bytes(path))
        return toml_value(text) if path.endswith(".toml") else parse_settings(text, syntax="jsonc")
    except TurnlogError:
        return {}

"""How the hooks of each agent stand: there or not, calling whom, trusted, switched off."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from turnlog.errors import TurnlogError
from turnlog.hooks import HookedAgent, HookSwitch, agent, names
from turnlog.hooks.entries import are_current, check, entries
from turnlog.hooks.install import HookPlaces
from turnlog.hooks.ownfile import home_of, program_of
from turnlog.hooks.trust import hashes, is_trusted
from turnlog.machine.launcher import is_this
from turnlog.machine.replace import read_bytes, text_of
from turnlog.machine.settings import plain
from turnlog.machine.toml import table_at, toml_value

_ENOUGH = 5
"""Of fewer turns it cannot be said: who presses Escape ends one without a word."""


class HookStatus(NamedTuple):
    """The hooks of one agent in one file."""

    agent: str
    is_here: bool
    """Whether the agent is."""
    installed: bool
    path: str
    scope: str
    program: str | None = None
    """The one that they call."""
    is_current: bool = False
    """Whether that is there, is this one, and all is as this version writes it."""
    trusted: bool | None = None
    """None for an agent that does not ask."""
    blocked_by: str | None = None
    fills: str | None = None
    """The home that they fill; None for the usual one."""


def statuses(places: HookPlaces) -> list[HookStatus]:
    """One for each agent; another one where a project has hooks of its own."""
    all_statuses: list[HookStatus] = []
    for name in names():
        one = agent(name)
        all_statuses.append(status(one, places, "user"))
        if one.file.project is not None:
            project = status(one, places, "project")
            all_statuses += [project] if project.installed and project.path != all_statuses[-1].path else []
    return all_statuses


def tells_less(one: HookedAgent, events: Mapping[str, int]) -> str | None:
    """What the version of an agent that is here does not tell of, judged by how often which event came."""
    counts = {"begin": 0, "tool": 0, "end": 0}
    for name, times in events.items():
        event = one.event(name)
        if event is not None and event.means in counts:
            counts[event.means] += times
    if counts["begin"] >= _ENOUGH and not counts["end"]:
        return f"it told of {counts['begin']} turns that began and of none that ended: each counts as interrupted"
    if counts["end"] >= _ENOUGH and not counts["begin"]:
        return f"it told of {counts['end']} turns that ended and of none that began: none of them can be taken back"
    return None


def status(one: HookedAgent, places: HookPlaces, scope: str) -> HookStatus:
    """How it stands in that file."""
    path = places.file(one, scope)
    empty = HookStatus(one.name, places.has(one), False, path, scope, blocked_by=_blocked(one, places))
    try:
        text = text_of(path, read_bytes(path))
        program, home, is_whole, trusted = (
            _own(text, one) if one.file.render is not None else _among_others(text, one, path, places.config(one))
        )
    except TurnlogError as error:
        return empty._replace(blocked_by=f"{path}: {error.message.removeprefix(path).lstrip(': ')}")
    unread = _unread(text, one, path)
    empty = empty._replace(blocked_by=unread or empty.blocked_by)
    if program is None:
        return empty
    is_current = is_whole and os.access(program, os.X_OK) and is_this(program)
    return empty._replace(installed=True, program=program, is_current=is_current, trusted=trusted, fills=home or None)


def _unread(text: str, one: HookedAgent, path: str) -> str | None:
    """What keeps the agent from reading the file, although it can be read."""
    try:
        if one.file.render is None:
            check(text, one)
    except TurnlogError as error:
        return f"{path}: {error.message}"
    return None


_Calls = tuple[str | None, str, bool, bool | None]
"""The program, the home, whether all is as this version writes it, and whether it is trusted."""


def _own(text: str, one: HookedAgent) -> _Calls:
    program, render = program_of(text, one.name), one.file.render
    if program is None or render is None:
        return None, "", False, None
    return program, home_of(text), render(program, home_of(text)) == text, None


def _among_others(text: str, one: HookedAgent, path: str, config: str) -> _Calls:
    settings = plain(text, dialect=one.file.dialect)
    ours = entries(settings, one)
    if not ours:
        return None, "", False, None
    trusted = None
    if one.trusts:
        trusted = is_trusted(text_of(config, read_bytes(config)), hashes(settings, one, path))
    return ours[0].program, ours[0].home, are_current(ours, one), trusted


def _blocked(one: HookedAgent, places: HookPlaces) -> str | None:
    """What keeps its hooks from running: a setting, and the file that says it last."""
    for switch in one.switches:
        last: tuple[Any, str] | None = None
        for file in switch.files:
            path = os.path.join(
                {"~": places.folder(one), ".": places.project}.get(file[0], ""),
                file.removeprefix(file[0] + "/" if file[0] != "/" else ""),
            )
            value = table_at(_value(path), switch.key.split("."))
            last = (value, path) if value is not None else last
        if last is not None and _is_off(switch, last[0]):
            return f"{switch.key} in {last[1]}"
    return None


def _is_off(switch: HookSwitch, value: Any) -> bool:
    return switch.off in value if isinstance(value, list) else value == switch.off


def _value(path: str) -> Any:
    """What a file says; nothing, where it is not there or its agent could not read it either."""
    try:
        text = text_of(path, read_bytes(path))
        return toml_value(text) if path.endswith(".toml") else plain(text, dialect="jsonc")
    except TurnlogError:
        return {}

"""Our entries among others in the settings of an agent: added behind the user's, found again, and taken out. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

from turnlog.errors import Invalid
from turnlog.hooks import TIMEOUT_S, HookedAgent, HookEvent
from turnlog.hooks.call import hook_command, parse_hook_command
from turnlog.interop.value import as_list, fields
from turnlog.machine.settings import parse_settings, position_of, with_item, with_value, without
from turnlog.machine.settings.toml import table_at

_KINDS = {bool: "boolean", dict: "object", int: "number", list: "list", str: "string"}
_NOTHING: dict[str, Any] = {"hooks": []}
"""A group that does nothing, in the place of a removed one."""


class HookEntry(NamedTuple):
    """One of our hooks, and its place in the settings."""

    event: str
    group: int
    """The index of its group among those of the event."""
    number: int
    """Its index among the hooks of the group."""
    is_alone: bool
    """Whether the group has no other hook."""
    program: str
    home: str
    """The home that it writes to; empty for the default one."""
    value: Any
    """The whole group if the hook is alone in it; else the hook."""


def group_of(agent: HookedAgent, event: HookEvent, program: str, home: str) -> dict[str, Any]:
    """The group with our hook for an event."""
    name = {"name": agent.settings_file.hook_name} if agent.settings_file.hook_name else {}
    timeout = TIMEOUT_S * (1000 if agent.settings_file.timeout_unit == "ms" else 1)
    hook = {
        **name,
        "type": "command",
        "command": hook_command(program, agent.name, event.name, home),
        "timeout": timeout,
    }
    return {**({"matcher": event.matcher} if event.matcher else {}), "hooks": [hook]}


def hook_entries(settings: Any, agent: HookedAgent) -> list[HookEntry]:
    """All hooks of ours in the settings, in order."""
    return list(_entries(settings, agent))


def _entries(settings: Any, agent: HookedAgent) -> Iterator[HookEntry]:
    for event, groups in fields(fields(settings).get("hooks")).items():
        for index, group in enumerate(as_list(groups)):
            hooks = as_list(fields(group).get("hooks"))
            for number, hook in enumerate(hooks):
                ours = parse_hook_command(fields(hook).get("command"), agent.name)
                if ours is not None:
                    is_alone = len(hooks) == 1
                    value = group if is_alone else hook
                    yield HookEntry(event, index, number, is_alone, ours.program, ours.home, value)


def are_current(entries: list[HookEntry], agent: HookedAgent) -> bool:
    """Whether these are exactly the hooks that this version would write for the program and home of the first."""
    program, home = entries[0].program, entries[0].home
    wanted = {event.name: group_of(agent, event, program, home) for event in agent.events}
    return len(entries) == len(wanted) and all(
        wanted.get(entry.event) in (entry.value, {**wanted.get(entry.event, {}), "hooks": [entry.value]})
        for entry in entries
    )


def with_hooks(text: str, agent: HookedAgent, program: str, home: str) -> str:
    """The settings with each of our hooks once: in its old place, or behind all others.

    Raises if the agent would not read the settings.
    """
    check_settings(text, agent)
    for event in agent.events:
        text = _with_hook(text, agent, event, group_of(agent, event, program, home))
    outdated = [entry for entry in _entries_in(text, agent) if agent.event(entry.event) is None]
    return _without_entries(text, agent, outdated, None)


def _with_hook(text: str, agent: HookedAgent, event: HookEvent, group: dict[str, Any]) -> str:
    """The settings with this group, or only its hook if ours shares a group with others."""
    syntax = agent.settings_file.syntax
    present = [entry for entry in _entries_in(text, agent) if entry.event == event.name]
    if not present:
        return with_item(text, ["hooks", event.name], group, syntax=syntax)
    first, *repeated = present
    path: list[str | int] = ["hooks", event.name, first.group]
    if first.is_alone:
        text = with_value(text, path, group, syntax=syntax)
    else:
        text = with_value(text, [*path, "hooks", first.number], group["hooks"][0], syntax=syntax)
    for entry in reversed(repeated):
        text = _without_entry(text, agent, entry)
    return text


def without_hooks(text: str, agent: HookedAgent, settings_before: Any = None) -> str:
    """The settings without our hooks, and without the lists that we made for them.

    A list that is empty then stays if it was in `settings_before`, the settings before we first changed them.
    """
    return _without_entries(text, agent, _entries_in(text, agent), settings_before)


def _entries_in(text: str, agent: HookedAgent) -> list[HookEntry]:
    return hook_entries(parse_settings(text, syntax=agent.settings_file.syntax), agent)


def _without_entries(text: str, agent: HookedAgent, entries: list[HookEntry], settings_before: Any) -> str:
    syntax = agent.settings_file.syntax
    for entry in reversed(entries):
        text = _without_entry(text, agent, entry)
    hooks_before = fields(settings_before).get("hooks")
    for event in {entry.event for entry in entries}:
        groups = parse_settings(text, syntax=syntax)["hooks"][event]
        if not groups and event not in fields(hooks_before):
            text = without(text, ["hooks", event], syntax=syntax)
    if entries and not parse_settings(text, syntax=syntax)["hooks"] and hooks_before is None:
        text = without(text, ["hooks"], syntax=syntax)
    return text


def _without_entry(text: str, agent: HookedAgent, entry: HookEntry) -> str:
    file = agent.settings_file
    path: list[str | int] = ["hooks", entry.event, entry.group]
    if not entry.is_alone:
        return without(text, [*path, "hooks", entry.number], syntax=file.syntax)
    groups = parse_settings(text, syntax=file.syntax)["hooks"][entry.event]
    if file.keeps_places and entry.group < len(groups) - 1:
        return with_value(text, path, _NOTHING, syntax=file.syntax)
    return without(text, path, syntax=file.syntax)


def check_settings(text: str, agent: HookedAgent) -> None:
    """Raise `Invalid` for settings that the agent would refuse, or would not read as we do."""
    _SettingsCheck(text, agent).run()


class _SettingsCheck:
    def __init__(self, text: str, agent: HookedAgent) -> None:
        self._text = text
        self._agent = agent
        self._file = agent.settings_file

    def run(self) -> None:
        settings = parse_settings(self._text, syntax=self._file.syntax)
        if self._text.startswith("\ufeff") and not self._file.takes_bom:
            self._refuse(f"begins with a byte order mark, which {self._agent.title} does not take")
        settings = self._object(settings)
        self._check_keys(settings)
        events = self._object(settings.get("hooks", {}), "hooks")
        ours = [event.name for event in self._agent.events if event.name in events]
        for event in events if self._file.is_strict else ours:
            self._check_event(event, events[event])

    def _check_keys(self, settings: dict[str, Any]) -> None:
        top_keys = self._file.top_keys
        for key in settings if top_keys else ():
            if key not in top_keys:
                self._refuse(f"is nothing that {self._agent.title} takes: only {', '.join(sorted(top_keys))}", key)
        for name, kind in self._file.kinds.items():
            path = name.split(".")
            value = table_at(settings, path)
            is_right = isinstance(value, kind) and not (kind is int and isinstance(value, bool))
            if value is not None and not is_right:
                self._refuse(f"is no {_KINDS[kind]}, so {self._agent.title} reads nothing of this file", *path)

    def _check_event(self, event: str, groups: object) -> None:
        if not isinstance(groups, list):
            self._refuse("is no list", "hooks", event)
        for index, group in enumerate(as_list(groups)):
            hooks = self._object(group, "hooks", event, index).get("hooks")
            if not isinstance(hooks, list):
                self._refuse("has no list of hooks", "hooks", event, index)
            for number, item in enumerate(as_list(hooks)):
                path = ("hooks", event, index, "hooks", number)
                hook = self._object(item, *path)
                if hook.get("type") == "command" and not isinstance(hook.get("command"), str):
                    self._refuse("has no command", *path)

    def _object(self, value: object, *path: str | int) -> dict[str, Any]:
        if not isinstance(value, dict):
            self._refuse("is no object", *path)
        return fields(value)

    def _refuse(self, why: str, *path: str | int) -> NoReturn:
        name = ".".join(map(str, path)) or "the whole"
        position = position_of(self._text, path, syntax=self._file.syntax)
        raise Invalid(f"{position}: {name} {why}", hint="mend it first, by hand")

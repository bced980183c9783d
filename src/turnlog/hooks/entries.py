"""Our entries among others in the settings of an agent: added behind the user's, found again, and taken out. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from turnlog.errors import Invalid
from turnlog.hooks import TIMEOUT_S, HookedAgent, HookEvent
from turnlog.hooks.call import call, home_in, program_in
from turnlog.machine.settings import as_list, as_object, place_of, plain, with_item, with_value, without
from turnlog.machine.toml import table_at

_KINDS = {bool: "boolean", dict: "object", int: "number", list: "list", str: "string"}
_NOTHING: dict[str, Any] = {"hooks": []}
"""A group that does nothing, and keeps the place of one that is gone."""


class HookEntry(NamedTuple):
    """One of ours, and where it stands."""

    event: str
    group: int
    place: int
    """Among the hooks of that group."""
    is_alone: bool
    program: str
    home: str
    """That it fills; empty for the usual one."""
    value: Any
    """The whole group, where it stands alone; else the hook itself."""


def group_of(agent: HookedAgent, event: HookEvent, program: str, home: str) -> dict[str, Any]:
    """What is to stand under an event."""
    name = {"name": agent.file.hook_name} if agent.file.hook_name else {}
    timeout = TIMEOUT_S * (1000 if agent.file.timeout_unit == "ms" else 1)
    hook = {**name, "type": "command", "command": call(program, agent.name, event.name, home), "timeout": timeout}
    return {**({"matcher": event.matcher} if event.matcher else {}), "hooks": [hook]}


def entries(settings: Any, agent: HookedAgent) -> list[HookEntry]:
    """Those of ours that are there, in order."""
    return list(_entries(settings, agent))


def _entries(settings: Any, agent: HookedAgent) -> Iterator[HookEntry]:
    for event, groups in as_object(as_object(settings).get("hooks")).items():
        for index, group in enumerate(as_list(groups)):
            hooks = as_list(as_object(group).get("hooks"))
            for number, hook in enumerate(hooks):
                command = as_object(hook).get("command")
                program = program_in(command, agent.name)
                if program is not None:
                    is_alone = len(hooks) == 1
                    value = group if is_alone else hook
                    yield HookEntry(event, index, number, is_alone, program, home_in(str(command)), value)


def are_current(entries: list[HookEntry], agent: HookedAgent) -> bool:
    """Whether these are all that this version would write for the program and home of the first, and no others."""
    program, home = entries[0].program, entries[0].home
    wanted = {event.name: group_of(agent, event, program, home) for event in agent.events}
    return len(entries) == len(wanted) and all(
        wanted.get(one.event) in (one.value, {**wanted.get(one.event, {}), "hooks": [one.value]}) for one in entries
    )


def added(text: str, agent: HookedAgent, program: str, home: str) -> str:
    """The settings with ours, each once, where they are or behind others. Raises where an agent would not read them."""
    check(text, agent)
    dialect = agent.file.dialect
    for event in agent.events:
        here = [one for one in entries(plain(text, dialect=dialect), agent) if one.event == event.name]
        wanted = group_of(agent, event, program, home)
        if not here:
            text = with_item(text, ["hooks", event.name], wanted, dialect=dialect)
        elif here[0].is_alone:
            text = with_value(text, ["hooks", event.name, here[0].group], wanted, dialect=dialect)
        else:
            path = ["hooks", event.name, here[0].group, "hooks", here[0].place]
            text = with_value(text, path, wanted["hooks"][0], dialect=dialect)
        for one in reversed(here[1:]):
            text = _without(text, agent, one)
    old = [one for one in entries(plain(text, dialect=dialect), agent) if agent.event(one.event) is None]
    return _without_all(text, agent, old, None)


def removed(text: str, agent: HookedAgent, before: Any = None) -> str:
    """The settings without ours; with what we made for them where that was there `before`, as far as that is known."""
    return _without_all(text, agent, entries(plain(text, dialect=agent.file.dialect), agent), before)


def _without_all(text: str, agent: HookedAgent, ours: list[HookEntry], before: Any) -> str:
    dialect = agent.file.dialect
    for one in reversed(ours):
        text = _without(text, agent, one)
    kept = as_object(before).get("hooks")
    for event in {one.event for one in ours}:
        groups = plain(text, dialect=dialect)["hooks"][event]
        if not groups and event not in as_object(kept):
            text = without(text, ["hooks", event], dialect=dialect)
    if ours and not plain(text, dialect=dialect)["hooks"] and kept is None:
        text = without(text, ["hooks"], dialect=dialect)
    return text


def _without(text: str, agent: HookedAgent, one: HookEntry) -> str:
    dialect = agent.file.dialect
    path: list[str | int] = ["hooks", one.event, one.group]
    if not one.is_alone:
        return without(text, [*path, "hooks", one.place], dialect=dialect)
    groups = plain(text, dialect=dialect)["hooks"][one.event]
    if agent.file.keeps_places and one.group < len(groups) - 1:
        return with_value(text, path, _NOTHING, dialect=dialect)
    return without(text, path, dialect=dialect)


def check(text: str, agent: HookedAgent) -> None:
    """Raise for what the agent would not read, or would not read as we do."""
    dialect = agent.file.dialect

    def need(is_right: bool, what: str, *path: str | int) -> None:
        if not is_right:
            name = ".".join(map(str, path)) or "the whole"
            raise Invalid(f"{place_of(text, path, dialect=dialect)}: {name} {what}", hint="mend it first, by hand")

    settings = plain(text, dialect=dialect)
    has_bom = text.startswith("\ufeff") and not agent.file.takes_bom
    need(not has_bom, f"begins with a byte order mark, which {agent.title} does not take")
    need(_is(settings, dict), "is no object")
    for key in settings if agent.file.top_keys else ():
        only = ", ".join(sorted(agent.file.top_keys))
        need(key in agent.file.top_keys, f"is nothing that {agent.title} takes: only {only}", key)
    for name, kind in agent.file.kinds.items():
        value = table_at(settings, path := name.split("."))
        is_right = value is None or (_is(value, kind) and not (kind is int and _is(value, bool)))
        need(is_right, f"is no {_KINDS[kind]}, so {agent.title} reads nothing of this file", *path)
    events = settings.get("hooks", {})
    need(_is(events, dict), "is no object", "hooks")
    ours = [event.name for event in agent.events if event.name in events]
    for event in events if agent.file.is_strict else ours:
        need(_is(events[event], list), "is no list", "hooks", event)
        for index, group in enumerate(events[event]):
            need(_is(group, dict), "is no object", "hooks", event, index)
            need(_is(group.get("hooks"), list), "has no list of hooks", "hooks", event, index)
            for number, hook in enumerate(group["hooks"]):
                need(_is(hook, dict), "is no object", "hooks", event, index, "hooks", number)
                is_whole = hook.get("type") != "command" or _is(hook.get("command"), str)
                need(is_whole, "has no command", "hooks", event, index, "hooks", number)


def _is(value: object, kind: type) -> bool:
    return isinstance(value, kind)

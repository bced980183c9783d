"""Hooks and the home that they fill: where they go, and what is remembered of them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from turnlog.hooks.trace import NAME as LOG
from turnlog.hooks.trace import AgentTrace, read_traces
from turnlog.machine.environment import default_home, environment, state_folder, user_folder, usual_home
from turnlog.machine.location import folder_of

if TYPE_CHECKING:
    from turnlog.hooks.places import HookPlaces
    from turnlog.machine.imprint import Imprints

_SEEN = "hooks-seen"


def hook_places(location: str | None) -> HookPlaces:
    """The places of the hooks here. For a home that is no folder, this machine remembers what was changed."""
    from turnlog.hooks.places import HookPlaces
    from turnlog.reader.naming.here import project

    return HookPlaces(user_folder(), environment(), project(), imprints(location, "hooks"), home_for_settings(location))


def imprints(location: str | None, purpose: str) -> Imprints:
    """Where it is remembered what was changed in other programs' files."""
    from turnlog.machine.imprint import Imprints

    return Imprints(_settings_folder(location), purpose)


def home_for_settings(location: str | None) -> str:
    """The home that was chosen, if it is a folder and not the usual one: agents need not know of what was chosen here.

    What names a database may hold a password, and is not written into anybody's settings.
    """
    folder = folder_of(location or default_home())
    return "" if folder is None or folder == usual_home() else folder


def machine_folder_of(location: str | None) -> str:
    """The folder in which a home keeps what is of this machine."""
    return folder_of(location or default_home()) or state_folder()


def _settings_folder(location: str | None) -> str:
    return f"{machine_folder_of(location)}/settings"


def mark_hooks_seen(location: str | None) -> None:
    """Remember that the user saw the status of hooks, so that the hint is not shown again."""
    folder = _settings_folder(location)
    try:
        os.makedirs(folder, 0o700, exist_ok=True)
        with open(f"{folder}/{_SEEN}", "a", encoding="utf-8"):
            pass
    except OSError:
        return  # then the notice is shown again


def unseen_agents(location: str | None) -> list[str]:
    """The agents here without hooks; none if the user saw that already, or turned such offers off."""
    if environment().get("TURNLOG_OFFERS") == "off" or os.path.exists(f"{_settings_folder(location)}/{_SEEN}"):
        return []
    from turnlog.hooks import agents_without_hooks

    return agents_without_hooks(user_folder(), environment())


def has_hooks(location: str | None) -> bool:
    """Whether hooks have ever told anything to that home."""
    return os.path.exists(f"{machine_folder_of(location)}/{LOG}")


def last_hook_events(location: str | None) -> dict[str, AgentTrace]:
    """Of each agent, what its hooks reported last, and what went wrong."""
    return read_traces(machine_folder_of(location))

"""Hooks and the home that they fill: where they go, what is remembered of them, and how much room there is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from turnlog.hooks.trace import NAME as LOG
from turnlog.hooks.trace import newest
from turnlog.machine.environment import default_home, environment, state_folder, user_folder, usual_home
from turnlog.machine.location import folder_of

if TYPE_CHECKING:
    from turnlog.hooks.install import HookPlaces
    from turnlog.machine.imprint import Imprints
    from turnlog.machine.space import Space

_SEEN = "hooks-seen"


def hook_places(location: str | None) -> HookPlaces:
    """The places of here. A home that is no folder leaves what is to be remembered to this machine."""
    from turnlog.hooks.install import HookPlaces
    from turnlog.reader.folder import project

    return HookPlaces(user_folder(), environment(), project(), imprints(location, "hooks"), filled_home(location))


def imprints(location: str | None, purpose: str) -> Imprints:
    """Where it is remembered what was changed in other programs' files."""
    from turnlog.machine.imprint import Imprints

    return Imprints(f"{memory(location)}/settings", purpose)


def filled_home(location: str | None) -> str:
    """The home that was chosen, if it is a folder and not the usual one: agents need not know of what was chosen here.

    What names a database may hold a password, and is not written into anybody's settings.
    """
    folder = folder_of(location or default_home())
    return "" if folder is None or folder == usual_home() else folder


def memory(location: str | None) -> str:
    """The folder in which a home keeps what is of this machine."""
    return folder_of(location or default_home()) or state_folder()


def see_hooks(location: str | None) -> None:
    """Remember that the user saw the status of hooks, so that the hint is not shown again."""
    folder = f"{memory(location)}/settings"
    try:
        os.makedirs(folder, 0o700, exist_ok=True)
        with open(f"{folder}/{_SEEN}", "a", encoding="utf-8"):
            pass
    except OSError:
        return  # then the notice is shown again


def unseen_agents(location: str | None) -> list[str]:
    """The agents that are here and not hooked, where nobody has looked at that yet, nor wants to hear of it."""
    if environment().get("TURNLOG_OFFERS") == "off" or os.path.exists(f"{memory(location)}/settings/{_SEEN}"):
        return []
    from turnlog.hooks import unhooked

    return unhooked(user_folder(), environment())


def has_hooks(location: str | None) -> bool:
    """Whether hooks have ever told anything to that home."""
    return os.path.exists(f"{memory(location)}/{LOG}")


def last_told(location: str | None) -> dict[str, dict[str, Any]]:
    """Of each agent, what its hooks told last, and what went wrong."""
    return newest(memory(location))


def room(location: str | None) -> tuple[int, Space] | None:
    """What the blobs of a home take, and may take; None for a home that is no folder."""
    from turnlog.machine.space import space

    folder = folder_of(location or default_home())
    if folder is None:
        return None
    try:
        with os.scandir(f"{folder}/blobs") as entries:
            used = sum(entry.stat().st_size for entry in entries)
    except OSError:
        used = 0  # there are none yet
    return used, space(folder)

"""Where hooks go and where they are remembered: the folders of this user, of here, and of a home."""

from __future__ import annotations

from turnlog.hooks.install import HookPlaces
from turnlog.machine.environment import default_home, environment, state_folder, user_folder
from turnlog.machine.imprint import Imprints
from turnlog.machine.location import folder_of
from turnlog.reader.folder import project


def hook_places(location: str | None) -> HookPlaces:
    """The places of here. A home that is no folder leaves what is to be remembered to this machine."""
    folder = folder_of(location or default_home()) or state_folder()
    return HookPlaces(user_folder(), environment(), project(), Imprints(f"{folder}/settings", "hooks"))

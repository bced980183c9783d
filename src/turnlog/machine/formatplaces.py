"""The folders of this machine, as formats ask for them, and whether a path is in those of an agent."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from turnlog.machine.environment import environment, user_folder
from turnlog.machine.folder import absolute, named_here

if TYPE_CHECKING:
    from turnlog.formats import Format, Places


def places_of(workspace: str | None) -> Places:
    """The folders of this machine, as formats ask for them."""
    from turnlog.formats import Places

    return Places(home=user_folder(), workspace=named_here(workspace or "."), environ=dict(environment()))


def places_of_person() -> Places:
    """The same without a workspace: then formats name only the folders with all sessions of this person."""
    from msgspec.structs import replace

    return replace(places_of(None), workspace=None)


def lies_in_home(form: Format, there: str) -> bool:
    """Whether a path is in a folder where the agent keeps this user's sessions; folders in a workspace do not count."""
    path = os.path.realpath(absolute(there)).rstrip("/") + "/"
    homes = form.homes(places_of_person())
    return any(path.startswith(os.path.realpath(home).rstrip("/") + "/") for home in homes)

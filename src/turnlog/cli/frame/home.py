"""The home that the options say. Knows nothing of click."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnlog.cli.frame.progress import tell

if TYPE_CHECKING:
    from turnlog.session import Home


class _Chosen:
    location: str | None = None


def choose_home(location: str | None) -> None:
    """What the options of this command say; None where they say nothing."""
    _Chosen.location = location


def home_location() -> str | None:
    """What the options say where the home is."""
    return _Chosen.location


def this_home() -> Home:
    """The home that the options say, or the default one. What takes long in it tells `progress`."""
    from msgspec.structs import replace

    from turnlog.machine.environment import default_home
    from turnlog.machine.location import folder_of
    from turnlog.machine.retention import trash_for
    from turnlog.session import open_home

    home = open_home(home_location())
    folder = folder_of(home_location() or default_home())
    stays = trash_for(folder) if folder is not None else None
    home.settings = replace(home.settings, progress=tell, trash_for=stays)
    return home
